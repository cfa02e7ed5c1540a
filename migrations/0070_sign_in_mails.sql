-- Mails with a link that somebody asked for at the sign-in page, by the network that asked. One link may be mailed
-- several times.
create table sign_in_mail (
    bucket bigint not null,
    org_id text not null,
    user_id text not null,
    link_id text not null,
    network text not null,
    sent_at text not null,
    primary key (bucket, link_id, sent_at)
);
create index sign_in_mail_by_user on sign_in_mail (bucket, org_id, user_id, sent_at);
