-- Language, form of dates and time zone of the files that vault-in writes (JSON), as they were when it
-- began. Null for intents made before this column: those files are in English.
alter table vault_intent add column wording text;
