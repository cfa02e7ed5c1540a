-- Transfers of control. A row is in the bucket of the seller.
create table control_transfer (
    bucket bigint not null,
    transfer_id text not null,
    -- The seller.
    org_id text not null,
    buyer_id text not null,
    state text not null,
    -- Whether all records move together or none.
    atomic bigint not null,
    terms text,
    price_reference text,
    expires_at text not null,
    created_at text not null,
    changed_at text not null,
    -- The party and the credential that asked for the step in progress. No party: the time was over.
    acting_id text,
    actor text not null,
    -- Null until the buyer has got the offer.
    offered_at text,
    -- What the buyer accepted.
    receipt text,
    primary key (bucket, transfer_id)
);
create index control_transfer_by_id on control_transfer (transfer_id);
create index control_transfer_by_buyer on control_transfer (buyer_id, transfer_id);
create index control_transfer_by_org on control_transfer (bucket, org_id, transfer_id);
create index control_transfer_due on control_transfer (state, expires_at);

-- The records of a transfer.
create table control_transfer_record (
    bucket bigint not null,
    transfer_id text not null,
    envelope_id text not null,
    org_id text not null,
    state text not null,
    -- SHA-256 of the authoritative copy when it was offered.
    document_hash text,
    -- Why the record does not move: a code of the API and a sentence.
    code text,
    reason text,
    primary key (bucket, transfer_id, envelope_id)
);
create index control_transfer_record_by_org on control_transfer_record (bucket, org_id);
create index control_transfer_record_by_state
    on control_transfer_record (bucket, transfer_id, state, envelope_id);
