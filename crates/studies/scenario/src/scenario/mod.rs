//! The scenario: typed, checked, with every default; and its setup.

mod bounds;
mod chosen;
mod cost;
mod dead_ends;
mod fabric;
mod fault;
mod files;
mod kept_rows;
mod load_balancer;
mod measured;
mod memory;
mod overlap;
pub mod readings;
mod run;
mod select;
mod servers;
mod topology;
mod transport;
mod wire;
mod workload;

pub use chosen::ChosenFlows;
pub use fabric::{MAX_CLASSES, PROFILES, Profile};
pub use load_balancer::LoadBalancers;
pub use run::{CompareParameters, FlowRows, MAX_SEEDS, MeasureParameters, RunParameters, SkipRule, Until};
pub use workload::Workload;

use crate::{
    BackendEntry, Mistakes, Place, SIMULATOR, ScenarioError, Section, Tree, VERSION, did_you_mean, document, list,
    quoted,
};
use anabranch_backend::{CsigSignal, FabricParameters, MarkingParameters};
use anabranch_backend::{LoadBalancer, Measure, Refusal, RunError, RunLimits, Setup};
use anabranch_input::wrong_name;
use anabranch_lb::registry::{SchemeError, check_host_side, check_pair};
use anabranch_random::name_key;
use anabranch_settings::{Each, Never, Seed, SetError, Setting, nearest};
use anabranch_topology::FaultParameters;
use anabranch_transport::TransportParameters;
use anabranch_units::{Rate, Time};
use anabranch_wire::WireParameters;
use anabranch_workload::ServerParameters;
use files::Folder;
use memory::Budget;
use std::path::{Path, PathBuf};
use toml::Table;
use topology::TopologySection;

/// Keys of a scenario: two values, then its sections.
pub(crate) const KEYS: &[&str] = &[
    "name",
    "seed",
    "topology",
    "servers",
    "fabric",
    "transport",
    "load_balancer",
    "workload",
    "fault",
    "measure",
    "run",
    "compare",
    "wire",
];

#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name in tables and reports.
    pub name: String,
    pub stem: String,
    /// Seed of everything random.
    pub seed: u64,
    topology: TopologySection,
    /// The servers whose NICs are the hosts of the topology; `None`: hosts are endpoints.
    pub servers: Option<ServerParameters>,
    pub profile: &'static Profile,
    /// Buffers, marking, trimming, classes.
    pub fabric: FabricParameters,
    /// Parameters of the marking rules, of which `fabric.marking` names one.
    pub marking: Each<MarkingParameters>,
    pub transport: TransportParameters,
    pub load_balancers: LoadBalancers,
    pub workloads: Vec<Workload>,
    pub faults: Vec<FaultParameters>,
    pub measure: MeasureParameters,
    pub run: RunParameters,
    /// Load balancers, seeds and baseline of a comparison.
    pub compare: CompareParameters,
    /// Settings of real networks alone.
    pub wire: WireParameters,
    /// The network plugin that ranks of collectives load, from the command line alone; `None`: the one beside the command.
    pub plugin: Option<PathBuf>,
    folder: Folder,
    tree: Tree,
    changes: Vec<String>,
}

/// The text of a file that a scenario names, and the extension of its name.
pub struct FolderFile {
    pub text: String,
    /// Text after the last dot of its name.
    pub ending: String,
}

/// Returns the checked `[topology]` of a scenario whose other sections do not matter, with every default filled in, and the
/// file that it names, if any. A relative path is relative to `folder`.
///
/// Fails where the section is missing or wrong, or the graph cannot be built.
pub fn topology_of(tree: &Tree, folder: &Path) -> Result<(Table, Option<FolderFile>), ScenarioError> {
    let section = topology::read(Section::of(tree.root(), "the scenario")?.table("topology")?)?;
    let mut budget = Budget::new(&RunParameters::default());
    let folder = Folder::new(folder, budget.max_file());
    if let Some(scale) = section.parameters.scale() {
        budget.take_topology(&scale, 0)?;
    }
    section.build(&folder, &budget, tree)?;
    let table = section.table(str::to_string);
    let path = table.get("path").and_then(toml::Value::as_str);
    let file = path.map(|path| {
        let ending = Path::new(path).extension().unwrap_or_default().to_string_lossy().into_owned();
        folder.read(path, &budget).map(|text| FolderFile { text, ending })
    });
    let file = file.transpose().map_err(|error| ScenarioError::new(format!("[topology]: {error}")))?;
    Ok((table, file))
}

