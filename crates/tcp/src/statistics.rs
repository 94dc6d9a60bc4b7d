//! Statistics of a connection. Counts only grow; gauges show the current value.

/// Counts and present values of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow start threshold; `u64::MAX` before the first loss unless configured.
    pub ssthresh_bytes: u64,
    /// Bytes presumed to be in the network: sent, not acknowledged, and neither lost nor known to have arrived.
    pub flight_bytes: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt_ps: u64,
    /// Smallest round-trip time; zero before the first sample.
    pub rtt_min_ps: u64,
    /// Current retransmission timeout, with its back-off.
    pub rto_ps: u64,
    /// Payload bytes sent, those sent again included.
    pub bytes_sent: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Payload bytes of ours that the other end has acknowledged.
    pub bytes_acknowledged: u64,
    /// Payload bytes received in order, each counted once.
    pub bytes_received: u64,
    /// Payload bytes received that had been received before.
    pub bytes_received_again: u64,
    /// Segments with payload, SYN or FIN sent.
    pub segments_sent: u64,
    /// Segments with payload, SYN or FIN sent again.
    pub segments_retransmitted: u64,
    /// Segments without payload sent only to acknowledge.
    pub acks_sent: u64,
    /// Duplicate acknowledgments received.
    pub duplicate_acks: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// The number of times that fast recovery was entered.
    pub fast_recoveries: u64,
    /// Window reductions because of ECN.
    pub ecn_reductions: u64,
    /// Tail loss probes sent.
    pub tail_loss_probes: u64,
    /// Probes of a closed window sent.
    pub window_probes: u64,
    /// Segments that the other end received twice, as it reported by D-SACK (RFC 2883).
    pub duplicates_reported: u64,
    /// Segments received with the ECN codepoint CE (congestion experienced).
    pub ce_received: u64,
    /// Segments refused because of an old timestamp (PAWS).
    pub paws_rejected: u64,
}
