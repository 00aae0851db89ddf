use super::*;
use crate::{
    Flow,
    kinds::testing::{assert_refused, longest_chain, of, traffic, view},
};

fn sent(flows: &[Flow], of: impl Fn(&&Flow) -> bool) -> (usize, u64) {
    let own: Vec<&Flow> = flows.iter().filter(of).collect();
    (own.len(), own.iter().map(|flow| flow.size).sum())
}

/// Megatron-LM: per layer and microbatch four all-reduces of the activations among tp ranks, activations and their gradients
/// between stages, gradients of layers/pp/tp of the model among replicas.
#[test]
fn bytes_are_those_of_megatron() {
    let p = of::<TrainingStepParameters>("layers=8 dp=2 tp=4 pp=2 microbatches=3 activations=4000B gradients=16000B");
    let made = traffic(&p, &view(16, 4, 1), "").unwrap();
    assert_eq!(made.flows.len() as u128, p.step().messages());
    // Rank (p * dp + d) * tp + t is host: stage = host / 8, replica = host / 4 % 2, part = host % 4.
    let (stage, replica) = (|host: u32| host / 8, |host: u32| host / 4 % 2);
    // 4 layers of a stage, 3 microbatches, 4 AllReduces, each 2(4-1) steps of 1000 B per rank.
    for rank in 0..16 {
        let tensor = |flow: &&Flow| flow.src == rank && flow.dst / 4 == rank / 4;
        assert_eq!(sent(&made.flows, tensor), (4 * 3 * 4 * 6, 4 * 3 * 4 * 6 * 1000));
        // 3 microbatches of 4000 B, forward from stage 0 and back from stage 1.
        let pipeline = |flow: &&Flow| flow.src == rank && stage(flow.dst) != stage(rank);
        assert_eq!(sent(&made.flows, pipeline), (3, 12_000));
        // 4 layers of 16,000 B over 4 ranks are 16,000 B; two replicas exchange halves twice.
        let data =
            |flow: &&Flow| flow.src == rank && stage(flow.dst) == stage(rank) && replica(flow.dst) != replica(rank);
        assert_eq!(sent(&made.flows, data), (2, 16_000));
    }
}

/// Two stages of one layer, two replicas, two ranks per layer: messages in sequence.
#[test]
fn longest_chain_is_counted_by_hand() {
    let p = of::<TrainingStepParameters>("layers=2 microbatches=1");
    let made = traffic(&p, &view(8, 4, 1), "").unwrap();
    // Forward and backward of a stage: two AllReduces of 2(2-1) messages in sequence each. In order: stage 0 forward, its activations,
    // stage 1 forward and backward, their gradients, stage 0 backward, the ring of its gradients.
    assert_eq!(longest_chain(made.grouped.unwrap().schedule(0)), 4 + 1 + 4 + 4 + 1 + 4 + 2);
}

#[test]
fn fused_layers_send_the_same_bytes_in_fewer_messages() {
    let of = |fused_layers, buckets| {
        let p = TrainingStepParameters { fused_layers, buckets, activations: Bytes(4096), ..Default::default() };
        sent(&traffic(&p, &view(8, 4, 1), "").unwrap().flows, |_| true)
    };
    // 2 replicas, 4 microbatches, 8 layers, 4 AllReduces of 2 steps by 2 ranks: half as many by pairs of layers.
    let (one, two) = (of(1, 1), of(2, 1));
    assert_eq!((one.1, one.0 - two.0), (two.1, 2 * 4 * 8 * 4 * 4 / 2));
    // Four parts of a stage in two buckets: twice the 2 steps of 2 replicas, for 2 stages and 2 parts.
    assert_eq!(of(1, 2), (one.0 + 2 * 2 * 2 * 2, one.1));
}

#[test]
fn errors_name_a_remedy() {
    assert_refused::<TrainingStepParameters>(&view(12, 4, 1), "", "training-step");
}
