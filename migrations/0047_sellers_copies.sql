-- What becomes of the seller's copy when a transfer is confirmed: `kept`, `marked` or `removed`.
alter table control_transfer add column seller_copy text not null default 'kept';

-- Parties that have sold a record, with what they agreed about their copy. A row is in the bucket of the
-- originator. It ends when the party gets control again.
create table control_sold (
    bucket bigint not null,
    envelope_id text not null,
    party_id text not null,
    org_id text not null,
    transfer_id text not null,
    copy text not null,
    sold_at text not null,
    primary key (bucket, envelope_id, party_id)
);
create index control_sold_by_party on control_sold (party_id, envelope_id);
create index control_sold_by_org on control_sold (bucket, org_id);
