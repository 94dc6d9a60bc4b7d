//! A packet in memory: its stored bytes, with headroom so that headers can grow in front of bytes that stay in place, and bytes that are
//! only described: modelled hosts' payloads are not stored in each packet ([`crate::payload`]).

use crate::payload::Shared;
use std::borrow::Cow;

/// Bytes kept free in front of a new packet, for headers that programs add: more than ordinary programs ever add.
/// With this number, the first header of a short packet begins at a cache line.
const HEADROOM: usize = 96;

/// The longest packet, including headroom, that is stored without memory of its own on the heap besides its
/// fixed-size block: headers and some payload.
const SHORT_BYTES: usize = 224;

/// The memory of longer packets is a multiple of this many bytes, so that it often fits another packet too.
const MEMORY_BYTES: usize = 64;

/// The longest packet that should be made: then its length with added headers, and the total length of its copies,
/// fit 32 bits.
pub const MAX_BYTES: usize = 1 << 24;

/// An owned packet. Packets are equal if their bytes on the wire are.
///
/// It is one word: in a simulation packets are moved all the time, and what is written in small parts and moved in large ones waits until
/// all that was written before has come to memory.
#[derive(Clone, Debug, Default)]
pub struct Packet(Option<Box<Body>>);

/// A packet's memory. Its cache lines are in order: the fields that every run reads come first.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Body {
    /// The begin and the end of the stored bytes in the memory.
    start: u32,
    end: u32,
    /// The shared bytes behind the stored ones.
    rest: Shared,
    /// The memory, if it is longer than `short`; else empty.
    long: Box<[u8]>,
    /// The memory otherwise.
    short: [u8; SHORT_BYTES],
}

impl Default for Body {
    fn default() -> Body {
        Body {
            start: 0,
            end: 0,
            rest: Shared::NONE,
            long: Box::default(),
            short: [0; SHORT_BYTES],
        }
    }
}

impl Body {
    #[inline]
    fn memory(&self) -> &[u8] {
        match self.long.is_empty() {
            true => &self.short,
            false => &self.long,
        }
    }

    #[inline]
    fn memory_mut(&mut self) -> &mut [u8] {
        match self.long.is_empty() {
            true => &mut self.short,
            false => &mut self.long,
        }
    }

    #[inline]
    fn stored(&self) -> &[u8] {
        &self.memory()[self.start as usize..self.end as usize]
    }

    #[inline]
    fn stored_mut(&mut self) -> &mut [u8] {
        let stored = self.start as usize..self.end as usize;
        &mut self.memory_mut()[stored]
    }

    /// Makes room for `stored` bytes behind fresh headroom, and returns them; their contents are unspecified. `rest`
    /// are the shared bytes that follow. The packet's former contents are lost.
    #[inline]
    fn make_room(&mut self, stored: usize, rest: Shared) -> &mut [u8] {
        let end = HEADROOM + stored;
        if self.memory().len() < end {
            self.long = vec![0; end.next_multiple_of(MEMORY_BYTES)].into_boxed_slice();
        }
        (self.start, self.end, self.rest) = (HEADROOM as u32, end as u32, rest);
        &mut self.memory_mut()[HEADROOM..end]
    }

    #[cold]
    #[inline(never)]
    fn store_more(&mut self, bytes: usize) {
        let more = (bytes - self.stored().len()).min(self.rest.len());
        if self.end as usize + more > self.memory().len() {
            let (stored, rest) = (self.stored().to_vec(), self.rest);
            let room = self.make_room(stored.len() + more, rest);
            room[..stored.len()].copy_from_slice(&stored);
            self.end -= more as u32;
        }
        let (end, shared) = (self.end as usize, self.rest.take(more));
        self.memory_mut()[end..end + more].copy_from_slice(shared);
        self.end += more as u32;
    }
}

impl PartialEq for Packet {
    fn eq(&self, other: &Packet) -> bool {
        self.len() == other.len() && self.bytes() == other.bytes()
    }
}

impl Eq for Packet {}

impl Packet {
    /// A packet without bytes and without memory.
    pub const EMPTY: Packet = Packet(None);

    /// Makes a packet that stores a copy of `bytes` behind fresh headroom.
    pub fn new(bytes: &[u8]) -> Packet {
        let mut packet = Packet::EMPTY;
        packet.copy_from(bytes);
        packet
    }

