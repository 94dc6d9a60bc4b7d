//! Longest prefix match on fields of up to 32 bits, with any number of exactly matched fields beside it.
//!
//! A multibit trie with strides of eight bits. A node is one cache line: 256 children, of which neighbouring ones that lead to the same
//! place are a *run*; bits say where runs begin, and counting them finds the place, an entry or a node below. A node knows only
//! prefixes that end in it; if none of them matches, the match is the *fallback* of the node, the best of the node above. So a prefix that
//! comes or goes changes one node and the fallbacks of those directly below, and a lookup follows at most four nodes. A root with many
//! prefixes has a direct index by the first sixteen bits instead of its two uppermost levels, and directly below that index *blocks*
//! instead of nodes: 256 places that are just there, because most lookups end in one and counting is most of a lookup's instructions. There
//! are at most 65,536 of them, a kilobyte each. A prefix that is *alone* below a place of the direct index needs no block: it is said in
//! the place itself, so that tables of few prefixes are small and a lookup in them waits for memory once.
//!
//! The longest single update is that of a prefix of one bit under a direct index, which writes half of the 65,536 places; a
//! root gets its direct index once, when it has [`DIRECT_FROM`] prefixes.

use super::keymap::{Buckets, KeyMap};
use super::numbers::NumberSet;

/// The number of bits that a node covers.
pub const STRIDE: u32 = 8;

/// The number of children of a node or a block.
pub const CHILDREN: usize = 1 << STRIDE;

/// The number of bits that a direct index covers.
pub const DIRECT_BITS: u32 = 16;

/// The number of places of a direct index.
pub const DIRECT_PLACES: usize = 1 << DIRECT_BITS;

/// The most fields that are looked up at once.
pub const MANY: usize = 32;

/// The number of prefixes at which a root gets a direct index.
pub const DIRECT_FROM: usize = 512;

/// A flag in a place: if it is set, the other bits are the number of a node, otherwise that of an entry.
pub const BELOW: u32 = 1 << 31;

/// The number of places that are stored in the node itself.
const FEW: usize = 4;

/// An element of the direct index; zeros if no prefix leads through it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Direct {
    /// The number of a block; or, if the highest bit is set, the only prefix below, in the form of [`alone`].
    pub below: u32,
    /// The entry of the longest prefix of 1 to 16 bits that contains the element's addresses: the match if no prefix
    /// below matches.
    pub entry: u32,
}

/// The form of a prefix that is alone: five bits for the number of bits of [`Direct::below`], shifted up by [`ALONE_BITS`], that do not
/// count in a comparison with those of a field behind the direct index (24 to 31, so that the highest bit is set), eight bits to compare,
/// and the entry.
pub const ALONE_BITS: u32 = 5;

/// The number of bits for the entry in a prefix that is alone; prefixes of entries with larger numbers have blocks.
pub const ALONE_ENTRY_BITS: u32 = 32 - ALONE_BITS - STRIDE;

/// Returns the value of [`Direct::below`] that stands for this prefix with its entry, where it is the only prefix
/// below an element of the direct index; `None` if the prefix does not have 17 to 24 bits, or if the entry's number
/// is too large.
fn alone(prefix: Prefix, entry: u32) -> Option<u32> {
    let ignored = (DIRECT_BITS + STRIDE).checked_sub(prefix.len.into())?;
    let value = prefix.bits >> STRIDE & (CHILDREN as u32 - 1);
    let possible = entry >> ALONE_ENTRY_BITS == 0;
    possible.then_some((24 + ignored) << (32 - ALONE_BITS) | value << ALONE_ENTRY_BITS | entry)
}

impl Direct {
    /// Returns the number of the block that continues the lookup below the element; 0 if there is none.
    #[inline]
    fn block(self) -> u32 {
        if self.is_alone() { 0 } else { self.below }
    }

    #[inline]
    fn is_alone(self) -> bool {
        self.below >> 31 != 0
    }

