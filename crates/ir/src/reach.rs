//! The number of bytes of a packet that a program may read.

use crate::{Effect, Expr, HeaderId, Program, StateId, Stmt, StmtKind, statements};

/// Distances in bits from the beginning of a packet, the largest possible ones: the position of the cursor,
/// and the end of the farthest bit that is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Depth {
    cursor: u64,
    looked: u64,
}

impl Depth {
    fn or(self, other: Depth) -> Depth {
        Depth {
            cursor: self.cursor.max(other.cursor),
            looked: self.looked.max(other.looked),
        }
    }

    fn then(self, next: Depth) -> Depth {
        Depth {
            cursor: self.cursor + next.cursor,
            looked: self.looked.max(self.cursor + next.looked),
        }
    }

    fn taken(bits: u64) -> Depth {
        Depth {
            cursor: bits,
            looked: bits,
        }
    }
}

/// What is known of a parser state while the longest path through the parser is searched.
#[derive(Clone, Copy)]
enum Seen {
    No,
    /// The paths from it are being searched: a path that comes to it again is a cycle.
    Begun,
    Done(Depth),
}

impl Program {
    /// Returns how many bytes from the beginning of a packet the parser may look at or extract, at most. The
    /// bytes after them are sent unchanged behind the headers, and nothing but the packet's length depends on
    /// them. `None` if there is no limit: the parser loops or skips a computed number of bits, a hash
    /// includes the payload, or the program has a second parser.
    pub fn reach_bytes(&self) -> Option<usize> {
        if self.parser_starts().count() > 1 {
            return None;
        }
        let hashes = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Hash { payload: true, .. });
        if self.bodies().flat_map(statements).any(hashes) {
            return None;
        }
        let mut seen = vec![Seen::No; self.states.len()];
        let first = StateId(0);
        let bits = match self.states.is_empty() {
            true => 0,
            false => self.depth_from(first, &mut seen)?.looked,
        };
        usize::try_from(bits.div_ceil(8)).ok()
    }

    /// Returns how many bits the parser looks at and how many it consumes from the state `id` on, at most;
    /// `None` if there is no limit. `seen` holds what is known of each state. The recursion ends, since a
    /// state that is visited again means that there is no limit.
    fn depth_from(&self, id: StateId, seen: &mut [Seen]) -> Option<Depth> {
        match seen[id.index()] {
            Seen::Done(depth) => return Some(depth),
            Seen::Begun => return None,
            Seen::No => seen[id.index()] = Seen::Begun,
        }
        let state = &self.states[id.index()];
        let mut behind = Depth::default();
        for next in state.transition.states() {
            behind = behind.or(self.depth_from(next, seen)?);
        }
        let depth = self.depth_of(&state.body)?.then(behind);
        seen[id.index()] = Seen::Done(depth);
        Some(depth)
    }

    fn depth_of(&self, body: &[Stmt]) -> Option<Depth> {
        body.iter().try_fold(Depth::default(), |depth, stmt| {
            Some(depth.then(self.depth_of_stmt(stmt)?))
        })
    }

    fn depth_of_stmt(&self, stmt: &Stmt) -> Option<Depth> {
        let moves = |stmt: &Stmt| stmt.kind.effect() == Effect::Packet;
        match &stmt.kind {
            StmtKind::Extract { header, .. } => Some(Depth::taken(self.header_bits(*header))),
            StmtKind::Lookahead { dst, offset } => Some(Depth {
                cursor: 0,
                looked: u64::from(*offset) + u64::from(self.slots[dst.index()].width),
            }),
            StmtKind::Advance {
                bits: Expr::Const(bits),
            } => Some(Depth::taken(bits.low_u64())),
            StmtKind::Advance { .. } => None,
            StmtKind::Loop { body, .. } if statements(body).any(moves) => None,
            // Only one of them runs; a block, wholly or in part.
            kind => (kind.inner().into_iter()).try_fold(Depth::default(), |depth, body| {
                Some(depth.or(self.depth_of(body)?))
            }),
        }
    }

    /// Returns the length of a header in bits, with a varbit at its full length.
    fn header_bits(&self, header: HeaderId) -> u64 {
        let fields = self.headers[header.index()].fields.iter();
        fields
            .map(|field| u64::from(self.slots[field.slot.index()].width))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use crate::Program;
    use crate::text::{parse, preamble};

    /// Returns [`Program::reach_bytes`] of a program that has the parser states `states`, the ingress
    /// `ingress`, headers of 3 and 4 bytes, and a slot of 100 bits.
    fn reach_bytes(states: &str, ingress: &str) -> Option<usize> {
        let slots = [
            ("a.v", 1),
            ("a.f", 24),
            ("b.v", 1),
            ("b.f", 32),
            ("wide", 100),
        ];
        let text = format!(
            r#"{} header h0 "a" valid %16 {{ %17 }} header h1 "b" valid %18 {{ %19 }} {states}
            control verify_checksum {{ }} control ingress {{ {ingress} }} control egress {{ }}
            control compute_checksum {{ }} control deparser {{ emit h0 }}"#,
            preamble("reach", slots)
        );
        let program: Program = parse(&text).unwrap_or_else(|e| panic!("{e}"));
        program.reach_bytes()
    }

    #[test]
    fn the_longest_way_counts() {
        let ways = r#"state s0 "a" { extract h0 select (%17) { case (24w1 & 24w1) s1 case (_) s2 } }
            state s1 "b" { extract h1 goto s2 } state s2 "c" { extract h1 goto accept }"#;
        assert_eq!(reach_bytes(ways, ""), Some(11));
        assert_eq!(reach_bytes(r#"state s0 "a" { goto accept }"#, ""), Some(0));
    }

    #[test]
    fn what_is_looked_at_counts_and_what_is_skipped() {
        let looks = r#"state s0 "a" { extract h0 lookahead %20 at 4 extract h1 goto accept }"#;
        assert_eq!(reach_bytes(looks, ""), Some(16));
        let skips = r#"state s0 "a" { extract h0 advance 32w80 goto accept }"#;
        assert_eq!(reach_bytes(skips, ""), Some(13));
        let computes = r#"state s0 "a" { extract h0 advance %4 goto accept }"#;
        assert_eq!(reach_bytes(computes, ""), None);
    }

    #[test]
    fn one_of_two_branches_counts() {
        let branches = r#"state s0 "a" { if %16 { extract h0 extract h1 } else { extract h0 } extract h0 goto accept }"#;
        assert_eq!(reach_bytes(branches, ""), Some(10));
    }

    #[test]
    fn circles_have_no_end_and_the_payload_neither() {
        let circle =
            r#"state s0 "a" { extract h0 select (%17) { case (24w1 & 24w1) s0 case (_) accept } }"#;
        assert_eq!(reach_bytes(circle, ""), None);
        let plain = r#"state s0 "a" { extract h0 goto accept }"#;
        assert_eq!(reach_bytes(plain, "hash %4 = csum16 (%17) payload"), None);
        assert_eq!(reach_bytes(plain, "hash %4 = csum16 (%17)"), Some(3));
    }
}
