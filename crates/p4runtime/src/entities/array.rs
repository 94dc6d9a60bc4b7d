//! Arrays of cells, which have an index: the parts of counters, meters and registers that are the same.

use super::EntityKind;
use crate::answer::{Answer, Copied, PER_SLICE, Slice, Sliced};
use crate::errors::{invalid, out_of_range};
use crate::messages as m;
use crate::pipeline::Pipeline;
use crate::protobuf::nested;
use engine::Switch;
use engine::control::{ControlError, Operation};
use engine::refuse;
use std::fmt::Debug;

/// A message that selects cells of an array.
pub(super) trait Array: Clone + Debug + Send + Sync + 'static {
    type Cell: Debug + Send + Sync;

    /// Reads the cell at `index` of the array with this number in the program. Fails if there is no such cell.
    fn cell(switch: &Switch, number: u32, index: u64) -> Result<Self::Cell, ControlError>;

    /// Returns the message for the cell at `index` of the array with this P4Info id.
    fn entity(&self, pipeline: &Pipeline, id: u32, index: u64, cell: &Self::Cell) -> EntityKind;
}

/// The selected cells of an array that have not been copied yet.
#[derive(Debug)]
struct Rest<A> {
    asked: A,
    id: u32,
    number: u32,
    first: u64,
    end: u64,
}

impl<A: Array> Sliced for Rest<A> {
    fn fetch(&mut self, switch: &Switch) -> Result<(Slice, bool), ControlError> {
        let (id, first) = (self.id, self.first);
        self.first = self.end.min(first + u64::from(PER_SLICE));
        let cells = (first..self.first).map(|index| A::cell(switch, self.number, index));
        let cells = cells.collect::<Result<_, _>>()?;
        let slice = Slice::of(Cells {
            asked: self.asked.clone(),
            id,
            first,
            cells,
        });
        Ok((slice, self.first < self.end))
    }
}

#[derive(Debug)]
struct Cells<A: Array> {
    asked: A,
    id: u32,
    first: u64,
    cells: Vec<A::Cell>,
}

impl<A: Array> Copied for Cells<A> {
    fn encode(&self, pipeline: &Pipeline, out: &mut Vec<u8>) {
        for (index, cell) in (self.first..).zip(&self.cells) {
            let entity = self.asked.entity(pipeline, self.id, index, cell);
            nested(out, 1, |out| entity.encode(out));
        }
    }
}

/// Answers a read of counters, meters or registers: of the cell at `index`, or of all cells if `index` is `None`.
/// `arrays` yields for each array its P4Info id, its number in the program, its name and its size. Fails with
/// INVALID_ARGUMENT if there is an index but no id (0 selects all arrays).
pub(super) fn cells<'a, A: Array>(
    asked: &A,
    kind: &str,
    id: u32,
    index: Option<&m::Index>,
    arrays: impl Iterator<Item = (u32, usize, &'a str, u64)>,
) -> Result<Answer, ControlError> {
    refuse!(id == 0 && index.is_some() => InvalidArgument, "a read of all {kind}s takes no index");
    let mut answer = Answer::default();
    for (id, number, name, size) in arrays {
        let (first, end) = match cell_of(index, size, || format!("{kind} '{name}'"))? {
            None => (0, size),
            Some(index) => (index, index + 1),
        };
        if first < end {
            let (asked, number) = (asked.clone(), number as u32);
            answer.push(Rest {
                asked,
                id,
                number,
                first,
                end,
            });
        }
    }
    Ok(answer)
}

/// Returns the number of the cell that an optional index selects, `None` for all cells. Fails if the index is
/// negative or not below `size`; `what` names the object in the message.
pub(super) fn cell_of(
    index: Option<&m::Index>,
    size: u64,
    what: impl Fn() -> String,
) -> Result<Option<u64>, ControlError> {
    let Some(m::Index { index }) = index else {
        return Ok(None);
    };
    match u64::try_from(*index) {
        Err(_) => Err(invalid(format!("{}: index {index} is negative", what()))),
        Ok(index) if index >= size => Err(out_of_range(format!(
            "{}: index {index}, but there are {size} cells",
            what()
        ))),
        Ok(index) => Ok(Some(index)),
    }
}

pub(super) fn index_message(index: u64) -> Option<m::Index> {
    let index = index as i64;
    Some(m::Index { index })
}

pub(super) fn modify_only(
    operation: Operation,
    what: impl Fn() -> String,
) -> Result<(), ControlError> {
    match operation {
        Operation::Modify => Ok(()),
        _ => Err(invalid(format!(
            "{} can be modified, not inserted or deleted",
            what()
        ))),
    }
}
