//! Logs of a flow's packets, a line for each. They do not know what the numbers mean: `statistics` does.

/// The times at which a flow sent its packets, by sequence number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentLog {
    /// The time at which each packet was sent, in picoseconds.
    pub sent_ps: Vec<u64>,
}

/// The arrivals of a flow's packets, in order, duplicates included. The columns have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedLog {
    /// Sequence numbers.
    pub sequence: Vec<u64>,
    /// The time at which each packet was sent, in picoseconds.
    pub sent_ps: Vec<u64>,
    /// The time at which each packet (for a ping: the reply) arrived, in picoseconds.
    pub received_ps: Vec<u64>,
}

impl ReceivedLog {
    /// An empty log, for constants.
    pub const EMPTY: ReceivedLog = ReceivedLog {
        sequence: Vec::new(),
        sent_ps: Vec::new(),
        received_ps: Vec::new(),
    };

    /// Returns the number of arrivals; each copy of a packet counts.
    pub fn len(&self) -> usize {
        self.sequence.len()
    }

    /// Returns true if no packet has arrived.
    pub fn is_empty(&self) -> bool {
        self.sequence.is_empty()
    }

    pub(crate) fn push(&mut self, sequence: u64, sent_ps: u64, received_ps: u64) {
        self.sequence.push(sequence);
        self.sent_ps.push(sent_ps);
        self.received_ps.push(received_ps);
    }
}
