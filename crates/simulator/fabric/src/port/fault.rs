//! Effect of a link's present faults on packets.

use crate::packet::Packet;
use anabranch_random::Stream;
use anabranch_topology::FaultAction;

#[derive(Clone, Debug, Default)]
pub(crate) struct LinkFault {
    down: bool,
    loss_per_billion: u64,
    data_only: bool,
    stream: Option<Box<Stream>>,
}

impl LinkFault {
    pub(crate) fn change(&mut self, action: FaultAction, data_only: bool) {
        match action {
            FaultAction::Down => (self.down, self.data_only) = (true, data_only),
            FaultAction::Up => (self.down, self.loss_per_billion, self.data_only) = (false, 0, false),
            FaultAction::Loss { per_billion } => (self.loss_per_billion, self.data_only) = (per_billion, data_only),
            // The simulator refuses the others before a run.
            FaultAction::Deny
            | FaultAction::Allow
            | FaultAction::Degrade(_)
            | FaultAction::Corrupt { .. }
            | FaultAction::Duplicate { .. }
            | FaultAction::Delay { .. } => {}
        }
    }

    pub(crate) fn acts(&self) -> bool {
        self.down || self.loss_per_billion > 0
    }

    pub(crate) fn loses(&mut self, packet: &Packet, stream: impl FnOnce() -> Stream) -> bool {
        if self.data_only && packet.is_control() {
            return false;
        }
        if self.down || self.loss_per_billion == 0 {
            return self.down;
        }
        let stream = self.stream.get_or_insert_with(|| Box::new(stream()));
        stream.chance(self.loss_per_billion, 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Kind;

    #[test]
    fn control_passes_a_fault_of_data() {
        let mut fault = LinkFault::default();
        let packet = |kind| Packet { kind, ..Packet::default() };
        let stream = || Stream::keyed(1, 2, "loss");
        fault.change(FaultAction::Down, true);
        assert!(fault.acts() && fault.loses(&packet(Kind::Data), stream));
        assert!(!fault.loses(&packet(Kind::Ack), stream));
        fault.change(FaultAction::Up, false);
        assert!(!fault.acts() && !fault.loses(&packet(Kind::Data), stream));
    }

    /// 1000 draws at one half: 500, give or take four deviations of sqrt(1000 / 4) = 15.8.
    #[test]
    fn losses_have_the_given_rate() {
        let mut fault = LinkFault::default();
        fault.change(FaultAction::Loss { per_billion: 500_000_000 }, false);
        let packet = Packet { kind: Kind::Data, ..Packet::default() };
        let lost = (0..1000).filter(|_| fault.loses(&packet, || Stream::keyed(1, 2, "loss"))).count();
        assert!((437..=563).contains(&lost), "{lost}");
    }
}
