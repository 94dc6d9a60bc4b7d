//! Longest prefix match on one field, with any number of exactly matched fields beside it.
//!
//! The prefixes of each combination of exact fields form a tree bitmap (Eatherton, Varghese and Dittia 2004): a node
//! covers six bits of the field (the root five, so that no common prefix length ends where a node begins); one word says which
//! prefixes end in it and one which children it has; children and results lie next to each other and are found by counting
//! ones. Paths are compressed: a child may begin further down than its parent ends, and then holds the bits in between.
//! So a lookup touches few nodes in a small table and at most one per six bits in any.

use super::keymap::KeyMap;

/// The number of bits of the field that a node covers.
const STRIDE: u32 = 6;

/// The number of bits of the field that the root covers.
const ROOT_STRIDE: u32 = 5;

/// The most bits between the end of a node and the beginning of its child; over a longer distance, there are nodes in
/// between.
const MAX_SKIP: u32 = 10 * STRIDE;

/// Returns the position, in bits from the field's first, of the children of a node at `position`, if they skip no
/// bits. Without skipped bits, nodes are at positions 0, 5, 11, 17...
#[inline]
fn next_level(position: u32) -> u32 {
    match position {
        0 => ROOT_STRIDE,
        _ => position + STRIDE,
    }
}

/// Returns the position of the node in which a prefix of this length ends: the last possible position that is not
/// beyond the prefix's end.
fn last_level(prefix_len: u32) -> u32 {
    match prefix_len {
        ..ROOT_STRIDE => 0,
        _ => prefix_len - (prefix_len - ROOT_STRIDE) % STRIDE,
    }
}

/// For each value of six bits, the bits of [`Node::internal`] of the prefixes (of length 0 to 5) that contain it.
const ANCESTORS: [u64; 64] = ancestors();

const fn ancestors() -> [u64; 64] {
    let mut table = [0; 64];
    let mut chunk = 0;
    while chunk < 64 {
        let mut length = 0;
        while length < STRIDE {
            table[chunk] |= 1 << internal_bit(length, (chunk as u64) >> (STRIDE - length));
            length += 1;
        }
        chunk += 1;
    }
    table
}

/// Returns the number of the bit in [`Node::internal`] that stands for the prefix of `length` bits with this `value`;
/// longer prefixes have higher numbers.
const fn internal_bit(length: u32, value: u64) -> u32 {
    (1 << length) - 1 + value as u32
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    internal: u64,
    external: u64,
    /// The `skip` bits before `position`, right-aligned.
    skipped: u64,
    skip: u32,
    /// The number of bits of the field in front of those that the node covers.
    position: u32,
    /// The index of this node's first result in the pool of results, in the order of the ones of `internal`.
    results: u32,
    /// The index of the first child in the pool of nodes, in the order of the ones of `external`.
    children: u32,
}

impl Node {
    fn is_empty(&self) -> bool {
        self.internal == 0 && self.external == 0
    }
}

/// Counts the ones in the bits of `word` below `bit`.
#[inline]
fn rank(word: u64, bit: u32) -> usize {
    (word & ((1 << bit) - 1)).count_ones() as usize
}

/// Where a node is stored: roots stay in place, other nodes move when a sibling is added or removed.
#[derive(Clone, Copy, Debug)]
enum Place {
    Root(u32),
    Child(u32),
}

/// Blocks of 1 to 64 items in one vector, with a list of free blocks for each size.
#[derive(Clone, Debug)]
struct Pool<T> {
    items: Vec<T>,
    free: Vec<Vec<u32>>,
}

impl<T: Copy + Default> Pool<T> {
    fn new() -> Pool<T> {
        Pool {
            items: Vec::new(),
            free: vec![Vec::new(); 65],
        }
    }

    fn allocate(&mut self, n: usize) -> u32 {
        self.free[n].pop().unwrap_or_else(|| {
            let at = self.items.len() as u32;
            self.items.resize(self.items.len() + n, T::default());
            at
        })
    }

    /// Inserts `item` before item `rank` of the block of `n` items at `at`. Returns the block's new place.
    fn insert(&mut self, at: u32, n: usize, rank: usize, item: T) -> u32 {
        let new = self.allocate(n + 1);
        let (from, to) = (at as usize, new as usize);
        self.items.copy_within(from..from + rank, to);
        self.items[to + rank] = item;
        self.items.copy_within(from + rank..from + n, to + rank + 1);
        self.release(at, n);
        new
    }

