//! Transmission times of Ethernet frames, and the upper limit of all times that users give. It does not know links or queues.

/// Bytes of the frame check sequence.
pub const FCS_BYTES: u64 = 4;
/// Bytes of the shortest frame, frame check sequence included.
pub const MIN_FRAME_BYTES: u64 = 64;
/// Bytes of preamble, start frame delimiter and inter-frame gap.
pub const OVERHEAD_BYTES: u64 = 20;
/// The longest delay that users may give (about eleven days), and the largest jitter.
pub const MAX_DELAY_PS: u64 = 1_000_000_000_000_000_000;

/// Returns the number of byte times for which a frame of `frame_bytes` bytes, without frame check sequence, occupies
/// the wire: with that sequence at least 64 bytes, and with preamble, start delimiter and inter-frame gap.
pub fn wire_bytes(frame_bytes: usize) -> u64 {
    (frame_bytes as u64 + FCS_BYTES).max(MIN_FRAME_BYTES) + OVERHEAD_BYTES
}

/// Returns the time in picoseconds, rounded up, for which a frame of `frame_bytes` bytes occupies the wire at a rate of
/// `rate_bps` bits per second (see [`wire_bytes`]).
pub fn serialisation_ps(frame_bytes: usize, rate_bps: u64) -> u64 {
    const PS_PER_S: u64 = 1_000_000_000_000;
    let bits = wire_bytes(frame_bytes) * 8;
    match bits.checked_mul(PS_PER_S) {
        Some(product) => product.div_ceil(rate_bps),
        None => {
            let time = (u128::from(bits) * u128::from(PS_PER_S)).div_ceil(u128::from(rate_bps));
            u64::try_from(time).unwrap_or(u64::MAX)
        }
    }
}
