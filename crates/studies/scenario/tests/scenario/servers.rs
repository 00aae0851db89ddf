//! `[servers]`: what it makes of traffic, and errors with place and remedy.

use anabranch_backend::Setup;
use anabranch_scenario::{SIMULATOR, Scenario, ScenarioError, Tree, load};
use anabranch_workload::Medium;
use std::path::Path;

/// 4 servers of 4 NICs in pods of 2; lines 2 to 5 are the topology, 6 to 9 the servers.
pub(crate) const RAILS: &str = "[topology]
kind = \"rail-optimised\"
servers = 4
rails = 4
servers_per_pod = 2
[servers]
gpus = 8
nics = 4
cross_rail = \"pxn\"
[[workload]]
kind = \"all-to-all\"
size = \"1KiB\"
";

fn setup(text: &str) -> Result<Setup, ScenarioError> {
    let scenario = Scenario::read(Tree::parse("test.toml", text)?, "test", Path::new(""))?;
    let setup = scenario.setup(1)?;
    scenario.check(&setup, &SIMULATOR).map(|()| setup)
}

/// Line, message and remedy of an error.
fn error(text: &str) -> (usize, String) {
    let error = setup(text).map(|_| ()).expect_err(text);
    let line = error.line_column().map_or(0, |place| place.0);
    (line, format!("{error} {}", error.remedy().unwrap_or_default()))
}

#[test]
fn ranks_are_gpus() {
    let setup = setup(RAILS).unwrap();
    let flows = &setup.flows.flows;
    // 32 GPUs, two per NIC: 32 * 31 messages. Of each GPU's, 7 stay inside, 6 (3 servers of 2 GPUs) are on its rail, 18 are not.
    let count = |medium| flows.iter().filter(|flow| flow.medium == medium).count();
    assert_eq!((setup.topology.hosts, flows.len()), (16, 32 * (7 + 6 + 2 * 18)));
    assert_eq!((count(Medium::ScaleUp), count(Medium::Network)), (32 * (7 + 18), 32 * (6 + 18)));
    let on_rail = |flow: &&anabranch_workload::Flow| flow.medium == Medium::Network && flow.src % 4 == flow.dst % 4;
    assert_eq!(flows.iter().filter(on_rail).count(), 32 * 24);
    // PXN leaves the completion of the whole to the workload.
    assert!(setup.flows.workloads[0].is_job);
}

#[test]
fn servers_are_groups_of_the_hosts_of_any_topology() {
    let text =
        RAILS.replace("servers = 4\nrails = 4\nservers_per_pod = 2\n", "leaves = 4\nspines = 2\nhosts_per_leaf = 4\n");
    let setup = setup(&text.replace("rail-optimised", "leaf-spine")).unwrap();
    assert_eq!(setup.flows.flows.len(), 32 * (7 + 6 + 2 * 18));
}

#[test]
fn servers_are_part_of_the_scenario_and_of_its_hash() {
    let read = |text: &str| Scenario::read(Tree::parse("test.toml", text).unwrap(), "test", Path::new("")).unwrap();
    let (with, without) =
        (read(RAILS), read(&RAILS.replace("[servers]\ngpus = 8\nnics = 4\ncross_rail = \"pxn\"\n", "")));
    assert_ne!(with.hash(), without.hash());
    assert!(!without.to_toml().contains("servers]"));
    let again = read(&with.to_toml());
    assert_eq!((again.hash(), again.servers), (with.hash(), with.servers.clone()));
    assert_ne!(with.changed("--set", &["servers.scale_up_rate=1Tbps".into()]).unwrap().hash(), with.hash());
}

#[test]
fn rail_only_needs_another_path_between_rails() {
    let only = RAILS.replace("rail-optimised", "rail-only").replace("servers_per_pod = 2", "servers_per_pod = 4");
    assert!(setup(&only).is_ok());
    let (line, message) = error(&only.replace("\"pxn\"", "\"network\""));
    assert_eq!(line, 9, "{message}");
    assert!(
        message.contains("`cross_rail`: found \"network\"") && message.contains("`cross_rail = \"pxn\"`"),
        "{message}"
    );
    let without = only.replace("[servers]\ngpus = 8\nnics = 4\ncross_rail = \"pxn\"\n", "");
    let (line, message) = error(&without);
    assert_eq!(line, 2, "{message}");
    assert!(message.contains("from host0 (rail 0) to host1 (rail 1)"), "{message}");
    assert!(message.contains("the workload `all-to-all`") && message.contains("`nics = 4`"), "{message}");
    // Traffic that stays on its rails needs no servers.
    let one = without
        .replace("rails = 4", "rails = 1")
        .replace("servers = 4", "servers = 16")
        .replace("servers_per_pod = 4", "servers_per_pod = 16");
    assert!(setup(&one).is_ok());
}

/// The share of a NIC's rate is what a load refers to.
#[test]
fn gpus_that_share_a_nic_share_its_load() {
    let poisson = "kind = \"poisson\"\nsizes = \"1KiB\"\nload = 0.5\nduration = \"50us\"\n";
    let text = RAILS.replace("kind = \"all-to-all\"\nsize = \"1KiB\"\n", poisson);
    let bytes = |text: &str| {
        let setup = setup(text).unwrap();
        let messages = setup.flows.flows.iter().filter(|flow| !matches!(flow.start, anabranch_workload::Start::On(_)));
        messages.map(|flow| flow.size).sum::<u64>() as f64
    };
    let (two, one) = (bytes(&text), bytes(&text.replace("gpus = 8", "gpus = 4")));
    // Both are half of 16 NICs at 400 Gb/s for 50 us: 20 MB.
    for found in [two, one] {
        assert!((found / 20e6 - 1.0).abs() < 0.1, "{found}");
    }
}

/// The shapes that the sources publish.
#[test]
fn ready_made_scenarios_have_the_published_shapes() {
    let of = |name: &str| {
        let setup = load(name, &[], None).unwrap().setup(1).unwrap();
        let tiers = setup.topology.summary(4160, 64).tiers;
        let servers = setup.flows.servers.as_ref().unwrap();
        let shape: Vec<(u32, Option<f64>)> = tiers.iter().map(|tier| (tier.switches, tier.oversubscription)).collect();
        (setup.topology.hosts / servers.nics, servers.endpoints(setup.topology.hosts), shape)
    };
    let two_units = vec![(16, Some(1.0)), (8, None)];
    assert_eq!(of("rail-superpod"), (64, 512, two_units.clone()));
    assert_eq!(of("rail-moe"), (64, 512, two_units));
    assert_eq!(of("rail-meta"), (28, 224, vec![(14, Some(1.0)), (32, Some(7.0)), (16, None)]));
    // In each of two planes 32 x 200 Gb/s to 15 x 400 Gb/s.
    assert_eq!(of("rail-hpn"), (64, 512, vec![(32, Some(16.0 / 15.0)), (30, None)]));
    assert_eq!(of("rail-only"), (16, 128, vec![(8, None)]));
}
