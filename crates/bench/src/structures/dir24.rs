//! DIR-24-8 (Gupta, Lin and McKeown 1998), as in software routers: one access for nearly every IPv4 address, two for the rest.

use crate::structures::routes::Prefix;

/// A bit of an element: if it is set, the other bits are the number of a block of elements for the last eight bits of
/// the address; otherwise they are the number of a next hop plus one, 0 for none.
const LONGER: u16 = 1 << 15;

/// A map from IPv4 prefixes to numbers below 2^15 - 1.
pub struct Dir24 {
    /// The elements, by the first 24 bits of the address.
    first: Box<[u16]>,
    /// The blocks of 256 elements, by the last eight bits of the address.
    blocks: Vec<[u16; 256]>,
    /// For each element of `first`, the length of the prefix that gave its value; needed while prefixes are added.
    first_len: Box<[u8]>,
    block_len: Vec<[u8; 256]>,
}

impl Default for Dir24 {
    fn default() -> Dir24 {
        Dir24::new()
    }
}

impl Dir24 {
    /// Makes a table without any prefix.
    pub fn new() -> Dir24 {
        Dir24 {
            first: vec![0; 1 << 24].into(),
            blocks: Vec::new(),
            first_len: vec![0; 1 << 24].into(),
            block_len: Vec::new(),
        }
    }

    /// Adds a prefix with a value, which must be below 2^15 - 1.
    pub fn insert(&mut self, prefix: Prefix, value: u16) {
        let (value, len) = (value + 1, prefix.len as u8);
        let at = (prefix.address >> 8) as usize;
        if prefix.len > 24 {
            let block = self.block(at);
            let low = (prefix.address & 0xff) as usize;
            self.fill_block(block, low..low + (1 << (32 - prefix.len)), value, len);
            return;
        }
        for at in at..at + (1 << (24 - prefix.len)) {
            if self.first[at] & LONGER != 0 {
                let block = (self.first[at] & !LONGER) as usize;
                self.fill_block(block, 0..256, value, len);
            } else if self.first_len[at] <= len {
                (self.first[at], self.first_len[at]) = (value, len);
            }
        }
    }

    fn fill_block(&mut self, block: usize, places: std::ops::Range<usize>, value: u16, len: u8) {
        for i in places {
            if self.block_len[block][i] <= len {
                (self.blocks[block][i], self.block_len[block][i]) = (value, len);
            }
        }
    }

    fn block(&mut self, at: usize) -> usize {
        let first = self.first[at];
        if first & LONGER != 0 {
            return (first & !LONGER) as usize;
        }
        self.blocks.push([first; 256]);
        self.block_len.push([self.first_len[at]; 256]);
        let block = self.blocks.len() - 1;
        self.first[at] = LONGER | block as u16;
        block
    }

    /// Returns the value of the longest prefix that contains an address; `None` if no prefix does.
    #[inline]
    pub fn lookup(&self, address: u32) -> Option<u16> {
        let mut found = self.first[(address >> 8) as usize];
        if found & LONGER != 0 {
            found = self.blocks[(found & !LONGER) as usize][(address & 0xff) as usize];
        }
        found.checked_sub(1)
    }
}