    /// Returns the entry of the only prefix below the element, for which [`Self::is_alone`] must hold.
    #[inline]
    fn alone_entry(self) -> u32 {
        self.below & ((1 << ALONE_ENTRY_BITS) - 1)
    }

    /// Returns true if the only prefix below the element contains a field with these 32 bits. The first 16 bits,
    /// which led to the element, are not compared.
    #[inline]
    fn alone_contains(self, bits: u32) -> bool {
        (self.below << ALONE_BITS ^ bits << DIRECT_BITS) >> (self.below >> (32 - ALONE_BITS)) == 0
    }
}

/// The places of the children of a block.
pub type Places = [u32; CHILDREN];

/// The tries for code that looks up in place: as [`Lpm32Table::lookup`], up to a place in which [`BELOW`] is set.
#[derive(Clone, Copy, Debug)]
pub struct Prefixes<'a> {
    /// The roots, by number.
    pub roots: &'a [Root],
    /// The blocks, by number; elements of direct indices refer to them.
    pub blocks: &'a [Places],
}

/// A step on the path from the root to a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// Through the block with this number.
    Block(u32),
    /// Through the node with this number.
    Node(u32),
}

/// A node of the trie. Number 0 stands for no node.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Node {
    /// A bit for each child at which a run begins; the first child begins one.
    begins: [u64; 4],
    /// For each word of `begins`, the number of runs that begin in the words before it.
    before: [u8; 4],
    /// The best entry at the levels above, up to the next level with a fallback that is not zero.
    fallback: u32,
    /// The number of runs.
    count: u32,
    /// The index of the runs' places in the pool, if there are more than [`FEW`].
    runs: u32,
    /// The places of the runs, if there are few, in the same cache line as all else.
    few: [u32; FEW],
}

impl Node {
    /// Returns the number, within the node, of the run that contains `child`; a run is a series of neighbouring
    /// children that lead to the same place. The result is meaningless for node 0, which stands for no node.
    #[inline]
    fn run(&self, child: usize) -> u32 {
        let word = (child / 64) & 3;
        let up_to_child = u64::MAX >> (63 - child % 64);
        let run = u32::from(self.before[word]) + (self.begins[word] & up_to_child).count_ones();
        run.wrapping_sub(1)
    }
}

/// The trie of the prefixes with one combination of exact fields.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Root {
    /// The direct index; `None`, a null pointer in memory, if there is none.
    pub direct: Option<Box<[Direct; DIRECT_PLACES]>>,
    /// The entry of the prefix of length 0.
    pub default: u32,
    /// The uppermost node, which covers the first bits; unused with a direct index.
    node: u32,
    prefixes: usize,
}

impl Root {
    /// The root of a trie without prefixes.
    pub const EMPTY: Root = Root {
        direct: None,
        default: 0,
        node: 0,
        prefixes: 0,
    };
}

/// A prefix: its root, its bits (left-aligned in 32), and its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Prefix {
    root: u32,
    bits: u32,
    len: u8,
}

impl Prefix {
    fn hash(self) -> u64 {
        let high = u64::from(self.root) << 8 | u64::from(self.len);
        super::keymap::hash(&[high << 32 | u64::from(self.bits)])
    }
}

/// Returns a 32-bit mask whose highest `len` bits are ones.
#[inline]
fn prefix_mask(len: u32) -> u32 {
    u32::MAX.checked_shl(32 - len).unwrap_or(0)
}

/// Blocks of places in one vector. Sizes are multiples of four, so that blocks are used again.
#[derive(Clone, Debug, Default)]
struct Runs {
    places: Vec<u32>,
    /// The free blocks, by their size in units of four places.
    free: Vec<Vec<u32>>,
}

impl Runs {
    fn allocate(&mut self, count: usize) -> u32 {
        let size = count.div_ceil(4);
        if let Some(at) = self.free.get_mut(size).and_then(Vec::pop) {
            return at;
        }
        let at = self.places.len() as u32;
        self.places.resize(self.places.len() + 4 * size, 0);
        at
    }