    /// Returns the stored bytes: all bytes of the packet except for the shared bytes at its end ([`Packet::rest`]).
    #[inline]
    pub fn stored(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |body| body.stored())
    }

    /// Returns the stored bytes like [`Packet::stored`], for writing.
    #[inline]
    pub fn stored_mut(&mut self) -> &mut [u8] {
        self.0.as_mut().map_or(&mut [], |body| body.stored_mut())
    }

    /// Returns the shared bytes behind the stored ones.
    #[inline]
    pub fn rest(&self) -> Shared {
        self.0.as_ref().map_or(Shared::NONE, |body| body.rest)
    }

    /// Returns the bytes on the wire (from the first header; no preamble, no frame check sequence), copied together
    /// if some are shared.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        let (stored, rest) = (self.stored(), self.rest());
        match rest.is_empty() {
            true => Cow::Borrowed(stored),
            false => Cow::Owned([stored, rest.bytes()].concat()),
        }
    }

    /// Makes sure that the packet's first `bytes` bytes are stored rather than shared; all, if the packet is shorter.
    #[inline]
    pub fn store(&mut self, bytes: usize) {
        if let Some(body) = &mut self.0
            && !body.rest.is_empty()
            && body.stored().len() < bytes
        {
            body.store_more(bytes);
        }
    }

    /// Overwrites the packet with `size` bytes, all stored behind fresh headroom in the packet's own memory: those of
    /// `head`, then zeros. Bytes of `head` beyond `size` are left out.
    pub fn refill(&mut self, head: &[u8], size: usize) {
        let head = &head[..head.len().min(size)];
        let room = self.make_room(size, Shared::NONE);
        room[..head.len()].copy_from_slice(head);
        room[head.len()..].fill(0);
    }

    /// Overwrites the packet with a copy of `bytes` behind fresh headroom, in the packet's own memory.
    #[inline]
    pub fn copy_from(&mut self, bytes: &[u8]) {
        self.copy_with_rest(bytes, Shared::NONE);
    }

    /// Overwrites the packet with a copy of `bytes` followed by the shared bytes `rest`, in the packet's own memory.
    #[inline]
    pub fn copy_with_rest(&mut self, bytes: &[u8], rest: Shared) {
        self.make_room(bytes.len(), rest).copy_from_slice(bytes);
    }

    #[inline]
    fn make_room(&mut self, stored: usize, rest: Shared) -> &mut [u8] {
        self.0.get_or_insert_default().make_room(stored, rest)
    }

    /// Returns the packet's length in bytes, stored and shared bytes together.
    #[inline]
    pub fn len(&self) -> usize {
        self.0
            .as_ref()
            .map_or(0, |body| (body.end - body.start) as usize + body.rest.len())
    }

    /// Returns true if the packet has no byte.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a copy of the packet in which `headers` replace the first `consumed` bytes, all of which are stored.
    /// The copy uses the memory of `spare` if that is large enough.
    ///
    /// # Panics
    /// If `consumed` exceeds what is stored.
    #[inline]
    pub fn with_front(&self, consumed: usize, headers: &[u8], spare: Packet) -> Packet {
        let mut copy = self.with_room(consumed, headers.len(), spare);
        copy.stored_mut()[..headers.len()].copy_from_slice(headers);
        copy
    }

    /// Returns a copy of the packet in which `room` bytes of unspecified contents replace the first `consumed` bytes,
    /// all of which are stored. The copy uses the memory of `spare` if that is large enough.
    ///
    /// # Panics
    /// If `consumed` exceeds what is stored.
    #[inline]
    pub fn with_room(&self, consumed: usize, room: usize, spare: Packet) -> Packet {
        let payload = &self.stored()[consumed..];
        let mut copy = spare;
        copy.make_room(room + payload.len(), self.rest())[room..].copy_from_slice(payload);
        copy
    }

    /// Replaces the first `consumed` bytes, all of which are stored, by `headers`.
    ///
    /// # Panics
    /// If `consumed` exceeds what is stored.
    #[inline]
    pub fn replace_front(&mut self, consumed: usize, headers: &[u8]) {
        if let Some(body) = &mut self.0
            && headers.len() <= body.start as usize + consumed
        {
            let payload = body.start as usize + consumed;
            assert!(
                payload <= body.end as usize,
                "consumed more than the packet"
            );
            let start = payload - headers.len();
            body.memory_mut()[start..payload].copy_from_slice(headers);
            body.start = start as u32;
        } else {
            *self = self.with_front(consumed, headers, Packet::EMPTY);
        }
    }

    /// Returns how many bytes of the packet's memory in front of the packet are free.
    #[inline]
    pub fn headroom(&self) -> usize {
        self.0.as_ref().map_or(0, |body| body.start as usize)
    }

    /// Makes the packet begin after `bytes` bytes of its memory, with its end unchanged. Bytes that the packet gains
    /// in front have unspecified contents.
    ///
    /// # Panics
    /// If it would begin behind its end.
    #[inline]
    pub fn set_headroom(&mut self, bytes: usize) {
        if let Some(body) = &mut self.0 {
            assert!(bytes <= body.end as usize, "begins behind its end");
            body.start = bytes as u32;
        }
    }

    /// Returns a pointer to the packet's first byte, dangling if the packet has no memory. The packet owns the
    /// [headroom](Packet::headroom) in front of that byte and the stored bytes from it on.
    #[inline]
    pub fn first_byte(&mut self) -> *mut u8 {
        match &mut self.0 {
            Some(body) => {
                let start = body.start as usize;
                body.memory_mut().as_mut_ptr().wrapping_add(start)
            }
            None => std::ptr::dangling_mut(),
        }
    }

    /// Cuts the packet to at most `length` bytes by removing its last bytes.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        if let Some(body) = &mut self.0 {
            let stored = body.stored().len();
            if length < stored {
                body.end = body.start + length as u32;
            }
            body.rest.truncate(length.saturating_sub(stored));
        }
    }
}