    /// Removes item `rank` of the block of `n` items at `at`. Returns the block's new place, 0 if it becomes empty.
    fn remove(&mut self, at: u32, n: usize, rank: usize) -> u32 {
        let mut new = 0;
        if n > 1 {
            new = self.allocate(n - 1);
            let (from, to) = (at as usize, new as usize);
            self.items.copy_within(from..from + rank, to);
            self.items.copy_within(from + rank + 1..from + n, to + rank);
        }
        self.release(at, n);
        new
    }

    fn release(&mut self, at: u32, n: usize) {
        if n > 0 {
            self.free[n].push(at);
        }
    }
}

/// Entries of a table whose only inexact field is matched by prefix.
#[derive(Clone, Debug)]
pub struct LpmTable {
    /// The first limb of the field in the key, and the number of limbs.
    offset: usize,
    limbs: usize,
    width: u32,
    /// The mask of the exact fields, and a map from their values to the root of their trie. `None` without such
    /// fields: the root is 0.
    exact: Option<(Box<[u64]>, KeyMap)>,
    roots: Vec<Node>,
    free_roots: Vec<u32>,
    nodes: Pool<Node>,
    results: Pool<u32>,
}

impl LpmTable {
    /// Makes an empty table for a prefix field of `width` bits at limb `offset` of the key. `exact_mask` has ones in
    /// the exact fields.
    pub fn new(offset: usize, width: u32, exact_mask: Box<[u64]>) -> LpmTable {
        let has_exact = exact_mask.iter().any(|&limb| limb != 0);
        LpmTable {
            offset,
            limbs: width.div_ceil(64) as usize,
            width,
            exact: has_exact.then(|| {
                let limbs = exact_mask.len();
                (exact_mask, KeyMap::new(limbs))
            }),
            roots: vec![Node::default(); usize::from(!has_exact)],
            free_roots: Vec::new(),
            nodes: Pool::new(),
            results: Pool::new(),
        }
    }

    /// Returns the entry with the longest prefix that contains the key; `None` if no prefix does.
    pub fn lookup(&self, key: &[u64]) -> Option<u32> {
        let field = &key[self.offset..self.offset + self.limbs];
        let mut node = &self.roots[self.root(key)? as usize];
        // The last node with prefixes that match; only the last is looked at closer.
        let mut best = None;
        loop {
            let chunk = self.chunk(field, node.position);
            let matching = node.internal & ANCESTORS[chunk as usize];
            if matching != 0 {
                best = Some((node, matching));
            }
            if node.external >> chunk & 1 == 0 {
                break;
            }
            node = &self.nodes.items[node.children as usize + rank(node.external, chunk)];
            if node.skip != 0 && self.bits_before(field, node) != node.skipped {
                break;
            }
        }
        best.map(|(node, matching)| {
            let longest = 63 - matching.leading_zeros();
            self.results.items[node.results as usize + rank(node.internal, longest)]
        })
    }

    /// Returns the entry of exactly this prefix, not of a longer or shorter one; `None` if the table does not contain
    /// it.
    pub fn find(&self, value: &[u64], prefix_len: u32) -> Option<u32> {
        let (place, _) = *self.path(value, prefix_len)?.last()?;
        let node = self.node(place);
        let bit = self.last_bit(self.field(value), prefix_len);
        (node.internal >> bit & 1 == 1)
            .then(|| self.results.items[node.results as usize + rank(node.internal, bit)])
    }

    /// Adds a prefix that is not in the table. `value` is the whole key, with zeros beyond the prefix.
    pub fn insert(&mut self, value: &[u64], prefix_len: u32, entry: u32) {
        let mut place = Place::Root(self.root_or_new(value));
        let field = &value[self.offset..self.offset + self.limbs];
        let end = last_level(prefix_len);
        while self.node(place).position < end {
            place = self.step_or_make(place, field, end);
        }
        let bit = self.last_bit(field, prefix_len);
        let mut node = *self.node(place);
        let count = node.internal.count_ones() as usize;
        let at = rank(node.internal, bit);
        node.results = self.results.insert(node.results, count, at, entry);
        node.internal |= 1 << bit;
        *self.node_mut(place) = node;
    }

