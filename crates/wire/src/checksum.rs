//! The Internet checksum (RFC 1071): the ones' complement of the ones' complement sum of 16-bit words.
//!
//! It does not know the summed data; the protocols make pseudo headers.

/// A sum in progress. Pieces of odd length may only come last, as in any packet.
///
/// Words are summed in this machine's byte order, 32 bits at a time, and put right at the end (RFC 1071, section 2 (B) and
/// (C)); the compiler makes vector instructions of that.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    total: u64,
}

impl Sum {
    /// Makes an empty sum, which is zero.
    pub fn new() -> Sum {
        Sum::default()
    }

    /// Adds bytes to the sum as big-endian 16-bit words. A last odd byte counts as the high half of a word whose low
    /// half is zero.
    pub fn bytes(mut self, bytes: &[u8]) -> Sum {
        // 32-bit words into 64 bits cannot overflow for any slice shorter than 16 GiB.
        let (words, rest) = bytes.as_chunks::<4>();
        let total: u64 = words
            .iter()
            .map(|word| u64::from(u32::from_ne_bytes(*word)))
            .sum();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        let total = total + u64::from(u32::from_ne_bytes(last));
        // Folded before it is added, so that any number of pieces stays far from overflow.
        self.total += (total & 0xffff_ffff) + (total >> 32);
        self
    }

    /// Adds one 16-bit word, given as a number, to the sum.
    pub fn word(mut self, word: u16) -> Sum {
        self.total += u64::from(word.to_be());
        self
    }

    /// Returns the ones' complement sum of all added words in 16 bits, without the complement that makes it a checksum.
    pub fn folded(self) -> u16 {
        let mut total = self.total;
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        u16::from_be(total as u16)
    }

    /// Returns the Internet checksum (RFC 1071) of all added words: the complement of their ones' complement sum.
    pub fn finish(self) -> u16 {
        !self.folded()
    }
}

/// Calculates the Internet checksum (RFC 1071) of `bytes`.
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum::new().bytes(bytes).finish()
}

/// Returns true if `sum`, taken over data that contains its own checksum field, shows that the checksum is correct.
pub fn verifies(sum: Sum) -> bool {
    sum.folded() == 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Calculates the checksum of `bytes` directly by its definition, word by word.
    fn slow(bytes: &[u8]) -> u16 {
        let mut total = 0u32;
        for pair in bytes.chunks(2) {
            total += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            total = (total & 0xffff) + (total >> 16);
        }
        !(total as u16)
    }

    #[test]
    fn example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::new().bytes(&bytes).folded(), 0xddf2);
        assert_eq!(checksum(&bytes), !0xddf2);
    }

    #[test]
    fn nothing_sums_to_zero() {
        assert_eq!(checksum(&[]), 0xffff);
    }

    #[test]
    fn a_header_with_its_checksum_verifies() {
        // The header of Wikipedia's article on the IPv4 header checksum; its checksum is 0xb861.
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert!(verifies(Sum::new().bytes(&header)));
        let mut without = header;
        without[10..12].fill(0);
        assert_eq!(checksum(&without), 0xb861);
        for i in 0..header.len() * 8 {
            let mut broken = header;
            broken[i / 8] ^= 1 << (i % 8);
            assert!(!verifies(Sum::new().bytes(&broken)), "bit {i}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(checksum(&bytes), slow(&bytes));
        }

        #[test]
        fn pieces_of_even_length_add_up(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..100
        ) {
            let at = (2 * at).min(bytes.len() & !1);
            let sum = Sum::new().bytes(&bytes[..at]).bytes(&bytes[at..]);
            prop_assert_eq!(sum.finish(), slow(&bytes));
        }
    }
}
