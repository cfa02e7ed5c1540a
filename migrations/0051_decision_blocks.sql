-- Blocks of decisions: an entry of the organization's ledger commits to each. Null until a decision is in one.
alter table lifecycle_decision add column block bigint;
alter table control_decision add column block bigint;
alter table evaluation add column block bigint;
-- The evaluation itself; null for evaluations of earlier releases.
alter table evaluation add column answer text;

-- Decisions about where the fields of a template are.
create table placement_decision (
    bucket bigint not null,
    decision_id text not null,
    org_id text not null,
    template_id text not null,
    -- SHA-256 of the document.
    document text not null,
    facts text not null,
    answer text not null,
    component text not null,
    at text not null,
    block bigint,
    primary key (bucket, decision_id)
);

create index lifecycle_decision_without_block on lifecycle_decision (org_id) where block is null;
create index control_decision_without_block on control_decision (controller_id) where block is null;
create index evaluation_without_block on evaluation (org_id) where block is null;
create index placement_decision_without_block on placement_decision (org_id) where block is null;
create index lifecycle_decision_by_block on lifecycle_decision (org_id, block) where block is not null;
create index control_decision_by_block on control_decision (controller_id, block) where block is not null;
create index evaluation_by_block on evaluation (org_id, block) where block is not null;
create index placement_decision_by_block on placement_decision (org_id, block) where block is not null;
