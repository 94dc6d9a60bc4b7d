//! The two-rate three-colour marker of RFC 2698, colour-blind, in exact integer arithmetic.
//!
//! Time is an argument. Tokens are kept multiplied by the picoseconds in a second, so that no rate and no interval rounds.

use crate::Time;
use crate::cells::CounterData;
use crate::table::forget_last;
use smallvec::SmallVec;

/// Picoseconds in a second: the factor by which tokens are scaled.
const SCALE: u128 = 1_000_000_000_000;

/// Rates per second and bursts, in bytes or packets as the meter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterConfig {
    /// Committed information rate.
    pub cir: u64,
    /// Committed burst size.
    pub cburst: u64,
    /// Peak information rate.
    pub pir: u64,
    /// Peak burst size.
    pub pburst: u64,
}

/// A packet's colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Colour {
    /// Within the committed rate.
    Green = 0,
    /// Within the peak rate.
    Yellow = 1,
    /// Beyond.
    Red = 2,
}

/// One configured meter: two token buckets that start full. Its alignment makes it two cache lines that are loaded as
/// a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(align(128))]
pub struct Meter {
    config: MeterConfig,
    committed: u128,
    peak: u128,
    filled_ps: Time,
    counts: [CounterData; 3],
}

impl Meter {
    /// Makes a meter whose buckets are full at `now_ps`.
    pub fn new(config: MeterConfig, now_ps: Time) -> Meter {
        Meter {
            config,
            committed: u128::from(config.cburst) * SCALE,
            peak: u128::from(config.pburst) * SCALE,
            filled_ps: now_ps,
            counts: Default::default(),
        }
    }

    /// Changes the meter's configuration, and fills its buckets; the counts stay.
    pub fn configure(&mut self, config: MeterConfig, now_ps: Time) {
        let counts = self.counts;
        *self = Meter::new(config, now_ps);
        self.counts = counts;
    }

    /// Returns the packets and bytes marked with each colour: green, yellow, red.
    pub fn counts(&self) -> [CounterData; 3] {
        self.counts
    }

    /// Marks a packet with a colour, which is returned, and counts it. It needs as many tokens as it has bytes if `by_bytes`, else one. A
    /// red packet takes none, a yellow one takes them from the peak bucket only.
    pub fn mark(&mut self, by_bytes: bool, packet_bytes: usize, now_ps: Time) -> Colour {
        let amount = if by_bytes { packet_bytes as u64 } else { 1 };
        let colour = self.execute(amount, now_ps);
        self.counts[colour as usize].count(packet_bytes);
        colour
    }

    /// Returns the configuration with which the meter was set.
    pub fn config(&self) -> MeterConfig {
        self.config
    }

    /// Takes `amount` tokens for a packet, and returns its colour. A red packet takes none, a yellow one takes them
    /// from the peak bucket only. No tokens are added before if `now_ps` is earlier than the time of the last packet
    /// (see [`Self::clock_set_back`]).
    pub fn execute(&mut self, amount: u64, now_ps: Time) -> Colour {
        self.fill(now_ps);
        let amount = u128::from(amount) * SCALE;
        if self.peak < amount {
            return Colour::Red;
        }
        self.peak -= amount;
        if self.committed < amount {
            return Colour::Yellow;
        }
        self.committed -= amount;
        Colour::Green
    }

    /// Makes tokens come in from `now_ps` on, after the clock was set back. The present tokens stay.
    fn clock_set_back(&mut self, now_ps: Time) {
        self.filled_ps = self.filled_ps.min(now_ps);
    }

    fn fill(&mut self, now_ps: Time) {
        let elapsed = now_ps.since(self.filled_ps);
        self.filled_ps = self.filled_ps.max(now_ps);
        let fill = |tokens: u128, rate: u64, burst: u64| {
            (tokens.saturating_add(u128::from(rate).saturating_mul(elapsed)))
                .min(u128::from(burst) * SCALE)
        };
        self.committed = fill(self.committed, self.config.cir, self.config.cburst);
        self.peak = fill(self.peak, self.config.pir, self.config.pburst);
    }
}

/// The number of meter cells that are stored together.
const CHUNK: usize = 32;

/// Consecutive cells of a meter, of which some are configured.
#[derive(Clone, Debug, Default)]
struct Chunk {
    /// A bit for each cell: 1 if the cell is configured.
    configured: u32,
    /// All cells, or none if none is configured. The contents of a cell that is not configured have no meaning.
    cells: Vec<Meter>,
}

/// The configured cells of a meter: by index, or in a direct meter by the number of the entry.
#[derive(Clone, Debug)]
pub(crate) struct MeterArray {
    by_bytes: bool,
    size: u64,
    chunks: Vec<Chunk>,
    /// The colour that a direct meter gave to the last hit; green after a miss.
    pub(crate) last_colour: u8,
}

