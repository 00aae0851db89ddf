//! Registries: kinds of a part by name, each with its parameters.

use crate::{InvalidValue, Parameters, Raw, Setting, ValueSchema, nearest, nearest_few};
use std::marker::PhantomData;
use thiserror::Error;

/// Registry entry of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Name in scenarios.
    pub name: &'static str,
    /// One-line summary.
    pub summary: &'static str,
    /// Source; empty if only its parameters have one.
    pub source: &'static str,
    /// A few sentences for `explain`; empty if the summary suffices.
    pub description: &'static str,
}

impl About {
    /// Creates an entry without description.
    pub const fn brief(name: &'static str, summary: &'static str) -> Self {
        About { name, summary, source: "", description: "" }
    }

    /// Returns the text of `explain`: the description, or the summary as a sentence, and the source.
    pub fn text(&self) -> String {
        let mut text = self.description.to_string();
        if text.is_empty() {
            let mut characters = self.summary.trim_end_matches('.').chars();
            text.extend(characters.next().into_iter().flat_map(char::to_uppercase));
            text.extend(characters.chain(['.']));
        }
        if !self.source.is_empty() {
            text += &format!(" Source: {}.", self.source);
        }
        text
    }
}

const MAX_LISTED: usize = 12;

/// Error: no entry of a registry has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{found}` is not a {what}; {}{}", self.choices(), crate::hint(nearest))]
pub struct Unknown {
    /// Kind of entry, such as `host scheme`.
    pub what: &'static str,
    /// The name as found.
    pub found: String,
    /// All names.
    pub allowed: Vec<&'static str>,
    /// Nearest of them.
    pub nearest: Option<String>,
}

impl Unknown {
    /// Creates the error for `found`, which is not in `allowed`.
    pub fn new(what: &'static str, found: &str, allowed: impl IntoIterator<Item = &'static str>) -> Self {
        let allowed: Vec<_> = allowed.into_iter().collect();
        let nearest = nearest(found, allowed.iter().copied());
        Unknown { what, found: found.to_string(), allowed, nearest }
    }

    fn choices(&self) -> String {
        let (names, number) = (self.allowed.iter().copied(), self.allowed.len());
        match number > MAX_LISTED {
            true => format!("the nearest of {number} are {}", nearest_few(&self.found, names, 3).join(", ")),
            false => format!("allowed are {}", self.allowed.join(", ")),
        }
    }
}

/// Interface of the enums that [`registry!`](crate::registry) generates.
pub trait Registry: Sized + 'static {
    /// Returns all kinds, in the order in which they are listed.
    fn all() -> &'static [About];
    /// Returns the kind `name` with its default parameters.
    ///
    /// # Errors
    /// [`Unknown`].
    fn named(name: &str) -> Result<Self, Unknown>;
    /// Returns its registry entry.
    fn about(&self) -> &'static About;
    /// Returns its parameters.
    fn parameters(&self) -> &dyn Parameters;
    /// Returns its parameters for modification.
    fn parameters_mut(&mut self) -> &mut dyn Parameters;
}

