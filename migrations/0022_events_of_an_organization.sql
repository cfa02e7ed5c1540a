-- Events are found by envelope or by id: what says whose they are need not be in order,
-- and takes a tenth of the room.
drop index event_by_org;
create index event_by_org on event (bucket, org_id);
