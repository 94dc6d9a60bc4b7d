//! The delivery of a digest's messages (specification, "DigestEntry").

use super::EntityKind;
use crate::answer::{Answer, Source};
use crate::errors::{invalid, not_found};
use crate::messages::messages;
use crate::pipeline::Pipeline;
use crate::plan::Plan;
use crate::served::Served;
use crate::transfer::{Place, Transfer};
use engine::Switch;
use engine::control::{ControlError, Entity, Operation};
use engine::digest;
use ir::DigestId;

messages! {
    DigestEntry { id: u32 = (uint32) "1"; config: Option<DigestConfig> = (message, optional) "2"; }
    DigestConfig {
        max_timeout_ns: i64 = (int64) "1";
        max_list_size: i32 = (int32) "2";
        ack_timeout_ns: i64 = (int64) "3";
    }
}

impl Served for DigestEntry {
    fn object_id(&self) -> u32 {
        self.id
    }

    fn plan(&self, pipeline: &Pipeline, operation: Operation) -> Result<Plan, ControlError> {
        let digest = pipeline.info.digests.by_id(self.id)?;
        digest.ty.as_ref().map_err(Clone::clone)?;
        let mut config = digest::DigestConfig::default();
        if operation != Operation::Delete
            && let Some(given) = &self.config
        {
            let negative = |field: &str| {
                let name = &digest.name;
                invalid(format!("digest '{name}': {field} is negative"))
            };
            config.max_timeout_ns =
                u64::try_from(given.max_timeout_ns).map_err(|_| negative("max_timeout_ns"))?;
            config.max_list_size =
                u32::try_from(given.max_list_size).map_err(|_| negative("max_list_size"))?;
            config.ack_timeout_ns =
                u64::try_from(given.ack_timeout_ns).map_err(|_| negative("ack_timeout_ns"))?;
        }
        let digest = DigestId(digest.number as u32);
        Ok(Plan::one(operation, Entity::Digest { digest, config }))
    }

    fn answer(&self, source: &mut Source<'_>) -> Result<Answer, ControlError> {
        let digests = source.wanted(&source.pipeline.info.digests, self.id)?;
        let digests = digests.filter_map(|digest| {
            let config = source.switch.digest_config(DigestId(digest.number as u32));
            let config = config.ok()??;
            let config = DigestConfig {
                max_timeout_ns: config.max_timeout_ns as i64,
                max_list_size: config.max_list_size as i32,
                ack_timeout_ns: config.ack_timeout_ns as i64,
            };
            let (id, config) = (digest.id, Some(config));
            Some(EntityKind::Digest(DigestEntry { id, config }))
        });
        super::found(digests.collect(), self.id, |id| {
            not_found(format!("digest {id} is not enabled"))
        })
    }

    fn at_once(&self) -> Option<(u32, u32)> {
        Some((self.id, 0))
    }
}

/// Plans the update that copies the configuration of one of the old pipeline's digests, the one at position `at` in
/// the P4Info, to the switch with the new pipeline; none if the digest is moved as a whole. Returns the position at
/// which to continue, `None` after the last digest.
pub(super) fn transfer(
    transfer: &mut Transfer<'_>,
    switch: &Switch,
    (at, _): Place,
) -> Result<Option<Place>, ControlError> {
    let (old, moves) = (transfer.old, transfer.moves);
    let Some(digest) = old.info.digests.list.get(at) else {
        return Ok(None);
    };
    let config = switch.digest_config(DigestId(digest.number as u32))?;
    let config = config.filter(|_| !moves.has_digest(digest.number));
    if let (Some(config), Some(target)) = (config, transfer.new.info.digests.get(digest.id)) {
        let digest = DigestId(target.number as u32);
        transfer.update(Operation::Insert, Entity::Digest { digest, config });
    }
    Ok(Some((at + 1, 0)))
}
