//! Longest prefix match with strides of 16, 8, 8...: a multibit trie with prefixes expanded in each node.

/// Bits that the root covers.
const ROOT_BITS: u32 = 16;

/// Bits that every other node covers.
const NODE_BITS: u32 = 8;

/// A slot: where the node below is and the value of the longest prefix that covers it, each plus one, 0 for none.
#[derive(Clone, Copy, Default)]
struct Slot {
    node: u32,
    value: u32,
}

/// Addresses of up to 128 bits to numbers.
pub struct Trie {
    /// The root, then nodes of 256 slots each.
    slots: Vec<Slot>,
    /// Length of the prefix that gave each slot its value; while building.
    lengths: Vec<u8>,
}

impl Default for Trie {
    fn default() -> Trie {
        Trie {
            slots: vec![Slot::default(); 1 << ROOT_BITS],
            lengths: vec![0; 1 << ROOT_BITS],
        }
    }
}

impl Trie {
    /// Adds a prefix of an address whose first bit is the highest of the 128.
    pub fn insert(&mut self, address: u128, len: u32, value: u32) {
        let (mut base, mut covered, mut bits) = (0, 0, ROOT_BITS);
        while len > covered + bits {
            let chunk = (address << covered >> (128 - bits)) as usize;
            base = self.below(base + chunk);
            covered += bits;
            bits = NODE_BITS;
        }
        let chunk = (address << covered >> (128 - bits)) as usize;
        for at in base + chunk..base + chunk + (1 << (covered + bits - len)) {
            if self.slots[at].value == 0 || u32::from(self.lengths[at]) <= len {
                self.slots[at].value = value + 1;
                self.lengths[at] = len as u8;
            }
        }
    }

    fn below(&mut self, at: usize) -> usize {
        if self.slots[at].node == 0 {
            let new = self.slots.len();
            self.slots.resize(new + (1 << NODE_BITS), Slot::default());
            self.lengths.resize(new + (1 << NODE_BITS), 0);
            self.slots[at].node = new as u32 + 1;
        }
        self.slots[at].node as usize - 1
    }

    /// The value of the longest prefix.
    #[inline]
    pub fn lookup(&self, address: u128) -> Option<u32> {
        let mut slot = self.slots[(address >> (128 - ROOT_BITS)) as usize];
        let mut rest = address << ROOT_BITS;
        let mut value = slot.value;
        while slot.node != 0 {
            slot = self.slots[slot.node as usize - 1 + (rest >> (128 - NODE_BITS)) as usize];
            rest <<= NODE_BITS;
            if slot.value != 0 {
                value = slot.value;
            }
        }
        value.checked_sub(1)
    }
}