impl MeterArray {
    pub(crate) fn new(by_bytes: bool, size: u64) -> MeterArray {
        MeterArray {
            by_bytes,
            size,
            chunks: Vec::new(),
            last_colour: 0,
        }
    }

    /// Returns the number of cells of an indexed meter; 0 for a direct meter, whose cells belong to entries.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    #[inline]
    pub(crate) fn cell(&self, index: u64) -> Option<&Meter> {
        let (chunk, at) = place(index);
        let chunk = self.chunks.get(chunk)?;
        (chunk.configured >> at & 1 == 1).then(|| &chunk.cells[at])
    }

    /// Reads the cells with these indices before packets are marked by them, so that they are in the processor's caches.
    /// Indices without a configured cell are skipped. For each group of up to `CHUNK` indices, it computes all addresses,
    /// then reads one field of every cell, then the next field, so that cache misses overlap. The result has no meaning:
    /// it only keeps the compiler from removing the reads.
    pub(crate) fn load(&self, indices: &[u64]) -> u64 {
        let mut sum = 0;
        for indices in indices.chunks(CHUNK) {
            let cells: SmallVec<[&Meter; CHUNK]> =
                indices.iter().filter_map(|&i| self.cell(i)).collect();
            sum ^= cells
                .iter()
                .fold(0, |sum, cell| sum ^ cell.filled_ps.saturating_ps());
            sum ^= (cells.iter()).fold(0, |sum, cell| sum ^ cell.config.cir);
            sum ^= (cells.iter()).fold(0, |sum, cell| sum ^ cell.counts[0].packets);
        }
        sum
    }

    /// Marks a packet in a cell, counts it, and returns the number of its colour: 0 green, 1 yellow, 2 red. A cell
    /// without a configuration marks every packet green.
    #[inline]
    pub(crate) fn mark(&mut self, index: u64, packet_bytes: usize, now_ps: Time) -> u8 {
        let (chunk, at) = place(index);
        match self.chunks.get_mut(chunk) {
            Some(chunk) if chunk.configured >> at & 1 == 1 => {
                chunk.cells[at].mark(self.by_bytes, packet_bytes, now_ps) as u8
            }
            _ => 0,
        }
    }

    /// Replaces the cell at `index` (of a cell, or of an entry) by another or by none, and returns the former cell.
    /// `None` stands for a cell without a configuration.
    pub(crate) fn replace(&mut self, index: u64, cell: Option<Meter>) -> Option<Meter> {
        let former = self.cell(index).cloned();
        let (number, at) = place(index);
        match cell {
            Some(cell) => {
                if number >= self.chunks.len() {
                    self.chunks.resize_with(number + 1, Chunk::default);
                }
                let chunk = &mut self.chunks[number];
                if chunk.cells.is_empty() {
                    chunk.cells = vec![cell.clone(); CHUNK];
                }
                chunk.cells[at] = cell;
                chunk.configured |= 1 << at;
            }
            None if former.is_some() => {
                let chunk = &mut self.chunks[number];
                chunk.configured &= !(1 << at);
                if chunk.configured == 0 {
                    chunk.cells = Vec::new();
                }
                forget_last(&mut self.chunks, |chunk| chunk.configured == 0);
            }
            None => {}
        }
        former
    }

    /// Makes tokens of all cells come in from `now_ps` on, after the clock was set back.
    pub(crate) fn clock_set_back(&mut self, now_ps: Time) {
        let cells = self.chunks.iter_mut().flat_map(|chunk| &mut chunk.cells);
        cells.for_each(|cell| cell.clock_set_back(now_ps));
    }

    /// Returns the cells that are configured, each with its index, in ascending order.
    pub(crate) fn configured(&self) -> impl Iterator<Item = (u64, &Meter)> {
        self.chunks.iter().enumerate().flat_map(|(number, chunk)| {
            let cells = chunk.cells.iter().enumerate();
            let configured = cells.filter(|(at, _)| chunk.configured >> at & 1 == 1);
            configured.map(move |(at, cell)| ((number * CHUNK + at) as u64, cell))
        })
    }

    /// Returns the configurations of those of the `most` cells from index `from` on that have one, each with its
    /// index, and the index at which to continue, `None` at the end.
    pub(crate) fn configured_from(
        &self,
        from: u64,
        most: usize,
    ) -> (Vec<(u64, MeterConfig)>, Option<u64>) {
        let cells = (self.chunks.len() * CHUNK) as u64;
        let end = cells.min(from.saturating_add(most.max(1) as u64));
        let found = (from..end).filter_map(|index| Some((index, self.cell(index)?.config())));
        (found.collect(), (end < cells).then_some(end))
    }

