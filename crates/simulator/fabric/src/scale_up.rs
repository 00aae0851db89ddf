//! Scale-up networks: messages between the GPUs of a server, without packets.
//!
//! The egress of the sending GPU serves messages in the order of their starts. The first byte arrives after the latency.
//! The ingress of the receiving GPU serves messages in the order in which their first bytes arrive, as long as their
//! bytes take at the rate. So an idle path takes a message's bytes at the rate and the latency. The message is received
//! when its service at the ingress ends, and acknowledged one latency later.

use crate::{
    context::Ctx,
    event::{Event, Step},
    host::{NEVER, known},
    ids::{FlowId, HostId},
    plan::Plan,
};
use anabranch_units::Time;
use anabranch_workload::Flow;

/// One direction of the port of a GPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Port {
    /// Time at which the last message has been served.
    free: u64,
    /// Time of all messages, served and waiting.
    service: u64,
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
    pub(crate) longest_wait: u64,
}

impl Port {
    /// Serves a message that arrives at `now`; returns the time at which its service begins.
    fn serve(&mut self, now: u64, bytes: u64, time: u64) -> u64 {
        let begins = self.free.max(now);
        self.free = later(begins, time);
        self.service = self.service.saturating_add(time);
        self.bytes += bytes;
        self.messages += 1;
        self.longest_wait = self.longest_wait.max(begins - now);
        begins
    }

    /// Returns the time for which it has served messages until `end`. What is left then follows without a gap.
    pub(crate) fn busy(&self, end: u64) -> u64 {
        self.service - self.free.saturating_sub(end).min(self.service)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GpuPort {
    pub(crate) egress: Port,
    pub(crate) ingress: Port,
}

/// Times of a flow in picoseconds, those at its sender and those at its receiver in the partitions of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) started: u64,
    pub(crate) first_sent: u64,
    pub(crate) received: u64,
    pub(crate) done: u64,
}

/// State of the GPUs of a partition, which are where their NICs are.
#[derive(Debug)]
pub(crate) struct ScaleUp {
    /// Per GPU; unused for those of other partitions.
    pub(crate) gpus: Vec<GpuPort>,
    pub(crate) records: Vec<Record>,
    /// Bytes of messages that GPUs here have started to send, and of those that they have received.
    pub(crate) injected: u64,
    pub(crate) delivered: u64,
    /// Flows whose acknowledgements have arrived.
    pub(crate) finished: u64,
}

/// The engine has no later time.
fn later(time: u64, span: u64) -> u64 {
    time.saturating_add(span).min(u64::MAX - 1)
}

fn gpus(flow: &Flow) -> (usize, usize) {
    flow.gpus.map_or((0, 0), |(src, dst)| (src as usize, dst as usize))
}

impl ScaleUp {
    pub(crate) fn new(plan: &Plan<'_>) -> Self {
        let (gpus, flows) = plan.scale_up.as_ref().map_or((0, 0), |scale_up| (scale_up.gpus, scale_up.flows));
        let empty = Record { started: NEVER, first_sent: NEVER, received: NEVER, done: NEVER };
        ScaleUp {
            gpus: vec![GpuPort::default(); gpus as usize],
            records: vec![empty; flows as usize],
            injected: 0,
            delivered: 0,
            finished: 0,
        }
    }

    /// Starts a flow over scale-up; returns `false` for a flow over the network.
    pub(crate) fn start(&mut self, cx: &mut Ctx<'_>, flow: FlowId) -> bool {
        let plan = cx.plan;
        let Some((scale_up, number)) = plan.over_scale_up(flow) else { return false };
        let of = &plan.flow(flow);
        let begins = self.gpus[gpus(of).0].egress.serve(cx.now, of.size, scale_up.service_time(of.size));
        let record = &mut self.records[number];
        (record.started, record.first_sent) = (cx.now, begins);
        self.injected += of.size;
        let host = HostId(of.dst);
        cx.plan_remote(later(begins, scale_up.latency), host, Event::ScaleUp { host, flow, step: Step::FirstByte });
        true
    }

    pub(crate) fn on_event(&mut self, cx: &mut Ctx<'_>, flow: FlowId, step: Step) {
        let plan = cx.plan;
        let Some((scale_up, number)) = plan.over_scale_up(flow) else {
            return cx.fail(cx.now, format!("flow {} does not use scale-up", flow.0));
        };
        let of = &plan.flow(flow);
        let record = &mut self.records[number];
        let (src, dst) = (HostId(of.src), HostId(of.dst));
        match step {
            Step::FirstByte => {
                let time = scale_up.service_time(of.size);
                let begins = self.gpus[gpus(of).1].ingress.serve(cx.now, of.size, time);
                cx.plan_event(later(begins, time), dst, Event::ScaleUp { host: dst, flow, step: Step::LastByte });
            }
            Step::LastByte => {
                record.received = cx.now;
                self.delivered += of.size;
                let step = Step::Acknowledged;
                cx.plan_remote(later(cx.now, scale_up.latency), src, Event::ScaleUp { host: src, flow, step });
                if let Some(trigger) = of.on_received {
                    cx.activate(trigger, dst);
                }
            }
            Step::Acknowledged => {
                record.done = cx.now;
                self.finished += 1;
                if let Some(trigger) = of.on_sent {
                    cx.activate(trigger, src);
                }
            }
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.gpus.capacity() * size_of::<GpuPort>() + self.records.capacity() * size_of::<Record>()
    }
}

impl Record {
    /// Combines the times at the sender with those at the receiver.
    pub(crate) fn with_receiver(self, other: &Record) -> [Option<Time>; 4] {
        [known(self.started), known(self.first_sent), known(other.received), known(self.done)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of 10, 20 and 5 ps at 0, 4 and 50: the second waits 6, the third finds the port idle.
    #[test]
    fn ports_serve_messages_in_turn() {
        let mut port = Port::default();
        let begins = [(0, 10), (4, 20), (50, 5)].map(|(now, time)| port.serve(now, 1, time));
        assert_eq!((begins, port.longest_wait, port.messages, port.bytes), ([0, 10, 50], 6, 3, 3));
        // Busy from 0 to 30 and from 50 to 55.
        assert_eq!([55, 53, 50, 99].map(|end| port.busy(end)), [35, 33, 30, 35]);
    }

    #[test]
    fn times_beyond_the_clock_are_the_last() {
        let mut port = Port::default();
        port.serve(0, 1, u64::MAX);
        assert_eq!(port.serve(7, 1, u64::MAX), u64::MAX - 1);
        assert_eq!(later(u64::MAX - 1, 5), u64::MAX - 1);
    }
}
