-- Questions of signers to the sender. While one is open, the envelope waits for the sender.
create table signer_question (
    bucket bigint not null,
    question_id text not null,
    org_id text not null,
    envelope_id text not null,
    -- Signer as of the question: another person may take the place later.
    signer_id text not null,
    position bigint not null,
    name text not null,
    email text not null,
    role text not null,
    question text not null,
    asked_at text not null,
    -- None of a question that is open, or was dismissed.
    answer text,
    closed_by text,
    closed_at text,
    primary key (bucket, envelope_id, question_id)
);
create index signer_question_open on signer_question (bucket, org_id, envelope_id) where closed_at is null;

-- Whether signers may decline.
alter table envelope add column may_decline integer not null default 1;
alter table template add column may_decline integer not null default 1;
