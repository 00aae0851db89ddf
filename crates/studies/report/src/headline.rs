use crate::{ALL, Comparison, ComparisonRow, Metric, wording, wording::needed};
use anabranch_outcome::Collective;
use anabranch_results::{
    GroupSummary, Summary, bytes, capital, list, seconds, significant_digits, significant_digits_trimmed, thousands,
};
use anabranch_statistics::MIN_PAIRS;

/// Means further apart than this share are not called a tie, even if the seeds are too few to separate them.
const TIE: f64 = 0.1;

/// The result on one workload, in sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// Name of the workload; `None` if there is only one.
    pub workload: Option<String>,
    /// The sentences, the most important first.
    pub sentences: Vec<String>,
}

/// Returns the result in sentences per measured workload, with `with_all` also over all together: the best schemes
/// on the main metric, the differences and their significance.
pub fn headlines(comparison: &Comparison, with_all: bool) -> Vec<Headline> {
    let shown = comparison.shown(with_all);
    let single = shown.len() == 1;
    let counts = |w: &str| w == ALL || comparison.measured.iter().any(|measured| measured == w);
    shown
        .into_iter()
        .filter(|workload| counts(workload))
        .map(|workload| Headline {
            workload: (!single).then(|| comparison.label(workload)),
            sentences: sentences(comparison, workload),
        })
        .collect()
}

fn sentences(comparison: &Comparison, workload: &str) -> Vec<String> {
    let Some(metric) = Metric::named(comparison.main_metric_of(workload)) else { return vec![] };
    let rows = comparison.schemes.iter().filter_map(|scheme| comparison.row(workload, scheme, metric.name));
    let (mut ranked, unranked): (Vec<&ComparisonRow>, Vec<&ComparisonRow>) = rows.partition(|row| row.ranks());
    ranked.sort_by(|a, b| a.mean.unwrap_or(f64::MAX).total_cmp(&b.mean.unwrap_or(f64::MAX)));
    let mut sentences = match ranked.as_slice() {
        [] => vec!["No scheme finished all measured flows, so none is ranked best.".to_string()],
        [only] => vec![format!("{}: {} of {}.", only.scheme, title(metric), value(only))],
        ranked => ranking(comparison, ranked, metric),
    };
    if !unranked.is_empty() {
        let names: Vec<&str> = unranked.iter().map(|row| row.scheme.as_str()).collect();
        sentences.push(format!("Not ranked or compared, since flows did not finish: {}.", names.join(", ")));
        if names.contains(&comparison.baseline.as_str()) {
            sentences.push("The baseline is among them, so no change against it is known.".to_string());
        }
    }
    sentences
}

