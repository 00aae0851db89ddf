//! Pairs of a host and a switch scheme under the names that papers and peers use.

use super::{HostParameters, SchemeError, SwitchParameters, TagKind};
use anabranch_settings::{
    Raw, Unknown,
    external::{self, OfRegistries},
};

/// A name for a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The name.
    pub name: &'static str,
    /// The host scheme.
    pub host: &'static str,
    /// The switch scheme.
    pub switch: &'static str,
    /// One-line summary.
    pub summary: &'static str,
    /// Parameters that the name fixes, on the side that has them.
    pub fixed: &'static [(&'static str, &'static str)],
}

const fn alias(name: &'static str, host: &'static str, switch: &'static str, summary: &'static str) -> Alias {
    Alias { name, host, switch, summary, fixed: &[] }
}

const UNIFORM: &[(&str, &str)] = &[("weights", "uniform")];
const WEIGHTED: &[(&str, &str)] = &[("weights", "latency")];

impl Alias {
    const fn with(self, fixed: &'static [(&'static str, &'static str)]) -> Self {
        Alias { fixed, ..self }
    }

    /// Returns the alias of this name.
    pub fn named(name: &str) -> Option<&'static Alias> {
        aliases().iter().find(|alias| alias.name == name)
    }

    /// Sets the parameters that the name fixes.
    pub fn fix(&self, host: &mut HostParameters, switch: &mut SwitchParameters) {
        for (key, word) in self.fixed {
            let word = Raw::Text((*word).to_string());
            let known = [host.parameters_mut().set(key, &word), switch.parameters_mut().set(key, &word)];
            debug_assert!(known.iter().any(Result::is_ok), "{}: {key}", self.name);
        }
    }
}

/// Alias of a scenario that selects none.
pub const DEFAULT_ALIAS: &str = "ecmp";