/// Adds the errors in the names of links and switches, of a scenario that has others.
#[allow(clippy::too_many_arguments)]
fn named_links(
    section: &TopologySection,
    faults: &[FaultParameters],
    measure: &MeasureParameters,
    run: &RunParameters,
    folder: &Path,
    seed: u64,
    tree: &Tree,
    mistakes: &mut Mistakes,
) {
    let mut budget = Budget::new(run);
    let folder = Folder::new(folder, budget.max_file());
    let fits = section.parameters.scale().is_none_or(|scale| budget.take_topology(&scale, 0).is_ok());
    let built = if fits { mistakes.ok(section.build(&folder, &budget, tree)) } else { None };
    if let Some(topology) = built {
        mistakes.ok(fault::resolve(faults, &topology, seed, tree));
        mistakes.ok(select::links("series_links", &measure.series_links, &topology, tree));
    }
}

impl Scenario {
    /// Reads `tree`; relative paths in it are relative to `folder`.
    pub fn read(tree: Tree, stem: &str, folder: &Path) -> Result<Self, ScenarioError> {
        let mut root = Section::of(tree.root(), "the scenario")?;
        let mut mistakes = Mistakes::default();
        let name = mistakes.ok(root.read::<String>("name")).flatten().unwrap_or_else(|| stem.to_string());
        if let Some(wrong) = wrong_name(&name) {
            let at = tree.place("name");
            mistakes.add(ScenarioError::new(format!("`name`: {wrong}")).maybe_at(at));
        }
        let seed = mistakes.ok(root.read::<Seed>("seed")).flatten().map_or(1, |Seed(seed)| seed);
        let unknown = root.matching(|key| !KEYS.contains(&key));
        // A section with a misspelt name would appear absent.
        let may_lack = unknown.is_empty();
        for (key, node) in unknown {
            let message = format!("unknown section or key `{key}`; allowed are {}", list(KEYS));
            let error = ScenarioError::new(message).at(node.key.clone());
            mistakes.add(did_you_mean(error, nearest(key, KEYS.iter().copied())));
        }
        let is_read = |root: &Section<'_>, key: &str| may_lack || root.peek(key).is_some();
        let topology = match is_read(&root, "topology") {
            true => mistakes.ok(root.table("topology").and_then(topology::read)),
            false => None,
        };
        let servers = mistakes.ok(root.table("servers").and_then(|section| servers::read(section, &tree)));
        let mut transport = mistakes.ok(root.table("transport"));
        let kind = transport.as_mut().map(|section| {
            let kind = section.as_mut().map_or(Ok(None), Section::kind::<TransportParameters>);
            mistakes.ok(kind)
        });
        let kind = kind.flatten();
        let kind_name = kind.as_ref().and_then(Option::as_ref).map(TransportParameters::name);
        let fabric = mistakes.ok(root.table("fabric").and_then(|section| fabric::read(section, kind_name)));
        let transport = match (&fabric, transport, kind) {
            (Some((profile, ..)), Some(section), Some(kind)) => {
                let defaults = (profile.transport)();
                let defaults = match kind {
                    Some(kind) if kind.name() != defaults.name() => kind,
                    _ => defaults,
                };
                mistakes.ok(transport::read(section, defaults, &tree))
            }
            // Without a profile the kind alone has defaults.
            (None, Some(section), Some(Some(kind))) => mistakes.ok(transport::read(section, kind, &tree)),
            _ => None,
        };
        if let (Some((_, fabric, _)), Some(transport)) = (&fabric, &transport) {
            mistakes.ok(fabric::check(fabric, transport, &tree));
        }
        let load_balancers =
            mistakes.ok(root.table("load_balancer").and_then(|section| load_balancer::read(section, &tree)));
        let workloads = match is_read(&root, "workload") {
            true => mistakes.ok(root.tables("workload", "workload").and_then(|sections| {
                workload::read(sections, fabric.as_ref().map(|(_, fabric, _)| fabric), load_balancers.as_ref(), &tree)
            })),
            false => None,
        };
        if let (Some(workloads), Some(transport)) = (&workloads, &transport) {
            mistakes.ok(workload::check_controls(workloads, transport, &tree));
        }
        let affects = fabric.as_ref().map_or(FaultParameters::default().affects, |(profile, ..)| profile.faults);
        let faults = mistakes.ok(root.tables("fault", "fault").and_then(|sections| fault::read(sections, affects)));
        let measure = mistakes.ok(root.table("measure").and_then(|section| run::read_measure(section, &tree)));
        let run = mistakes.ok(root.table("run").and_then(|section| run::read_run(section, &tree)));
        let compare = mistakes.ok(root.table("compare").and_then(|section| run::read_compare(section, &tree)));
        let wire = root
            .table("wire")
            .and_then(|section| transport.as_ref().map(|transport| wire::read(section, transport, &tree)).transpose());
        let wire = mistakes.ok(wire).flatten();
        if let (Some(compare), Some(load_balancers)) = (&compare, &load_balancers) {
            for scheme in compare.schemes.iter().chain(&compare.baseline) {
                if let Err(error) = load_balancers.named(scheme) {
                    let at = tree.place("compare.schemes");
                    mistakes.add(ScenarioError::new(format!("[compare]: {error}")).maybe_at(at));
                }
            }
        }
        if !mistakes.is_empty() {
            // Names of links and switches are checked too, so that everything is shown at once.
            if let (Some(topology), Some(faults), Some(measure)) = (&topology, &faults, &measure) {
                let run = run.clone().unwrap_or_default();
                named_links(topology, faults, measure, &run, folder, seed, &tree, &mut mistakes);
            }
        }
        mistakes.or(())?;
        let (
            Some(topology),
            Some(servers),
            Some((profile, fabric, marking)),
            Some(transport),
            Some(load_balancers),
            Some(workloads),
            Some(faults),
            Some(measure),
            Some(run),
            Some(compare),
            Some(wire),
        ) = (topology, servers, fabric, transport, load_balancers, workloads, faults, measure, run, compare, wire)
        else {
            return Err(ScenarioError::new("the scenario lacks a section"));
        };
        Ok(Scenario {
            name,
            stem: stem.to_string(),
            seed,
            topology,
            servers,
            profile,
            fabric,
            marking,
            transport,
            load_balancers,
            workloads,
            faults,
            measure,
            folder: Folder::new(folder, Budget::new(&run).max_file()),
            run,
            compare,
            wire,
            plugin: None,
            changes: tree.changes().to_vec(),
            tree,
        })
    }

