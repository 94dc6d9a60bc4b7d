//! Logs of a flow's packets, a line for each. They do not know what the numbers mean: `statistics` does.

/// The packets that a flow sent: the position is the sequence number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentLog {
    /// When each packet was sent.
    pub sent_ps: Vec<u64>,
}

/// The packets of a flow that arrived, in order of arrival, duplicates included. The columns have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedLog {
    /// Sequence numbers.
    pub sequence: Vec<u64>,
    /// When each packet was sent.
    pub sent_ps: Vec<u64>,
    /// When each packet arrived (for a ping: when the reply did).
    pub received_ps: Vec<u64>,
}

impl ReceivedLog {
    /// An empty log, in constants.
    pub const EMPTY: ReceivedLog = ReceivedLog {
        sequence: Vec::new(),
        sent_ps: Vec::new(),
        received_ps: Vec::new(),
    };

    /// Returns the number of arrivals, all copies of a packet included.
    pub fn len(&self) -> usize {
        self.sequence.len()
    }

    /// Returns whether no packet arrived.
    pub fn is_empty(&self) -> bool {
        self.sequence.is_empty()
    }

    pub(crate) fn push(&mut self, sequence: u64, sent_ps: u64, received_ps: u64) {
        self.sequence.push(sequence);
        self.sent_ps.push(sent_ps);
        self.received_ps.push(received_ps);
    }
}
