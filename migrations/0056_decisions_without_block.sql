-- Decisions that are in no block yet, in their order. The order was sorted for each block before.
drop index lifecycle_decision_without_block;
drop index control_decision_without_block;
drop index evaluation_without_block;
drop index placement_decision_without_block;
create index lifecycle_decision_without_block on lifecycle_decision (org_id, decision_id) where block is null;
create index control_decision_without_block on control_decision (controller_id, decision_id) where block is null;
create index evaluation_without_block on evaluation (org_id, envelope_id) where block is null;
create index placement_decision_without_block on placement_decision (org_id, decision_id) where block is null;
