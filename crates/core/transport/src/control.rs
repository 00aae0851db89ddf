//! Traits and checks shared by the congestion controls of all transports.

use anabranch_settings::{About, Each, InvalidValue, Parameters, Registry, SetError};

/// Limits of a congestion control's parameters, and its differences from other controls.
pub trait ControlCapabilities {
    /// Checks that every parameter is within its range.
    ///
    /// # Errors
    /// [`SetError::InvalidValue`] for the first parameter out of range.
    fn check(&self) -> Result<(), SetError> {
        Ok(())
    }

    /// Returns `true` if delay is the only congestion signal: switches that hold packets back distort it.
    fn is_delay_based(&self) -> bool {
        false
    }

    /// Returns `true` if the base round trip of every flow is that of the run's longest pair.
    fn takes_longest_rtt(&self) -> bool {
        false
    }

    /// Returns `true` if senders send only what receivers grant (RCCC).
    fn takes_credit(&self) -> bool {
        false
    }

    /// Returns `true` if it requires a go-back-N receiver and a window of one BDP (RoCEv2 only).
    fn requires_go_back_n(&self) -> bool {
        false
    }
}

/// The congestion controls of a transport, each with its parameters.
pub trait Controls {
    /// Registry entries of all controls.
    fn all(&self) -> &'static [About];
    /// Parameters of the control `name`.
    fn parameters_mut(&mut self, name: &str) -> Option<&mut dyn Parameters>;
    /// Names of the controls whose only signal is delay.
    fn delay_based(&self) -> Vec<&'static str>;
    /// Checks that every parameter is within its range.
    ///
    /// # Errors
    /// [`SetError::InvalidValue`] for the first parameter out of range; its key is relative to `[transport]`, e.g.
    /// `dctcp.decrease`.
    fn check(&self) -> Result<(), SetError>;
}

impl<C: Registry + AsRef<dyn ControlCapabilities>> Controls for Each<C> {
    fn all(&self) -> &'static [About] {
        C::all()
    }

    fn parameters_mut(&mut self, name: &str) -> Option<&mut dyn Parameters> {
        Each::parameters_mut(self, name)
    }

    fn delay_based(&self) -> Vec<&'static str> {
        self.iter().filter(|one| one.as_ref().is_delay_based()).map(|one| one.about().name).collect()
    }

    fn check(&self) -> Result<(), SetError> {
        self.iter().try_for_each(|one| {
            one.as_ref().check().map_err(|error| match error {
                SetError::InvalidValue { key, wrong } => {
                    SetError::InvalidValue { key: format!("{}.{key}", one.about().name), wrong }
                }
                other => other,
            })
        })
    }
}

/// Range checks of one section. An error names the key, the value found and the allowed range.
pub struct Section<'a>(&'a dyn Parameters);

impl<'a> Section<'a> {
    /// Creates the checks of `parameters`.
    pub fn of(parameters: &'a dyn Parameters) -> Self {
        Section(parameters)
    }

    /// Fails with `allowed` unless `fine`.
    ///
    /// # Errors
    /// [`SetError::InvalidValue`].
    pub fn require(&self, key: &str, fine: bool, allowed: &str) -> Result<(), SetError> {
        if fine {
            return Ok(());
        }
        let found = self.0.entries().into_iter().find(|(name, _)| *name == key);
        let found = found.map(|(_, value)| value.to_string()).unwrap_or_default();
        let wrong = InvalidValue { found, expected: allowed.to_string(), reason: None, nearest: None };
        Err(SetError::InvalidValue { key: key.to_string(), wrong })
    }

    /// Checks a factor: zero or more.
    ///
    /// # Errors
    /// [`SetError::InvalidValue`].
    pub fn factor(&self, key: &str, value: f64) -> Result<(), SetError> {
        self.require(key, value.is_finite() && value >= 0.0, "a number, zero or more")
    }

    /// Checks a factor: above zero.
    ///
    /// # Errors
    /// [`SetError::InvalidValue`].
    pub fn positive(&self, key: &str, value: f64) -> Result<(), SetError> {
        self.require(key, value.is_finite() && value > 0.0, "a number above zero")
    }

    /// Checks a share: 0 to 1.
    ///
    /// # Errors
    /// [`SetError::InvalidValue`].
    pub fn share(&self, key: &str, value: f64) -> Result<(), SetError> {
        self.require(key, (0.0..=1.0).contains(&value), "a number from 0 to 1")
    }
}
