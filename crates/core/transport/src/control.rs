//! What the congestion controls of all transports have in common.

use anabranch_settings::{About, Each, Parameters, Registry, SetError, Wrong};

/// What a congestion control tells of itself: the limits of its parameters, and how it differs from others. Every method has a
/// default; a congestion control writes those that differ.
pub trait Check {
    /// Whether every value lies in the range where it has a meaning.
    ///
    /// # Errors
    /// [`SetError::WrongValue`] of the first that does not.
    fn check(&self) -> Result<(), SetError> {
        Ok(())
    }

    /// Whether delay is all that it goes by, so that a network that holds packets back misleads it.
    fn by_delay_alone(&self) -> bool {
        false
    }

    /// Of one of RoCEv2: whether it needs a receiver that goes back N and a window of one BDP.
    fn goes_back_n(&self) -> bool {
        false
    }
}

/// The congestion controls of a transport, each with its parameters.
pub trait Controls {
    /// What the registry says of each.
    fn all(&self) -> &'static [About];
    /// The parameters of the one of this name.
    fn parameters_mut(&mut self, name: &str) -> Option<&mut dyn Parameters>;
    /// The names of those by [`Check::by_delay_alone`].
    fn by_delay_alone(&self) -> Vec<&'static str>;
    /// Whether every value lies in the range where it has a meaning.
    ///
    /// # Errors
    /// [`SetError::WrongValue`] of the first that does not; its key is relative to `[transport]`, for instance `dctcp.ewma_gain`.
    fn check(&self) -> Result<(), SetError>;
}

impl<C: Registry + AsRef<dyn Check>> Controls for Each<C> {
    fn all(&self) -> &'static [About] {
        C::ALL
    }

    fn parameters_mut(&mut self, name: &str) -> Option<&mut dyn Parameters> {
        Each::parameters_mut(self, name)
    }

    fn by_delay_alone(&self) -> Vec<&'static str> {
        self.iter().filter(|one| one.as_ref().by_delay_alone()).map(|one| one.about().name).collect()
    }

    fn check(&self) -> Result<(), SetError> {
        self.iter().try_for_each(|one| {
            one.as_ref().check().map_err(|error| match error {
                SetError::WrongValue { key, wrong } => {
                    SetError::WrongValue { key: format!("{}.{key}", one.about().name), wrong }
                }
                other => other,
            })
        })
    }
}

/// Parameters under check: names the key of a wrong value and says what is allowed.
pub struct Section<'a>(&'a dyn Parameters);

impl<'a> Section<'a> {
    /// A check of these parameters.
    pub fn of(parameters: &'a dyn Parameters) -> Self {
        Section(parameters)
    }

    /// Fails with `allowed` unless `fine`.
    ///
    /// # Errors
    /// [`SetError::WrongValue`].
    pub fn require(&self, key: &str, fine: bool, allowed: &str) -> Result<(), SetError> {
        if fine {
            return Ok(());
        }
        let found = self.0.entries().into_iter().find(|(name, _)| *name == key);
        let found = found.map(|(_, value)| value.to_string()).unwrap_or_default();
        let wrong = Wrong { found, expected: allowed.to_string(), why: None, nearest: None };
        Err(SetError::WrongValue { key: key.to_string(), wrong })
    }

    /// A factor: zero or more.
    ///
    /// # Errors
    /// [`SetError::WrongValue`].
    pub fn factor(&self, key: &str, value: f64) -> Result<(), SetError> {
        self.require(key, value.is_finite() && value >= 0.0, "a number, zero or more")
    }

    /// A factor that must not be zero.
    ///
    /// # Errors
    /// [`SetError::WrongValue`].
    pub fn positive(&self, key: &str, value: f64) -> Result<(), SetError> {
        self.require(key, value.is_finite() && value > 0.0, "a number above zero")
    }

    /// A share: 0 to 1.
    ///
    /// # Errors
    /// [`SetError::WrongValue`].
    pub fn share(&self, key: &str, value: f64) -> Result<(), SetError> {
        self.require(key, (0.0..=1.0).contains(&value), "a number from 0 to 1")
    }
}
