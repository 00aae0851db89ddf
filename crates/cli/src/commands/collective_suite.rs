//! `collective --suite`: the contract of a network plugin for NCCL, case by case, and faults on a testbed.

use super::collective::Collective;
use crate::{Failure, Format, INTERRUPTED, commands::nccl, note, print, print_json, table};
use anabranch_collective::suite::{self, CaseResult, Settings, Verdict};
use serde_json::json;
use std::{path::Path, time::Duration};

const LIMIT: Duration = Duration::from_secs(20);

pub(super) fn suite(arguments: &Collective, only: &[String], largest: usize) -> Result<(), Failure> {
    let faults: Vec<&str> = fault_names().collect();
    let names: Vec<&str> = suite::cases().map(|case| case.name).chain(faults.iter().copied()).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
        let near = anabranch_settings::nearest(unknown, names.iter().copied());
        let hint = near.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
        return Err(Failure::input(format!("--suite: found `{unknown}`, expected one of {}{hint}", names.join(", "))));
    }
    let settings = Settings {
        command: vec![super::collective::own_program()?, "collective-case".into()],
        plugin: nccl::plugin(arguments.plugin.as_deref())?,
        abi: arguments.version(),
        only: only.to_vec(),
        largest,
        limit: LIMIT,
    };
    let each = |result: &CaseResult| note(&format!("{}: {}", result.case, result.verdict.name()));
    let run = suite::run(&settings, &INTERRUPTED, each)
        .map_err(|reason| Failure::input(format!("{}: {reason}", settings.plugin.display())))?;
    let (description, mut results) = run.ok_or(Failure::Interrupted)?;
    for name in faults.iter().filter(|name| arguments.faults || only.iter().any(|only| only == *name)) {
        #[cfg(target_os = "linux")]
        results.extend(faults::run(&settings, name)?);
    }
    print_results(&settings.plugin, &description, &results, arguments.format);
    let failed = results.iter().filter(|result| result.verdict == Verdict::Fail).count();
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Check(format!("{failed} of {} cases failed", results.len()))),
    }
}

fn print_results(plugin: &Path, description: &str, results: &[CaseResult], format: Format) {
    if format == Format::Json {
        return print_json(&json!({ "plugin": plugin, "device": description, "cases": results }));
    }
    let row = |of: &CaseResult| vec![of.case.clone(), of.verdict.name().into(), of.call.clone(), of.why.clone()];
    print(&format!("{}: {description}\n", plugin.display()));
    print(&table(&["case", "verdict", "call", "why"], &results.iter().map(row).collect::<Vec<_>>()));
    let count = |verdict| results.iter().filter(|result| result.verdict == verdict).count();
    let all = [Verdict::Pass, Verdict::Refused, Verdict::Skipped, Verdict::Fail];
    let counts = all.map(|verdict| format!("{} {}", count(verdict), verdict.name().to_lowercase()));
    print(&format!("{} cases: {}\n", results.len(), counts.join(", ")));
}

#[cfg(target_os = "linux")]
fn fault_names() -> impl Iterator<Item = &'static str> {
    faults::FAULTS.iter().map(|fault| fault.name)
}

#[cfg(not(target_os = "linux"))]
fn fault_names() -> impl Iterator<Item = &'static str> {
    std::iter::empty()
}

pub(crate) fn serve(order: &str) -> ! {
    suite::serve(order)
}

/// Three ranks at hosts of a small leaf-spine, and a fault while they reduce.
#[cfg(target_os = "linux")]
mod faults {
    use super::{CaseResult, Failure, INTERRUPTED, Settings, Verdict, note};
    use crate::commands::{collective::own_program, collective_testbed::RankHosts};
    use anabranch_collective::{
        plan::CollectiveKind,
        rank::Element,
        run::{self, InjectedFailure, JobError, Outcome},
    };
    use anabranch_testbed::{Harm, Role, TestbedPlan, standing::Action};
    use std::{ffi::OsString, sync::mpsc::channel, time::Duration};

    const RANKS: usize = 3;
    /// In picoseconds.
    const MS: u64 = 1_000_000_000;
    const FABRIC: &str = "hopper-testbed-small";

