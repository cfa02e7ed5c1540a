-- What took the place of a template's upload about which readers could disagree, with both hashes.
alter table template add column document_repair text;