/// `ranked` contains at least two schemes, the lowest first.
fn ranking(comparison: &Comparison, ranked: &[&ComparisonRow], metric: &Metric) -> Vec<String> {
    let (title, lowest, highest) = (title(metric), ranked[0], ranked[ranked.len() - 1]);
    if !lowest.leads() {
        return vec![
            format!(
                "Too few seeds to rank the schemes: {} so far; a test needs {MIN_PAIRS}, a decision five or more.",
                seeds_in_words(lowest.seeds)
            ),
            format!("The lowest {title} so far is {} under {}; no difference is tested.", value(lowest), lowest.scheme),
        ];
    }
    let leading: Vec<&ComparisonRow> = ranked.iter().copied().filter(|row| row.leads()).collect();
    let names = list(leading.iter().map(|row| row.scheme.as_str()).collect());
    let range = |rows: &[&ComparisonRow]| {
        let ends = [rows.first(), rows.last()].map(|row| row.and_then(|row| row.mean).unwrap_or(f64::NAN));
        format!("{} to {}{}", significant_digits(ends[0], 3), significant_digits(ends[1], 3), unit(metric))
    };
    let mut sentences = vec![];
    let spread = |rows: &[&ComparisonRow]| {
        let ends = rows.first().zip(rows.last()).and_then(|(a, b)| a.mean.zip(b.mean));
        ends.is_some_and(|(lowest_ratio, highest_ratio)| highest_ratio > lowest_ratio * (1.0 + TIE))
    };
    let needed = needed(ranked, &comparison.baseline).map(|line| format!("{}.", capital(&line)));
    let more = needed.unwrap_or_else(|| "More seeds may separate them.".to_string());
    if leading.len() == ranked.len() && spread(ranked) {
        let sentence = format!(
            "No scheme differs significantly from the lowest in the {title} with {}: {names} ({}).",
            seeds_in_words(lowest.seeds),
            range(ranked)
        );
        return [sentence].into_iter().chain(differ_from_baseline(comparison, ranked)).chain([more]).collect();
    }
    if leading.len() == ranked.len() {
        let how = match lowest.mean == highest.mean {
            true => format!("all are at {}{}", significant_digits(lowest.mean.unwrap_or(f64::NAN), 3), unit(metric)),
            false => range(ranked),
        };
        sentences.push(format!("{} schemes tie in the {title}: {names} ({how}).", number_word(ranked.len(), true)));
        sentences
            .push(format!("Over {} none of them differs significantly from the lowest.", seeds_in_words(lowest.seeds)));
        return sentences;
    }
    match leading.as_slice() {
        [best] => sentences.push(format!("{} has the best {title}: {}.", best.scheme, value(best))),
        // Far apart without a significant difference is no tie: more seeds are required.
        several if spread(several) => sentences.extend([
            format!(
                "{} schemes do not differ significantly from the lowest {title} with {}: {names} ({}).",
                number_word(several.len(), true),
                seeds_in_words(lowest.seeds),
                range(several)
            ),
            more,
        ]),
        several => sentences.push(format!(
            "{} schemes tie for the best {title}: {names} ({}).",
            number_word(several.len(), true),
            range(several)
        )),
    }
    sentences.extend(against_baseline(comparison, &leading));
    let next = ranked.iter().find(|row| !row.leads());
    if let (Some(next), [best]) = (next, leading.as_slice()) {
        let ratio = next.mean.zip(best.mean).map_or(1.0, |(next, best)| next / best);
        sentences.push(format!(
            "Next is {} with {}{}, {}.",
            next.scheme,
            significant_digits(next.mean.unwrap_or(f64::NAN), 3),
            unit(metric),
            change(ratio)
        ));
    }
    sentences.push(significance(comparison, lowest, ranked.len()));
    sentences
}

/// Tests against the baseline alone are fewer than those of all pairs, and may decide where those do not.
fn differ_from_baseline(comparison: &Comparison, ranked: &[&ComparisonRow]) -> Option<String> {
    let differ: Vec<&str> =
        ranked.iter().filter(|row| row.significant == Some(true)).map(|row| row.scheme.as_str()).collect();
    let verb = if differ.len() == 1 { "differs" } else { "differ" };
    (!differ.is_empty()).then(|| {
        format!("Against the baseline alone, {} {verb} significantly from {}.", list(differ), comparison.baseline)
    })
}

fn against_baseline(comparison: &Comparison, leading: &[&ComparisonRow]) -> Option<String> {
    if leading.iter().any(|row| row.scheme == comparison.baseline) {
        return Some(match leading.len() {
            1 => "It is the baseline.".to_string(),
            _ => format!("The baseline, {}, is among them: no gain over it is shown.", comparison.baseline),
        });
    }
    let shown: Vec<f64> = leading.iter().filter_map(|row| row.ratio_to_baseline).collect();
    let (lowest_ratio, highest_ratio) = shown.iter().fold((f64::MAX, f64::MIN), |(a, b), r| (a.min(*r), b.max(*r)));
    let (one, other) = (change(lowest_ratio), change(highest_ratio));
    let number = |text: &str| text.trim_end_matches(" lower").trim_end_matches(" %").to_string();
    let how = match (one == other, lowest_ratio <= 1.0 && highest_ratio <= 1.0) {
        (true, _) => one,
        (false, true) => format!("{} to {one}", number(&other)),
        (false, false) => format!("between {one} and {other}"),
    };
    let unsure = leading.iter().any(|row| row.significant == Some(false));
    let doubt = if unsure { "; not all of these differences are significant" } else { "" };
    (!shown.is_empty()).then(|| format!("That is {how} than {} (baseline){doubt}.", comparison.baseline))
}