    enum Trouble {
        /// From the beginning.
        Always(fn(&TestbedPlan) -> Action),
        /// From the beginning, by a command at the first spine.
        Shell(&'static str),
        /// These cables are cut in the second round, and restored a second later.
        Flap(fn(&TestbedPlan) -> Vec<usize>),
        /// In the second round, for good: no rank may wait for ever.
        Ends(fn(&TestbedPlan) -> Action),
        /// A rank is stopped for this long, or killed.
        Rank(Option<Duration>),
    }

    pub(super) struct Fault {
        pub(super) name: &'static str,
        about: &'static str,
        trouble: Trouble,
    }

    const fn fault(name: &'static str, about: &'static str, trouble: Trouble) -> Fault {
        Fault { name, about, trouble }
    }

    const fn always(name: &'static str, about: &'static str, action: fn(&TestbedPlan) -> Action) -> Fault {
        fault(name, about, Trouble::Always(action))
    }

    /// Virtual links drop what their peer does not hold, and the spine what it cannot forward.
    const SMALL: &str = "for link in $(ip -o link | cut -d: -f2 | cut -d@ -f1); do ip link set $link mtu 900; done";

    pub(super) const FAULTS: &[Fault] = &[
        always("loss", "1 % of the packets are lost", |plan| harm(plan, Harm::Lose(10_000_000))),
        always("corruption", "1 % of the packets have a wrong bit", |plan| harm(plan, Harm::Corrupt(10_000_000))),
        always("duplicates", "1 % of the packets come twice", |plan| harm(plan, Harm::Duplicate(10_000_000))),
        always("reordering", "packets are 1 ms late, plus or minus 1 ms", |plan| harm(plan, Harm::Delay(MS, MS))),
        always("slow-link", "a spine has a tenth of its rate", |plan| Action::Slow(of_spine(plan), 20_000_000)),
        fault("black-hole", "a spine takes no packets of more than 900 B", Trouble::Shell(SMALL)),
        fault("flap", "a cable of a spine is cut and restored", Trouble::Flap(|plan| vec![of_spine(plan)[0]])),
        fault("cut", "a host is cut off: a rank fails in time", Trouble::Ends(|plan| Action::Cut(vec![of_host(plan)]))),
        fault("stopped", "a rank is stopped for a second", Trouble::Rank(Some(Duration::from_secs(1)))),
        fault("killed", "a rank is killed: the others fail in time and close", Trouble::Rank(None)),
    ];

    /// Cables of the first spine.
    fn of_spine(plan: &TestbedPlan) -> Vec<usize> {
        let spine = plan.nodes.iter().position(|node| node.role == Role::Spine);
        (0..plan.cables.len()).filter(|at| Some(plan.cables[*at].upper.node) == spine).collect()
    }

    /// The cable of the first host, where rank 0 runs.
    fn of_host(plan: &TestbedPlan) -> usize {
        plan.cables.iter().position(|cable| plan.nodes[cable.lower.node].role == Role::Host).unwrap_or(0)
    }

    /// Impairs both directions of all cables between switches.
    fn harm(plan: &TestbedPlan, harm: Harm) -> Action {
        let cables = plan.cables.iter().filter(|cable| plan.nodes[cable.lower.node].role != Role::Host);
        let ends =
            cables.flat_map(|cable| [(cable.lower.node, cable.upper.node), (cable.upper.node, cable.lower.node)]);
        Action::Harm(ends.collect(), harm)
    }

    /// Returns the result of a fault, on a testbed of its own.
    pub(super) fn run(settings: &Settings, name: &str) -> Result<Option<CaseResult>, Failure> {
        let Some(fault) = FAULTS.iter().find(|fault| fault.name == name) else { return Ok(None) };
        let (verdict, call, why) = match RankHosts::build(FABRIC, &[]) {
            Err(error) => (Verdict::Skipped, String::new(), format!("no testbed: {}", error.message().trim())),
            Ok(hosts) => match one(settings, fault, &hosts)? {
                Err(JobError::Stopped) => return Err(Failure::Interrupted),
                outcome => judge(fault, outcome),
            },
        };
        note(&format!("{name}: {}", verdict.name()));
        Ok(Some(CaseResult { case: name.into(), verdict, call, why }))
    }

