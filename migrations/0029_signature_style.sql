-- Style of a submitter's typed signatures; null when none was chosen.
alter table room_submitter add column signature_style text;