fn significance(comparison: &Comparison, lowest: &ComparisonRow, ranked: usize) -> String {
    if comparison.seeds_change_nothing {
        return "Every seed gave the same flow times, so there is no variance to test against: the results hold for this scenario exactly, and more seeds add nothing."
            .to_string();
    }
    format!(
        "Paired t-tests over {}, Holm's correction over all {} pairs, 5 %.",
        seeds_in_words(lowest.seeds),
        ranked * (ranked - 1) / 2
    )
}

fn unit(metric: &Metric) -> &'static str {
    if metric.unit == "us" { " µs" } else { "" }
}

fn title(metric: &Metric) -> &'static str {
    match metric.name {
        "fct_ratio_max" => "max FCT over ideal (slowest flow)",
        "completion" => "completion time (first start to last acknowledgement)",
        _ => "99th-percentile slowdown",
    }
}

pub(crate) fn number_word(number: usize, capital: bool) -> String {
    const WORDS: [&str; 13] =
        ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    let word = WORDS.get(number).map_or_else(|| number.to_string(), |word| word.to_string());
    let mut letters = word.chars();
    match letters.next() {
        Some(first) if capital => first.to_uppercase().chain(letters).collect(),
        _ => word,
    }
}

fn seeds_in_words(seeds: usize) -> String {
    format!("{} seed{}", number_word(seeds, false), if seeds == 1 { "" } else { "s" })
}

/// Formats mean and interval as `3.21 (95 % CI 3.15 to 3.27)`.
fn value(row: &ComparisonRow) -> String {
    let unit = if row.unit == "us" { " µs" } else { "" };
    let mean = significant_digits(row.mean.unwrap_or(f64::NAN), 3);
    match (row.ci95_low, row.ci95_high) {
        (Some(low), Some(high)) => format!("{mean}{unit} ({})", wording::interval(low, high)),
        _ => format!("{mean}{unit} (one seed, CI n/a)"),
    }
}

/// Formats a ratio as `23 % lower`.
fn change(ratio: f64) -> String {
    let word = if ratio <= 1.0 { "lower" } else { "higher" };
    format!("{} % {word}", significant_digits_trimmed((1.0 - ratio).abs() * 100.0, 2))
}

/// Longest wait at a NIC that the headline omits, as a share of the mean completion time.
const SHORT_WAIT: f64 = 0.01;

