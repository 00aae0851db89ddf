use crate::{
    Region, WireError,
    verbs::sys::{Domain, Registration},
};
use std::{collections::BTreeMap, sync::Arc};

/// Registered memory of the owner, by address; each with the number of its registrations.
#[derive(Default)]
pub(super) struct Regions(BTreeMap<(u64, u64), (Registration, usize)>);

impl Regions {
    pub(super) fn add(&mut self, domain: &Arc<Domain>, region: Region) -> Result<(), WireError> {
        let place = (region.at, region.bytes);
        if let Some((_, count)) = self.0.get_mut(&place) {
            *count += 1;
            return Ok(());
        }
        self.0.insert(place, (domain.register(region, true)?, 1));
        Ok(())
    }

    pub(super) fn remove(&mut self, region: Region) {
        let place = (region.at, region.bytes);
        if let Some((_, count)) = self.0.get_mut(&place) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&place);
            }
        }
    }

    /// Returns the keys of own operations and those of peers for bytes of a region.
    pub(super) fn keys(&self, at: u64, bytes: u64) -> Option<(u32, u32)> {
        let holds = |((from, length), _): &(&(u64, u64), _)| at + bytes <= from + length;
        let (_, (registration, _)) = self.0.range(..=(at, u64::MAX)).rev().find(holds)?;
        Some(registration.keys())
    }
}