    /// Returns the scenario with another load balancer for all workloads that do not name their own.
    /// Fails where there is no such load balancer, or its sides do not form a pair.
    pub fn with_scheme(&self, scheme: &str) -> Result<Self, ScenarioError> {
        let main = self.load_balancers.named(scheme).map_err(|error| ScenarioError::new(error.to_string()))?;
        let mut other = self.clone();
        other.load_balancers.main = main;
        Ok(other)
    }

    /// Returns the scenario with other values of some keys (`KEY=VALUE` each), as the flag `flag` gives them.
    /// Fails where a key does not exist or a value does not fit.
    pub fn changed(&self, flag: &str, changes: &[String]) -> Result<Self, ScenarioError> {
        let mut tree = self.tree.clone();
        for change in changes {
            tree.change(flag, change)?;
        }
        let mut other = Scenario::read(tree, &self.stem, self.folder.path())?;
        other.folder = self.folder.clone();
        other.plugin.clone_from(&self.plugin);
        Ok(other)
    }

    /// Returns the scenario with this plugin for its collectives. Results depend on its content.
    #[must_use]
    pub fn with_plugin(&self, plugin: Option<PathBuf>) -> Self {
        Scenario { plugin, ..self.clone() }
    }

    /// Returns the scenario with another seed.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> Self {
        Scenario { seed, ..self.clone() }
    }

    /// Returns the files that it reads, as absolute paths: its own, where it was read from one, and those it names.
    pub fn inputs(&self) -> Vec<PathBuf> {
        let own = self.tree.root().place.source.name.as_str();
        let named = std::cell::RefCell::new(files::named(&self.workloads));
        self.topology.table(|path: &str| {
            named.borrow_mut().push(path.to_string());
            path.to_string()
        });
        let named = named
            .into_inner()
            .into_iter()
            .filter(|path| !path.is_empty())
            .map(|path| self.folder.absolute(&path).into());
        let own = std::path::absolute(own).unwrap_or_else(|_| own.into());
        let mut inputs: Vec<PathBuf> = std::iter::once(own).chain(named).filter(|path| path.is_file()).collect();
        inputs.sort();
        inputs.dedup();
        inputs
    }

    /// Caches the contents of its files for the hashes of all scenarios made from it, so that one study uses one state of them.
    pub fn remember_files(&mut self) {
        self.folder.remember();
    }

    /// Returns the name of its load balancer.
    pub fn scheme(&self) -> &str {
        &self.load_balancers.main.name
    }

    /// Returns the name or file it was read from and the changes made to it, as on a command line.
    pub fn origin(&self) -> String {
        let name = self.tree.root().place.source.name.as_str();
        let mut words = vec![quoted(name.strip_suffix(" (ready-made)").unwrap_or(name))];
        words.extend(self.changes.iter().map(|change| format!("--set {}", quoted(change))));
        words.join(" ")
    }

    /// Returns `true` if others can read it from the same origin: a file, or a ready-made scenario.
    pub fn is_at_hand(&self) -> bool {
        let name = self.tree.root().place.source.name.as_str();
        name.ends_with(" (ready-made)") || std::path::Path::new(name).is_file()
    }

    /// Returns the place of a dotted key, if it is given.
    pub fn place(&self, key: &str) -> Option<Place> {
        self.tree.place(key)
    }

    /// Returns reasons to doubt a result.
    pub fn warnings(&self) -> Vec<String> {
        let used = self.used().unwrap_or_default();
        let reads = used.iter().any(|balancer| balancer.host.capabilities().reads_signals().is_some());
        let fabric =
            fabric::warnings(self.profile, &self.fabric, &self.marking).chain(fabric::unread(&self.fabric, reads));
        let schemes = self.load_balancers.warnings(&used);
        let idle = self.transport.idle_keys().into_iter();
        let idle = idle.map(|(key, needed)| format!("[transport]: `{key}` has no effect without {needed}"));
        let control = self.transport.control().name;
        let is_used = |own: &str| {
            let mut named = self.workloads.iter().map(|workload| workload.common.congestion_control.as_deref());
            own == control || named.any(|name| name == Some(own))
        };
        let foreign = used.iter().filter_map(|balancer| {
            let own = balancer.host.capabilities().own_control().filter(|own| !is_used(own))?;
            let scheme = balancer.host.name();
            Some(format!(
                "load balancer `{scheme}` runs without its own window: transport.congestion_control is \"{control}\", not \"{own}\" (`anabranch explain {scheme}`)"
            ))
        });
        fabric.chain(idle).chain(schemes).chain(foreign).chain(workload::warnings(&self.workloads)).collect()
    }

    /// Returns the load balancers in use, the scenario's own first.
    fn used(&self) -> Result<Vec<LoadBalancer>, SchemeError> {
        let mut used = vec![self.load_balancers.main.clone()];
        for name in self.workloads.iter().flat_map(Workload::load_balancers).flatten() {
            if !used.iter().any(|b| b.name == name.trim()) {
                used.push(self.load_balancers.named(name)?);
            }
        }
        Ok(used)
    }

    /// Returns the scenario with every default filled in; it reads back as the same scenario.
    pub fn to_toml(&self) -> String {
        let mut document = self.document(|path| self.folder.absolute(path), true);
        document.insert("run".into(), document::table([], &self.run).into());
        if !self.compare.schemes.is_empty() {
            document.insert("compare".into(), document::table([], &self.compare).into());
        }
        if self.wire != WireParameters::default() {
            document.insert("wire".into(), document::table([], &self.wire).into());
        }
        document.to_string()
    }

    /// Returns 64 bits over all that a run depends on: scenario with defaults, contents of its files, version.
    pub fn hash(&self) -> u64 {
        self.hash_of(self.document(|path| self.folder.content(path), false))
    }

    /// Returns 64 bits over all but load balancers and seed: what runs that are compared share.
    pub fn ground(&self) -> u64 {
        let one = self.with_seed(1);
        let mut document = one.document(|path| one.folder.content(path), false);
        document.remove("load_balancer");
        one.hash_of(document)
    }

    fn hash_of(&self, mut document: Table) -> u64 {
        let mut run = document::table([], &self.run);
        // The limit decides whether a run begins, not its results.
        run.remove("memory_limit");
        document.insert("run".into(), run.into());
        // Simulations do not read it; with its defaults it is not part of the hash, so that hashes of simulations stay stable.
        if self.wire != WireParameters::default() {
            document.insert("wire".into(), document::table([], &self.wire).into());
        }
        if let Some(plugin) = &self.plugin {
            let absolute = std::path::absolute(plugin).unwrap_or_else(|_| plugin.clone());
            document.insert("plugin".into(), self.folder.content(&absolute.to_string_lossy()).into());
        }
        name_key(&format!("anabranch {VERSION}\n{document}"))
    }

    /// Omits `[run]`, `[compare]` and `[wire]`. `files` maps paths; `as_file`: see [`LoadBalancers::table`].
    fn document(&self, files: impl Fn(&str) -> String, as_file: bool) -> Table {
        let mut document = Table::new();
        let mut add = |key: &str, value: toml::Value| document.insert(key.into(), value);
        add("name", self.name.clone().into());
        add("seed", document::value(&Seed(self.seed).write()));
        add("topology", self.topology.table(&files).into());
        if let Some(servers) = &self.servers {
            add("servers", document::table([], servers).into());
        }
        add("fabric", fabric::table(self.profile, &self.fabric, &self.marking).into());
        let named = self.workloads.iter().filter_map(|workload| workload.common.congestion_control.as_deref());
        add("transport", transport::table(&self.transport, named).into());
        add("load_balancer", self.load_balancers.table(&self.used().unwrap_or_default(), as_file).into());
        let workload = |workload: &Workload| files::with_files(workload, &files).table(&self.fabric);
        add("workload", self.workloads.iter().map(workload).collect::<Vec<_>>().into());
        if !self.faults.is_empty() {
            add("fault", self.faults.iter().map(fault::table).collect::<Vec<_>>().into());
        }
        add("measure", document::table([], &self.measure).into());
        document
    }

    /// Returns its text with every default and the content of files, without its load balancers.
    pub fn without_load_balancer(&self) -> String {
        let mut document = self.document(|path| self.folder.content(path), false);
        document.remove("load_balancer");
        document.insert("run".into(), document::table([], &self.run).into());
        document.to_string()
    }

    /// Returns the number of threads that a run of it keeps busy: with fewer hosts each, they mostly wait for each other.
    pub fn max_threads(&self) -> usize {
        const HOSTS_PER_THREAD: usize = 48;
        let Ok(topology) = self.topology() else { return 1 };
        // If a link takes no time at all, only one thread can run the simulation.
        let instant = topology.links.iter().any(|link| link.delay + topology.switch_latency == Time::ZERO);
        if instant { 1 } else { (topology.hosts as usize / HOSTS_PER_THREAD).max(1) }
    }

    /// Returns the lowest rate of its hosts' links.
    pub fn host_rate(&self) -> Result<Rate, ScenarioError> {
        let topology = self.topology()?;
        let of_host = topology.links.iter().filter(|link| link.from.0 < topology.hosts);
        let rates = of_host.map(|link| link.rate);
        rates.min().ok_or_else(|| ScenarioError::new("the topology has no hosts"))
    }

    /// Returns the settings of an endpoint of a real network that acts as one of its hosts, with the random numbers of `seed`.
    /// `scheme` is a load balancer, of which the host side counts, or a host scheme; `None`: the scenario's. Also returns the
    /// structured values of its profile, each with its port, if the wire carries them.
    ///
    /// Fails where `[wire]`, the scheme or the transport is invalid, or the topology cannot be built.
    pub fn wire_settings(
        &self,
        scheme: Option<&str>,
        seed: u64,
    ) -> Result<(anabranch_endpoint::Settings, anabranch_wire::StructuredValues), ScenarioError> {
        let rate = self.host_rate()?;
        let main = &self.load_balancers.main;
        let host = match scheme {
            None => check_host_side(&main.host, &main.switch).map(|()| main.host.clone()).map_err(|error| {
                let message = format!("[load_balancer]: `scheme`: found `{}`: {error}", main.name);
                ScenarioError::new(message).maybe_at(self.tree.place_in("load_balancer", Some("scheme")))
            })?,
            Some(name) => self.load_balancers.host(name).map_err(|error| match error {
                SchemeError::SwitchesChoose { .. } => ScenarioError::new(format!("found `{name}`: {error}")),
                error => ScenarioError::new(error.to_string()),
            })?,
        };
        self.wire.settings_with_values(&self.transport, host, rate, seed).map_err(|error| match error {
            // Of the scheme, not of [wire].
            SetError::InvalidValue { key, wrong } if key.contains('.') => self.setup_error(&format!("{key}: {wrong}")),
            error => wire::wrong(&error, &self.tree),
        })
    }

    /// Builds the graph, without faults.
    pub fn topology(&self) -> Result<anabranch_topology::Topology, ScenarioError> {
        self.topology_within(&mut Budget::new(&self.run))
    }

    fn topology_within(&self, budget: &mut Budget) -> Result<anabranch_topology::Topology, ScenarioError> {
        let changes = self.faults.iter().map(anabranch_topology::FaultParameters::table_changes).sum();
        let at = || self.tree.find("topology").map(|node| node.key.clone());
        let foreseen = self.topology.parameters.scale();
        if let Some(scale) = foreseen {
            budget.take_topology(&scale, changes).map_err(|error| error.maybe_at(at()))?;
        }
        let topology = self.topology.build(&self.folder, budget, &self.tree)?;
        if foreseen.is_none() {
            budget.take_topology(&topology.scale(), changes).map_err(|error| error.maybe_at(at()))?;
        }
        Ok(topology)
    }

    /// Converts an error of a run's plan to one at the dotted key with which it begins, or at the key's section.
    pub fn setup_error(&self, message: &str) -> ScenarioError {
        let path = message.split([' ', ':']).next().unwrap_or_default();
        let Some((section, key)) = path.rsplit_once('.') else { return ScenarioError::new(message) };
        let rest = &message[path.len()..];
        // Parameters of schemes are named without the section that contains them.
        let section = if KEYS.contains(&section) { section.to_string() } else { format!("load_balancer.{section}") };
        ScenarioError::new(format!("[{section}]: `{key}`{rest}")).maybe_at(self.tree.place_in(&section, Some(key)))
    }

    /// Checks that `backend` can run `setup`.
    pub fn check(&self, setup: &Setup, backend: &BackendEntry) -> Result<(), ScenarioError> {
        let made = (backend.make)(self);
        if made.runs_switch_schemes() {
            self.check_balancers(&setup.topology, &setup.load_balancers)?;
        }
        made.check(setup).map_err(|error| match error {
            RunError::Setup(message) => self.setup_error(&message),
            RunError::Refused(refusal) => self.refused(&refusal, backend),
            other => ScenarioError::new(other.to_string()),
        })
    }

    /// Converts a refusal of `backend` to an error at the key that causes it.
    pub fn refused(&self, refusal: &Refusal, backend: &BackendEntry) -> ScenarioError {
        let Refusal { key, reason, remedy } = refusal;
        let (section, rest) = key.rsplit_once('.').unwrap_or(("", key));
        // `workload[2]` is the third of its kind.
        let numbered = section.strip_suffix(']').and_then(|section| section.split_once('['));
        let head = match numbered.and_then(|(list, number)| Some((list, number.parse::<usize>().ok()?))) {
            Some((list, number)) => format!("[[{list}]] {}", number + 1),
            None => format!("[{section}]"),
        };
        let message = format!("{head}: `{rest}`: {reason} (backend `{}`)", backend.name);
        ScenarioError::new(message).maybe_at(self.tree.place_in(section, Some(rest))).help(remedy.clone())
    }

    /// Estimates the packet-hops of the data of a run from its flows and paths.
    pub fn foreseen_hops(&self) -> Result<u64, ScenarioError> {
        Ok(cost::hops(&self.setup(self.seed)?))
    }

    /// Returns warnings before a run: that it will take long, that a fault changes nothing, that something is not measured.
    pub fn foresight(&self, setup: &Setup, backend: &BackendEntry) -> Vec<String> {
        let long = if *backend == SIMULATOR { cost::warning(setup) } else { None };
        let made = (backend.make)(self);
        let unmeasured = measured::unmeasured(setup, &made.measures(), backend.name);
        let unlike = made.unlike(setup).join("; ");
        let unlike = (!unlike.is_empty()).then(|| format!("backend `{}`: {unlike}", backend.name));
        let cells = if *backend == SIMULATOR { anabranch_fabric::shared_cells(&setup.topology) } else { None };
        let short = if *backend == SIMULATOR { anabranch_fabric::short_window(setup) } else { None };
        let short_range = if *backend == SIMULATOR { anabranch_fabric::short_range(setup) } else { None };
        let long_window = if *backend == SIMULATOR { anabranch_fabric::long_window(setup) } else { None };
        let dead = if *backend == SIMULATOR { dead_ends::warning(self, setup, backend) } else { None };
        let unsettled = run::rarely_settles(setup);
        let kept = match self.measure.flow_rows {
            FlowRows::WithoutJobs => kept_rows::warnings(&self.workloads, setup, &self.tree),
            FlowRows::All => vec![],
        };
        fault::never_down(&self.faults, setup, &self.tree)
            .into_iter()
            .chain(fault::unheeded(&self.faults, setup, &self.tree))
            .chain(load_balancer::fitted(setup))
            .chain(overlap::warnings(&self.workloads, setup, &self.tree))
            .chain(anabranch_backend::ideal_note(setup))
            .chain(kept)
            .chain(short)
            .chain(short_range)
            .chain(long_window)
            .chain(dead)
            .chain(long)
            .chain(cells)
            .chain(unsettled)
            .chain(unmeasured)
            .chain(measured::without_state(setup))
            .chain(unlike)
            .chain(setup.flows.notes.iter().cloned())
            .collect()
    }

    /// Returns the load balancers in use, in the form that they have on this topology.
    pub fn balancers(&self, topology: &anabranch_topology::Topology) -> Result<Vec<LoadBalancer>, ScenarioError> {
        let mut used = self.used().map_err(|error| ScenarioError::new(error.to_string()))?;
        if topology.guide().is_some() {
            let guided = used.iter_mut().try_for_each(|balancer| self.load_balancers.guide(balancer));
            guided.map_err(|error| ScenarioError::new(error.to_string()))?;
        }
        Ok(used)
    }

    /// Checks that another load balancer fits this scenario on its graph.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn check_scheme(&self, topology: &anabranch_topology::Topology, scheme: &str) -> Result<(), ScenarioError> {
        let other = self.with_scheme(scheme)?;
        other.check_balancers(topology, &other.balancers(topology)?)
    }

    fn check_balancers(
        &self,
        topology: &anabranch_topology::Topology,
        used: &[LoadBalancer],
    ) -> Result<(), ScenarioError> {
        let guide = topology.guide();
        let ports = guide.as_ref().map_or(0, |guide| guide.max_ports());
        for balancer in used {
            let planes = balancer.named_planes(self.fabric.nic_ports, topology.planes);
            let named = Some(planes).filter(|planes| *planes > 1);
            let uplinks: Vec<u32> = named.into_iter().chain(topology.uplinks.iter().copied()).collect();
            check_pair(&balancer.host, &balancer.switch)
                .and_then(|()| balancer.host.check_uplinks(&uplinks, planes))
                .and_then(|()| balancer.switch.check_uplinks(&topology.uplinks))
                .and_then(|()| balancer.switch.check_guided(guide.is_some(), ports))
                .map_err(|error| {
                    ScenarioError::new(error.to_string()).maybe_at(self.tree.place_in("load_balancer", Some("scheme")))
                })?;
            let setting = balancer.host.capabilities().reads_signals();
            if let Some(setting) = setting.filter(|_| self.fabric.csig == CsigSignal::Off) {
                let section = format!("load_balancer.{}", balancer.host.name());
                let message =
                    format!("[{section}]: {setting} reads what these switches do not write: fabric.csig is \"off\"");
                return Err(ScenarioError::new(message)
                    .maybe_at(self.tree.place_in(&section, setting.split(' ').next()))
                    .help("give `fabric.csig = \"delay\"` or \"utilisation\", or leave the key out"));
            }
        }
        let own = self.workloads.iter().filter_map(|workload| workload.common.congestion_control.as_deref());
        let own = own.filter_map(|control| transport::with_control(&self.transport, control).ok());
        std::iter::once(self.transport.clone()).chain(own).try_for_each(|transport| {
            transport::check_balancers(&transport, used, &self.tree).map_err(|error| {
                error.or_at(
                    self.tree
                        .place_in("load_balancer", Some("scheme"))
                        .or_else(|| self.place("transport.congestion_control")),
                )
            })
        })
    }

    /// Builds the complete input of a run with `seed`. The traffic depends on the seed, not on the load balancer.
    /// Errors: [`ScenarioError`] for errors that only building the graph and the flows reveals.
    pub fn setup(&self, seed: u64) -> Result<Setup, ScenarioError> {
        let mut budget = Budget::new(&self.run);
        let topology = self.topology_within(&mut budget)?;
        let used = self.balancers(&topology)?;
        let packet = self.transport.mtu() + self.transport.header();
        let bdp = topology.window_bdp(packet, self.transport.ack_size());
        fabric::check_with_bdp(&self.fabric, bdp, &self.tree)?;
        transport::check_with_bdp(&self.transport, bdp, &self.tree)?;
        fabric::check_lossless(&self.fabric, &topology, packet, &self.tree)?;

        if let Some(servers) = &self.servers {
            servers::check(servers, &topology, &self.tree)?;
        }
        let templates = self.measure.flow_rows == FlowRows::WithoutJobs;
        let classes = &self.fabric.classes;
        let view = topology::host_view(&topology, classes, budget.left(), self.servers.as_ref(), templates);
        let list: Vec<_> = self.workloads.iter().map(|w| (w.kind.clone(), w.sent_as(&self.fabric, &used))).collect();
        let read_file = |path: &str| self.folder.read_bytes(path, &budget);
        let mut generated = anabranch_workload::generate_all(&list, &view, seed, &read_file)
            .map_err(|error| workload::workload_error(&error, 0, &self.tree))?;
        if let Some(servers) = &self.servers {
            let routed = servers.route(&mut generated.flows, budget.left());
            routed.map_err(|error| servers::wrong(&error, &self.tree))?;
        }
        servers::check_paths(&generated.flows, &topology, &self.tree)?;
        let mut mistakes = Mistakes::default();
        let faults = mistakes.ok(fault::resolve(&self.faults, &topology, seed, &self.tree));
        let series = select::links("series_links", &self.measure.series_links, &topology, &self.tree);
        let (mut faults, series_links) = match (faults, mistakes.ok(series)) {
            (Some(faults), Some(links)) => (faults, links),
            _ => return mistakes.or(()).and(Err(ScenarioError::new("links are wrong"))),
        };
        faults.extend(fault::of_files(&generated.failures, &generated.flows, &topology)?);
        let asked = &self.measure;
        let flows = |key, list: &[_]| chosen::resolve(key, list, &generated.flows, &topology, &self.tree);
        let measure = Measure {
            series_links,
            series_flows: flows("series_flows", &asked.series_flows)?,
            series_scheme: asked.series_scheme,
            series_interval: if asked.has_series() { asked.series_interval } else { Time::ZERO },
            uplink_counts: self.measure.uplink_counts,
            occupancy: self.measure.occupancy,
            attribution: self.measure.attributes(generated.flows.number_of_flows(), self.run.skip == SkipRule::Steady),
            trace_flows: flows("trace_flows", &asked.trace_flows)?,
            trace_scheme: asked.trace_scheme,
            trace_limit: self.measure.trace_limit,
            ..Measure::default()
        };
        let (until_all_done, time_limit) = match self.run.until {
            Until::AllFlowsDone => (true, self.run.time_limit),
            Until::At(time) => (false, time),
        };
        let own_transports = workload::own_transports(&self.workloads, &self.transport, &generated.flows);
        let mut setup = Setup {
            topology,
            flows: generated.flows,
            fabric: self.fabric.clone(),
            marking: self.marking.clone(),
            transport: self.transport.clone(),
            own_transports,
            load_balancers: used,
            faults,
            measure,
            limits: RunLimits {
                until_all_done,
                time_limit,
                trigger_latency: self.run.trigger_latency,
                stall_after: match self.run.stall_after {
                    Never::Never => None,
                    Never::Value(timeouts) => Some(timeouts),
                },
                skip: self.run.skip == SkipRule::Steady,
                warmup: self.run.warmup,
            },
            seed,
            steering: None,
        };
        bounds::check(&setup, &self.workloads, &self.tree).map_err(|(path, error)| match path.split_once('.') {
            Some((section, key)) => error.maybe_at(self.tree.place_in(section, Some(key))),
            None => error,
        })?;
        measured::take(&mut budget, &setup).map_err(|(path, error)| {
            let (section, key) = path.split_once('.').unwrap_or((path, ""));
            error.maybe_at(self.tree.place_in(section, Some(key)))
        })?;
        setup.measure.memory = Some(budget.left());
        Ok(setup)
    }
}
