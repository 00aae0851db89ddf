//! Errors in the name of a scheme, a pair of schemes, or a parameter.

use anabranch_settings::Unknown;
use std::fmt::Display;
use thiserror::Error;

/// A parameter is outside its limits.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{key}`: found {found}, expected {expected}")]
pub struct Invalid {
    /// Name of the parameter.
    pub key: &'static str,
    /// Value found.
    pub found: String,
    /// Allowed values.
    pub expected: &'static str,
}

impl Invalid {
    /// Rejects a value that is not `valid`.
    ///
    /// # Errors
    /// The value is not valid.
    pub fn unless(valid: bool, key: &'static str, found: impl Display, expected: &'static str) -> Result<(), Self> {
        if valid { Ok(()) } else { Err(Invalid { key, found: found.to_string(), expected }) }
    }
}

/// Reason for which a load balancer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemeError {
    /// Unknown scheme.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The switch scheme cannot read the tags of the host scheme.
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
        /// Tags that the host scheme writes.
        writes: &'static str,
        /// Tags that the switch scheme reads.
        reads: &'static str,
        /// Host schemes compatible with the switch scheme.
        hosts: Vec<&'static str>,
        /// Switch schemes compatible with the host scheme.
        switches: Vec<&'static str>,
    },
    /// The switches would choose the paths, and those of a real network hash.
    #[error(
        "its switches choose the paths (`{switch}`), and those of a real network keep their own ECMP; expected \
         `{instead}`, whose hosts choose the paths, or the simulator (`anabranch run`)"
    )]
    SwitchesChoose {
        /// The switch scheme.
        switch: &'static str,
        /// A similar load balancer of hosts.
        instead: &'static str,
    },
    /// A parameter is outside its limits.
    #[error("{scheme}: {invalid}")]
    Invalid {
        /// The scheme.
        scheme: &'static str,
        /// The parameter and its limits.
        invalid: Invalid,
    },
    /// The topology has more paths, or more tiers with a choice, than the scheme can encode.
    #[error(
        "host scheme `{scheme}` names at most {max_paths} paths over {max_tiers} tiers; this topology has {paths} \
         over {tiers}"
    )]
    TooManyPaths {
        /// The scheme.
        scheme: &'static str,
        /// Paths of the topology.
        paths: u64,
        /// Maximum number of paths.
        max_paths: u32,
        /// Tiers with uplinks.
        tiers: usize,
        /// Maximum number of tiers.
        max_tiers: usize,
    },
    /// The host scheme encodes uplinks tier by tier and the topology has no tiers.
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
        /// Maximum number of paths between leaves.
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
        /// Maximum number of switch-facing ports of a switch.
        ports: u32,
    },
}
