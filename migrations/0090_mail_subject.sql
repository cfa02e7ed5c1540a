-- The sender's own subject of the mails that ask signers.
alter table envelope add column subject text;
