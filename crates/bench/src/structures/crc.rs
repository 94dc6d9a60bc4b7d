//! Reflected CRCs, a byte at a time.

/// Makes the table with the effect of each byte on a CRC of up to 32 bits with this polynomial, in reflected form.
pub const fn table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut value = i as u32;
        let mut bit = 0;
        while bit < 8 {
            value = value >> 1 ^ if value & 1 == 1 { polynomial } else { 0 };
            bit += 1;
        }
        table[i] = value;
        i += 1;
    }
    table
}

/// The CRC of Ethernet.
const ETHERNET: [u32; 256] = table(0xedb8_8320);

/// Calculates the CRC-32 of these bytes followed by `zeros` zero bytes.
pub fn crc32(bytes: &[u8], zeros: usize) -> u32 {
    let step = |crc: u32, byte: u8| ETHERNET[usize::from(crc as u8 ^ byte)] ^ crc >> 8;
    let crc = bytes.iter().fold(u32::MAX, |crc, &byte| step(crc, byte));
    !(0..zeros).fold(crc, |crc, _| step(crc, 0))
}
