//! Kinds that other crates add to a registry.

use crate::{About, Parameter, Parameters, Raw, SetError, ValueSchema};
use std::{
    any::{Any, TypeId},
    fmt::{self, Debug},
    ops::Deref,
    sync::{Mutex, PoisonError, RwLock},
};

/// Version of the interfaces that kinds of other crates implement. It changes where a kind compiles on and means something else.
pub const INTERFACE: u32 = 1;

/// Parameters of a kind of another crate: any type of [`parameters!`](crate::parameters).
pub trait ExternalParameters: Parameters + Any + Debug + Send + Sync {
    /// Returns a copy.
    fn boxed(&self) -> Box<dyn ExternalParameters>;
}

impl<P: Parameters + Any + Clone + Debug + Send + Sync> ExternalParameters for P {
    fn boxed(&self) -> Box<dyn ExternalParameters> {
        Box::new(self.clone())
    }
}

/// A kind of another crate with its parameters, and the `functions` that a registry calls with them.
pub struct External<F> {
    /// Its registry entry.
    pub about: &'static About,
    /// Its parameters.
    pub parameters: Box<dyn ExternalParameters>,
    /// Functions of [`External::of`].
    pub functions: F,
}

impl<F> External<F> {
    /// Returns the parameters.
    ///
    /// # Panics
    /// If the kind has parameters of another type.
    pub fn of<P: 'static>(&self) -> &P {
        let parameters: &dyn Any = &*self.parameters;
        parameters.downcast_ref().unwrap_or_else(|| unreachable!("the parameters of {}", self.about.name))
    }

    /// Returns its registry entry.
    pub fn about(&self) -> &'static About {
        self.about
    }
}

impl<F: Copy> Clone for External<F> {
    fn clone(&self) -> Self {
        External { about: self.about, parameters: self.parameters.boxed(), functions: self.functions }
    }
}

impl<F> Debug for External<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.about.name, self.parameters)
    }
}

impl<F> PartialEq for External<F> {
    fn eq(&self, other: &Self) -> bool {
        self.about == other.about && self.parameters.entries() == other.parameters.entries()
    }
}

impl<F> Parameters for External<F> {
    fn documentation(&self) -> Vec<Parameter> {
        self.parameters.documentation()
    }
    fn set(&mut self, key: &str, value: &Raw) -> Result<(), SetError> {
        self.parameters.set(key, value)
    }
    fn entries(&self) -> Vec<(&'static str, Raw)> {
        self.parameters.entries()
    }
}

/// A kind to be added to a registry.
pub struct Addition {
    about: &'static About,
    what: &'static str,
    interface: u32,
    ours: &'static [About],
    taken: Vec<&'static str>,
    documentation: Vec<Parameter>,
    registry: TypeId,
    kind: Box<dyn Any + Send + Sync>,
}

impl Addition {
    /// Creates the addition of a kind to a registry of `what` with the entries `ours`, for version `interface` of
    /// [`INTERFACE`]. Names `taken` are refused besides those of `ours`.
    pub fn new<F: Send + Sync + 'static>(
        kind: External<F>,
        interface: u32,
        (what, ours): (&'static str, &'static [About]),
        taken: Vec<&'static str>,
    ) -> Self {
        let documentation = kind.parameters.documentation();
        let (about, registry) = (kind.about, TypeId::of::<F>());
        Addition { about, what, interface, ours, taken, documentation, registry, kind: Box::new(kind) }
    }

    fn is_as(&self, other: &Addition) -> bool {
        (self.registry, self.about.name) == (other.registry, other.about.name)
    }

    fn mistakes(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.interface != INTERFACE {
            let version = self.interface;
            found.push(format!(
                "written for version {version} of the interface; expected {INTERFACE}, that of this program"
            ));
        }
        let name = self.about.name;
        let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !is_plain(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
            found.push("the name has other characters than a to z, 0 to 9 and `-`, or begins with no letter".into());
        }
        if self.ours.iter().any(|about| about.name == name) || self.taken.contains(&name) {
            found.push("the name is one of anabranch; take another".into());
        }
        if self.about.summary.trim().is_empty() {
            found.push("`ABOUT` has no summary".into());
        }
        found.extend(self.documentation.iter().flat_map(undocumented));
        found
    }
}

