//! Arithmetic on IPv4 headers of 20 bytes. It knows nothing of routes.

/// Adds up the ten 16-bit words of a header, and folds the sum to 16 bits (ones' complement sum, RFC 1071). The
/// result is 0xffff for an intact header, and 0 for less than 20 bytes.
#[inline]
fn sum(header: &[u8]) -> u32 {
    let Some(header) = header.first_chunk::<20>() else {
        return 0;
    };
    // Words of 32 bits in the order of this machine: the sum commutes with swapping bytes (RFC 1071, section 2).
    let sum: u64 = (header.chunks_exact(4))
        .map(|word| u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]])))
        .sum();
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u32
}

/// Returns true if the checksum of an IPv4 header is correct.
#[inline]
pub fn is_intact(header: &[u8]) -> bool {
    sum(header) == 0xffff
}

/// Writes the checksum into an IPv4 header whose checksum field is zero.
#[inline]
pub fn write_checksum(header: &mut [u8]) {
    let checksum = !(sum(header) as u16);
    header[10..12].copy_from_slice(&checksum.to_ne_bytes());
}

/// Decreases the TTL by one, and updates the checksum (RFC 1624, equation 3).
#[inline]
pub fn decrement_ttl(header: &mut [u8]) {
    header[8] -= 1;
    let checksum = u16::from_be_bytes([header[10], header[11]]);
    // The word with the TTL in its high byte loses 0x0100, so ~m + m' is 0xfeff.
    let sum = u32::from(!checksum) + 0xfeff;
    let folded = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}

/// Returns the two bytes at `at` as a number in network order.
#[inline]
pub fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Returns the four bytes at `at` as a number in network order.
#[inline]
pub fn double_word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Returns the first 12 bytes of an Ethernet frame: the destination address, then the source address.
pub fn addresses(destination: u64, source: u64) -> [u8; 12] {
    let mut result = [0; 12];
    result[..6].copy_from_slice(&destination.to_be_bytes()[2..]);
    result[6..].copy_from_slice(&source.to_be_bytes()[2..]);
    result
}
