//! Checks of a comparison for scripts: `prime.slowdown_p99 < 2`.

use crate::{ALL, Comparison, MetricError, RunData, metric::Metric};
use anabranch_results::{ReportError, Summary};
use anabranch_settings::nearest;
use anabranch_statistics::mean;
use std::{collections::BTreeMap, iter, path::PathBuf};

/// A statement `LEFT OP RIGHT` about the means of a comparison.
///
/// A side is a number, `METRIC`, `WORKLOAD.METRIC`, one of these behind `SCHEME.`, or a number times one: `0.9 * ecmp.fct_p99`.
/// A metric is one of [`Metric`]. The operators are `<`, `<=`, `>` and `>=`. Without a scheme it is about every scheme.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    text: String,
    left: Side,
    operator: Operator,
    right: Side,
}

#[derive(Clone, Debug, PartialEq)]
struct Side {
    factor: f64,
    of: Option<Quantity>,
}

#[derive(Clone, Debug, PartialEq)]
struct Quantity {
    /// `None`: each scheme of the comparison.
    scheme: Option<String>,
    workload: String,
    metric: Metric,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// Longest first, since `<` begins `<=`.
const OPERATORS: [(&str, Operator); 4] =
    [("<=", Operator::AtMost), (">=", Operator::AtLeast), ("<", Operator::Below), (">", Operator::Above)];

/// Result of an [`Assertion`].
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// `None`: a side is unknown, which does not hold.
    pub holds: Option<bool>,
    /// The statement with the values found.
    pub text: String,
}

fn wrong<T>(message: impl Into<String>) -> Result<T, MetricError> {
    Err(MetricError { message: message.into(), nearest: None })
}

impl Assertion {
    /// Reads an assertion about a comparison of `schemes` on `workloads`.
    /// Fails if it is no comparison of two sides, or names a scheme, workload or metric that does not exist.
    pub fn parse(text: &str, schemes: &[String], workloads: &[String]) -> Result<Self, MetricError> {
        let found = OPERATORS
            .iter()
            .filter_map(|(sign, operator)| Some((text.find(sign)?, *sign, *operator)))
            .min_by_key(|(at, sign, _)| (*at, usize::MAX - sign.len()));
        let Some((at, sign, operator)) = found else {
            return wrong("found no operator, expected SCHEME.METRIC < NUMBER; operators are <, <=, > and >=");
        };
        let side = |text: &str| Side::parse(text.trim(), schemes, workloads);
        let (left, right) = (side(&text[..at])?, side(&text[at + sign.len()..])?);
        if left.of.is_none() && right.of.is_none() {
            return wrong("found two numbers, expected SCHEME.METRIC on a side");
        }
        Ok(Assertion { text: text.trim().to_string(), left, operator, right })
    }

    /// Checks it by the comparison of `runs`, each with its directory. A side with unfinished flows, without a value, or
    /// with a metric that was not measured is unknown.
    pub fn check(&self, comparison: &Comparison, runs: &[(Summary, PathBuf)]) -> Result<Checked, ReportError> {
        let sides = [&self.left, &self.right];
        let is_for_each = sides.iter().any(|side| side.of.as_ref().is_some_and(|of| of.scheme.is_none()));
        let schemes: Vec<Option<&str>> =
            if is_for_each { comparison.schemes.iter().map(|name| Some(name.as_str())).collect() } else { vec![None] };
        let (mut holds, mut found) = (Some(true), vec![]);
        for scheme in schemes {
            let values = [self.left.value(comparison, runs, scheme)?, self.right.value(comparison, runs, scheme)?];
            let one = match &values {
                [Ok(left), Ok(right)] => Some(match self.operator {
                    Operator::Below => left < right,
                    Operator::AtMost => left <= right,
                    Operator::Above => left > right,
                    Operator::AtLeast => left >= right,
                }),
                _ => None,
            };
            // One that fails decides; one that is unknown leaves the rest undecided.
            holds = match (holds, one) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (None, _) | (_, None) => None,
                _ => Some(true),
            };
            for (side, value) in sides.into_iter().zip(&values).filter(|(side, _)| side.of.is_some()) {
                let text = match value {
                    Ok(value) => {
                        format!("{} is {}", side.words(scheme), anabranch_results::significant_digits(*value, 4))
                    }
                    Err(reason) => format!("{} is unknown: {reason}", side.words(scheme)),
                };
                if !found.contains(&text) {
                    found.push(text);
                }
            }
        }
        Ok(Checked { holds, text: format!("{}: {}", self.text, found.join(", ")) })
    }
}

const NOT_MEASURED: &str = "it was not measured";