/// Returns what the documentation of a parameter lacks: meaning, unit or source.
pub fn undocumented(parameter: &Parameter) -> Vec<String> {
    const UNITS: [&str; 14] =
        ["ps", "ns", "us", "ms", "s", "sec", "secs", "seconds", "bytes", "kb", "kib", "mib", "bps", "gbps"];
    let mut found = Vec::new();
    let mut lacks = |what: &str| found.push(format!("parameter `{}` {what}", parameter.name));
    if parameter.meaning.trim().is_empty() {
        lacks("has no meaning");
    }
    if parameter.source.trim().is_empty() {
        lacks("has no source; write the section of a paper, or \"ours\"");
    }
    let is_number = match &parameter.schema {
        ValueSchema::Either(shapes) => shapes.iter().any(|shape| shape.is_number()),
        shape => shape.is_number(),
    };
    let last = parameter.name.rsplit('_').next().unwrap_or_default();
    if is_number && (UNITS.contains(&last) || parameter.meaning.contains("seconds")) {
        lacks("is a number without a unit; take a type with one: Time, Bytes or Rate");
    }
    found
}

struct Added {
    additions: Vec<&'static Addition>,
    /// Entries of each registry that has additions: ours, then the added.
    all: Vec<(TypeId, Vec<About>)>,
}

static ADDED: RwLock<Option<&'static Added>> = RwLock::new(None);

fn current() -> Option<&'static Added> {
    *ADDED.read().unwrap_or_else(PoisonError::into_inner)
}

fn put(additions: Vec<&'static Addition>) {
    let mut all: Vec<(TypeId, Vec<About>)> = Vec::new();
    for addition in &additions {
        if !all.iter().any(|(registry, _)| *registry == addition.registry) {
            let own = additions.iter().filter(|other| other.registry == addition.registry).map(|other| *other.about);
            all.push((addition.registry, addition.ours.iter().copied().chain(own).collect()));
        }
    }
    let added: &Added = Box::leak(Box::new(Added { additions, all }));
    *ADDED.write().unwrap_or_else(PoisonError::into_inner) = Some(added);
}

/// Adds kinds to their registries. Call it once, before anything reads one.
///
/// # Errors
/// A line for each error; nothing is added then.
pub fn add(additions: Vec<Addition>) -> Result<(), String> {
    let mut mistakes = Vec::new();
    for (i, addition) in additions.iter().enumerate() {
        let twice = additions[..i]
            .iter()
            .find(|other| addition.is_as(other))
            .map(|_| "another one that was registered has this name".to_string());
        let of = |mistake| format!("{} `{}`: {mistake}", addition.what, addition.about.name);
        mistakes.extend(addition.mistakes().into_iter().chain(twice).map(of));
    }
    if mistakes.is_empty() && current().is_some() {
        mistakes.push("schemes were registered before; register all at once".into());
    }
    if !mistakes.is_empty() {
        return Err(mistakes.join("\n"));
    }
    put(additions.into_iter().map(|addition| &*Box::leak(Box::new(addition))).collect());
    Ok(())
}

/// Adds a kind at any time, in place of one of its name that was added before.
///
/// # Errors
/// A line for each error; nothing is added then.
pub fn add_or_replace(addition: Addition) -> Result<(), String> {
    let mistakes = addition.mistakes();
    if !mistakes.is_empty() {
        return Err(mistakes.join("\n"));
    }
    let others = current().into_iter().flat_map(|added| added.additions.iter().copied());
    let mut additions: Vec<&'static Addition> = others.filter(|other| !addition.is_as(other)).collect();
    additions.push(Box::leak(Box::new(addition)));
    put(additions);
    Ok(())
}

/// Returns `true` if kinds were added.
pub fn is_used() -> bool {
    current().is_some_and(|added| !added.additions.is_empty())
}

/// A value that follows from registries, made again after kinds are added.
pub struct OfRegistries<T: 'static> {
    make: fn() -> T,
    made: Mutex<Vec<(usize, &'static T)>>,
}

impl<T> OfRegistries<T> {
    /// Creates it; `make` is called on first use.
    pub const fn new(make: fn() -> T) -> Self {
        OfRegistries { make, made: Mutex::new(Vec::new()) }
    }
}

impl<T> Deref for OfRegistries<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let version = current().map_or(0, |added| std::ptr::from_ref(added).addr());
        let known = |made: &[(usize, &'static T)]| made.iter().find(|(of, _)| *of == version).map(|(_, value)| *value);
        let lock = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = known(&lock()) {
            return value;
        }
        // Unlocked: `make` may use the value of other registries.
        let made = Box::leak(Box::new((self.make)()));
        let mut all = lock();
        known(&all).unwrap_or_else(|| {
            all.push((version, made));
            made
        })
    }
}

/// Returns the kinds that were added to the registry whose functions are `F`.
pub fn added<F: 'static>() -> impl Iterator<Item = &'static External<F>> {
    current().into_iter().flat_map(|added| &added.additions).filter_map(|addition| addition.kind.downcast_ref())
}

/// Returns the entries of that registry: `ours`, and those added.
pub fn all<F: 'static>(ours: &'static [About]) -> &'static [About] {
    let all = current().and_then(|added| added.all.iter().find(|(registry, _)| *registry == TypeId::of::<F>()));
    all.map_or(ours, |(_, all)| all)
}