    fn release(&mut self, at: u32, count: usize) {
        let size = count.div_ceil(4);
        if self.free.len() <= size {
            self.free.resize(size + 1, Vec::new());
        }
        self.free[size].push(at);
    }
}

/// The entries of a table with one field of at most 32 bits that is matched by prefix; all other fields are exact.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Lpm32Table {
    // First what lookups need.
    /// The limb of the field in the key.
    offset: usize,
    /// The number of bits by which the field is shifted up, so that its first bit is the highest of 32.
    shift: u32,
    /// The mask of the exact fields, and a map from their values to the root. `None` without such fields: the root is
    /// 0.
    exact: Option<Box<(Box<[u64]>, KeyMap)>>,
    roots: Vec<Root>,
    nodes: Vec<Node>,
    runs: Runs,
    /// The blocks. Number 0 stands for no block; it has no places.
    blocks: Vec<Places>,
    free_roots: Vec<u32>,
    free_nodes: Vec<u32>,
    free_blocks: Vec<u32>,
    /// The prefix of each entry.
    prefixes: Vec<Prefix>,
    /// The entries by their prefixes.
    index: NumberSet,
}

impl Lpm32Table {
    /// Makes an empty table for a prefix field of `width` bits (at most 32) in limb `offset` of the key. `exact_mask`
    /// has ones in the exact fields.
    pub fn new(offset: usize, width: u32, exact_mask: Box<[u64]>) -> Lpm32Table {
        debug_assert!((1..=32).contains(&width));
        let has_exact = exact_mask.iter().any(|&limb| limb != 0);
        let mut table = Lpm32Table {
            offset,
            shift: 32 - width,
            exact: has_exact.then(|| {
                let limbs = exact_mask.len();
                Box::new((exact_mask, KeyMap::new(limbs)))
            }),
            roots: Vec::new(),
            free_roots: Vec::new(),
            nodes: vec![Node::default()],
            free_nodes: Vec::new(),
            blocks: vec![[0; CHILDREN]],
            free_blocks: Vec::new(),
            runs: Runs::default(),
            prefixes: Vec::new(),
            index: NumberSet::default(),
        };
        if !has_exact {
            table.new_root();
        }
        table
    }

    /// Returns the entry with the longest prefix that contains the key; 0 if no prefix does.
    #[inline]
    pub fn lookup(&self, key: &[u64]) -> u32 {
        let root = match self.exact.as_deref() {
            None => 0,
            Some((mask, map)) => match map.get_masked(key, mask) {
                Some(root) => root,
                None => return 0,
            },
        };
        self.lookup_under(root, key[self.offset])
    }

    /// Returns the map from exact fields to the numbers of roots (`None` inside if the key has no exact fields), and
    /// the prefixes, for code that looks up keys without a call. Returns `None` while that map grows.
    #[inline]
    pub fn in_place(&self) -> Option<(Option<Buckets<'_>>, Prefixes<'_>)> {
        let exact = match self.exact.as_deref() {
            None => None,
            Some((_, map)) => Some(map.in_place()?),
        };
        let prefixes = Prefixes {
            roots: &self.roots,
            blocks: &self.blocks,
        };
        Some((exact, prefixes))
    }

    #[inline]
    fn lookup_under(&self, root: u32, field: u64) -> u32 {
        let bits = (field as u32) << self.shift;
        let root = &self.roots[root as usize];
        let (mut node, mut shift, mut best) = (root.node, 32 - STRIDE, root.default);
        if let Some(direct) = &root.direct {
            let found = direct[(bits >> DIRECT_BITS) as usize];
            best = if found.entry != 0 { found.entry } else { best };
            if found.is_alone() {
                let contained = found.alone_contains(bits);
                return if contained { found.alone_entry() } else { best };
            }
            // The block of nothing leads nowhere.
            let place =
                self.blocks[found.below as usize][(bits >> STRIDE) as usize & (CHILDREN - 1)];
            if place & BELOW == 0 {
                return if place != 0 { place } else { best };
            }
            (node, shift) = (place & !BELOW, 0);
        }
        while node != 0 {
            let at = &self.nodes[node as usize];
            best = if at.fallback != 0 { at.fallback } else { best };
            let place = self.place(at, (bits >> shift) as usize & (CHILDREN - 1));
            if place & BELOW == 0 {
                return if place != 0 { place } else { best };
            }
            node = place & !BELOW;
            shift = shift.wrapping_sub(STRIDE) & 31;
        }
        best
    }