    /// Removes a prefix, and returns its entry, or `None` if the prefix is not in the table.
    pub fn remove(&mut self, value: &[u64], prefix_len: u32) -> Option<u32> {
        let entry = self.find(value, prefix_len)?;
        let path = self.path(value, prefix_len)?;
        let (place, _) = *path.last()?;
        let bit = self.last_bit(self.field(value), prefix_len);
        let mut node = *self.node(place);
        let count = node.internal.count_ones() as usize;
        let at = rank(node.internal, bit);
        node.results = self.results.remove(node.results, count, at);
        node.internal &= !(1 << bit);
        *self.node_mut(place) = node;
        self.tidy(&path);
        if let Some((mask, map)) = &mut self.exact
            && let Place::Root(root) = path[0].0
            && self.roots[root as usize].is_empty()
        {
            map.remove(&masked(value, mask));
            self.free_roots.push(root);
        }
        Some(entry)
    }

    /// Returns the nodes from the root to the one in which a prefix would end, each with the bits of the prefix that
    /// led to it; `None` if there is no such node.
    fn path(&self, value: &[u64], prefix_len: u32) -> Option<Vec<(Place, u32)>> {
        let field = self.field(value);
        let end = last_level(prefix_len);
        let mut path = vec![(Place::Root(self.root(value)?), 0)];
        loop {
            let (place, _) = *path.last()?;
            let node = self.node(place);
            if node.position == end {
                return Some(path);
            }
            let chunk = self.chunk(field, node.position);
            if node.external >> chunk & 1 == 0 {
                return None;
            }
            let child = self.existing_child(place, chunk);
            let node = self.node(child);
            if node.position > end || self.bits_before(field, node) != node.skipped {
                return None;
            }
            path.push((child, chunk));
        }
    }

    /// Returns the child of the node at `place` that lies on the path of `field` to a node at position `end`. Makes a
    /// node if there is none, or if the present child skips more bits than it shares with `field`.
    fn step_or_make(&mut self, place: Place, field: &[u64], end: u32) -> Place {
        let mut node = *self.node(place);
        let chunk = self.chunk(field, node.position);
        let from = next_level(node.position);
        if node.external >> chunk & 1 == 1 {
            let child = self.existing_child(place, chunk);
            self.split(child, field, from, end);
            return child;
        }
        let position = end.min(from + MAX_SKIP);
        let new = Node {
            skip: position - from,
            skipped: self.bits(field, from, position - from),
            position,
            ..Node::default()
        };
        let count = node.external.count_ones() as usize;
        let at = rank(node.external, chunk);
        node.children = self.nodes.insert(node.children, count, at, new);
        node.external |= 1 << chunk;
        *self.node_mut(place) = node;
        self.existing_child(place, chunk)
    }

    /// Inserts a node in front of the one at `place`, whose skipped bits begin at `from`, if that node skips more bits
    /// than it shares with `field` up to `end`.
    fn split(&mut self, place: Place, field: &[u64], from: u32, end: u32) {
        let node = *self.node(place);
        let differing = self.bits_before(field, &node) ^ node.skipped;
        let shared = node.skip - (64 - differing.leading_zeros());
        let position = last_level((from + shared).min(end));
        if position >= node.position {
            return;
        }
        let below = node.position - next_level(position);
        let lower = Node {
            skip: below,
            skipped: node.skipped & low_ones(below),
            ..node
        };
        let chunk = node.skipped >> below & low_ones(STRIDE);
        let upper = Node {
            internal: 0,
            external: 1 << chunk,
            skip: position - from,
            skipped: node.skipped >> below >> STRIDE,
            position,
            results: 0,
            children: self.nodes.insert(0, 0, 0, lower),
        };
        *self.node_mut(place) = upper;
    }

    /// Removes empty nodes from the end of a path. If the last node that remains has nothing but one child, replaces
    /// it by that child where [`Self::join`] can.
    fn tidy(&mut self, path: &[(Place, u32)]) {
        for pair in path.windows(2).rev() {
            let (parent, (place, chunk)) = (pair[0].0, pair[1]);
            let node = *self.node(place);
            if node.is_empty() {
                let mut above = *self.node(parent);
                let count = above.external.count_ones() as usize;
                let at = rank(above.external, chunk);
                above.children = self.nodes.remove(above.children, count, at);
                above.external &= !(1 << chunk);
                *self.node_mut(parent) = above;
            } else if node.internal == 0 && node.external.is_power_of_two() {
                self.join(place);
                break;
            } else {
                break;
            }
        }
    }