/// Every alias.
pub const ALIASES: &[Alias] = &[
    alias("ecmp", "ecmp", "ecmp", "one path per flow, by hash"),
    alias("ops", "ops", "ecmp", "oblivious packet spraying by the host: a random entropy value per packet"),
    alias("rps", "ops", "ecmp", "random packet spraying, another name of ops"),
    alias("packet-random", "ecmp", "random", "random packet spraying by the switches"),
    alias("rr", "ecmp", "rr", "round robin by the switches, packet by packet"),
    alias("rr-host", "rr", "ecmp", "entropy values in turn, hashed by the switches"),
    alias("reps", "reps", "ecmp", "reuses entropy values that came back unmarked"),
    alias("bitmap", "bitmap", "ecmp", "masked round robin with penalty counts (Ultra Ethernet)"),
    alias("strack", "bitmap", "ecmp", "STrack-like path selection, another name of bitmap"),
    alias("mixed", "mixed", "ecmp", "recycled entropy values, else bitmap (Ultra Ethernet)"),
    alias("plb", "plb", "ecmp", "a flow moves to a random path after congested round trips"),
    alias("flowbender", "flowbender", "ecmp", "a flow changes its tag when too many ACKs were marked"),
    alias("flowlet", "flowlet", "ecmp", "a new random path after every pause of the sender"),
    alias("ar", "ecmp", "ar", "adaptive routing: the least local queue"),
    alias("drill", "ecmp", "drill", "the least local queue of a few samples and the last best"),
    alias("letflow", "ecmp", "letflow", "a random path for every flowlet, by the sender's leaf"),
    alias("conga", "ecmp", "conga", "flowlets on the path that other leaves report least congested"),
    alias("conweave", "ecmp", "conweave", "running flows moved by leaves that restore their order"),
    alias("hopper", "hopper", "ecmp", "moves a flow to a better path that it has probed"),
    alias("hf2t", "hf2t", "letflow", "hosts lengthen some gaps so that LetFlow sees more flowlets"),
    alias("qp-spray", "qp-spray", "ecmp", "chunks in turn over a few queue pairs with fixed paths"),
    alias("nccl", "qp-spray", "ecmp", "static spraying as collective libraries do it, another name of qp-spray"),
    alias("cast", "cast", "ecmp", "chunks over a few queue pairs, more over those with short round trips (RCCL)"),
    alias("co-prime", "co-prime", "ev-index", "PRIME's multi-part round robin without its congestion history"),
    alias("prime", "prime", "ev-index", "PRIME: multi-part round robin that passes over congested paths"),
    alias("prime-guided", "prime", "source-guided", "PRIME over the guided paths of a Dragonfly or Slim Fly")
        .with(&[("values", "guided")]),
    alias("mrc", "mrc", "ev-index", "MRC: skips congested entropy values for a turn, withdraws broken ones")
        .with(&[("remap", "static")]),
    alias("mrc-hashed", "mrc", "ecmp", "MRC over hashed UDP source ports").with(&[("values", "hashed")]),
    alias("mrc-guided", "mrc", "source-guided", "MRC over the guided paths of a Dragonfly or Slim Fly")
        .with(&[("values", "guided")]),
    alias("braid", "braid", "ev-index", "shares of paths learnt from marks; one path at a time where order matters")
        .with(&[("remap", "skip")]),
    alias("braid-guided", "braid", "source-guided", "braid over the guided paths of a Dragonfly or Slim Fly")
        .with(&[("values", "guided")]),
    alias("mp-rdma", "mp-rdma", "ecmp", "MP-RDMA: each acknowledgement sends a packet on its own path"),
    alias("minimal", "ecmp", "minimal", "static minimal routing on a Dragonfly or a Slim Fly"),
    alias("valiant", "ecmp", "valiant", "over a random intermediate group or switch"),
    alias("ugal-l", "ecmp", "ugal", "minimal or Valiant, by the switch's own queues").with(&[("knowledge", "local")]),
    alias("ugal-g", "ecmp", "ugal", "minimal or Valiant, by all queues: an oracle").with(&[("knowledge", "global")]),
    alias("ops-u", "ops", "source-guided", "a random path of the list for every packet").with(UNIFORM),
    alias("ops-w", "ops", "source-guided", "a random path for every packet, short ones more often").with(WEIGHTED),
    alias("flicr", "flicr", "source-guided", "a path until a round trip was congested, weighted"),
    alias("flicr-u", "flicr", "source-guided", "Flicr with uniform weights").with(UNIFORM),
    alias("flicr-w", "flicr", "source-guided", "Flicr weighted by latency").with(WEIGHTED),
    alias("spritz-scout", "spritz-scout", "source-guided", "Spritz-Scout, weighted: holds to the fastest good path"),
    alias("spritz-scout-u", "spritz-scout", "source-guided", "Spritz-Scout with uniform weights").with(UNIFORM),
    alias("spritz-scout-w", "spritz-scout", "source-guided", "Spritz-Scout weighted by latency").with(WEIGHTED),
    alias("spritz-spray", "spritz-spray", "source-guided", "Spritz-Spray, weighted: recycles good paths"),
    alias("spritz-spray-u", "spritz-spray", "source-guided", "Spritz-Spray with uniform weights").with(UNIFORM),
    alias("spritz-spray-w", "spritz-spray", "source-guided", "Spritz-Spray weighted by latency").with(WEIGHTED),
    alias("spritz-coarse", "spritz-coarse", "coarse-guided", "Spritz over categories of paths, by VLAN tag"),
];

/// Returns every alias, and for a scheme of another crate its own name with a partner: the scheme of that name on the other side,
/// else the first of ours that its tags suit.
pub fn aliases() -> &'static [Alias] {
    static ALL: OfRegistries<Vec<Alias>> = OfRegistries::new(with_added);
    if external::is_used() { &ALL } else { ALIASES }
}