    /// Returns true if the first root has a direct index: an array that is indexed by the first 16 bits of the field.
    pub fn is_direct(&self) -> bool {
        self.roots.first().is_some_and(|root| root.direct.is_some())
    }

    /// Looks up at most [`MANY`] fields in a table without exact fields, and sets `found` to the entries, 0 for none.
    /// Each step is done for all fields before the next, so that the processor waits for their memory at once.
    pub fn lookup_many(&self, fields: &[u64], found: &mut [u32; MANY]) {
        let root = &self.roots[0];
        let mut nodes = [root.node; MANY];
        let mut runs = [0; MANY];
        let mut shift = 32 - STRIDE;
        found.fill(root.default);
        let count = fields.len().min(MANY);
        let bits = |i: usize| (fields[i] as u32) << self.shift;
        if let Some(direct) = &root.direct {
            shift = 0;
            for i in 0..count {
                let at = direct[(bits(i) >> DIRECT_BITS) as usize];
                nodes[i] = at.block();
                found[i] = if at.entry != 0 { at.entry } else { found[i] };
                if at.is_alone() && at.alone_contains(bits(i)) {
                    found[i] = at.alone_entry();
                }
            }
            for i in 0..count {
                let block = &self.blocks[nodes[i] as usize];
                let place = block[(bits(i) >> STRIDE) as usize & (CHILDREN - 1)];
                let below = place & BELOW != 0;
                nodes[i] = if below { place & !BELOW } else { 0 };
                found[i] = if below || place == 0 { found[i] } else { place };
            }
        }
        while nodes[..count].iter().any(|&node| node != 0) {
            for i in 0..count {
                let at = &self.nodes[nodes[i] as usize];
                found[i] = if at.fallback != 0 {
                    at.fallback
                } else {
                    found[i]
                };
                runs[i] = at.run((bits(i) >> shift) as usize & (CHILDREN - 1));
            }
            for i in 0..count {
                if nodes[i] == 0 {
                    continue;
                }
                let place = self.place_of_run(&self.nodes[nodes[i] as usize], runs[i]);
                let below = place & BELOW != 0;
                nodes[i] = if below { place & !BELOW } else { 0 };
                found[i] = if below || place == 0 { found[i] } else { place };
            }
            shift = shift.wrapping_sub(STRIDE) & 31;
        }
    }

    /// Returns the place (an entry, or a node below) to which a child of a node leads.
    #[inline]
    fn place(&self, node: &Node, child: usize) -> u32 {
        self.place_of_run(node, node.run(child))
    }

    /// Returns the place (an entry, or a node below) to which a run of a node's children leads.
    #[inline]
    fn place_of_run(&self, node: &Node, run: u32) -> u32 {
        match node.count as usize <= FEW {
            true => node.few[run as usize & (FEW - 1)],
            false => self.runs.places[(node.runs + run) as usize],
        }
    }

    /// Returns the entry of exactly this prefix, or `None` if there is none.
    pub fn find(&self, value: &[u64], prefix_len: u32) -> Option<u32> {
        let root = match self.exact.as_deref() {
            None => 0,
            Some((mask, map)) => map.get_masked(value, mask)?,
        };
        let bits = (value[self.offset] as u32) << self.shift;
        self.find_prefix(Prefix {
            root,
            bits,
            len: prefix_len as u8,
        })
    }

