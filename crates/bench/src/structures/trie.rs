//! Longest prefix match by Poptrie (Asai and Ohara 2015): six bits per node, leaves pushed down and runs of equal leaves stored once,
//! children and leaves found by counting ones. It is built once from all prefixes.

use std::collections::BTreeMap;

const STRIDE: u32 = 6;

/// The value that stands for "no prefix contains this address".
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Default)]
struct Node {
    /// The children that are nodes, as a bit each.
    children: u64,
    /// The other children at which a leaf begins that differs from the one before, as a bit each.
    leaves: u64,
    first_child: u32,
    first_leaf: u32,
}

/// A map from prefixes of up to 128 bits to numbers below `u32::MAX`.
#[derive(Default)]
pub struct Trie {
    nodes: Vec<Node>,
    leaves: Vec<u32>,
}

/// A node while the trie is built: its children by six bits, and the prefixes that end in it.
#[derive(Default)]
struct Building {
    children: BTreeMap<usize, Building>,
    /// For each prefix that ends in this node, its six bits here, its length within the node, and its value.
    prefixes: Vec<(usize, u32, u32)>,
}

impl Building {
    fn insert(&mut self, address: u128, len: u32, value: u32) {
        let chunk = (address >> (128 - STRIDE)) as usize;
        if len > STRIDE {
            let below = self.children.entry(chunk).or_default();
            below.insert(address << STRIDE, len - STRIDE, value);
        } else {
            self.prefixes.push((chunk, len, value));
        }
    }

    /// Returns the value of each of the node's 64 children: that of the longest prefix in the node that contains the
    /// child, or else `inherited`.
    fn values(&self, inherited: u32) -> [u32; 64] {
        let mut values = [inherited; 64];
        let mut prefixes = self.prefixes.clone();
        prefixes.sort_by_key(|&(_, len, _)| len);
        for (chunk, len, value) in prefixes {
            let first = chunk & !((1 << (STRIDE - len)) - 1);
            values[first..first + (1 << (STRIDE - len))].fill(value);
        }
        values
    }
}

impl Trie {
    /// Builds the trie from prefixes, each given as address (its first bit is the highest of 128), length and value.
    pub fn new(prefixes: &[(u128, u32, u32)]) -> Trie {
        let mut root = Building::default();
        for &(address, len, value) in prefixes {
            root.insert(address, len, value);
        }
        let mut trie = Trie {
            nodes: vec![Node::default()],
            leaves: Vec::new(),
        };
        trie.write(0, &root, NONE);
        trie
    }

    fn write(&mut self, at: usize, building: &Building, inherited: u32) {
        let values = building.values(inherited);
        let mut node = Node {
            first_leaf: self.leaves.len() as u32,
            first_child: self.nodes.len() as u32,
            ..Node::default()
        };
        let mut last = None;
        for (way, &value) in values.iter().enumerate() {
            if building.children.contains_key(&way) {
                node.children |= 1 << way;
            } else if last != Some(value) {
                node.leaves |= 1 << way;
                self.leaves.push(value);
                last = Some(value);
            }
        }
        self.nodes[at] = node;
        let first = self.nodes.len();
        self.nodes
            .resize(first + building.children.len(), Node::default());
        for (i, (way, below)) in building.children.iter().enumerate() {
            self.write(first + i, below, values[*way]);
        }
    }

    /// Returns the value of the longest prefix that contains an address; `None` if no prefix does.
    #[inline]
    pub fn lookup(&self, address: u128) -> Option<u32> {
        let mut node = &self.nodes[0];
        let mut rest = address;
        loop {
            let way = (rest >> (128 - STRIDE)) as u32;
            let up_to = u64::MAX >> (63 - way);
            if node.children >> way & 1 == 0 {
                let rank = (node.leaves & up_to).count_ones() - 1;
                let value = self.leaves[(node.first_leaf + rank) as usize];
                return (value != NONE).then_some(value);
            }
            let rank = (node.children & up_to).count_ones() - 1;
            node = &self.nodes[(node.first_child + rank) as usize];
            rest <<= STRIDE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Trie;
    use crate::random::Random;

    #[test]
    fn finds_what_a_linear_search_finds() {
        let mut random = Random::new(1);
        for count in [0, 1, 10, 300] {
            let mut prefixes: Vec<(u128, u32, u32)> = Vec::new();
            for value in 0..count {
                let len = random.below(129) as u32;
                // Few bits vary, so that prefixes contain each other.
                let bits = u128::from(random.next_u64() & 0x3000_0000_0000_0003) << 64
                    | u128::from(random.next_u64() & 3);
                let mask = u128::MAX.checked_shl(128 - len).unwrap_or(0);
                if !prefixes.iter().any(|p| (p.0, p.1) == (bits & mask, len)) {
                    prefixes.push((bits & mask, len, value));
                }
            }
            let trie = Trie::new(&prefixes);
            for _ in 0..2000 {
                let address = u128::from(random.next_u64() & 0x3000_0000_0000_0003) << 64
                    | u128::from(random.next_u64() & 3);
                let longest = (prefixes.iter())
                    .filter(|p| address & u128::MAX.checked_shl(128 - p.1).unwrap_or(0) == p.0)
                    .max_by_key(|p| p.1);
                assert_eq!(trie.lookup(address), longest.map(|p| p.2), "{address:x}");
            }
        }
    }
}
