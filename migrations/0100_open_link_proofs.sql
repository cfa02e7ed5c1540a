-- Whether the browser of a visitor computes for a while before a record is made (`on`, `off`). Used challenges are counted in
-- open_link_count, with their random part as the network.
alter table open_link add column proof_of_work text not null default 'on';