    fn find_prefix(&self, prefix: Prefix) -> Option<u32> {
        let is_it = |entry: u32| self.prefixes[entry as usize] == prefix;
        self.index.find(prefix.hash(), is_it)
    }

    /// Adds a prefix that is not in the table. `value` is the whole key, with zeros beyond the prefix; `entry` must
    /// not be 0.
    pub fn insert(&mut self, value: &[u64], prefix_len: u32, entry: u32) {
        let root = self.root_or_new(value);
        let prefix = Prefix {
            root,
            bits: (value[self.offset] as u32) << self.shift,
            len: prefix_len as u8,
        };
        if self.prefixes.len() <= entry as usize {
            self.prefixes.resize(entry as usize + 1, Prefix::default());
        }
        self.prefixes[entry as usize] = prefix;
        let prefixes = &self.prefixes;
        self.index
            .insert(entry, |number| prefixes[number as usize].hash());
        self.roots[root as usize].prefixes += 1;
        self.change(
            prefix,
            |former, len_of| former == 0 || len_of(former) <= prefix_len,
            entry,
        );
        let root_state = &self.roots[root as usize];
        if root_state.direct.is_none() && root_state.prefixes >= DIRECT_FROM {
            self.make_direct(root);
        }
    }

    /// Removes a prefix, and returns its entry, or `None` if the prefix is not in the table.
    pub fn remove(&mut self, value: &[u64], prefix_len: u32) -> Option<u32> {
        let entry = self.find(value, prefix_len)?;
        let prefix = self.prefixes[entry as usize];
        let prefixes = &self.prefixes;
        self.index
            .remove(entry, |number| prefixes[number as usize].hash());
        let successor = self.best_above(prefix);
        self.change(prefix, |former, _| former == entry, successor);
        self.prefixes[entry as usize] = Prefix::default();
        let root = &mut self.roots[prefix.root as usize];
        root.prefixes -= 1;
        if root.prefixes == 0 {
            self.free_root(prefix.root, value);
        }
        Some(entry)
    }

    /// Returns the entry of the longest prefix that contains `prefix` and ends in the same node (or direct index); 0
    /// if there is none.
    fn best_above(&self, prefix: Prefix) -> u32 {
        let direct = self.roots[prefix.root as usize].direct.is_some();
        let len = u32::from(prefix.len);
        let shortest = match len {
            0 => return 0,
            1..=DIRECT_BITS if direct => 1,
            _ => (len - 1) / STRIDE * STRIDE + 1,
        };
        let shorter = (shortest..len).rev().filter_map(|len| {
            self.find_prefix(Prefix {
                bits: prefix.bits & prefix_mask(len),
                len: len as u8,
                ..prefix
            })
        });
        shorter.into_iter().next().unwrap_or(0)
    }

    /// Writes `entry` to all places that `prefix` covers and for whose present entry `applies` returns true. `applies`
    /// also receives a function that returns the prefix length of an entry.
    fn change(
        &mut self,
        prefix: Prefix,
        applies: impl Fn(u32, &dyn Fn(u32) -> u32) -> bool,
        entry: u32,
    ) {
        let len = u32::from(prefix.len);
        let root = &mut self.roots[prefix.root as usize];
        if len == 0 {
            root.default = entry;
            return;
        }
        let prefixes = &self.prefixes;
        let len_of = |entry: u32| u32::from(prefixes[entry as usize].len);
        if let Some(direct) = root.direct.as_mut().filter(|_| len <= DIRECT_BITS) {
            let first = (prefix.bits >> DIRECT_BITS) as usize;
            for place in &mut direct[first..first + (1 << (DIRECT_BITS - len))] {
                if applies(place.entry, &len_of) {
                    place.entry = entry;
                }
            }
            return;
        }
        if let Some(direct) = &mut root.direct {
            let place = &mut direct[(prefix.bits >> DIRECT_BITS) as usize];
            if place.below == 0
                && let Some(alone) = alone(prefix, entry)
            {
                place.below = alone;
                return;
            }
            // No entry to put there, where nothing is below: it was alone.
            if entry == 0 && place.is_alone() {
                place.below = 0;
                return;
            }
        }
        let path = self.path(prefix);
        let Some(&(level, position)) = path.last() else {
            return;
        };
        let mut places = self.places(level);
        let first = (prefix.bits << position >> (32 - STRIDE)) as usize;
        let prefixes = &self.prefixes;
        let len_of = |entry: u32| u32::from(prefixes[entry as usize].len);
        for place in &mut places[first..first + (1 << (position + STRIDE - len))] {
            let former = match *place & BELOW {
                0 => place,
                _ => &mut self.nodes[(*place & !BELOW) as usize].fallback,
            };
            if applies(*former, &len_of) {
                *former = entry;
            }
        }
        self.set_places(level, &places);
        if entry == 0 {
            self.prune(prefix, &path);
        }
    }

