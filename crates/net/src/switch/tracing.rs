//! A pipeline that records the path of the next packet through its program, and is the same in all else.
//!
//! It takes the place of a switch's pipeline while somebody waits for a trace, so that nobody else pays for it.

use super::Pipeline;
use engine::{Output, Packet, Switch, Time, Trace};

/// A wrapper around the pipeline of a P4 program.
pub(crate) struct Tracing {
    pipeline: Box<dyn Pipeline>,
    /// The arrival port of the packet to trace; `None` for any port.
    port: Option<u32>,
    trace: Option<Trace>,
}

impl Tracing {
    /// Wraps a pipeline so that the next packet that arrives is traced; only one at `port`, if that is given.
    pub(crate) fn new(pipeline: Box<dyn Pipeline>, port: Option<u32>) -> Tracing {
        Tracing {
            pipeline,
            port,
            trace: None,
        }
    }

    fn wants(&self, port: u32) -> bool {
        self.trace.is_none() && self.port.is_none_or(|wanted| wanted == port)
    }

    fn record(&mut self, now_ps: Time, port: u32, packet: Packet, outputs: &mut Vec<Output>) {
        self.trace = self.pipeline.trace(now_ps, port, packet, outputs);
    }
}

impl Pipeline for Tracing {
    fn cpu_port(&self) -> u32 {
        self.pipeline.cpu_port()
    }

    fn receive(&mut self, now_ps: Time, port: u32, packet: Packet, outputs: &mut Vec<Output>) {
        match self.wants(port) {
            true => self.record(now_ps, port, packet, outputs),
            false => self.pipeline.receive(now_ps, port, packet, outputs),
        }
    }

    fn receive_burst(
        &mut self,
        now_ps: Time,
        packets: &mut Vec<(u32, Packet)>,
        outputs: &mut Vec<Output>,
    ) {
        let Some(at) = packets.iter().position(|&(port, _)| self.wants(port)) else {
            return self.pipeline.receive_burst(now_ps, packets, outputs);
        };
        let mut behind = packets.split_off(at + 1);
        let traced = packets.pop();
        self.pipeline.receive_burst(now_ps, packets, outputs);
        let number = |outputs: &mut [Output], add: usize| {
            for output in outputs {
                output.arrival += add as u32;
            }
        };
        let first = outputs.len();
        if let Some((port, packet)) = traced {
            self.record(now_ps, port, packet, outputs);
        }
        number(&mut outputs[first..], at);
        let first = outputs.len();
        self.pipeline.receive_burst(now_ps, &mut behind, outputs);
        number(&mut outputs[first..], at + 1);
    }

    fn engine(&self) -> Option<&Switch> {
        self.pipeline.engine()
    }

    fn engine_mut(&mut self) -> Option<&mut Switch> {
        self.pipeline.engine_mut()
    }

    fn trace(
        &mut self,
        now_ps: Time,
        port: u32,
        packet: Packet,
        outputs: &mut Vec<Output>,
    ) -> Option<Trace> {
        let wanted = self.wants(port);
        let trace = self.pipeline.trace(now_ps, port, packet, outputs);
        if wanted {
            self.trace.clone_from(&trace);
        }
        trace
    }

    fn traced(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    fn untraced(self: Box<Self>) -> Box<dyn Pipeline> {
        self.pipeline
    }
}

/// A placeholder for a switch's pipeline while that is being wrapped.
pub(super) struct Nothing;

impl Pipeline for Nothing {
    fn cpu_port(&self) -> u32 {
        0
    }

    fn receive(&mut self, _: Time, _: u32, _: Packet, _: &mut Vec<Output>) {}

    fn untraced(self: Box<Self>) -> Box<dyn Pipeline> {
        self
    }
}
