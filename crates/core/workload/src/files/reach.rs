use crate::{Flow, Start, Trigger, TriggerId, TriggerKind};

/// Returns a trigger with flows that never start, even if every started flow completes.
///
/// The order in which flows complete does not matter: the flows that a trigger has started depend only on the number of its
/// activations.
pub(super) fn stuck(flows: &[Flow], triggers: &[Trigger]) -> Option<TriggerId> {
    let mut activations = vec![0u32; triggers.len()];
    let mut ending: Vec<u32> =
        (0..).zip(flows).filter(|(_, flow)| matches!(flow.start, Start::At(_))).map(|(number, _)| number).collect();
    let mut active: Vec<TriggerId> =
        (0..).map(TriggerId).zip(triggers).filter(|(_, trigger)| trigger.at.is_some()).map(|(id, _)| id).collect();
    loop {
        if let Some(TriggerId(trigger)) = active.pop() {
            let before = activations[trigger as usize] as usize;
            activations[trigger as usize] += 1;
            let Trigger { kind, targets, next, .. } = &triggers[trigger as usize];
            let fires = match kind {
                TriggerKind::Oneshot => before == 0,
                TriggerKind::Barrier(count) => before as u64 + 1 == u64::from(*count),
                TriggerKind::Multishot => true,
            };
            match kind {
                TriggerKind::Multishot => ending.extend(targets.get(before)),
                _ if fires => ending.extend(targets),
                _ => {}
            }
            active.extend(next.iter().filter(|_| fires));
        } else if let Some(flow) = ending.pop() {
            let flow = &flows[flow as usize];
            active.extend([flow.on_sent, flow.on_received].into_iter().flatten());
        } else {
            break;
        }
    }
    let satisfied = |trigger: &Trigger, activations: u32| match trigger.kind {
        TriggerKind::Oneshot => activations >= 1,
        TriggerKind::Barrier(count) => activations >= count,
        TriggerKind::Multishot => activations as usize >= trigger.targets.len(),
    };
    (0..).map(TriggerId).zip(triggers.iter().zip(activations)).find(|(_, (t, a))| !satisfied(t, *a)).map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::plain;
    use anabranch_units::Time;

    fn flow(start: Option<u32>, sent: Option<u32>) -> Flow {
        let start = start.map_or(Start::At(Time::ZERO), |trigger| Start::On(TriggerId(trigger)));
        Flow { on_sent: sent.map(TriggerId), ..plain(0, 1, 1, start) }
    }

    #[test]
    fn chains_end_and_circles_do_not_begin() {
        let trigger = |kind, targets: &[u32]| Trigger::new(kind, targets.to_vec());
        let chain = [flow(None, Some(0)), flow(Some(0), Some(1)), flow(Some(1), None)];
        let oneshots = [trigger(TriggerKind::Oneshot, &[1]), trigger(TriggerKind::Oneshot, &[2])];
        assert_eq!(stuck(&chain, &oneshots), None);
        let circle = [flow(Some(1), Some(0)), flow(Some(0), Some(1))];
        let both = [trigger(TriggerKind::Oneshot, &[1]), trigger(TriggerKind::Oneshot, &[0])];
        assert_eq!(stuck(&circle, &both), Some(TriggerId(0)));
        let window = [flow(None, Some(0)), flow(Some(0), Some(0)), flow(Some(0), Some(0))];
        assert_eq!(stuck(&window, &[trigger(TriggerKind::Multishot, &[1, 2])]), None);
        let barrier = [flow(None, Some(0)), flow(Some(0), Some(0))];
        assert_eq!(stuck(&barrier, &[trigger(TriggerKind::Barrier(2), &[1])]), Some(TriggerId(0)));
    }
}
