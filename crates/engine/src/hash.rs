//! The hash functions and checksums of v1model over bytes, as pure functions.
//!
//! [`hash`] is what both executors call; the named functions are there to be tested on their own. Nothing here knows
//! about packets, slots or fields: the caller lays the fields out as bytes.

use crc::{CRC_16_ARC, Crc, Table};
use ir::HashAlgorithm;

/// The CRC of polynomial 0x8005, reflected, with tables for 16 bytes at a time.
static CRC16: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_ARC);

/// Hashes `data` followed by `payload` into limbs (least significant first).
///
/// The algorithms over 16-bit words see one run of bytes: a word may begin with the last byte of `data` and end with the first of
/// `payload`, and only the last of all is padded with a zero byte. The result is cut to, or extended with zeros to, the length of
/// `out`; the caller cuts the last limb to the width it wants.
pub fn hash(algorithm: HashAlgorithm, data: &[u8], payload: &[u8], out: &mut [u64]) {
    let value = match algorithm {
        HashAlgorithm::Crc32 => {
            let mut crc = crc32fast::Hasher::new();
            crc.update(data);
            crc.update(payload);
            u64::from(crc.finalize())
        }
        HashAlgorithm::Crc16 => {
            let mut crc = CRC16.digest();
            crc.update(data);
            crc.update(payload);
            u64::from(crc.finalize())
        }
        HashAlgorithm::Csum16 => {
            let sum: u64 = words_of_both(data, payload).map(u64::from).sum();
            u64::from(!fold(sum))
        }
        HashAlgorithm::Xor16 => {
            words_of_both(data, payload).fold(0, |acc, word| acc ^ u64::from(word))
        }
        HashAlgorithm::Identity => identity(data, payload),
    };
    out.fill(0);
    if let Some(low) = out.first_mut() {
        *low = value;
    }
}

/// Calculates CRC-32/ISO-HDLC, the CRC of Ethernet.
pub fn crc32(data: &[u8]) -> u32 {
    crc32fast::hash(data)
}

/// Calculates CRC-16/ARC, with polynomial 0x8005, reflected.
pub fn crc16(data: &[u8]) -> u16 {
    CRC16.checksum(data)
}

/// Calculates the Internet checksum (RFC 1071) of big-endian 16-bit words, the last padded with zeros.
pub fn csum16(data: &[u8]) -> u16 {
    !fold(word_sum(data))
}

/// Combines all big-endian 16-bit words by exclusive or, the last padded with zeros.
pub fn xor16(data: &[u8]) -> u16 {
    words(data).fold(0, |acc, word| acc ^ word)
}

/// Returns the first eight bytes as a number, as the reference target does, or all bytes if there are fewer.
fn identity(data: &[u8], payload: &[u8]) -> u64 {
    let first = data.iter().chain(payload).take(8);
    first.fold(0, |value, &byte| value << 8 | u64::from(byte))
}

fn words(data: &[u8]) -> impl Iterator<Item = u16> {
    data.chunks(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
}

/// Returns 16-bit words with the same sum and exclusive or as the words of `data` followed by `payload`. If `data`
/// ends within a word, the first byte of `payload`, which completes that word, is returned as a word of its own.
fn words_of_both<'a>(data: &'a [u8], payload: &'a [u8]) -> impl Iterator<Item = u16> + 'a {
    // The first byte of the payload is the second of a word that is counted with a zero there.
    let shared = match data.len() % 2 {
        0 => 0,
        _ => payload.len().min(1),
    };
    let (completing, rest) = payload.split_at(shared);
    let completing = completing.iter().map(|&byte| u16::from(byte));
    words(data).chain(completing).chain(words(rest))
}

fn word_sum(data: &[u8]) -> u64 {
    words(data).map(u64::from).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_check_values() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc16(b"123456789"), 0xbb3d);
        // The example of RFC 1071, section 3: the sum is ddf2.
        assert_eq!(
            csum16(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            !0xddf2
        );
        assert_eq!(
            xor16(&[0x12, 0x34, 0xff, 0x00, 0x01]),
            0x1234 ^ 0xff00 ^ 0x0100
        );
        assert_eq!(crc32(b""), 0);
        assert_eq!(csum16(b""), 0xffff);
    }

    #[test]
    fn data_and_payload_follow_each_other() {
        let mut out = [7u64; 2];
        hash(HashAlgorithm::Crc32, b"12345", b"6789", &mut out);
        assert_eq!(out, [0xcbf4_3926, 0]);
        hash(HashAlgorithm::Crc16, b"1234567", b"89", &mut out);
        assert_eq!(out, [0xbb3d, 0]);
        hash(HashAlgorithm::Identity, &[1, 2], &[3, 4], &mut out);
        assert_eq!(out, [0x0102_0304, 0]);
        hash(HashAlgorithm::Identity, b"123", b"456789", &mut out);
        assert_eq!(out, [0x3132_3334_3536_3738, 0]);
        hash(HashAlgorithm::Identity, b"123456789", b"a", &mut out);
        assert_eq!(out, [0x3132_3334_3536_3738, 0]);
    }

    #[test]
    fn a_word_may_begin_in_the_data_and_end_in_the_payload() {
        let mut out = [0u64];
        hash(HashAlgorithm::Xor16, &[0xab], &[0x01, 0x02, 0x03], &mut out);
        assert_eq!(out[0], 0xab01 ^ 0x0203);
        hash(HashAlgorithm::Csum16, &[0xab], &[0x01], &mut out);
        assert_eq!(out[0], u64::from(csum16(&[0xab, 1])));
        let bytes: Vec<u8> = (0..23u8)
            .map(|i| i.wrapping_mul(37).wrapping_add(11))
            .collect();
        for whole in 0..bytes.len() {
            for split in 0..=whole {
                let (data, payload) = bytes[..whole].split_at(split);
                hash(HashAlgorithm::Csum16, data, payload, &mut out);
                assert_eq!(
                    out[0],
                    u64::from(csum16(&bytes[..whole])),
                    "{split} of {whole}"
                );
                hash(HashAlgorithm::Xor16, data, payload, &mut out);
                assert_eq!(
                    out[0],
                    u64::from(xor16(&bytes[..whole])),
                    "{split} of {whole}"
                );
            }
        }
    }
}
