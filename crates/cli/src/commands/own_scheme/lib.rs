//! `my-scheme`: a flow keeps its entropy value until an acknowledgement comes back marked, then draws another.

use anabranch::{
    lb::{
        Decision, ExternalHost, Feedback, FlowInfo, HostScheme, Outgoing, Tag, host_scheme,
        registry::SchemeCapabilities,
    },
    random::Stream,
    settings::{About, Addition, parameters},
    units::Time,
};

/// Returns the schemes of this crate.
pub fn schemes() -> Vec<Addition> {
    vec![host_scheme::<MyScheme>()]
}

parameters! {
    /// Parameters of `my-scheme`.
    pub struct MySchemeParameters {
        /// Number of entropy values to draw from.
        entropy_values: u32 = 65_536, within 1..=65_536, source "ours: the 16 bits of a UDP source port";
    }
}

impl SchemeCapabilities for MySchemeParameters {}

/// The scheme of one host.
#[derive(Debug)]
pub struct MyScheme {
    entropy_values: u64,
    stream: Stream,
    /// By slot of a flow.
    tags: Vec<Tag>,
}

impl ExternalHost for MyScheme {
    const INTERFACE: u32 = 1;
    const ABOUT: About = About {
        name: "my-scheme",
        summary: "random paths, kept while nothing comes back marked",
        source: "ours",
        description: "A flow keeps its entropy value until an acknowledgement comes back marked, then draws another.",
    };
    type Parameters = MySchemeParameters;

    fn new(parameters: MySchemeParameters, seed: u64, host_key: u64) -> Self {
        let stream = Stream::keyed(seed, host_key, "my-scheme");
        MyScheme { entropy_values: parameters.entropy_values.into(), stream, tags: Vec::new() }
    }
}

impl HostScheme for MyScheme {
    fn open(&mut self, _now: Time, slot: u32, _flow: &FlowInfo<'_>) {
        let slot = slot as usize;
        self.tags.resize(self.tags.len().max(slot + 1), 0);
        self.tags[slot] = self.stream.below(self.entropy_values) as Tag;
    }

    fn close(&mut self, _slot: u32) {}

    fn select(&mut self, _now: Time, slot: u32, _packet: &Outgoing) -> Decision {
        Decision::Send(self.tags.get(slot as usize).copied().unwrap_or(0))
    }

    fn on_ack(&mut self, _now: Time, slot: u32, feedback: &Feedback) {
        // Marks of an earlier path are no news.
        if feedback.ecn && self.tags.get(slot as usize) == Some(&feedback.tag) {
            self.tags[slot as usize] = self.stream.below(self.entropy_values) as Tag;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch::lb::checks::{feedback, flow};

    #[test]
    fn a_mark_of_the_present_path_ends_it() {
        let mut scheme = MyScheme::new(MySchemeParameters::default(), 1, 2);
        scheme.open(Time::ZERO, 0, &flow(&[8]));
        let mut sent = |marked: Option<Tag>| {
            if let Some(tag) = marked {
                scheme.on_ack(Time::ZERO, 0, &feedback(tag, true));
            }
            scheme.select(Time::ZERO, 0, &Outgoing::first(4096))
        };
        let first = sent(None);
        let Decision::Send(tag) = first else { panic!("{first:?}") };
        assert_eq!(sent(Some(tag + 1)), first);
        assert_ne!(sent(Some(tag)), first);
    }
}
