//! BPF program that impairs packets on arrival at a port, with the probabilities in a map.
//!
//! It runs behind the queue of the sending port, so that a lost packet has occupied the link. The object is
//! precompiled, as that of the port program.

use crate::{
    TestbedError,
    bpf::{self, Array},
};

pub const OBJECT: &[u8] = include_bytes!("link.bpf.o");

/// Impairments of a link. Shares are out of 10^9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chances {
    pub(crate) loses: u64,
    pub(crate) repeats: u64,
    pub(crate) damages: u64,
    /// Interface that delays arriving packets; 0: none.
    pub(crate) detour: u32,
    /// At a delaying interface, the port that packets return to; otherwise 0.
    pub(crate) back: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Harmed {
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    pub(crate) damaged: u64,
}

impl Chances {
    /// Encodes the settings as `struct link` of the program.
    fn to_bytes(self) -> Vec<u8> {
        let shares = [self.loses, self.repeats, self.damages].map(|share| (chance(share)).to_ne_bytes());
        let interfaces = [self.detour, self.back].map(u32::to_ne_bytes);
        [shares.as_flattened(), interfaces.as_flattened()].concat()
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let half = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let (loses, repeats, damages) = (share(word(0)?), share(word(8)?), share(word(16)?));
        Some(Chances { loses, repeats, damages, detour: half(24)?, back: half(28)? })
    }
}

/// Converts a share out of 10^9 to one out of 2^32; [`share`] converts back.
fn chance(per_billion: u64) -> u64 {
    (((u128::from(per_billion) << 32) + 500_000_000) / 1_000_000_000) as u64
}

fn share(chance: u64) -> u64 {
    ((u128::from(chance) * 1_000_000_000 + (1 << 31)) >> 32) as u64
}

const SIDE: &str = "ingress";

/// Returns `true` if the program is at a port, which must have the `clsact` queueing discipline.
pub(crate) fn is_there(namespace: &str, port: &str) -> Result<bool, TestbedError> {
    bpf::program(namespace, port, SIDE).map(|program| program.is_some())
}

/// Attaches the program to a port if it is missing, and returns its identifier.
fn attach(namespace: &str, port: &str) -> Result<u32, TestbedError> {
    bpf::prepare(namespace, port)?;
    if let Some(program) = bpf::program(namespace, port, SIDE)? {
        return Ok(program);
    }
    bpf::load(OBJECT, namespace, port, SIDE)?;
    bpf::program(namespace, port, SIDE)?.ok_or_else(|| bpf::not_there(namespace, port))
}

#[derive(Debug)]
pub(crate) struct Settings(Array);

impl Settings {
    /// Opens the settings of a port, and loads the program if it is missing.
    pub(crate) fn open(namespace: &str, port: &str) -> Result<Self, TestbedError> {
        Array::at_port(attach(namespace, port)?, "link", namespace, port).map(Settings)
    }

    pub(crate) fn get(&self) -> Result<Chances, TestbedError> {
        let value = self.0.first().map_err(|error| TestbedError::system("what a link does to packets", error))?;
        Ok(Chances::of_bytes(&value).unwrap_or_default())
    }

    pub(crate) fn set(&self, chances: Chances) -> Result<(), TestbedError> {
        let set = self.0.set_first(&chances.to_bytes());
        set.map_err(|error| TestbedError::system("what a link does to packets", error))
    }
}

/// Changes the impairments of the link that arrives at a port. Returns the previous ones.
pub(crate) fn change(namespace: &str, port: &str, change: impl FnOnce(&mut Chances)) -> Result<Chances, TestbedError> {
    let settings = Settings::open(namespace, port)?;
    let before = settings.get()?;
    let mut chances = before;
    change(&mut chances);
    settings.set(chances)?;
    Ok(before)
}

/// Returns the counters of the link that arrives at a port, which must have the `clsact` queueing discipline.
pub(crate) fn harmed(namespace: &str, port: &str) -> Result<Harmed, TestbedError> {
    let Some(program) = bpf::program(namespace, port, SIDE)? else { return Ok(Harmed::default()) };
    let failed = |error| TestbedError::system(format!("the program at port {port} of {namespace}"), error);
    let words = Array::at_port(program, "counts", namespace, port)?.words(0).map_err(failed)?;
    match words[..] {
        [lost, repeated, damaged] => Ok(Harmed { lost, repeated, damaged }),
        _ => Err(failed(std::io::Error::other(format!("{} counts", words.len())))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_chances_and_back() {
        assert_eq!((chance(0), chance(500_000_000), chance(1_000_000_000)), (0, 1 << 31, 1 << 32));
        for per_billion in [0, 1, 2, 1_000, 123_456_789, 999_999_999, 1_000_000_000] {
            assert_eq!(share(chance(per_billion)), per_billion);
        }
        let chances = Chances { loses: 1, repeats: 20_000_000, damages: 3, detour: 7, back: 9 };
        assert_eq!(chances.to_bytes().len(), 32);
        assert_eq!(Chances::of_bytes(&chances.to_bytes()), Some(chances));
    }
}
