//! Longest prefix match on one field, with any number of exactly matched fields beside it.
//!
//! The prefixes of each combination of exact fields form a tree bitmap (Eatherton, Varghese and Dittia 2004): a node
//! covers six bits of the field; one word says which prefixes end in it and one which children it has; children and
//! results lie next to each other and are found by counting ones. A lookup touches one node per six bits of the longest path
//! that exists, whatever the number of entries.

use super::keymap::KeyMap;

/// Bits of the field that one node covers.
const STRIDE: u32 = 6;

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

/// Position of the prefix `value / length` in [`Node::internal`]; longer prefixes are higher.
const fn internal_bit(length: u32, value: u64) -> u32 {
    (1 << length) - 1 + value as u32
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    internal: u64,
    external: u64,
    /// Where in the pool of results those of this node begin, in the order of the ones of `internal`.
    results: u32,
    /// Where in the pool of nodes the children begin, in the order of the ones of `external`.
    children: u32,
}

impl Node {
    fn is_empty(&self) -> bool {
        self.internal == 0 && self.external == 0
    }
}

/// Ones of `word` below `bit`.
fn rank(word: u64, bit: u32) -> usize {
    (word & ((1 << bit) - 1)).count_ones() as usize
}

/// Where a node is: roots do not move, others move when a sibling comes or goes.
#[derive(Clone, Copy, Debug)]
enum Place {
    Root(u32),
    Child(u32),
}

/// Blocks of 1 to 64 items in one vector, with free lists by size.
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

    /// The block at `at` of `n` items gets one more before its item `rank`; gives its new place.
    fn insert(&mut self, at: u32, n: usize, rank: usize, item: T) -> u32 {
        let new = self.allocate(n + 1);
        let (from, to) = (at as usize, new as usize);
        self.items.copy_within(from..from + rank, to);
        self.items[to + rank] = item;
        self.items.copy_within(from + rank..from + n, to + rank + 1);
        self.release(at, n);
        new
    }

    /// The block at `at` of `n` items loses item `rank`; gives its new place.
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
    /// First limb of the field in the key, and how many.
    offset: usize,
    limbs: usize,
    width: u32,
    /// The exact fields of the key; with their tree's root. `None` when there are no such fields: root 0.
    exact: Option<(Box<[u64]>, KeyMap)>,
    roots: Vec<Node>,
    free_roots: Vec<u32>,
    nodes: Pool<Node>,
    results: Pool<u32>,
}

impl LpmTable {
    /// For a prefix field of `width` bits at limb `offset` of the key; `exact_mask` covers the exact fields.
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

    /// The entry with the longest prefix that contains the key.
    pub fn lookup(&self, key: &[u64]) -> Option<u32> {
        let field = &key[self.offset..self.offset + self.limbs];
        let mut node = &self.roots[self.root(key)? as usize];
        let mut position = 0;
        let mut best = None;
        loop {
            let chunk = self.chunk(field, position);
            let matching = node.internal & ANCESTORS[chunk as usize];
            if matching != 0 {
                let longest = 63 - matching.leading_zeros();
                best = Some(node.results as usize + rank(node.internal, longest));
            }
            if node.external >> chunk & 1 == 0 {
                break;
            }
            node = &self.nodes.items[node.children as usize + rank(node.external, chunk)];
            position += STRIDE;
        }
        best.map(|at| self.results.items[at])
    }

    /// The entry of exactly this prefix.
    pub fn find(&self, value: &[u64], prefix_len: u32) -> Option<u32> {
        let mut node = &self.roots[self.root(value)? as usize];
        let field = &value[self.offset..self.offset + self.limbs];
        for level in 0..prefix_len / STRIDE {
            let chunk = self.chunk(field, level * STRIDE);
            if node.external >> chunk & 1 == 0 {
                return None;
            }
            node = &self.nodes.items[node.children as usize + rank(node.external, chunk)];
        }
        let bit = self.last_bit(field, prefix_len);
        (node.internal >> bit & 1 == 1)
            .then(|| self.results.items[node.results as usize + rank(node.internal, bit)])
    }

