//! Schemes with a fault are named by the checks, with a seed that shows it, and refused when they are added.

use crate::{
    Candidates, Decision, ExternalHost, ExternalSwitch, Feedback, FlowInfo, HostScheme, LocalQueues, Outgoing,
    PacketView, SwitchHeader, SwitchInfo, SwitchScheme, Tag,
    checks::{self, Check},
    host_scheme,
    registry::{HostParameters, SchemeCapabilities, SwitchParameters, TagKind},
    switch_scheme,
};
use anabranch_settings::{About, Raw, choices, external, parameters};
use anabranch_units::Time;
use std::{hint::black_box, time::SystemTime};

choices! {
    /// Faults.
    pub enum Fault {
        /// None.
        None = "none",
        /// A list for every packet.
        Allocates = "allocates",
        /// A table indexed by what comes back.
        Panics = "panics",
        /// A tag that no path has.
        Nowhere = "nowhere",
        /// The time of the day.
        Clock = "clock",
        /// A row of every flow.
        Leaks = "leaks",
    }
}

parameters! {
    /// Of a scheme with a fault.
    pub struct BrokenParameters {
        /// The error.
        fault: Fault = Fault::None, source "ours";
    }
}

impl SchemeCapabilities for BrokenParameters {
    fn tags(&self) -> TagKind {
        if self.fault == Fault::Nowhere { TagKind::MultiPart } else { TagKind::Entropy }
    }
}

#[derive(Debug)]
struct Broken {
    fault: Fault,
    marks: [u32; 64],
    flows: Vec<u64>,
}

impl ExternalHost for Broken {
    const INTERFACE: u32 = 1;
    const ABOUT: About = About::brief("broken", "with a fault");
    type Parameters = BrokenParameters;
    fn new(parameters: BrokenParameters, _: u64, _: u64) -> Self {
        Broken { fault: parameters.fault, marks: [0; 64], flows: Vec::new() }
    }
}

impl HostScheme for Broken {
    fn open(&mut self, _: Time, _: u32, flow: &FlowInfo<'_>) {
        if self.fault == Fault::Leaks {
            self.flows.push(flow.key);
        }
    }
    fn close(&mut self, _: u32) {}
    fn select(&mut self, _: Time, _: u32, packet: &Outgoing) -> Decision {
        Decision::Send(match self.fault {
            Fault::Allocates => black_box(vec![packet.psn as Tag])[0],
            Fault::Nowhere => packet.psn as Tag,
            Fault::Clock => SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_micros(),
            _ => 0,
        })
    }
    fn on_ack(&mut self, _: Time, _: u32, feedback: &Feedback) {
        if self.fault == Fault::Panics {
            self.marks[feedback.tag as usize] += 1;
        }
    }
}

#[test]
fn each_fault_is_named_with_its_seed() {
    let broken = |fault: &str| {
        let mut parameters = HostParameters::external::<Broken>();
        parameters.parameters_mut().set("fault", &Raw::Text(fault.into())).unwrap();
        let found = checks::host(&parameters, 0..20);
        if let Err(broken) = &found {
            let alone = checks::host(&parameters, broken.seed..broken.seed + 1).unwrap_err();
            assert_eq!((alone.check, alone.scheme), (broken.check, "broken"), "the seed shows it by itself");
        }
        found.map_err(|broken| broken.check)
    };
    assert_eq!(broken("none"), Ok(()));
    assert_eq!(broken("allocates"), Err(Check::NoAllocation));
    assert_eq!(broken("panics"), Err(Check::NoPanic));
    assert_eq!(broken("nowhere"), Err(Check::PathExists));
    assert_eq!(broken("clock"), Err(Check::SameChoices));
    assert_eq!(broken("leaks"), Err(Check::NoLeak));
}

parameters! {
    /// Without units and sources.
    pub struct Undocumented {
        /// Pause.
        pause_us: u64 = 4, source "ours";
        /// Share of packets.
        share: f64 = 0.5, source "";
    }
}

impl SchemeCapabilities for Undocumented {}

/// Takes the next hop after the last.
#[derive(Debug)]
struct TooFar;

impl ExternalSwitch for TooFar {
    const INTERFACE: u32 = 0;
    const ABOUT: About = About::brief("rps", "takes a port that is not there");
    type Parameters = Undocumented;
    fn new(_: Undocumented, _: u64, _: &SwitchInfo) -> Self {
        TooFar
    }
}

impl SwitchScheme for TooFar {
    fn forward<Q: LocalQueues>(
        &mut self,
        _: Time,
        _: &PacketView,
        _: &mut SwitchHeader,
        candidates: &Candidates<'_>,
        _: &mut Q,
    ) -> u32 {
        candidates.count
    }
}

#[test]
fn a_next_hop_that_is_not_there_is_named() {
    let found = checks::switch(&SwitchParameters::external::<TooFar>(), 0..20).unwrap_err();
    assert_eq!((found.check, found.seed), (Check::PathExists, 0));
    let text = found.to_string();
    assert!(text.starts_with("`rps` fails PathExists with seed 0: event 0: next hop "), "{text}");
}

#[test]
fn faults_of_additions_come_in_one_message() {
    let additions = vec![host_scheme::<Broken>(), switch_scheme::<TooFar>(), host_scheme::<Broken>()];
    let message = external::add(additions).unwrap_err();
    let expected = [
        "switch scheme `rps`: written for version 0 of the interface; expected 1, that of this program",
        "switch scheme `rps`: the name is one of anabranch; take another",
        "switch scheme `rps`: parameter `pause_us` is a number without a unit; take a type with one: Time, Bytes or Rate",
        "switch scheme `rps`: parameter `share` has no source; write the section of a paper, or \"ours\"",
        "host scheme `broken`: another one that was registered has this name",
    ];
    assert_eq!(message.lines().collect::<Vec<_>>(), expected);
    assert!(HostParameters::named("broken").is_err(), "none was added");
}

/// Parameters of ours would be accepted too.
#[test]
fn every_parameter_is_documented() {
    let hosts = HostParameters::each().into_iter().flat_map(|scheme| scheme.parameters().documentation());
    let switches = SwitchParameters::each().into_iter().flat_map(|scheme| scheme.parameters().documentation());
    let lacking: Vec<_> = hosts.chain(switches).flat_map(|p| anabranch_settings::undocumented(&p)).collect();
    assert_eq!(lacking, [""; 0]);
}