    /// Replaces a node that has nothing but one child by that child, unless the child would then skip too many bits.
    fn join(&mut self, place: Place) {
        let node = *self.node(place);
        let child = self.nodes.items[node.children as usize];
        let skip = node.skip + STRIDE + child.skip;
        if skip > MAX_SKIP {
            return;
        }
        let chunk = u64::from(node.external.trailing_zeros());
        let joined = Node {
            skip,
            skipped: (node.skipped << STRIDE | chunk) << child.skip | child.skipped,
            ..child
        };
        self.nodes.remove(node.children, 1, 0);
        *self.node_mut(place) = joined;
    }

    /// Returns how many bytes the table occupies on the heap.
    pub fn heap_bytes(&self) -> usize {
        let node = size_of::<Node>();
        node * (self.roots.capacity() + self.nodes.items.capacity())
            + 4 * self.results.items.capacity()
            + self.exact.as_ref().map_or(0, |(_, map)| map.heap_bytes())
    }

    fn root(&self, key: &[u64]) -> Option<u32> {
        match &self.exact {
            None => Some(0),
            Some((mask, map)) => map.get_masked(key, mask),
        }
    }

    fn root_or_new(&mut self, value: &[u64]) -> u32 {
        if let Some(root) = self.root(value) {
            return root;
        }
        let root = self.free_roots.pop().unwrap_or_else(|| {
            self.roots.push(Node::default());
            self.roots.len() as u32 - 1
        });
        if let Some((mask, map)) = &mut self.exact {
            map.insert(&masked(value, mask), root);
        }
        root
    }

    fn existing_child(&self, parent: Place, chunk: u32) -> Place {
        let node = self.node(parent);
        Place::Child(node.children + rank(node.external, chunk) as u32)
    }

    fn node(&self, place: Place) -> &Node {
        match place {
            Place::Root(i) => &self.roots[i as usize],
            Place::Child(i) => &self.nodes.items[i as usize],
        }
    }

    fn node_mut(&mut self, place: Place) -> &mut Node {
        match place {
            Place::Root(i) => &mut self.roots[i as usize],
            Place::Child(i) => &mut self.nodes.items[i as usize],
        }
    }

    fn field<'a>(&self, key: &'a [u64]) -> &'a [u64] {
        &key[self.offset..self.offset + self.limbs]
    }

    /// Returns the number of the bit that stands for a prefix in [`Node::internal`] of the node in which the prefix
    /// ends.
    fn last_bit(&self, field: &[u64], prefix_len: u32) -> u32 {
        let position = last_level(prefix_len);
        let length = prefix_len - position;
        let chunk = self.chunk(field, position);
        internal_bit(length, u64::from(chunk >> (STRIDE - length)))
    }

    /// Returns the bits of the field that a node at `position` covers: six, or fewer at the root and at the end of
    /// the field, where they are shifted up to the place of six.
    #[inline]
    fn chunk(&self, field: &[u64], position: u32) -> u32 {
        let end = next_level(position).min(self.width);
        let count = end.saturating_sub(position);
        (self.bits(field, position, count) as u32) << (STRIDE - count)
    }

    /// Returns the bits of this field at the positions that a node skips. The field must be long enough to reach the
    /// node's position.
    #[inline]
    fn bits_before(&self, field: &[u64], node: &Node) -> u64 {
        self.bits(field, node.position - node.skip, node.skip)
    }

    /// Returns `count` bits (at most 63) of the field, `position` bits after its first.
    #[inline]
    fn bits(&self, field: &[u64], position: u32, count: u32) -> u64 {
        if count == 0 {
            return 0;
        }
        let shift = self.width - position - count;
        let (limb, bit) = ((shift / 64) as usize, shift % 64);
        let mut bits = field[limb] >> bit;
        if bit + count > 64 {
            bits |= field[limb + 1] << (64 - bit);
        }
        bits & low_ones(count)
    }
}

/// Returns a number whose lowest `count` (at most 63) bits are ones.
#[inline]
fn low_ones(count: u32) -> u64 {
    (1 << count) - 1
}

/// Returns the key with all bits outside of the mask cleared.
pub(super) fn masked(key: &[u64], mask: &[u64]) -> Vec<u64> {
    key.iter().zip(mask).map(|(k, m)| k & m).collect()
}