pub(crate) fn of_run(run: &Summary) -> Vec<Headline> {
    let flows = &run.all.flows;
    let mut headlines = vec![Headline {
        workload: None,
        sentences: vec![format!(
            "{} of {} flows finished in {}{} under {}.",
            thousands(&flows.finished.to_string()),
            thousands(&flows.total.to_string()),
            seconds(run.simulated_s),
            if run.is_simulated() { " of simulated time" } else { "" },
            run.scheme
        )],
    }];
    let several = run.workloads.len() > 1;
    headlines[0].sentences.extend(work_done(run));
    for (name, workload) in run.workloads.iter().filter(|(_, workload)| workload.measured) {
        let slowdown = &workload.slowdown;
        if let (Some(p50), Some(p99)) = (slowdown.p50, slowdown.p99) {
            let count = |flows: u64| thousands(&flows.to_string());
            let (open, all) = (workload.flows.measured_unfinished, workload.flows.measured);
            let its = if several { "its flows" } else { "those that count" };
            let (open, all) = (count(open), count(open + all));
            let (open, who) = match (open.as_str(), several) {
                ("0", _) => (String::new(), its),
                (_, true) => (format!("{open} of its {all} flows did not finish. "), "the others"),
                (_, false) => (format!("{open} of the {all} flows that count did not finish. "), "the others"),
            };
            let ideal = if run.ideal_note.is_none() { "alone on the network" } else { "their ideal times" };
            let mut sentence = format!(
                "{open}Half of {who} took at most {} times as long as {ideal}, 99 % at most {} times.",
                significant_digits(p50, 3),
                significant_digits(p99, 3)
            );
            let wait = workload.nic_wait_us;
            let counts = workload.fct_kind == anabranch_results::FctKind::Rx;
            if let (Some(mean), Some(max), Some(fct), true) = (wait.mean, wait.max, workload.fct_us.mean, counts)
                && max > SHORT_WAIT * fct
            {
                sentence += &format!(
                    " These times begin with the first packet: before it flows waited {} us at their NIC on average, {} us at most.",
                    significant_digits(mean, 3),
                    significant_digits(max, 3)
                );
            }
            match several {
                true => headlines.push(Headline { workload: Some(name.clone()), sentences: vec![sentence] }),
                false => headlines[0].sentences.push(sentence),
            }
        }
    }
    headlines
}

/// Returns a sentence per collective and per job: when it was done, and the bus bandwidth of a collective.
fn work_done(run: &Summary) -> Vec<String> {
    let rounds = |of: &Collective| match of.rounds {
        0 | 1 => String::new(),
        rounds => format!(" ({rounds} rounds)"),
    };
    let mut sentences: Vec<String> = vec![];
    for of in &run.collectives {
        let size = of.bytes.map_or(String::new(), |size| format!(" of {}", bytes(size as f64)));
        let what = format!("{}{size} over {} ranks{}", capital(&of.collective), of.ranks, rounds(of));
        sentences.push(match (of.completion_s, of.bus_bandwidth_bps) {
            (Some(done), Some(bus)) => {
                format!(
                    "{what} was done after {}: bus bandwidth {} by NCCL's definition.",
                    seconds(done),
                    bit_rate(bus)
                )
            }
            (Some(done), None) => format!("{what} was done after {}.", seconds(done)),
            (None, _) => format!("{what} was not done: flows did not finish."),
        });
    }
    for (name, done) in run.jobs() {
        sentences.push(match done {
            Some(done) => format!("The job {name} was done after {}.", seconds(done)),
            None => format!("The job {name} was not done: flows did not finish."),
        });
    }
    sentences.extend(run.workloads.iter().filter_map(|(name, of)| groups(name, of.groups.as_ref()?)));
    sentences
}

/// Returns a sentence on the groups of a job that has several, or repeats.
fn groups(name: &str, of: &GroupSummary) -> Option<String> {
    let (p50, p99) = (of.completion_us.p50?, of.completion_us.p99?);
    let total = thousands(&of.total.to_string());
    let open = match of.total - of.complete {
        0 => String::new(),
        open => format!(" {} of them did not finish.", thousands(&open.to_string())),
    };
    let slowdown =
        of.slowdown.p99.map_or(String::new(), |p99| format!(", {} times that alone", significant_digits(p99, 3)));
    (of.total > 1).then(|| {
        format!(
            "Groups of {name} took {} at the median and {} at the 99th percentile{slowdown} ({total} groups times repetitions).{open}",
            seconds(p50 / 1e6),
            seconds(p99 / 1e6)
        )
    })
}

/// Formats a bandwidth in bits per second.
pub fn bit_rate(bps: f64) -> String {
    let (scale, unit) = match bps {
        b if b >= 1e9 => (1e9, "Gbit/s"),
        b if b >= 1e6 => (1e6, "Mbit/s"),
        _ => (1e3, "kbit/s"),
    };
    format!("{} {unit}", significant_digits(bps / scale, 4))
}
