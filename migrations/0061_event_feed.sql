-- Places of events in the feed of their organization, given when the feed is read: the order in which events became
-- visible, which is not that of their ids.
create table event_place (
    bucket bigint not null,
    org_id text not null,
    position bigint not null,
    event_id text not null,
    placed_at text not null,
    primary key (bucket, org_id, position)
);
create unique index event_place_by_event on event_place (bucket, org_id, event_id);
create index event_place_by_time on event_place (placed_at);
