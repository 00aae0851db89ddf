//! What faulty links do to packets: a program where packets arrive, whose map says how often it strikes.
//!
//! It stands behind the queue and the rate of the port at the other end, so that what is lost has taken its time on the link. It comes
//! compiled, as the program of ports does.

use crate::{TestbedError, bpf::Array, programs::run};
use std::io::Write;

/// The compiled program.
pub const OBJECT: &[u8] = include_bytes!("link.bpf.o");

/// What a link does to packets besides carrying them. Shares are out of 10^9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chances {
    pub(crate) loses: u64,
    pub(crate) repeats: u64,
    pub(crate) damages: u64,
    /// 0, or the interface that delays what arrives.
    pub(crate) detour: u32,
    /// 0, or at that interface: where packets come back to.
    pub(crate) back: u32,
}

/// What a link has done to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Harmed {
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    pub(crate) damaged: u64,
}

impl Chances {
    /// `struct link` of the program.
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

/// Out of 10^9 as out of 2^32, and back.
fn chance(per_billion: u64) -> u64 {
    (((u128::from(per_billion) << 32) + 500_000_000) / 1_000_000_000) as u64
}

fn share(chance: u64) -> u64 {
    ((u128::from(chance) * 1_000_000_000 + (1 << 31)) >> 32) as u64
}

/// The identifier of the program at a port; `None`: there is none.
fn program(namespace: &str, port: &str) -> Result<Option<u32>, TestbedError> {
    let text = run("tc", &["-n", namespace, "-j", "filter", "show", "dev", port, "ingress"], "")?;
    let filters: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap_or_default();
    let id = filters.iter().find_map(|filter| filter["options"]["prog"]["id"].as_u64());
    Ok(id.and_then(|id| u32::try_from(id).ok()))
}

/// Whether the program is at a port, which has a place for programs (`clsact`).
pub(crate) fn is_there(namespace: &str, port: &str) -> Result<bool, TestbedError> {
    program(namespace, port).map(|program| program.is_some())
}

/// Puts the program at a port, unless it is there.
fn attach(namespace: &str, port: &str) -> Result<u32, TestbedError> {
    // A port has a place for programs, or none can be there.
    run("tc", &["-n", namespace, "qdisc", "replace", "dev", port, "clsact"], "")?;
    if let Some(program) = program(namespace, port)? {
        return Ok(program);
    }
    let failed = |error| TestbedError::system("writing the link program to a temporary file", error);
    let mut file = tempfile::Builder::new().prefix("anabranch-link-").suffix(".o").tempfile().map_err(failed)?;
    file.write_all(OBJECT).map_err(failed)?;
    let filter = format!(
        "filter replace dev {port} ingress prio 1 handle 1 bpf da obj \"{}\" sec classifier\n",
        file.path().to_string_lossy()
    );
    run("tc", &["-n", namespace, "-batch", "-"], &filter)?;
    program(namespace, port)?.ok_or_else(|| TestbedError::Input(format!("no program is at port {port} of {namespace}")))
}

/// What the link that arrives at a port does to packets, ready to be changed at once.
#[derive(Debug)]
pub(crate) struct Settings(Array);

impl Settings {
    /// Opens those of a port, whose program is loaded where it is not there.
    ///
    /// # Errors
    /// Where no program can be loaded.
    pub(crate) fn open(namespace: &str, port: &str) -> Result<Self, TestbedError> {
        let failed = |error| TestbedError::system(format!("the program at port {port} of {namespace}"), error);
        Array::open(attach(namespace, port)?, "link").map(Settings).map_err(failed)
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

/// Changes what the link that arrives at a port does to packets.
///
/// # Errors
/// Where no program can be loaded.
pub(crate) fn change(namespace: &str, port: &str, change: impl FnOnce(&mut Chances)) -> Result<Chances, TestbedError> {
    let settings = Settings::open(namespace, port)?;
    let before = settings.get()?;
    let mut chances = before;
    change(&mut chances);
    settings.set(chances)?;
    Ok(before)
}

/// What the link that arrives at a port has done to packets. The port has a place for programs (`clsact`).
///
/// # Errors
/// Where the system does not let this process read it.
pub(crate) fn harmed(namespace: &str, port: &str) -> Result<Harmed, TestbedError> {
    let Some(program) = program(namespace, port)? else { return Ok(Harmed::default()) };
    let failed = |error| TestbedError::system(format!("the program at port {port} of {namespace}"), error);
    let value = Array::open(program, "counts").and_then(|array| array.first()).map_err(failed)?;
    let words: Vec<u64> =
        value.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect();
    match words[..] {
        [lost, repeated, damaged] => Ok(Harmed { lost, repeated, damaged }),
        _ => Err(failed(std::io::Error::other(format!("{} bytes of counts", value.len())))),
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
