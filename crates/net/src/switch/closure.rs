//! A pipeline that is a closure, for tests of the network alone.

use super::Pipeline;
use engine::{Output, Packet, Time};

pub(crate) const CPU_PORT: u32 = 510;

/// A pipeline that is a closure, which is called with the time, the port and the packet, and appends outputs.
pub(crate) struct Closure<F>(pub(crate) F);

impl<F> Pipeline for Closure<F>
where
    F: FnMut(u64, u32, Packet, &mut Vec<Output>) + Send + 'static,
{
    fn cpu_port(&self) -> u32 {
        CPU_PORT
    }

    fn receive(&mut self, now_ps: Time, port: u32, packet: Packet, outputs: &mut Vec<Output>) {
        (self.0)(now_ps.saturating_ps(), port, packet, outputs);
    }

    fn untraced(self: Box<Self>) -> Box<dyn Pipeline> {
        self
    }
}