    /// Returns the levels (blocks or nodes) on the way to the one in which a prefix ends, each with the position in
    /// bits at which it begins. Makes those that are missing.
    fn path(&mut self, prefix: Prefix) -> Vec<(Level, u32)> {
        let last = (u32::from(prefix.len) - 1) / STRIDE * STRIDE;
        let (mut level, mut position) = self.top(prefix);
        let mut path = vec![(level, position)];
        while position < last {
            let child = (prefix.bits << position >> (32 - STRIDE)) as usize;
            let place = self.place_at(level, child);
            let below = match place & BELOW {
                0 => {
                    let below = self.new_node(place);
                    let mut places = self.places(level);
                    places[child] = BELOW | below;
                    self.set_places(level, &places);
                    below
                }
                _ => place & !BELOW,
            };
            (level, position) = (Level::Node(below), position + STRIDE);
            path.push((level, position));
        }
        path
    }

    /// Returns the first level (block or node) on the way to a prefix, with the position in bits at which it begins;
    /// makes it if it is missing. If the root has a direct index, the level is below that, and the prefix must be
    /// longer than 16 bits.
    fn top(&mut self, prefix: Prefix) -> (Level, u32) {
        let (root, at) = (prefix.root as usize, (prefix.bits >> DIRECT_BITS) as usize);
        let Some(direct) = &mut self.roots[root].direct else {
            if self.roots[root].node == 0 {
                self.roots[root].node = self.new_node(0);
            }
            return (Level::Node(self.roots[root].node), 0);
        };
        if direct[at].block() == 0 {
            let block = self.free_blocks.pop().unwrap_or_else(|| {
                self.blocks.push([0; CHILDREN]);
                self.blocks.len() as u32 - 1
            });
            if direct[at].is_alone() {
                let entry = direct[at].alone_entry();
                let Prefix { bits, len, .. } = self.prefixes[entry as usize];
                let first = (bits >> STRIDE) as usize & (CHILDREN - 1);
                let count = 1 << (DIRECT_BITS + STRIDE - u32::from(len));
                self.blocks[block as usize][first..first + count].fill(entry);
            }
            direct[at].below = block;
        }
        (Level::Block(direct[at].below), DIRECT_BITS)
    }

    /// Removes levels from the end of a path as long as no prefix ends in them and no level is below them.
    fn prune(&mut self, prefix: Prefix, path: &[(Level, u32)]) {
        for (i, &(level, _)) in path.iter().enumerate().rev() {
            if self.places(level).iter().any(|&place| place != 0) {
                return;
            }
            match (level, i.checked_sub(1)) {
                (Level::Node(node), Some(above)) => {
                    let (above, position) = path[above];
                    let mut places = self.places(above);
                    places[(prefix.bits << position >> (32 - STRIDE)) as usize] =
                        self.nodes[node as usize].fallback;
                    self.set_places(above, &places);
                    self.free_node(node);
                }
                (Level::Node(node), None) => {
                    self.roots[prefix.root as usize].node = 0;
                    self.free_node(node);
                }
                (Level::Block(block), _) => {
                    if let Some(direct) = &mut self.roots[prefix.root as usize].direct {
                        direct[(prefix.bits >> DIRECT_BITS) as usize].below = 0;
                    }
                    self.free_blocks.push(block);
                }
            }
        }
    }

