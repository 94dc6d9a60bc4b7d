//! The hand-written bit string: four words, and a neighbour found by index.

use crate::workload::Handwritten;
use engine::{Output, Packet};

/// A neighbour, and the destinations that are reachable through it.
#[derive(Clone, Copy)]
pub struct Neighbour {
    /// A bit for each reachable destination, least significant word first.
    pub reachable: [u64; 4],
    /// The output port.
    pub port: u32,
    /// The Ethernet address.
    pub address: u64,
}

/// The hand-written forwarder.
#[derive(Default)]
pub struct WideForwarder {
    neighbours: Vec<Option<Neighbour>>,
}

impl WideForwarder {
    /// Adds a neighbour under the given number.
    pub fn insert(&mut self, number: u16, neighbour: Neighbour) {
        let at = usize::from(number);
        if self.neighbours.len() <= at {
            self.neighbours.resize(at + 1, None);
        }
        self.neighbours[at] = Some(neighbour);
    }

    #[inline]
    fn forward(&self, packet: &mut [u8]) -> Option<u32> {
        let header = packet.first_chunk_mut::<54>()?;
        if header[12..14] != [0xab, 0x37] || header[16] <= 1 {
            return None;
        }
        let number = u16::from_be_bytes([header[14], header[15]]);
        let neighbour = self.neighbours.get(usize::from(number))?.as_ref()?;
        let (mut kept, mut differing) = ([0; 4], 0);
        for (i, chunk) in header[22..54].rchunks_exact_mut(8).enumerate() {
            let word = u64::from_be_bytes(std::array::from_fn(|k| chunk[k]));
            kept[i] = word & neighbour.reachable[i];
            differing |= word ^ kept[i];
            chunk.copy_from_slice(&kept[i].to_be_bytes());
        }
        if kept == [0; 4] {
            return None;
        }
        let (word, bit) = (usize::from(header[17] / 64), header[17] % 64);
        let above = kept.get(word + 1).copied().unwrap_or(0);
        let both = u128::from(above) << 64 | u128::from(kept[word]);
        let mut window = (both >> bit) as u32;
        if differing != 0 {
            window |= 1 << 31;
        }
        header[18..22].copy_from_slice(&window.to_be_bytes());
        header[16] -= 1;
        header[..6].copy_from_slice(&neighbour.address.to_be_bytes()[2..]);
        Some(neighbour.port)
    }
}

impl Handwritten for WideForwarder {
    fn receive_burst(&mut self, burst: &mut Vec<(u32, Packet)>, out: &mut Vec<Output>) {
        for (_, mut packet) in burst.drain(..) {
            if let Some(port) = self.forward(packet.stored_mut()) {
                out.push(Output::new(port, packet));
            }
        }
    }
}