fn with_added() -> Vec<Alias> {
    let hosts = || HostParameters::each().into_iter().filter(|host| matches!(host, HostParameters::External(_)));
    let switches =
        || SwitchParameters::each().into_iter().filter(|switch| matches!(switch, SwitchParameters::External(_)));
    let tags = |host: &HostParameters| host.capabilities().tags();
    let suit = |host: &HostParameters, switch: &SwitchParameters| goes_with(tags(host), switch.capabilities().tags());
    let of_host = |host: HostParameters| {
        let own = switches().find(|switch| switch.name() == host.name() && suit(&host, switch));
        let switch = own.or_else(|| SwitchParameters::each().into_iter().find(|switch| suit(&host, switch)))?;
        Some(alias(host.name(), host.name(), switch.name(), host.about().summary))
    };
    let of_switch = |switch: SwitchParameters| {
        let is_named = hosts().any(|host| host.name() == switch.name());
        let host = HostParameters::each().into_iter().find(|host| !is_named && suit(host, &switch))?;
        Some(alias(switch.name(), host.name(), switch.name(), switch.about().summary))
    };
    ALIASES.iter().copied().chain(hosts().filter_map(of_host)).chain(switches().filter_map(of_switch)).collect()
}

/// Returns the pair of an alias (`prime`) or of both names (`ops+drill`), with default parameters.
///
/// # Errors
/// [`SchemeError`]: an unknown name, or a pair that cannot work together.
pub fn resolve(name_or_pair: &str) -> Result<(HostParameters, SwitchParameters), SchemeError> {
    let text = name_or_pair.trim();
    if let Some((host, switch)) = text.split_once('+') {
        let pair = (HostParameters::named(host.trim())?, SwitchParameters::named(switch.trim())?);
        check_pair(&pair.0, &pair.1)?;
        return Ok(pair);
    }
    let alias = Alias::named(text).ok_or_else(|| unknown(text))?;
    let (mut host, mut switch) = (HostParameters::named(alias.host)?, SwitchParameters::named(alias.switch)?);
    alias.fix(&mut host, &mut switch);
    check_pair(&host, &switch)?;
    Ok((host, switch))
}

/// Checks that hosts choose the paths of a pair, for networks whose switches hash and take no scheme.
///
/// # Errors
/// [`SchemeError::SwitchesChoose`] names a scheme of hosts.
pub fn check_host_side(host: &HostParameters, switch: &SwitchParameters) -> Result<(), SchemeError> {
    let is_of_switches = host.name() == "ecmp" && switch.name() != "ecmp";
    if !is_of_switches && !host.capabilities().holds_for_flowlets() {
        return Ok(());
    }
    let instead = match switch.name() {
        "letflow" | "conga" | "conweave" => "flowlet",
        "random" => "ops",
        "rr" => "rr-host",
        _ => "reps",
    };
    Err(SchemeError::SwitchesChoose { switch: switch.name(), instead })
}

fn unknown(found: &str) -> Unknown {
    let unknown = Unknown::new("load balancer", found, aliases().iter().map(|alias| alias.name));
    // A name of one side is no alias: complete it with a partner.
    let pair = match (HostParameters::named(found), SwitchParameters::named(found)) {
        (Ok(host), _) => {
            let tags = host.capabilities().tags();
            let partner = SwitchParameters::names(|switch| switch.capabilities().tags() == tags);
            partner.first().map(|switch| format!("{found}+{switch}"))
        }
        (Err(_), Ok(switch)) => {
            let tags = switch.capabilities().tags();
            let partner = HostParameters::names(|host| host.capabilities().tags() == tags);
            partner.first().map(|host| format!("{host}+{found}"))
        }
        (Err(_), Err(_)) => None,
    };
    Unknown { nearest: pair.or(unknown.nearest), ..unknown }
}

/// Checks that the switch scheme reads the tags of the host scheme (specification 5.3).
///
/// # Errors
/// [`SchemeError::Unfit`] names compatible schemes.
pub fn check_pair(host: &HostParameters, switch: &SwitchParameters) -> Result<(), SchemeError> {
    let (writes, reads) = (host.capabilities().tags(), switch.capabilities().tags());
    if goes_with(writes, reads) {
        return check_header(host, switch);
    }
    let (host, switch) = (host.name(), switch.name());
    Err(SchemeError::Unfit(format!(
        "host scheme `{host}` writes {} and switch scheme `{switch}` reads {}; with host `{host}` use switch {}; with switch \
         `{switch}` use host {}",
        writes.plural(),
        reads.plural(),
        SwitchParameters::names(|other| goes_with(writes, other.capabilities().tags())).join(", "),
        HostParameters::names(|other| goes_with(other.capabilities().tags(), reads)).join(", ")
    )))
}