/// Declares a registry: an enum of kinds, each with its parameters.
///
/// A line `module Variant Parameters` refers to a file with `pub const ABOUT: About` and the type `Parameters`,
/// declared with [`parameters!`](crate::parameters), which implements the trait named after `dyn`: the capabilities of
/// the kinds. After `external` follows the type of the functions of kinds that other crates add ([`External`](crate::External)),
/// with `capabilities` of such a kind.
///
/// ```
/// mod shapes {
///     pub trait Area {
///         fn area(&self) -> u64;
///     }
///     pub mod square {
///         use anabranch_settings::{About, parameters};
///         pub const ABOUT: About = About::brief("square", "as wide as high");
///         parameters! {
///             /// A square.
///             pub struct SquareParameters {
///                 /// Its width.
///                 width: u64 = 2, source "ours";
///             }
///         }
///         impl super::Area for SquareParameters {
///             fn area(&self) -> u64 {
///                 self.width * self.width
///             }
///         }
///     }
/// }
/// use shapes::Area;
/// anabranch_settings::registry! {
///     /// A shape.
///     pub enum Shape("shape"): pub dyn Area in shapes {
///         square Square SquareParameters,
///     }
/// }
/// assert_eq!(Shape::named("square").unwrap().capabilities().area(), 4);
/// assert_eq!(Shape::names(|shape| shape.capabilities().area() > 3), ["square"]);
/// let error = Shape::named("sqare").unwrap_err();
/// assert_eq!(error.to_string(), "`sqare` is not a shape; allowed are square (did you mean `square`?)");
/// ```
#[macro_export]
macro_rules! registry {
    (
        $(#[$doc:meta])*
        pub enum $name:ident($what:literal): $seen:vis dyn $capabilities:ident in $folder:ident $(, external $functions:ident)? {
            $($module:ident $variant:ident $parameters:ident,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(clippy::large_enum_variant)]
        pub enum $name {
            $(
                #[doc = concat!("See the module `", stringify!($module), "`.")]
                $variant($folder::$module::$parameters),
            )*
            $(
                /// A kind of another crate.
                External($crate::External<$functions>),
            )?
        }

        impl $name {
            #[doc = concat!("Every ", $what, " of this crate, in the order in which they are listed.")]
            pub const ALL: &'static [$crate::About] = &[$($folder::$module::ABOUT,)*];

            #[doc = concat!("Every ", $what, ", those of other crates last.")]
            pub fn all() -> &'static [$crate::About] {
                [$($crate::external::all::<$functions>,)? std::convert::identity][0](Self::ALL)
            }

            #[doc = concat!("Every ", $what, " with its default parameters.")]
            pub fn each() -> Vec<Self> {
                let ours = [$(Self::$variant(Default::default()),)*].into_iter();
                ours$(.chain($crate::external::added::<$functions>().cloned().map(Self::External)))?.collect()
            }

            #[doc = concat!("The ", $what, " of this name with its default parameters.")]
            ///
            /// # Errors
            /// [`Unknown`]($crate::Unknown) names the nearest.
            pub fn named(name: &str) -> Result<Self, $crate::Unknown> {
                $(
                    if name == $folder::$module::ABOUT.name {
                        return Ok(Self::$variant(Default::default()));
                    }
                )*
                $(
                    let mut added = $crate::external::added::<$functions>();
                    if let Some(external) = added.find(|external| external.about.name == name) {
                        return Ok(Self::External(external.clone()));
                    }
                )?
                Err($crate::Unknown::new($what, name, Self::all().iter().map(|about| about.name)))
            }

            /// Returns the names of those that satisfy `wanted` with their default parameters.
            pub fn names(wanted: impl Fn(&Self) -> bool) -> Vec<&'static str> {
                Self::each().iter().filter(|one| wanted(one)).map(Self::name).collect()
            }

            /// Returns its registry entry.
            pub fn about(&self) -> &'static $crate::About {
                match self {
                    $(Self::$variant(_) => const { &$folder::$module::ABOUT },)*
                    $(Self::External(external) => $crate::External::<$functions>::about(external),)?
                }
            }

            /// Returns its name.
            pub fn name(&self) -> &'static str {
                self.about().name
            }

            /// Returns its parameters.
            pub fn parameters(&self) -> &dyn $crate::Parameters {
                match self {
                    $(Self::$variant(parameters) => parameters,)*
                    $(Self::External(external) => external as &$crate::External<$functions>,)?
                }
            }

            /// Returns its parameters for modification.
            pub fn parameters_mut(&mut self) -> &mut dyn $crate::Parameters {
                match self {
                    $(Self::$variant(parameters) => parameters,)*
                    $(Self::External(external) => external as &mut $crate::External<$functions>,)?
                }
            }

            /// Returns its capabilities.
            $seen fn capabilities(&self) -> &dyn $capabilities {
                self.as_ref()
            }
        }

        impl AsRef<dyn $capabilities> for $name {
            fn as_ref(&self) -> &(dyn $capabilities + 'static) {
                match self {
                    $(Self::$variant(parameters) => parameters,)*
                    $(Self::External(external) => (<$functions>::capabilities(external)),)?
                }
            }
        }

        impl $crate::Registry for $name {
            fn all() -> &'static [$crate::About] {
                $name::all()
            }
            fn named(name: &str) -> Result<Self, $crate::Unknown> {
                $name::named(name)
            }
            fn about(&self) -> &'static $crate::About {
                $name::about(self)
            }
            fn parameters(&self) -> &dyn $crate::Parameters {
                $name::parameters(self)
            }
            fn parameters_mut(&mut self) -> &mut dyn $crate::Parameters {
                $name::parameters_mut(self)
            }
        }
    };
}