    /// Adds a prefix that is not there yet. `value` is the whole key, zero beyond the prefix.
    pub fn insert(&mut self, value: &[u64], prefix_len: u32, entry: u32) {
        let mut place = Place::Root(self.root_or_new(value));
        let field = &value[self.offset..self.offset + self.limbs];
        for level in 0..prefix_len / STRIDE {
            let chunk = self.chunk(field, level * STRIDE);
            place = self.child_or_new(place, chunk);
        }
        let bit = self.last_bit(field, prefix_len);
        let mut node = *self.node(place);
        let count = node.internal.count_ones() as usize;
        node.results = self
            .results
            .insert(node.results, count, rank(node.internal, bit), entry);
        node.internal |= 1 << bit;
        *self.node_mut(place) = node;
    }

    /// Removes a prefix; gives its entry.
    pub fn remove(&mut self, value: &[u64], prefix_len: u32) -> Option<u32> {
        let entry = self.find(value, prefix_len)?;
        let root = self.root(value)?;
        let field = &value[self.offset..self.offset + self.limbs];
        let mut path = vec![(Place::Root(root), 0)];
        for level in 0..prefix_len / STRIDE {
            let chunk = self.chunk(field, level * STRIDE);
            let parent = path[path.len() - 1].0;
            path.push((self.existing_child(parent, chunk), chunk));
        }
        let bit = self.last_bit(field, prefix_len);
        let place = path[path.len() - 1].0;
        let mut node = *self.node(place);
        let count = node.internal.count_ones() as usize;
        node.results = self
            .results
            .remove(node.results, count, rank(node.internal, bit));
        node.internal &= !(1 << bit);
        *self.node_mut(place) = node;
        self.prune(&path);
        if self.roots[root as usize].is_empty()
            && let Some((mask, map)) = &mut self.exact
        {
            map.remove(&masked(value, mask));
            self.free_roots.push(root);
        }
        Some(entry)
    }

    /// Cuts empty nodes off, from the end of a path of places and the chunks that led to them.
    fn prune(&mut self, path: &[(Place, u32)]) {
        for pair in path.windows(2).rev() {
            let (parent, (place, chunk)) = (pair[0].0, pair[1]);
            if !self.node(place).is_empty() {
                break;
            }
            let mut node = *self.node(parent);
            let count = node.external.count_ones() as usize;
            node.children = self
                .nodes
                .remove(node.children, count, rank(node.external, chunk));
            node.external &= !(1 << chunk);
            *self.node_mut(parent) = node;
        }
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

    fn child_or_new(&mut self, parent: Place, chunk: u32) -> Place {
        let mut node = *self.node(parent);
        if node.external >> chunk & 1 == 0 {
            let count = node.external.count_ones() as usize;
            let at = rank(node.external, chunk);
            node.children = self.nodes.insert(node.children, count, at, Node::default());
            node.external |= 1 << chunk;
            *self.node_mut(parent) = node;
        }
        self.existing_child(parent, chunk)
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

    /// Which bit of the last node's `internal` a prefix is.
    fn last_bit(&self, field: &[u64], prefix_len: u32) -> u32 {
        let length = prefix_len % STRIDE;
        let chunk = self.chunk(field, prefix_len - length);
        internal_bit(length, u64::from(chunk >> (STRIDE - length)))
    }

    /// Six bits of the field, `position` bits after its first; zeros beyond its end.
    #[inline]
    fn chunk(&self, field: &[u64], position: u32) -> u32 {
        let remaining = self.width.saturating_sub(position);
        if remaining < STRIDE {
            let low = field[0] as u32 & ((1 << remaining) - 1);
            return low << (STRIDE - remaining);
        }
        let shift = remaining - STRIDE;
        let (limb, bit) = ((shift / 64) as usize, shift % 64);
        let mut bits = field[limb] >> bit;
        if bit > 64 - STRIDE && limb + 1 < field.len() {
            bits |= field[limb + 1] << (64 - bit);
        }
        bits as u32 & 63
    }
}

fn masked(key: &[u64], mask: &[u64]) -> Vec<u64> {
    key.iter().zip(mask).map(|(k, m)| k & m).collect()
}
