//! Actions of entries: records of an action's position and its arguments. Entries with equal records share one, so a million routes to a
//! few next hops touch a few lines of cache. It knows nothing of matches.

use super::free_numbers::{FreeNumbers, shrink};
use super::lpm32::MANY;
use super::numbers::NumberSet;

/// The number of limbs in a cache line.
const LINE_LIMBS: usize = 8;

/// The actions of entries with their arguments.
#[derive(Clone, Debug)]
pub(super) struct Records {
    /// The number of limbs of a record: one for the action and the number of argument limbs, then the arguments.
    stride: usize,
    limbs: Vec<u64>,
    /// The number of each entry's record, by entry.
    of_entry: Vec<u32>,
    /// Data that lookups do not need.
    sharing: Box<Sharing>,
}

/// Which records are shared by several entries.
#[derive(Clone, Debug, Default)]
struct Sharing {
    /// For each record, the number of entries that have it. Record 0 belongs to the default action and is never
    /// shared.
    users: Vec<u32>,
    free: FreeNumbers,
    /// An index of the shared records by their contents.
    index: NumberSet,
}

impl Records {
    /// Makes a store with records of `stride` limbs, which contains only the record of the default action, entry 0.
    pub fn new(stride: usize) -> Records {
        Records {
            stride,
            limbs: vec![0; stride],
            of_entry: vec![0],
            sharing: Box::new(Sharing {
                users: vec![1],
                ..Sharing::default()
            }),
        }
    }

    /// Returns the record of an entry.
    #[inline]
    pub fn get(&self, entry: u32) -> &[u64] {
        self.record(self.of_entry[entry as usize])
    }

    /// Loads the records of up to [`MANY`] entries into the processor's caches, one cache line of each at a time. The
    /// result means nothing; it only keeps the compiler from removing the loads.
    #[inline]
    pub fn load(&self, entries: &[u32]) -> u64 {
        let mut places = [0; MANY];
        for (place, &entry) in places.iter_mut().zip(entries) {
            *place = self.of_entry[entry as usize] as usize * self.stride;
        }
        let mut sum = 0;
        for line in (0..self.stride).step_by(LINE_LIMBS) {
            for &place in &places[..entries.len().min(MANY)] {
                // The last limb may be on one line more.
                sum ^= self.limbs[place + line] ^ self.limbs[place + self.stride - 1];
            }
        }
        sum
    }

    #[inline]
    fn record(&self, number: u32) -> &[u64] {
        &self.limbs[number as usize * self.stride..][..self.stride]
    }

    /// Returns the number of each entry's record, indexed by entry, and the limbs of all records, for code that reads
    /// them without a call.
    #[inline]
    pub fn in_place(&self) -> (&[u32], &[u64]) {
        (&self.of_entry, &self.limbs)
    }

    /// Sets the record of the default action.
    pub fn set_default(&mut self, record: &[u64]) {
        self.limbs[..self.stride].copy_from_slice(record);
    }

    /// Assigns a record to an entry that has none. Entries with equal records share one.
    pub fn assign(&mut self, entry: u32, record: &[u64]) {
        let hash = super::keymap::hash(record);
        let known = self.sharing.index.find(hash, |n| self.record(n) == record);
        let number = known.unwrap_or_else(|| self.add(record));
        self.sharing.users[number as usize] += 1;
        let at = entry as usize;
        if self.of_entry.len() <= at {
            self.of_entry.resize(at + 1, 0);
        }
        self.of_entry[at] = number;
    }

    /// Releases the record of an entry, which then has none.
    pub fn release(&mut self, entry: u32) {
        let number = std::mem::take(&mut self.of_entry[entry as usize]);
        if number == 0 {
            return;
        }
        let users = &mut self.sharing.users[number as usize];
        *users -= 1;
        if *users == 0 {
            let (limbs, stride) = (&self.limbs, self.stride);
            self.sharing
                .index
                .remove(number, |n| hash_of(limbs, stride, n));
            self.sharing.free.put(number);
            let end = self.sharing.free.lower(self.sharing.users.len());
            self.sharing.users.truncate(end);
            self.limbs.truncate(end * self.stride);
        }
    }

    /// Forgets the entries with numbers from `entries` on, whose records must have been released.
    pub fn truncate(&mut self, entries: usize) {
        self.of_entry.truncate(entries);
    }

    /// Returns a part of the unused memory to the allocator; returns true if there is more.
    pub fn tidy(&mut self) -> bool {
        shrink(&mut self.sharing.users) | shrink(&mut self.limbs) | shrink(&mut self.of_entry)
    }

    fn add(&mut self, record: &[u64]) -> u32 {
        let number = self.sharing.free.take().unwrap_or_else(|| {
            self.limbs.resize(self.limbs.len() + self.stride, 0);
            self.sharing.users.push(0);
            self.sharing.users.len() as u32 - 1
        });
        self.limbs[number as usize * self.stride..][..self.stride].copy_from_slice(record);
        let (limbs, stride) = (&self.limbs, self.stride);
        self.sharing
            .index
            .insert(number, |n| hash_of(limbs, stride, n));
        number
    }

    /// Returns how many bytes the records occupy on the heap.
    pub fn heap_bytes(&self) -> usize {
        8 * self.limbs.capacity()
            + 4 * (self.sharing.users.capacity() + self.of_entry.capacity())
            + self.sharing.free.heap_bytes()
            + self.sharing.index.heap_bytes()
    }
}

fn hash_of(limbs: &[u64], stride: usize, number: u32) -> u64 {
    super::keymap::hash(&limbs[number as usize * stride..][..stride])
}
