//! A 256-bit bit string, loaded, masked, compared, shifted and written: `benches/wide_field.p4` and its hand-written twin.
//!
//! 4,096 neighbours reach a random half of the bits each; packets have random bits and are for uniformly chosen neighbours.

mod handwritten;

use crate::random::Random;
use crate::source;
use crate::traffic::{drawn, write_ethernet};
use crate::workload::Workload;
use engine::Packet;
use engine::control::Entry;
use handwritten::{Neighbour, WideForwarder};
use ir::{ActionCall, ActionId, Bits, KeyMatch, TableId};

/// Makes the workload of the 256-bit bit string with `count` neighbours. Fails if the program does not compile or an
/// entry is refused.
pub fn workload(count: usize) -> Result<Workload, String> {
    let mut switch = source::switch(
        "benches/wide_field.p4",
        &[("NEIGHBOURS", count.to_string())],
    )?;
    let program = switch.program().clone();
    let forward = (program.actions.iter())
        .position(|a| a.name.ends_with("forward"))
        .ok_or("there is no action forward")?;
    let mut random = Random::new(6);
    let mut handwritten = WideForwarder::default();
    for i in 0..count {
        let neighbour = Neighbour {
            reachable: std::array::from_fn(|_| random.next_u64()),
            port: (i % 64) as u32,
            address: 0x0600_0000_0000 | i as u64,
        };
        let matches = vec![KeyMatch::Value(Bits::from_u64(16, i as u64))];
        let call = ActionCall {
            action: ActionId(forward as u32),
            args: vec![
                Bits::from_limbs(256, &neighbour.reachable),
                Bits::from_u64(9, neighbour.port.into()),
                Bits::from_u64(48, neighbour.address),
            ],
        };
        let entry = Entry::new(matches, 0, call);
        (switch.insert_entry(TableId(0), entry)).map_err(|e| e.to_string())?;
        handwritten.insert(i as u16, neighbour);
    }
    Ok(Workload {
        switch,
        handwritten: Box::new(handwritten),
        traffic: drawn(7, move |size, random, buffer| {
            packet(count, size, random, buffer)
        }),
    })
}

/// Writes a packet of `size` bytes with a random bit string into the buffer; returns the port at which it arrives.
fn packet(neighbours: usize, size: usize, random: &mut Random, buffer: &mut Packet) -> u32 {
    let mut header = [0; 54];
    write_ethernet(&mut header, 0x0200_0000_00ff, 0x0600_0000_0001, 0xab37);
    let neighbour = random.below(neighbours) as u16;
    header[14..16].copy_from_slice(&neighbour.to_be_bytes());
    header[16] = 64;
    header[17] = random.next_u32() as u8;
    for chunk in header[22..54].chunks_exact_mut(8) {
        // Few bits: a packet is for some of many receivers.
        let bits = random.next_u64() & random.next_u64() & random.next_u64();
        chunk.copy_from_slice(&bits.to_be_bytes());
    }
    buffer.refill(&header, size);
    u32::from(neighbour) % 64
}