/// Checks that a data packet's header has space for all that the pair lets switches write there.
///
/// # Errors
/// [`SchemeError::Unfit`] names both that need the same word.
pub fn check_header(host: &HostParameters, switch: &SwitchParameters) -> Result<(), SchemeError> {
    match host.capabilities().reads_signals() {
        Some(setting) if switch.capabilities().writes_header() => Err(SchemeError::Unfit(format!(
            "the signals of links that host scheme `{}` reads ({setting}) and switch scheme `{}` need the same word of a \
             packet's header; read no signals, or use another switch scheme",
            host.name(),
            switch.name()
        ))),
        _ => Ok(()),
    }
}

/// Returns `true` if a switch scheme accepts the tags. Source-guided switches hash entropy values to paths.
fn goes_with(writes: TagKind, reads: TagKind) -> bool {
    writes == reads || (writes, reads) == (TagKind::Entropy, TagKind::Guided)
}

impl TagKind {
    fn plural(self) -> &'static str {
        match self {
            TagKind::Entropy => "entropy values to be hashed",
            TagKind::MultiPart => "multi-part entropy values",
            TagKind::Guided => "numbers of guided paths",
            TagKind::Category => "categories of paths",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_known() {
        for all in [HostParameters::ALL, SwitchParameters::ALL] {
            let mut names: Vec<_> = all.iter().map(|about| about.name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all.len());
        }
        let mut names: Vec<_> = ALIASES.iter().map(|alias| alias.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), ALIASES.len());
        for alias in ALIASES {
            let (host, switch) = resolve(alias.name).unwrap();
            assert_eq!((host.name(), switch.name()), (alias.host, alias.switch));
            assert_eq!((host.check(), switch.check()), (Ok(()), Ok(())), "defaults are valid");
        }
    }

