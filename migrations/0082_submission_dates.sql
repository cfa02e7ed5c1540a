-- Form of the dates in a document, from its first page shown to its vaulted copy. None for earlier documents, which
-- follow the organization's setting.
alter table room_submission add column date_format text;