    /// Removes all cells. Returns those that were configured, each with its index.
    pub(crate) fn clear(&mut self) -> Vec<(u64, Meter)> {
        let former = self.configured();
        let former = former.map(|(index, cell)| (index, cell.clone())).collect();
        self.chunks = Vec::new();
        former
    }
}

/// Returns the number of the chunk that contains a cell, and the cell's position in the chunk.
#[inline]
fn place(index: u64) -> (usize, usize) {
    (index as usize / CHUNK, index as usize % CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_and_go() {
        let mut array = MeterArray::new(true, 1000);
        let at = [0, 31, 32, 700];
        for index in at {
            assert_eq!(
                array.replace(index, Some(Meter::new(CONFIG, Time::ZERO))),
                None
            );
        }
        let configured = |array: &MeterArray| array.configured().map(|(i, _)| i).collect();
        let indices: Vec<u64> = configured(&array);
        assert_eq!(indices, at);
        // The bucket of 700 becomes empty; a cell without configuration is green.
        assert_eq!(
            (array.mark(700, 400, ms(0)), array.mark(700, 1, ms(0))),
            (1, 2)
        );
        assert_eq!(
            (array.mark(699, 400, ms(0)), array.mark(999, 400, ms(0))),
            (0, 0)
        );
        assert_eq!(array.replace(33, None), None);
        let former = array.replace(700, None).expect("was configured");
        assert_eq!(former.counts()[2].packets, 1);
        assert_eq!(array.chunks.len(), 2, "no memory for what is gone");
        assert_eq!(array.mark(700, 400, ms(0)), 0);
        assert_eq!(array.clear().len(), 3);
        assert_eq!(array.configured().count(), 0);
    }

    const CONFIG: MeterConfig = MeterConfig {
        cir: 1000,
        cburst: 200,
        pir: 2000,
        pburst: 400,
    };
    const MS: u64 = 1_000_000_000;

    fn ms(ms: u64) -> Time {
        Time::from(ms * MS)
    }

    #[test]
    fn bursts_then_colours() {
        let mut meter = Meter::new(CONFIG, Time::ZERO);
        let colours: Vec<_> = (0..5).map(|_| meter.execute(100, ms(0))).collect();
        use Colour::*;
        assert_eq!(colours, [Green, Green, Yellow, Yellow, Red]);
        // 100 ms refill 100 committed and 200 peak tokens.
        let colours: Vec<_> = (0..3).map(|_| meter.execute(100, ms(100))).collect();
        assert_eq!(colours, [Green, Yellow, Red]);
    }

    #[test]
    fn long_run_matches_the_rates_exactly() {
        let mut meter = Meter::new(CONFIG, Time::ZERO);
        let mut counts = [0u64; 3];
        for step in 1..=100_000u64 {
            counts[meter.execute(4, ms(step)) as usize] += 4;
        }
        // 100 s at 4000/s offered: the initial tokens of the buckets plus those that the rates filled in.
        assert!(counts[0].abs_diff(100_000 + 200) <= 4, "{counts:?}");
        assert!(
            (counts[0] + counts[1]).abs_diff(200_000 + 400) <= 4,
            "{counts:?}"
        );
    }

    #[test]
    fn tiny_intervals_lose_nothing() {
        let config = MeterConfig {
            cir: 1,
            cburst: 1,
            pir: 1,
            pburst: 1,
        };
        let mut meter = Meter::new(config, Time::ZERO);
        assert_eq!(meter.execute(1, ms(0)), Colour::Green);
        for i in 1..1000 {
            assert_eq!(meter.execute(1, ms(i)), Colour::Red);
        }
        assert_eq!(meter.execute(1, ms(1000)), Colour::Green);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let config = MeterConfig {
            cir: u64::MAX,
            cburst: u64::MAX,
            pir: u64::MAX,
            pburst: u64::MAX,
        };
        let mut meter = Meter::new(config, Time::ZERO);
        assert_eq!(meter.execute(u64::MAX, Time::NEVER), Colour::Green);
        assert_eq!(meter.execute(1, ms(0)), Colour::Red);
    }

    #[test]
    fn a_silence_of_years_earns_exactly_what_the_rates_say() {
        let config = MeterConfig {
            cir: 1,
            cburst: u64::MAX,
            pir: 2,
            pburst: u64::MAX,
        };
        for seconds in [1_u64, 18_446_744, 18_446_745, 3_155_760_000] {
            let mut meter = Meter::new(config, ms(0));
            meter.execute(u64::MAX, ms(0));
            let later = Time::from_ps(u128::from(seconds) * SCALE);
            assert_eq!(meter.execute(2 * seconds + 1, later), Colour::Red);
            assert_eq!(meter.execute(seconds, later), Colour::Green);
            assert_eq!(meter.execute(1, later), Colour::Yellow);
            assert_eq!(meter.execute(seconds, later), Colour::Red);
        }
    }
}
