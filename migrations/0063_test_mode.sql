-- Mails and text messages of test data: they are kept for the organization to read, and not sent.
create table test_message (
    bucket bigint not null,
    message_id text not null,
    org_id text not null,
    -- Job and content: a repeated job adds nothing.
    source text not null,
    channel text not null,
    envelope_id text,
    sent_to text not null,
    subject text,
    body text not null,
    -- Where the message's button leads.
    link text,
    -- File names, as a JSON array.
    attachments text not null,
    at text not null,
    primary key (bucket, message_id)
);
create unique index test_message_by_source on test_message (bucket, org_id, source);
create index test_message_by_time on test_message (at);

-- How far an organization has advanced the time of its test data.
create table test_clock (
    bucket bigint not null,
    org_id text not null,
    advanced_seconds bigint not null,
    primary key (bucket, org_id)
);