    /// Returns the place (an entry, or a node below) to which a child of a level leads.
    fn place_at(&self, level: Level, child: usize) -> u32 {
        match level {
            Level::Block(block) => self.blocks[block as usize][child],
            Level::Node(node) => self.place(&self.nodes[node as usize], child),
        }
    }

    /// Returns the places to which all children of a level lead.
    fn places(&self, level: Level) -> Places {
        match level {
            Level::Block(block) => self.blocks[block as usize],
            Level::Node(node) => self.expand(node),
        }
    }

    fn set_places(&mut self, level: Level, places: &Places) {
        match level {
            Level::Block(block) => self.blocks[block as usize] = *places,
            Level::Node(node) => self.store(node, places),
        }
    }

    /// Returns the places to which all children of a node lead.
    fn expand(&self, node: u32) -> Places {
        let node = &self.nodes[node as usize];
        let count = node.count as usize;
        let runs = match count <= FEW {
            true => &node.few[..],
            false => &self.runs.places[node.runs as usize..][..count],
        };
        let mut run = 0;
        let mut places = [0; CHILDREN];
        for (child, place) in places.iter_mut().enumerate() {
            let begins = node.begins[child / 64] >> (child % 64) & 1 == 1;
            run += usize::from(begins && child != 0);
            *place = runs[run];
        }
        places
    }

    /// Stores the places to which the children of a node lead, with one place for each run of neighbours with the
    /// same place.
    fn store(&mut self, node: u32, places: &Places) {
        let mut begins = [0u64; 4];
        let mut before = [0u8; 4];
        let mut count = 0;
        for (child, place) in places.iter().enumerate() {
            if child % 64 == 0 {
                // At most 192.
                before[child / 64] = count as u8;
            }
            if child == 0 || *place != places[child - 1] {
                begins[child / 64] |= 1 << (child % 64);
                count += 1;
            }
        }
        let former = self.nodes[node as usize];
        let runs = self.room(former, count);
        let mut few = [0; FEW];
        let to = match count <= FEW {
            true => &mut few[..],
            false => &mut self.runs.places[runs as usize..][..count],
        };
        let firsts = (0..CHILDREN).filter(|&child| begins[child / 64] >> (child % 64) & 1 == 1);
        for (to, child) in to.iter_mut().zip(firsts) {
            *to = places[child];
        }
        self.nodes[node as usize] = Node {
            begins,
            before,
            fallback: former.fallback,
            count: count as u32,
            runs,
            few,
        };
    }

    /// Returns the index at which a node can store the places of `count` runs (series of children that lead to the
    /// same place), 0 if they fit into the node itself. Releases the memory that the node (`former`) used before,
    /// unless it has the right size.
    fn room(&mut self, former: Node, count: usize) -> u32 {
        let had = former.count as usize;
        if had > FEW && count > FEW && had.div_ceil(4) == count.div_ceil(4) {
            return former.runs;
        }
        if had > FEW {
            self.runs.release(former.runs, had);
        }
        if count > FEW {
            return self.runs.allocate(count);
        }
        0
    }

