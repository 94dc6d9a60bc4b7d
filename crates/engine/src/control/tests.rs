//! Tests of the operations that the control plane may and may not do.

mod batches;
mod clock;
mod entries;
mod objects;
mod snapshots;

use super::*;
use crate::test_programs::{Bodies, send};
use crate::{Packet, Switch};
use ControlErrorCode::*;
use ir::ActionId;

const EXACT: TableId = TableId(0);
const TERNARY: TableId = TableId(1);
const CONSTANT: TableId = TableId(2);
const KEYLESS: TableId = TableId(3);
const MIXED: TableId = TableId(4);
const FORWARD: ActionId = ActionId(0);
const DROP: ActionId = ActionId(1);

/// Single updates.
impl Switch {
    pub(crate) fn modify_entry(
        &mut self,
        table: TableId,
        entry: Entry,
    ) -> Result<(), ControlError> {
        self.apply_modify(table, &entry, false).map(|_| ())
    }

    pub(crate) fn set_default_action(
        &mut self,
        table: TableId,
        action: ActionCall,
    ) -> Result<(), ControlError> {
        self.apply_default_action(table, Some(action), None)
            .map(|_| ())
    }

    pub(crate) fn reset_default_action(&mut self, table: TableId) -> Result<(), ControlError> {
        self.apply_default_action(table, None, None).map(|_| ())
    }

    pub(crate) fn set_value_set_members(
        &mut self,
        value_set: ValueSetId,
        members: Vec<Vec<KeyMatch>>,
    ) -> Result<(), ControlError> {
        self.apply_value_set(value_set, members).map(|_| ())
    }

    pub(crate) fn configure_digest(
        &mut self,
        digest: DigestId,
        config: DigestConfig,
    ) -> Result<(), ControlError> {
        let operation = match self.digest_config(digest)? {
            Some(_) => Operation::Modify,
            None => Operation::Insert,
        };
        self.apply_digest(operation, digest, config).map(|_| ())
    }
}

fn bits(width: u32, value: u64) -> Bits {
    Bits::from_u64(width, value)
}

fn exact(value: u64) -> Vec<KeyMatch> {
    vec![KeyMatch::Value(bits(8, value))]
}

fn ternary(value: u64, mask: u64) -> Vec<KeyMatch> {
    vec![KeyMatch::Masked {
        value: bits(16, value),
        mask: bits(16, mask),
    }]
}

fn call(action: ActionId, args: Vec<Bits>) -> ActionCall {
    ActionCall { action, args }
}

fn forward(matches: Vec<KeyMatch>, priority: i32, port: u64) -> Entry {
    Entry::new(matches, priority, call(FORWARD, vec![bits(9, port)]))
}

/// Makes a switch that applies the exact table to a packet's kind, but the constant table if the kind is 0xc0.
fn switch() -> Switch {
    Bodies {
        ingress: "if eq(%17, 8w0xc0) { apply t2 (%18) } else { apply t0 (%17) }",
        ..Bodies::default()
    }
    .switch()
}

fn code(result: Result<(), ControlError>) -> ControlErrorCode {
    result.expect_err("is refused").code
}

fn group(group_id: u32, ports: &[u32]) -> Entity {
    let replicas = ports.iter().map(|&port| Replica { port, rid: 0 }).collect();
    Entity::MulticastGroup(MulticastGroup { group_id, replicas })
}

#[test]
fn ids_are_found_by_p4runtime_id() {
    let program = Bodies::default().program();
    assert_eq!(ids::table(&program, 5), Some(MIXED));
    assert_eq!(ids::table(&program, 99), None);
    assert_eq!(ids::action_profile(&program, 2), Some(ActionProfileId(1)));
    assert_eq!(ids::action(&program, 2), Some(DROP));
}