/// One of each kind of a registry, in its order.
#[derive(Clone, Debug, PartialEq)]
pub struct Each<T>(Vec<T>);

impl<T: Registry> Default for Each<T> {
    fn default() -> Self {
        Each(T::all().iter().filter_map(|about| T::named(about.name).ok()).collect())
    }
}

impl<T: Registry> Each<T> {
    /// Iterates over all of them.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// Returns the one selected by `name`.
    pub fn chosen(&self, name: &Named<T>) -> &T {
        let chosen = self.iter().find(|one| one.about() == name.0);
        chosen.unwrap_or_else(|| unreachable!("`{}` is in its registry", name.0.name))
    }

    /// Returns the parameters of the one called `name`.
    pub fn parameters_mut(&mut self, name: &str) -> Option<&mut dyn Parameters> {
        self.0.iter_mut().find(|one| one.about().name == name).map(T::parameters_mut)
    }
}

/// The name of a kind of a registry, as a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T>(&'static About, PhantomData<T>);

impl<T: Registry> Named<T> {
    /// Creates the name of this kind.
    pub fn of(kind: &T) -> Self {
        Named(kind.about(), PhantomData)
    }

    /// Returns its registry entry.
    pub fn about(&self) -> &'static About {
        self.0
    }
}

impl<T: Registry> Setting for Named<T> {
    fn expected() -> String {
        T::all().iter().fold("one of".to_string(), |text, about| format!("{text} \"{}\"", about.name))
    }
    fn schema() -> ValueSchema {
        ValueSchema::Words(T::all().iter().map(|about| about.name).collect())
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        let found = T::all().iter().find(|about| matches!(raw, Raw::Text(word) if word == about.name));
        found
            .map(|about| Named(about, PhantomData))
            .ok_or_else(|| InvalidValue::of::<Self>(raw).near(T::all().iter().map(|about| about.name)))
    }
    fn write(&self) -> Raw {
        Raw::Text(self.0.name.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_list_the_choices() {
        let few = Unknown::new("kind of tree", "oka", ["oak", "elm"]).to_string();
        assert_eq!(few, "`oka` is not a kind of tree; allowed are oak, elm (did you mean `oak`?)");
        let letters = ["a1", "b1", "c1", "d1", "e1", "f1", "g1", "h1", "i1", "j1", "k1", "l1", "m1"];
        let many = Unknown::new("letter", "m", letters).to_string();
        assert_eq!(many, "`m` is not a letter; the nearest of 13 are m1, a1, b1 (did you mean `m1`?)");
    }

    #[test]
    fn the_text_is_a_description_or_a_summary_and_the_source() {
        assert_eq!(About::brief("none", "a fixed window").text(), "A fixed window.");
        assert_eq!(
            About { source: "IRN", ..About::brief("x", "DCQCN: a rate.") }.text(),
            "DCQCN: a rate. Source: IRN."
        );
        let about = About { name: "x", summary: "a", source: "ours", description: "It does this. And that." };
        assert_eq!(about.text(), "It does this. And that. Source: ours.");
    }
}