    /// Makes a node without prefixes, all of whose children lead to `fallback`, and returns its number.
    fn new_node(&mut self, fallback: u32) -> u32 {
        let node = Node {
            begins: [1, 0, 0, 0],
            before: [0, 1, 1, 1],
            fallback,
            count: 1,
            ..Node::default()
        };
        match self.free_nodes.pop() {
            Some(number) => {
                self.nodes[number as usize] = node;
                number
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }

    /// Replaces the upper levels of a root by a direct index.
    fn make_direct(&mut self, number: u32) {
        let mut direct = vec![Direct::default(); DIRECT_PLACES];
        let top = self.roots[number as usize].node;
        let upper = match top {
            0 => [0; CHILDREN],
            _ => self.expand(top),
        };
        for (place, block) in upper.into_iter().zip(direct.chunks_exact_mut(CHILDREN)) {
            if place & BELOW == 0 {
                block.fill(Direct {
                    below: 0,
                    entry: place,
                });
                continue;
            }
            let middle = place & !BELOW;
            let fallback = self.nodes[middle as usize].fallback;
            for (place, direct) in self.expand(middle).into_iter().zip(block) {
                *direct = match place & BELOW {
                    0 => Direct {
                        below: 0,
                        entry: place,
                    },
                    // The former fallback of the node below is the direct index's own entry now.
                    _ => {
                        let node = place & !BELOW;
                        let entry = self.nodes[node as usize].fallback;
                        let places = self.expand(node);
                        self.free_node(node);
                        let below = self.alone_in(&places).unwrap_or_else(|| {
                            self.blocks.push(places);
                            self.blocks.len() as u32 - 1
                        });
                        Direct { below, entry }
                    }
                };
                if direct.entry == 0 {
                    direct.entry = fallback;
                }
            }
            self.free_node(middle);
        }
        if top != 0 {
            self.free_node(top);
        }
        let root = &mut self.roots[number as usize];
        root.node = 0;
        // It has that length.
        root.direct = direct.into_boxed_slice().try_into().ok();
    }

    /// Returns the value of [`Direct::below`] that stands for the prefix that alone occurs in `places`; `None` if
    /// there is more than one. (A second prefix would be visible beside it or within it.)
    fn alone_in(&self, places: &Places) -> Option<u32> {
        let entry = *places.iter().find(|&&place| place != 0)?;
        let only = places.iter().all(|&place| place == 0 || place == entry);
        let is_entry = entry & BELOW == 0;
        (only && is_entry).then(|| alone(self.prefixes[entry as usize], entry))?
    }

    fn free_node(&mut self, node: u32) {
        let former = self.nodes[node as usize];
        self.room(former, 0);
        self.free_nodes.push(node);
    }

    fn root_or_new(&mut self, value: &[u64]) -> u32 {
        let known = match self.exact.as_deref() {
            None => Some(0),
            Some((mask, map)) => map.get_masked(value, mask),
        };
        if let Some(root) = known {
            return root;
        }
        let root = self.new_root();
        if let Some((mask, map)) = self.exact.as_deref_mut() {
            map.insert(&super::lpm::masked(value, mask), root);
        }
        root
    }

    fn new_root(&mut self) -> u32 {
        self.free_roots.pop().unwrap_or_else(|| {
            self.roots.push(Root::EMPTY);
            self.roots.len() as u32 - 1
        })
    }

    /// Frees a root whose last prefix has been removed; the root of a table without exact fields stays.
    fn free_root(&mut self, root: u32, value: &[u64]) {
        if let Some((mask, map)) = self.exact.as_deref_mut() {
            map.remove(&super::lpm::masked(value, mask));
            self.roots[root as usize] = Root::EMPTY;
            self.free_roots.push(root);
        }
    }

    /// Returns how many bytes the table occupies on the heap.
    pub fn heap_bytes(&self) -> usize {
        let direct = self.roots.iter().filter(|r| r.direct.is_some()).count();
        direct * size_of::<[Direct; DIRECT_PLACES]>()
            + self.roots.capacity() * size_of::<Root>()
            + self.nodes.capacity() * size_of::<Node>()
            + 4 * self.runs.places.capacity()
            + self.blocks.capacity() * size_of::<Places>()
            + self.prefixes.capacity() * size_of::<Prefix>()
            + self.index.heap_bytes()
            + self.exact.as_deref().map_or(0, |(_, map)| map.heap_bytes())
    }
}