/// Packets that are no longer needed, kept so that new packets can reuse their memory.
#[derive(Debug, Default)]
pub struct Spare(Vec<Packet>);

impl Spare {
    /// The most packets that are kept.
    const MOST: usize = 4096;

    /// Keeps a packet that is no longer needed, so that another can use its memory; drops it if it has no memory or
    /// if enough are kept already.
    #[inline]
    pub fn push(&mut self, packet: Packet) {
        // Those whose bytes were taken have left no memory behind.
        if self.0.len() < Spare::MOST && packet.0.is_some() {
            self.0.push(packet);
        }
    }

    /// Removes and returns a kept packet, whose contents are unspecified and to be overwritten; a packet without
    /// memory if none is kept.
    #[inline]
    pub fn take(&mut self) -> Packet {
        self.0.pop().unwrap_or_default()
    }
}

/// A packet that leaves the switch. Two are equal if their ports and packets are.
#[derive(Clone, Debug)]
pub struct Output {
    /// Port.
    pub port: u32,
    /// The number, in its burst ([`Switch::receive_burst`](crate::Switch::receive_burst)), of the received packet
    /// that caused this one.
    pub arrival: u32,
    /// Packet.
    pub packet: Packet,
}

impl Output {
    /// Makes the output of a packet that leaves at `port`; the received packet that caused it has the number 0.
    #[inline]
    pub fn new(port: u32, packet: Packet) -> Output {
        Output {
            port,
            arrival: 0,
            packet,
        }
    }
}

impl PartialEq for Output {
    fn eq(&self, other: &Output) -> bool {
        self.port == other.port && self.packet == other.packet
    }
}

impl Eq for Output {}

#[cfg(test)]
mod tests {
    use super::Packet;

    #[test]
    fn a_copy_with_another_front_has_nothing_of_the_memory_it_takes() {
        let packet = Packet::new(&[1, 2, 3, 4, 5]);
        for spare in [
            Packet::default(),
            Packet::new(&[9; 3]),
            Packet::new(&[9; 900]),
        ] {
            let mut spare = spare;
            spare.replace_front(spare.len().min(1), &[8; 7]);
            for (consumed, front) in [(0, &[][..]), (2, &[7; 40]), (5, &[7; 2]), (3, &[6; 3])] {
                let copy = packet.with_front(consumed, front, spare.clone());
                let mut edited = packet.clone();
                edited.replace_front(consumed, front);
                assert_eq!(copy.bytes(), edited.bytes());
                assert_eq!(copy, edited);
                assert_ne!(copy, Packet::new(&[]));
            }
        }
        assert_eq!(*packet.bytes(), [1, 2, 3, 4, 5]);
    }
}