impl Side {
    fn parse(text: &str, schemes: &[String], workloads: &[String]) -> Result<Side, MetricError> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        if let Some(factor) = number(text) {
            return Ok(Side { factor, of: None });
        }
        let (factor, name) = match text.split_once('*') {
            Some((factor, name)) => match number(factor) {
                Some(factor) => (factor, name.trim()),
                None => return wrong(format!("found `{}` before `*`, expected a number", factor.trim())),
            },
            None => (1.0, text),
        };
        if name.is_empty() || schemes.iter().chain(workloads).any(|known| known == name) {
            return wrong(format!("found `{name}`, expected a number, METRIC or SCHEME.METRIC"));
        }
        // Names of schemes and workloads may contain dots.
        let begun = |known: &[String], name: &str| -> Option<String> {
            let is_begin =
                |known: &&String| name.strip_prefix(known.as_str()).is_some_and(|rest| rest.starts_with('.'));
            known.iter().filter(is_begin).max_by_key(|known| known.len()).cloned()
        };
        let scheme = begun(schemes, name);
        let rest = scheme.as_ref().map_or(name, |scheme| &name[scheme.len() + 1..]);
        let workload = begun(workloads, rest);
        let metric = workload.as_ref().map_or(rest, |workload| &rest[workload.len() + 1..]);
        let workload = workload.as_deref().unwrap_or(ALL);
        match Metric::read(metric.strip_prefix("all.").unwrap_or(metric)) {
            Ok(metric) => Ok(Side { factor, of: Some(Quantity { scheme, workload: workload.into(), metric }) }),
            Err(error) => Err(Self::unknown(name, metric, scheme.is_some(), schemes, workloads, error)),
        }
    }

    /// The message for a name of which scheme, workload or metric is not known: about the metric, if what precedes it is.
    fn unknown(
        name: &str,
        rest: &str,
        has_scheme: bool,
        schemes: &[String],
        workloads: &[String],
        of_metric: MetricError,
    ) -> MetricError {
        let splits = rest.match_indices('.').map(|(at, _)| (&rest[..at], &rest[at + 1..]));
        let Some((before, _)) = splits.into_iter().find(|(_, after)| Metric::read(after).is_ok()) else {
            return of_metric;
        };
        let known: Vec<&str> = schemes.iter().filter(|_| !has_scheme).chain(workloads).map(String::as_str).collect();
        let expected = if has_scheme { "a workload" } else { "a load balancer or a workload" };
        let message = format!(
            "`{name}`: found `{before}` before the metric, expected {expected}; there are {}",
            known.join(", ")
        );
        MetricError { message, nearest: nearest(before, known.iter().copied()) }
    }

    /// Returns the value, or the reason why it is unknown.
    fn value(
        &self,
        comparison: &Comparison,
        runs: &[(Summary, PathBuf)],
        each: Option<&str>,
    ) -> Result<Result<f64, String>, ReportError> {
        let Some(Quantity { scheme, workload, metric }) = &self.of else { return Ok(Ok(self.factor)) };
        let scheme = scheme.as_deref().or(each).unwrap_or_default();
        let known = comparison.workloads();
        if workload != ALL && known.len() > 1 && !known.contains(&workload.as_str()) {
            return Ok(Err(format!("no workload is called `{workload}`; workloads are {}", known.join(", "))));
        }
        // The only workload is compared as all flows.
        let workload = if known.len() > 1 { workload } else { ALL };
        if metric.compared().is_none() {
            return self.of_runs(comparison, runs, &metric.of_workload(workload), workload, scheme);
        }
        let Some(row) = comparison.row(workload, scheme, metric.name()) else { return Ok(Err("it has no run".into())) };
        let Some(mean) = row.mean else { return Ok(Err(NOT_MEASURED.into())) };
        Ok(match row.ranks() {
            true => Ok(self.factor * mean),
            false => Err(format!("{} flows did not finish", row.unfinished_flows)),
        })
    }

    /// As [`Side::value`], of a metric that is not in the comparison: the mean over the seeds compared.
    fn of_runs(
        &self,
        comparison: &Comparison,
        runs: &[(Summary, PathBuf)],
        metric: &Metric,
        workload: &str,
        scheme: &str,
    ) -> Result<Result<f64, String>, ReportError> {
        let mut values = vec![];
        let counts =
            |run: &&(Summary, PathBuf)| run.0.scheme == scheme && comparison.compared_seeds.contains(&run.0.seed);
        for (run, place) in runs.iter().filter(counts) {
            let flows = if workload == ALL { Some(&run.all) } else { run.workloads.get(workload) };
            let open = flows.map_or(0, |flows| flows.flows.measured_unfinished);
            if open > 0 && metric.is_of_times() {
                return Ok(Err(format!("{open} flows did not finish")));
            }
            let data = RunData::read(place, iter::once(metric), BTreeMap::new())?;
            let Some(value) = data.and_then(|data| metric.value(&data, workload, ALL)) else {
                return Ok(Err(NOT_MEASURED.into()));
            };
            values.push(value);
        }
        Ok(match mean(&values) {
            Some(mean) if mean.is_finite() => Ok(self.factor * mean),
            Some(_) => Err("flows did not finish".into()),
            None => Err("it has no run".into()),
        })
    }
}

impl Side {
    /// Returns the side as text, with the scheme that it is about.
    fn words(&self, each: Option<&str>) -> String {
        let Some(Quantity { scheme, workload, metric }) = &self.of else { return self.factor.to_string() };
        let scheme = scheme.as_deref().or(each).unwrap_or_default();
        let factor = if self.factor == 1.0 { String::new() } else { format!("{} * ", self.factor) };
        match workload.as_str() {
            ALL => format!("{factor}{scheme}.{metric}"),
            _ => format!("{factor}{scheme}.{workload}.{metric}"),
        }
    }
}
