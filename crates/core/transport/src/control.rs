//! What the registries of congestion controls have in common: the entry of one, and the macro that makes of a list of them
//! all that scenarios, checks and flows need.

use anabranch_settings::{Parameters, SetError, Wrong};

/// What a registry says of a congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The name scenarios use, also of the table of its parameters.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// Whether delay is all that it goes by, so that a network that holds packets back misleads it.
    pub by_delay_alone: bool,
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

/// Names a wrong value of a congestion control by the key relative to `[transport]`, for instance `dctcp.ewma_gain`.
pub(crate) fn in_table(about: &About, error: SetError) -> SetError {
    match error {
        SetError::WrongValue { key, wrong } => SetError::WrongValue { key: format!("{}.{key}", about.name), wrong },
        other => other,
    }
}

/// The part of a registry of congestion controls that both transports share. Of each line `module Control,` it makes the
/// kind that scenarios name, the table of parameters, the constants of a run and the state of a flow.
macro_rules! controls {
    (
        $of:ident, $list:ident, $kind:ident, $parameters:ident, $config:ident, $state:ident:
        $($module:ident $control:ident,)*
    ) => {
        /// Every congestion control, in the order of the registry.
        pub const $list: &[About] = &[$(<$module::$control as $of>::ABOUT,)*];

        /// Which congestion control a run uses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $kind {
            $(
                #[doc = concat!("See the module `", stringify!($module), "`.")]
                $control,
            )*
        }

        impl $kind {
            /// What the registry says of it.
            pub fn about(self) -> &'static About {
                match self {
                    $(Self::$control => const { &<$module::$control as $of>::ABOUT },)*
                }
            }
        }

        impl Setting for $kind {
            fn expected() -> String {
                $list.iter().fold("one of".to_string(), |text, about| format!("{text} \"{}\"", about.name))
            }
            fn shape() -> anabranch_settings::Shape {
                anabranch_settings::Shape::Words($list.iter().map(|about| about.name).collect())
            }
            fn read(raw: &Raw) -> Result<Self, Wrong> {
                $(
                    if matches!(raw, Raw::Text(word) if word == <$module::$control as $of>::ABOUT.name) {
                        return Ok(Self::$control);
                    }
                )*
                Err(Wrong::of::<Self>(raw).near($list.iter().map(|about| about.name)))
            }
            fn write(&self) -> Raw {
                Raw::Text(self.about().name.to_string())
            }
        }

        /// The parameters of every congestion control.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $parameters {
            $(
                #[doc = concat!("Those of the module `", stringify!($module), "`.")]
                pub $module: <$module::$control as $of>::Parameters,
            )*
        }

        impl $parameters {
            /// Those of the congestion control of this name.
            pub fn named_mut(&mut self, name: &str) -> Option<&mut dyn Parameters> {
                $(
                    if name == <$module::$control as $of>::ABOUT.name {
                        return Some(&mut self.$module);
                    }
                )*
                None
            }

            /// Whether every value lies in the range where it has a meaning.
            ///
            /// # Errors
            /// [`SetError::WrongValue`] of the first that does not; its key is that of its table and its own.
            pub fn check(&self) -> Result<(), SetError> {
                $(
                    <$module::$control as $of>::check(&self.$module)
                        .map_err(|error| in_table(&<$module::$control as $of>::ABOUT, error))?;
                )*
                Ok(())
            }
        }

        /// The congestion control of a run and its constants.
        #[derive(Clone, Debug)]
        pub enum $config {
            $(
                #[doc = concat!("See the module `", stringify!($module), "`.")]
                $control(<$module::$control as $of>::Config),
            )*
        }

        /// The congestion control of one flow.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum $state {
            $(
                #[doc = concat!("See the module `", stringify!($module), "`.")]
                $control($module::$control),
            )*
        }
    };
}
pub(crate) use controls;