    #[test]
    fn names_fix_parameters() {
        let weights = |name| {
            let (host, switch) = resolve(name).unwrap();
            let all = [host.parameters().entries(), switch.parameters().entries()].concat();
            all.into_iter().filter(|(key, _)| *key == "weights").map(|(_, value)| value.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(weights("ops-u"), ["\"uniform\""]);
        assert_eq!(weights("ops-w"), ["\"latency\""]);
        assert_eq!(weights("spritz-spray-u"), ["\"uniform\"", "\"uniform\""]);
        let knows = |name| resolve(name).unwrap().1.parameters().entries()[0].1.to_string();
        assert_eq!((knows("ugal-l"), knows("ugal-g")), ("\"local\"".into(), "\"global\"".into()));
        assert!(resolve("reps+source-guided").is_ok() && resolve("spritz-scout+ecmp").is_err());
    }

    #[test]
    fn pairs_resolve() {
        let (host, switch) = resolve(" ops + drill ").unwrap();
        assert_eq!((host.name(), switch.name()), ("ops", "drill"));
    }

    #[test]
    fn errors_name_the_remedy() {
        let message = |name| resolve(name).unwrap_err().to_string();
        assert!(message("pirme").contains("did you mean `prime`?"), "{}", message("pirme"));
        assert!(message("random").contains("did you mean `ecmp+random`?"), "{}", message("random"));
        assert!(message("ev-index").contains("did you mean `co-prime+ev-index`?"));
        assert!(message("ops+dril").contains("`dril` is not a switch scheme"));
        assert!(message("ops+dril").contains("did you mean `drill`?"));
        assert!(message("").contains("is not a load balancer"));
        assert!(message("ops+").contains("is not a switch scheme"));
    }

    #[test]
    fn multi_part_values_and_hashes_do_not_mix() {
        for pair in ["prime+ecmp", "co-prime+ar", "ops+ev-index"] {
            assert!(matches!(resolve(pair), Err(SchemeError::Unfit(_))), "{pair}");
        }
        let message = resolve("prime+ecmp").unwrap_err().to_string();
        assert!(message.contains("with host `prime` use switch ev-index;"), "{message}");
        assert!(message.contains("with switch `ecmp` use host ecmp, ops,"), "{message}");
    }

    #[test]
    fn limits_are_checked() {
        let (mut host, _) = resolve("bitmap").unwrap();
        host.parameters_mut().set("paths", &Raw::Int(48)).unwrap();
        let message = host.check().unwrap_err().to_string();
        assert_eq!(message, "bitmap: `paths`: found 48, expected a power of two from 2 to 65536");
        let (prime, _) = resolve("prime").unwrap();
        assert_eq!(prime.check_uplinks(&[64, 64], 1), Ok(()));
        let error = |uplinks: &[u32]| prime.check_uplinks(uplinks, 1).unwrap_err().to_string();
        assert!(error(&[]).contains("`prime` names uplinks") && error(&[]).contains("reps"), "{}", error(&[]));
        assert!(error(&[256, 256]).contains("topology has 65536 over 2"), "{}", error(&[256, 256]));
        assert_eq!(host.check_uplinks(&[256, 256], 1), Ok(()));
        let (_, conga) = resolve("conga").unwrap();
        assert_eq!((conga.check_uplinks(&[8]), conga.check_uplinks(&[8, 8])), (Ok(()), Ok(())));
        for uplinks in [&[][..], &[8, 8, 8], &[64, 64]] {
            assert!(conga.check_uplinks(uplinks).is_err());
        }
    }

    #[test]
    fn capabilities_are_those_of_the_papers() {
        let mut keep = HostParameters::names(|host| host.capabilities().keeps_path());
        keep.sort_unstable();
        assert_eq!(keep, ["cast", "ecmp", "flowbender", "flowlet", "hf2t", "hopper", "plb", "qp-spray"]);
        assert_eq!(HostParameters::names(|host| host.capabilities().leaves_choice_to_switches()), ["ecmp"]);
        let flowlets = SwitchParameters::names(|switch| switch.capabilities().flowlet_timeout().is_some());
        assert_eq!(flowlets, ["letflow", "conga"]);
        assert_eq!(HostParameters::names(|host| host.capabilities().holds_for_flowlets()), ["hf2t"]);
        let at_the_leaf = SwitchParameters::names(|switch| switch.capabilities().max_leaf_paths().is_some());
        assert_eq!(at_the_leaf, ["letflow", "conga", "conweave"]);
        assert_eq!(SwitchParameters::names(|switch| switch.capabilities().distorts_round_trips()), ["conweave"]);
        // An entropy value keeps its meaning only if dead uplinks are skipped (specification 5.3).
        let (_, mut index) = resolve("prime").unwrap();
        assert!(!index.capabilities().reports_dead_paths());
        index.parameters_mut().set("remap", &Raw::Text("skip".into())).unwrap();
        assert!(index.capabilities().reports_dead_paths());
    }

    #[test]
    fn a_guided_form_is_a_guided_scheme_for_the_same_hosts() {
        for name in SwitchParameters::names(|switch| switch.capabilities().guided_form().is_some()) {
            let switch = SwitchParameters::named(name).unwrap();
            let form = SwitchParameters::named(switch.capabilities().guided_form().unwrap()).unwrap();
            assert_eq!(form.capabilities().packet_scope(), crate::registry::PacketScope::Guided);
            for host in HostParameters::each() {
                assert!(check_pair(&host, &switch).is_err() || check_pair(&host, &form).is_ok(), "{}", host.name());
            }
        }
        let (_, conga) = resolve("conga").unwrap();
        let error = conga.check_uplinks(&[]).unwrap_err().to_string();
        assert!(error.ends_with("others: ecmp, ar, drill, rr, random"), "{error}");
    }
}
