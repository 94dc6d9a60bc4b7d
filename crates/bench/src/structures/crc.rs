//! The CRC of Ethernet, a byte at a time.

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut value = i as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                value >> 1 ^ 0xedb8_8320
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[i] = value;
        i += 1;
    }
    table
};

/// Of these bytes and so many zeros behind them.
pub fn crc32(bytes: &[u8], zeros: usize) -> u32 {
    let step = |crc: u32, byte: u8| TABLE[usize::from(crc as u8 ^ byte)] ^ crc >> 8;
    let crc = bytes.iter().fold(u32::MAX, |crc, &byte| step(crc, byte));
    !(0..zeros).fold(crc, |crc, _| step(crc, 0))
}
