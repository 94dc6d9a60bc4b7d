//! Where the state of a switch lies that most packets use, to be brought into the caches before a packet is there.
//!
//! A simulation of a thousand switches goes from one to the next with every event, and finds little of each in the near caches: some
//! fifty lines, many of which are known only when others have come. A [`Footprint`] remembers them all, so that whoever
//! knows which switch is next can ask for them at once and go on working meanwhile. It keeps addresses, not references: what has moved
//! since is fetched in vain, and nothing else happens. It does not know what is in the lines, nor who is next.

/// Bytes of a line of the caches.
const LINE_BYTES: usize = 64;

/// Parts that take more lines are left out: a packet uses few of them, nobody knows which.
const MOST_LINES_OF_PART: usize = 16;

/// Most lines that are remembered.
const MOST_LINES: usize = 96;

/// Addresses of lines.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    lines: Vec<usize>,
}

impl Footprint {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.lines.clear();
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Remembers where something lies.
    pub fn add<T>(&mut self, part: &T) {
        self.add_slice(std::slice::from_ref(part));
    }

    /// Remembers where some things lie, if they are few.
    pub fn add_slice<T>(&mut self, parts: &[T]) {
        let bytes = size_of_val(parts);
        if bytes == 0 || bytes > MOST_LINES_OF_PART * LINE_BYTES {
            return;
        }
        let begin = parts.as_ptr().addr();
        for line in begin / LINE_BYTES..=(begin + bytes - 1) / LINE_BYTES {
            let address = line * LINE_BYTES;
            if self.lines.len() < MOST_LINES && !self.lines.contains(&address) {
                self.lines.push(address);
            }
        }
    }

    /// The list itself, for who wants it in the caches before it is used.
    pub fn list(&self) -> &[usize] {
        &self.lines
    }

    /// Asks for all lines, and waits for none.
    #[inline]
    pub fn fetch(&self) {
        for &address in &self.lines {
            fetch_line(address);
        }
    }
}

/// Asks for the lines in which something lies, and waits for none.
#[inline]
pub fn fetch<T>(part: &T) {
    fetch_slice(std::slice::from_ref(part));
}

/// Asks for the lines in which some things lie, and waits for none.
#[inline]
pub fn fetch_slice<T>(parts: &[T]) {
    let begin = parts.as_ptr().addr();
    let end = begin + size_of_val(parts);
    let mut line = begin & !(LINE_BYTES - 1);
    while line < end {
        fetch_line(line);
        line += LINE_BYTES;
    }
}

#[inline]
#[allow(unsafe_code)]
fn fetch_line(address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is a hint. It reads nothing that the program could see, changes nothing but the caches, and does
        // nothing at an address that is not mapped or not aligned.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_remembered_once_and_few_of_them() {
        let words = vec![0u64; 4096];
        let mut footprint = Footprint::default();
        assert!(footprint.is_empty());
        footprint.add_slice(&words[..9]);
        let count = footprint.len();
        // 72 bytes are in two lines at least, wherever they begin.
        assert!((2..=3).contains(&count));
        footprint.add(&words[0]);
        footprint.add_slice(&words[1..8]);
        footprint.add_slice(&words[..0]);
        assert_eq!(footprint.len(), count);
        footprint.add_slice(&words[1024..]);
        assert_eq!(footprint.len(), count, "too large a part");
        for part in words.chunks(64) {
            footprint.add_slice(part);
        }
        assert_eq!(footprint.len(), MOST_LINES);
        assert!(footprint.list().iter().all(|line| line % LINE_BYTES == 0));
        footprint.clear();
        assert!(footprint.list().is_empty());
    }

    #[test]
    fn what_is_gone_can_be_fetched() {
        let mut footprint = Footprint::default();
        footprint.add(&Box::new([0u64; 8]));
        footprint.add_slice(&[1u8; 100]);
        footprint.lines.extend([0, 1, usize::MAX]);
        footprint.fetch();
        fetch(&footprint);
        fetch_slice::<u64>(&[]);
    }
}
