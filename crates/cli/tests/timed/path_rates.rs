//! A scheme that reads the rates of paths receives the same ones from the simulator and from endpoints of a testbed.

use crate::{
    apart::apart,
    common::{Folder, testbed::scenario},
    fastest::Fastest,
};
use anabranch::BACKENDS;
use anabranch_lb::{CallEvent, Decision, registry::HostParameters};
use anabranch_study::results::run;
use anabranch_units::{Rate, Time};

const SECTIONS: &str = r#"
[transport]
kind = "uet"
mtu = "4096B"
window = "131072B"
[measure]
trace_flows = [0]
trace_scheme = true
[[fault]]
kind = "link-degrade"
links = ["spine1->leaf1"]
rate = "50Mbps"
at = "50ms"
detect_after = "50ms"
"#;
const WIRE: &str = "labels = 16\nfind_labels = \"paths\"\nleast_timeout = \"20ms\"";

/// 5 MB of 200 Mbit/s take 0.2 s at least. Path 1 of two equal ones carries them until its degradation is detected at 0.1 s.
#[test]
fn endpoints_pass_the_rates_of_the_simulator() {
    apart("path_rates::endpoints_pass_the_rates_of_the_simulator", || {
        let folder = Folder::new("path-rates");
        folder.file("flows.csv", "src,dst,size_bytes,start_ps\n0,1,5000000,0\n");
        folder.file("rates.toml", &scenario(2, 1, SECTIONS, WIRE));
        let file = folder.0.join("rates.toml");
        // Any pair whose switches follow the paths of hosts.
        let pair = ["load_balancer.scheme=co-prime".into()];
        let scenario = anabranch_scenario::load(file.to_str().unwrap(), &pair, Some(1)).unwrap();
        let mut passed = Vec::new();
        for backend in BACKENDS {
            let prepare = |setup: &mut anabranch_backend::Setup| {
                setup.load_balancers[0].host = HostParameters::external::<Fastest>();
                Ok(())
            };
            let ran = run(&scenario, backend, 1, &prepare, &mut |_| true).unwrap();
            assert!(ran.result.flows[0].fct_ack > Some(Time::from_us(200_000)), "{}", backend.name);
            let (mut rates, mut paths) = (Vec::new(), Vec::new());
            for row in &ran.result.watched.schemes {
                let mbps = |rates: &[Rate]| rates.iter().map(|rate| rate.0 / 1_000_000).collect::<Vec<_>>();
                match &row.call.event {
                    CallEvent::Open(flow) => rates.push(mbps(flow.info().paths.rates)),
                    CallEvent::RatesChanged(changed) => {
                        assert!(row.call.at() >= Time::from_us(100_000), "{}: {}", backend.name, row.call.at());
                        rates.push(mbps(changed));
                    }
                    CallEvent::Select(_, Decision::Send(path)) => paths.push(*path),
                    _ => {}
                }
            }
            paths.dedup();
            passed.push((rates, paths));
        }
        let expected = (vec![vec![200, 200], vec![200, 50]], vec![1, 0]);
        assert_eq!(passed, vec![expected; BACKENDS.len()]);
        // A testbed names what it has not, and refuses to report a cut.
        let labels = scenario.changed("--set", &["wire.find_labels=all".into()]).unwrap();
        let mut setup = labels.setup(1).unwrap();
        setup.load_balancers[0].host = HostParameters::external::<Fastest>();
        let testbed = (BACKENDS[1].make)(&labels);
        let unlike = testbed.unlike(&setup).join("; ");
        assert!(unlike.contains("no rates of paths are known there"), "{unlike}");
        setup.faults[0].action = anabranch_topology::FaultAction::Down;
        let refused = testbed.check(&setup).unwrap_err().to_string();
        assert!(refused.contains("other switches never notice"), "{refused}");
    });
}