    fn one(settings: &Settings, fault: &Fault, hosts: &RankHosts) -> Result<Result<Outcome, JobError>, Failure> {
        let (testbed, plan) = (hosts.standing(), &hosts.standing().plan);
        let injected_failure = match fault.trouble {
            Trouble::Rank(pause) => Some(InjectedFailure { rank: 1, after: Duration::from_millis(50), pause }),
            _ => None,
        };
        let job = run::Settings {
            command: vec![own_program()?, "collective-rank".into()],
            places: hosts.command_prefixes(RANKS)?,
            variables: hosts.variables(),
            without: Vec::new(),
            plugin: settings.plugin.clone(),
            abi: settings.abi,
            kind: CollectiveKind::Ring,
            ranks: RANKS,
            bytes: 3 << 20,
            channels: 2,
            rounds: 5,
            element: Element::Int,
            rows: false,
            injected_failure,
        };
        let later = match &fault.trouble {
            Trouble::Always(action) => {
                testbed.act(action(plan))?;
                Vec::new()
            }
            Trouble::Shell(script) => {
                let spine = plan.nodes.iter().find(|node| node.role == Role::Spine).map_or("", |node| &node.name);
                let status = testbed.exec(spine, &["sh", "-ec", script].map(OsString::from))?.status();
                if !status.is_ok_and(|status| status.success()) {
                    return Err(Failure::Broken(format!("`{script}` failed at {spine}")));
                }
                Vec::new()
            }
            Trouble::Flap(cables) => vec![Action::Cut(cables(plan)), Action::Mend(cables(plan))],
            Trouble::Ends(action) => vec![action(plan)],
            Trouble::Rank(_) => Vec::new(),
        };
        let (began, rounds) = channel();
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                // The next round begins; a job without rounds has ended.
                let mut pause = Duration::from_millis(if rounds.recv().is_ok() { 20 } else { 0 });
                later.into_iter().try_for_each(|action| {
                    std::thread::sleep(std::mem::replace(&mut pause, Duration::from_secs(1)));
                    testbed.act(action).map(drop)
                })
            });
            let outcome = run::run(&job, &INTERRUPTED, &mut |_| {
                let _ = began.send(());
            });
            drop(began);
            thread.join().map_err(|_| Failure::Broken("a thread of the testbed panicked".into()))??;
            Ok(outcome)
        })
    }

    fn judge(fault: &Fault, outcome: Result<Outcome, JobError>) -> (Verdict, String, String) {
        let failed = |reason: &str| {
            let (call, code) = reason.split_once(": ").unwrap_or(("", reason));
            (call.to_string(), code.to_string())
        };
        let about = fault.about;
        match (&fault.trouble, outcome) {
            (Trouble::Ends(_), Ok(_)) => (Verdict::Fail, String::new(), format!("{about}; no rank has failed")),
            (Trouble::Ends(_), Err(JobError::Failed { reason, .. })) if reason.contains(": nccl") => {
                let (call, code) = failed(&reason);
                (Verdict::Pass, call, format!("{about}: {code}"))
            }
            (Trouble::Rank(None), Ok(outcome)) => {
                let reasons = outcome.failures.iter().map(|(.., reason, _)| reason);
                let is_right = outcome.closed == RANKS - 1 && outcome.failures.len() == RANKS - 1;
                let verdict = if is_right { Verdict::Pass } else { Verdict::Fail };
                let reasons: Vec<&str> = reasons.map(String::as_str).collect();
                let why = format!("{about}: {}; {} of {} closed", reasons.join(", "), outcome.closed, RANKS - 1);
                (verdict, String::new(), why)
            }
            (_, Ok(outcome)) => {
                let took = outcome.rounds.iter().map(|round| round.nanoseconds).max().unwrap_or(0);
                (
                    Verdict::Pass,
                    String::new(),
                    format!("{about}: all elements right, at most {} ms a round", took / 1_000_000),
                )
            }
            (_, Err(JobError::Failed { reason, .. })) => {
                let (call, code) = failed(&reason);
                (Verdict::Fail, call, format!("{about}: {code}"))
            }
            (_, Err(error)) => (Verdict::Fail, String::new(), format!("{about}: {error}")),
        }
    }
}
