//! The answer to one entity of a read: what has been read at once, and what is read slice by slice.

use crate::info::{Named, Names};
use crate::pipeline::{Pipeline, replaced};
use engine::Switch;
use engine::control::{ControlError, TableSnapshot};
use ir::TableId;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;

/// The most table entries, or cells, in one slice of an answer.
pub(crate) const PER_SLICE: u32 = 512;

/// What the answers to one request read: a switch, and the open snapshots of its tables. There is at most one
/// snapshot of a table, since each costs time with every change of the table.
pub(crate) struct Source<'a> {
    pub pipeline: &'a Pipeline,
    pub switch: &'a mut Switch,
    pub role: &'a str,
    pub snapshots: BTreeMap<TableId, Arc<TableSnapshot>>,
}

impl<'a> Source<'a> {
    pub fn snapshot(&mut self, table: TableId) -> Result<Arc<TableSnapshot>, ControlError> {
        if let Some(open) = self.snapshots.get(&table) {
            return Ok(open.clone());
        }
        let open = self.switch.snapshot_table(table)?;
        self.snapshots.insert(table, open.clone());
        Ok(open)
    }

    /// Returns the object with this id or, if `id` is 0, all objects that the role may access. Fails if there is no
    /// such object.
    pub fn wanted<T: Named>(
        &self,
        objects: &'a Names<T>,
        id: u32,
    ) -> Result<impl Iterator<Item = &'a T> + use<'a, T>, ControlError> {
        if id != 0 {
            objects.by_id(id)?;
        }
        let (info, role) = (&self.pipeline.info, self.role);
        Ok(objects.list.iter().filter(move |object| match id {
            0 => info.role_may(role, object.id()),
            id => object.id() == id,
        }))
    }
}

/// The answer to one entity of a request.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    parts: VecDeque<Part>,
    /// True if the entity asks for one entry, so that the read fails with NOT_FOUND if the answer has none.
    pub must_find: bool,
}

#[derive(Debug)]
enum Part {
    Found(Arc<dyn Copied>),
    Copied(Slice),
    Rest(Box<dyn Sliced>),
}

/// State of the switch that is copied slice by slice.
pub(crate) trait Sliced: Debug + Send + Sync {
    /// Copies the next slice of the state, and returns it with true if more slices follow. Fails if that slice cannot
    /// be read within bounded time.
    fn fetch(&mut self, switch: &Switch) -> Result<(Slice, bool), ControlError>;
}

/// State that has been copied from the switch and can be encoded.
pub(crate) trait Copied: Debug + Send + Sync {
    /// Appends the requested parts of the state, as fields of a `ReadResponse`.
    fn encode(&self, pipeline: &Pipeline, out: &mut Vec<u8>);
}

/// A slice of state that has been copied from the switch and is not encoded yet.
#[derive(Debug)]
pub struct Slice(pub(crate) Box<dyn Copied>);

impl Slice {
    pub(crate) fn of(copied: impl Copied + 'static) -> Slice {
        Slice(Box::new(copied))
    }
}

impl Copied for Arc<dyn Copied> {
    fn encode(&self, pipeline: &Pipeline, out: &mut Vec<u8>) {
        (**self).encode(pipeline, out);
    }
}

impl Answer {
    /// Builds an answer whose only part is `found`, state that was copied from the switch when the read began.
    pub fn of(found: impl Copied + 'static) -> Answer {
        Answer::shared(Arc::new(found))
    }

    /// Builds an answer whose only part is `found`, which an answer to an earlier entity of the same request has
    /// copied from the switch already.
    pub fn shared(found: Arc<dyn Copied>) -> Answer {
        let mut answer = Answer::default();
        answer.parts.push_back(Part::Found(found));
        answer
    }

    /// Returns the state with which [`Answer::of`] made this answer, so that equal entities of a request can share
    /// it; `None` if the answer begins with a slice that is yet to be copied.
    pub fn at_once(&self) -> Option<Arc<dyn Copied>> {
        match self.parts.front() {
            Some(Part::Found(found)) => Some(Arc::clone(found)),
            _ => None,
        }
    }

    /// Appends a part that is state that has already been copied from the switch.
    pub fn push_copied(&mut self, copied: impl Copied + 'static) {
        self.parts.push_back(Part::Copied(Slice::of(copied)));
    }

    pub fn push(&mut self, rest: impl Sliced + 'static) {
        self.parts.push_back(Part::Rest(Box::new(rest)));
    }

    /// Copies the next slice from the switch and returns it; `None` at the end.
    pub fn fetch(
        &mut self,
        pipeline: &Pipeline,
        switch: &Switch,
    ) -> Result<Option<Slice>, ControlError> {
        let Some(part) = self.parts.pop_front() else {
            return Ok(None);
        };
        Ok(Some(match part {
            Part::Found(found) => Slice::of(found),
            Part::Copied(slice) => slice,
            Part::Rest(mut rest) => {
                if !Arc::ptr_eq(switch.program(), &pipeline.program) {
                    return Err(replaced("Read"));
                }
                let (slice, more) = rest.fetch(switch)?;
                if more {
                    self.parts.push_front(Part::Rest(rest));
                }
                slice
            }
        }))
    }
}
