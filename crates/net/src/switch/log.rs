//! Packets of a switch with a log: so many per second run on the interpreter, which says what happens to them; the others run as usual.

use super::SwitchNode;
use crate::medium::Medium;
use crate::node::NodeState;
use crate::observer::Observation;
use engine::{Packet, Time};

const NS_PER_S: u64 = 1_000_000_000;

/// The number of packets that a switch's log may still show in this second.
#[derive(Debug)]
pub(super) struct Budget {
    most_per_s: u32,
    second: u64,
    left: u32,
}

impl Budget {
    /// Takes one packet from the number that the log may show in this second. Returns false if none is left.
    fn takes(&mut self, now_ps: Time) -> bool {
        let second = now_ps.ns() / NS_PER_S;
        if second != self.second {
            (self.second, self.left) = (second, self.most_per_s);
        }
        let taken = self.left > 0;
        self.left -= u32::from(taken);
        taken
    }
}

impl SwitchNode {
    /// Makes the switch trace at most `most_per_s` packets per second from now on, for observers. Returns false, and
    /// changes nothing, if it does so already.
    pub(crate) fn log_packets(&mut self, most_per_s: u32) -> bool {
        let free = self.log.is_none();
        if free {
            self.log = Some(Box::new(Budget {
                most_per_s,
                second: 0,
                left: most_per_s,
            }));
        }
        free
    }

    /// Runs a packet that has arrived at a switch with a log, and reports to observers what happened to it, or that the
    /// log has shown enough packets in this second.
    #[cold]
    pub(super) fn process_logged(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        port: u32,
        packet: Packet,
    ) {
        let now_ps = medium.now_ps();
        let traced = self.log.as_mut().is_some_and(|it| it.takes(now_ps));
        let came = packet.bytes().into_owned();
        let mut seen = None;
        self.run(own, medium, |pipeline, now_ps, outputs| {
            let first = outputs.len();
            if !traced {
                pipeline.receive(now_ps, port, packet, outputs);
            } else if let Some(trace) = pipeline.trace(now_ps, port, packet, outputs) {
                let left = outputs[first..].iter();
                let left = left.map(|it| (it.port, it.packet.bytes().into_owned()));
                seen = Some((trace.without_assignments(), left.collect::<Vec<_>>()));
            }
        });
        let observation = match &seen {
            Some((trace, outputs)) => Observation::Traced {
                packet: &came,
                trace,
                outputs,
            },
            None => Observation::NotTraced,
        };
        medium.tell(own, None, observation);
    }
}
