//! Cells of registers and counters.

use std::collections::BTreeMap;

/// The counts of a counter cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterData {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl CounterData {
    /// Counts one more packet of `packet_bytes` bytes. Both counts wrap around.
    #[inline]
    pub fn count(&mut self, packet_bytes: usize) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(packet_bytes as u64);
    }
}

/// Arrays of up to this many limbs are allocated whole; larger ones keep only the cells that were written.
const DENSE_LIMBS: u64 = 1 << 22;

/// Cells with their indices, and the index at which a search for further ones continues.
pub(crate) type CellSlice<'a> = (Vec<(u64, &'a [u64])>, Option<u64>);

/// An array of cells with a fixed number of 64-bit limbs each, initially zero. It is either dense or sparse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    size: u64,
    pub(crate) stride: usize,
    dense: Vec<u64>,
    /// In a sparse array: the cells that differ from `rest`, or once did.
    sparse: BTreeMap<u64, Box<[u64]>>,
    /// In a sparse array: the value of all other cells.
    rest: Box<[u64]>,
}

impl Cells {
    pub(crate) fn new(size: u64, stride: usize) -> Cells {
        let limbs = size
            .checked_mul(stride as u64)
            .filter(|&n| n <= DENSE_LIMBS);
        Cells {
            size,
            stride,
            dense: vec![0; limbs.unwrap_or(0) as usize],
            sparse: BTreeMap::new(),
            rest: vec![0; stride].into(),
        }
    }

    /// Sets all cells to one value, given in limbs.
    pub(crate) fn fill(&mut self, value: &[u64]) {
        self.sparse.clear();
        self.rest.copy_from_slice(value);
        for cell in self.dense.chunks_exact_mut(self.stride) {
            cell.copy_from_slice(value);
        }
    }

    /// Returns the first cells at or behind index `from` that are not zero, with their indices in ascending order, and
    /// the index at which to continue, `None` at the end. Returns at most `most` cells, and looks at no more than
    /// [`LOOKED_AT`] times as many. Returns `None` in place of both if too many cells would have to be looked at,
    /// because all cells of a large array were set.
    pub(crate) fn nonzero_from(&self, from: u64, most: usize) -> Option<CellSlice<'_>> {
        let most = most.max(1);
        let window = most.saturating_mul(LOOKED_AT);
        let is_nonzero = |cell: &[u64]| cell.iter().any(|&limb| limb != 0);
        if !self.dense.is_empty() {
            let count = self.dense.len() / self.stride;
            let first = usize::try_from(from).map_or(count, |from| from.min(count));
            let end = count.min(first.saturating_add(window));
            let cells =
                self.dense[first * self.stride..end * self.stride].chunks_exact(self.stride);
            let cells = (first as u64..).zip(cells);
            let found = cells.filter(|(_, cell)| is_nonzero(cell));
            return Some(first_of(found, most, (end < count).then_some(end as u64)));
        }
        if is_nonzero(&self.rest) {
            return None;
        }
        let next = self
            .sparse
            .range(from..)
            .nth(window)
            .map(|(&index, _)| index);
        let cells = self.sparse.range(from..).take(window);
        let cells = cells.map(|(&index, cell)| (index, &**cell));
        let found = cells.filter(|(_, cell)| is_nonzero(cell));
        Some(first_of(found, most, next))
    }

    /// Returns the limbs (64-bit words) of all cells, one cell after the other, and the number of limbs of a cell.
    /// The list of limbs is empty if the cells are stored sparsely.
    pub(crate) fn limbs_mut(&mut self) -> (&mut [u64], usize) {
        (&mut self.dense, self.stride)
    }

    /// Returns the limbs of the cell at `index`, or `None` if the array has no such cell.
    #[inline]
    pub(crate) fn get(&self, index: u64) -> Option<&[u64]> {
        if index >= self.size {
            return None;
        }
        if self.dense.is_empty() {
            return Some(self.sparse.get(&index).unwrap_or(&self.rest));
        }
        let at = index as usize * self.stride;
        Some(&self.dense[at..at + self.stride])
    }

    /// Loads a cell into the processor's caches ahead of its use, if the array is stored densely. The result means
    /// nothing; it only keeps the compiler from removing the load.
    #[inline]
    pub(crate) fn touch(&self, index: u64) -> u64 {
        let at = (index as usize).checked_mul(self.stride);
        at.and_then(|at| self.dense.get(at)).map_or(0, |&limb| limb)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u64) -> Option<&mut [u64]> {
        if index >= self.size {
            return None;
        }
        if self.dense.is_empty() {
            return Some(
                self.sparse
                    .entry(index)
                    .or_insert_with(|| self.rest.clone()),
            );
        }
        let at = index as usize * self.stride;
        Some(&mut self.dense[at..at + self.stride])
    }
}

/// The most cells that [`Cells::nonzero_from`] examines for each cell that it may return.
const LOOKED_AT: usize = 16;

/// Splits `cells` at `most`: returns the first `most` of them, and the index of the cell that follows; `next` if they
/// are not more than `most`.
fn first_of<'a>(
    cells: impl Iterator<Item = (u64, &'a [u64])>,
    most: usize,
    next: Option<u64>,
) -> CellSlice<'a> {
    let mut found: Vec<_> = cells.take(most + 1).collect();
    match found.len() > most {
        true => {
            let more = found.pop().map(|(index, _)| index);
            (found, more)
        }
        false => (found, next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_cells_are_like_dense_ones() {
        let (mut dense, mut sparse) = (Cells::new(8, 2), Cells::new(1 << 40, 2));
        assert!(sparse.dense.is_empty() && !dense.dense.is_empty());
        for cells in [&mut dense, &mut sparse] {
            cells.get_mut(3).expect("in range")[1] = 5;
            assert_eq!(
                cells.nonzero_from(0, 100),
                Some((vec![(3, &[0, 5][..])], None))
            );
            assert_eq!(cells.nonzero_from(4, 100), Some((vec![], None)));
            assert_eq!(cells.get(3), Some(&[0, 5][..]));
            cells.fill(&[1, 2]);
            assert_eq!(
                (cells.get(3), cells.get(7)),
                (Some(&[1, 2][..]), Some(&[1, 2][..]))
            );
            cells.get_mut(7).expect("in range")[0] = 0;
            assert_eq!(cells.get(7), Some(&[0, 2][..]));
        }
        assert_eq!(sparse.nonzero_from(0, 1), None, "too many to look at");
        let slice = |from| {
            dense
                .nonzero_from(from, 3)
                .map(|(cells, next)| (cells.len(), next))
        };
        assert_eq!(slice(0), Some((3, Some(3))));
        assert_eq!(slice(6), Some((2, None)));
        assert_eq!(slice(u64::MAX), Some((0, None)));
        assert_eq!((dense.get(8), sparse.get(1 << 40)), (None, None));
    }
}
