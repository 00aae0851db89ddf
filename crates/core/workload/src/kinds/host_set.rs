use crate::{Members, WorkloadError, view::Context};
use anabranch_settings::{InvalidValue, Raw, Setting, ValueSchema};

/// Hosts on which a job may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostSet {
    All,
    /// Hosts that neither send nor receive in the workloads before this one in the scenario.
    Rest,
    /// These hosts, in this order.
    List(Vec<u32>),
    /// Every `step`-th host from `from` to `to`, exclusive.
    Slice {
        /// First host.
        from: u32,
        /// Host after the last one.
        to: u32,
        /// Distance of two hosts, at least 1.
        step: u32,
    },
}

fn slice(text: &str) -> Option<HostSet> {
    let mut parts = text.split(':');
    let (range, step) = (parts.next()?, parts.next().map_or(Some(1), |step| step.trim().parse().ok())?);
    let (from, to) = range.split_once("..")?;
    let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    (parts.next().is_none() && from < to && step > 0).then_some(HostSet::Slice { from, to, step })
}

impl Setting for HostSet {
    fn expected() -> String {
        "\"all\", \"rest\", a list of hosts, or a slice such as \"0..64\" or \"0..64:2\" (every second one)".into()
    }
    fn schema() -> ValueSchema {
        let list = ValueSchema::List(Box::new(ValueSchema::Whole));
        ValueSchema::Either(vec![ValueSchema::Words(vec!["all", "rest"]), list, ValueSchema::Text])
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        match raw {
            Raw::Text(word) if word == "all" => Ok(HostSet::All),
            Raw::Text(word) if word == "rest" => Ok(HostSet::Rest),
            Raw::Text(text) => slice(text).ok_or_else(|| InvalidValue::of::<Self>(raw).near(["all", "rest"])),
            Raw::List(_) => Vec::read(raw).map(HostSet::List).map_err(|_| InvalidValue::of::<Self>(raw)),
            _ => Err(InvalidValue::of::<Self>(raw)),
        }
    }
    fn write(&self) -> Raw {
        match self {
            HostSet::All => Raw::Text("all".into()),
            HostSet::Rest => Raw::Text("rest".into()),
            HostSet::List(hosts) => hosts.write(),
            HostSet::Slice { from, to, step: 1 } => Raw::Text(format!("{from}..{to}")),
            HostSet::Slice { from, to, step } => Raw::Text(format!("{from}..{to}:{step}")),
        }
    }
}

impl HostSet {
    /// Returns the hosts, at least two, without repetition.
    pub(crate) fn hosts(&self, context: &Context<'_>) -> Result<Vec<u32>, WorkloadError> {
        let hosts: Vec<u32> = match self {
            HostSet::All => return context.members(Members::All),
            HostSet::Rest => return context.members(Members::Rest),
            HostSet::List(hosts) => hosts.clone(),
            HostSet::Slice { from, to, step } => (*from..*to).step_by(*step as usize).collect(),
        };
        context.needs_a_pair()?;
        let all = context.view.hosts;
        if let Some(host) = hosts.iter().find(|host| **host >= all) {
            let message = format!("host {host} does not exist; hosts are 0 to {}", all - 1);
            return Err(WorkloadError::of_key("hosts", message));
        }
        let mut seen = vec![false; all as usize];
        if let Some(twice) = hosts.iter().find(|host| std::mem::replace(&mut seen[**host as usize], true)) {
            let message = format!("host {twice} is named twice, expected each host once");
            return Err(WorkloadError::of_key("hosts", message));
        }
        WorkloadError::unless(hosts.len() >= 2, "hosts", format!("{} host(s)", hosts.len()), "two or more")?;
        Ok(hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_and_written() {
        let text = |text: &str| Raw::Text(text.into());
        for (raw, set) in [
            (text("all"), HostSet::All),
            (text("rest"), HostSet::Rest),
            (text("0..64"), HostSet::Slice { from: 0, to: 64, step: 1 }),
            (text("8..64:2"), HostSet::Slice { from: 8, to: 64, step: 2 }),
            (Raw::List(vec![Raw::Int(5), Raw::Int(3)]), HostSet::List(vec![5, 3])),
        ] {
            assert_eq!(HostSet::read(&raw), Ok(set.clone()));
            assert_eq!(set.write(), raw);
        }
        for wrong in ["8..8", "0..4:0", "0..4:1:1", "..4", "a..b", "0-4"] {
            let error = HostSet::read(&text(wrong)).unwrap_err().to_string();
            assert!(error.contains("a slice such as"), "{error}");
        }
        let near = HostSet::read(&text("rset")).unwrap_err().to_string();
        assert!(near.contains("did you mean `rest`"), "{near}");
        assert!(HostSet::read(&Raw::List(vec![Raw::Int(-1)])).is_err() && HostSet::read(&Raw::Int(1)).is_err());
    }
}
