//! What can be wrong with the name of a scheme, a pair of schemes, or a parameter.

use anabranch_settings::Unknown;
use std::fmt::Display;
use thiserror::Error;

/// A parameter is outside its limits.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{key}`: found {found}, expected {expected}")]
pub struct Invalid {
    /// The parameter.
    pub key: &'static str,
    /// Its value.
    pub found: String,
    /// What is allowed.
    pub expected: &'static str,
}

impl Invalid {
    /// Refuses a value that is not `valid`.
    ///
    /// # Errors
    /// The value is not valid.
    pub fn unless(valid: bool, key: &'static str, found: impl Display, expected: &'static str) -> Result<(), Self> {
        if valid { Ok(()) } else { Err(Invalid { key, found: found.to_string(), expected }) }
    }
}

/// Why a load balancer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemeError {
    /// Unknown scheme.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The switch scheme does not understand the tags of the host scheme.
    #[error(
        "host scheme `{host}` writes {writes} and switch scheme `{switch}` reads {reads}; \
         with host `{host}` use switch {}; with switch `{switch}` use host {}",
        switches.join(", "), hosts.join(", ")
    )]
    Pair {
        /// The host scheme.
        host: &'static str,
        /// The switch scheme.
        switch: &'static str,
        /// What the host scheme writes.
        writes: &'static str,
        /// What the switch scheme reads.
        reads: &'static str,
        /// Host schemes that go with the switch scheme.
        hosts: Vec<&'static str>,
        /// Switch schemes that go with the host scheme.
        switches: Vec<&'static str>,
    },
    /// A parameter is outside its limits.
    #[error("{scheme}: {invalid}")]
    Invalid {
        /// The scheme.
        scheme: &'static str,
        /// The parameter and its limits.
        invalid: Invalid,
    },
    /// The topology has more paths, or more tiers with a choice, than the scheme can name.
    #[error(
        "host scheme `{scheme}` names at most {most_paths} paths over {most_tiers} tiers; this topology has {paths} \
         over {tiers}"
    )]
    TooManyPaths {
        /// The scheme.
        scheme: &'static str,
        /// Paths of the topology.
        paths: u64,
        /// Most it can name.
        most_paths: u32,
        /// Tiers with uplinks.
        tiers: usize,
        /// Most it can name.
        most_tiers: usize,
    },
    /// The host scheme names uplinks tier by tier and the topology has no tiers.
    #[error(
        "host scheme `{scheme}` names uplinks tier by tier, and this topology has no tiers; take a scheme whose entropy \
         values are hashed: {}",
        others.join(", ")
    )]
    NoTiers {
        /// The scheme.
        scheme: &'static str,
        /// Schemes that need no tiers.
        others: Vec<&'static str>,
    },
    /// The switch scheme chooses whole paths at the leaf, and cannot number those of this topology.
    #[error(
        "switch scheme `{scheme}` chooses paths at the sender's leaf: it needs a leaf-spine or a fat tree, with at most \
         {most} paths between leaves; this topology has {tiers} tiers with uplinks and {paths} paths; others: {}",
        others.join(", ")
    )]
    NotATree {
        /// The scheme.
        scheme: &'static str,
        /// Tiers with uplinks.
        tiers: usize,
        /// Paths between leaves.
        paths: u64,
        /// Most it can number.
        most: u64,
        /// Schemes that work on any topology.
        others: Vec<&'static str>,
    },
    /// The switch scheme guides packets over a Dragonfly or a Slim Fly, and the topology is neither.
    #[error(
        "switch scheme `{scheme}` needs a topology of kind dragonfly or slim-fly; on any other take one of {}",
        others.join(", ")
    )]
    NotGuided {
        /// The scheme.
        scheme: &'static str,
        /// Schemes that work on any topology.
        others: Vec<&'static str>,
    },
    /// A part of an entropy value has 8 bits.
    #[error(
        "switch scheme `{scheme}` names ports by 8 bits (Spritz §III-C): at most 256 ports to other switches; this topology \
         has switches with {ports}"
    )]
    TooManyPorts {
        /// The scheme.
        scheme: &'static str,
        /// The most ports that a switch has.
        ports: u32,
    },
}
