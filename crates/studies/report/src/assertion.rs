//! Checks of a comparison for scripts: `prime.slowdown_p99 < 2`.

use crate::{
    comparison::{ALL, Comparison},
    metric::{Metric, MetricError, RunData},
};
use anabranch_results::{error::ReportError, summary::Summary};
use anabranch_settings::nearest;
use anabranch_statistics::statistics::mean;
use std::{collections::BTreeMap, fmt, iter, path::PathBuf};

/// A statement `LEFT OP RIGHT` about the means of a comparison.
///
/// A side is a number, `SCHEME.METRIC`, `SCHEME.WORKLOAD.METRIC`, or a number times one of these: `0.9 * ecmp.fct_p99`. A
/// metric is one of [`Metric`]. The operators are `<`, `<=`, `>` and `>=`.
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
    scheme: String,
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
    /// Reads an assertion about a comparison of `schemes`.
    ///
    /// # Errors
    /// [`MetricError`] if it is no comparison of two sides, or names a scheme or metric that does not exist.
    pub fn parse(text: &str, schemes: &[String]) -> Result<Self, MetricError> {
        let found = OPERATORS
            .iter()
            .filter_map(|(sign, operator)| Some((text.find(sign)?, *sign, *operator)))
            .min_by_key(|(at, sign, _)| (*at, usize::MAX - sign.len()));
        let Some((at, sign, operator)) = found else {
            return wrong("found no operator, expected SCHEME.METRIC < NUMBER; operators are <, <=, > and >=");
        };
        let side = |text: &str| Side::parse(text.trim(), schemes);
        let (left, right) = (side(&text[..at])?, side(&text[at + sign.len()..])?);
        if left.of.is_none() && right.of.is_none() {
            return wrong("found two numbers, expected SCHEME.METRIC on a side");
        }
        Ok(Assertion { text: text.trim().to_string(), left, operator, right })
    }

    /// Checks it by the comparison of `runs`, each with its directory. A side with unfinished flows, without a value, or
    /// with a metric that was not measured is unknown.
    ///
    /// # Errors
    /// [`ReportError`] if rows cannot be read.
    pub fn check(&self, comparison: &Comparison, runs: &[(Summary, PathBuf)]) -> Result<Checked, ReportError> {
        let values = [self.left.value(comparison, runs)?, self.right.value(comparison, runs)?];
        let holds = match &values {
            [Ok(left), Ok(right)] => Some(match self.operator {
                Operator::Below => left < right,
                Operator::AtMost => left <= right,
                Operator::Above => left > right,
                Operator::AtLeast => left >= right,
            }),
            _ => None,
        };
        let found: Vec<String> = [&self.left, &self.right]
            .into_iter()
            .zip(&values)
            .filter(|(side, _)| side.of.is_some())
            .map(|(side, value)| match value {
                Ok(value) => format!("{side} is {}", anabranch_results::significant_digits(*value, 4)),
                Err(reason) => format!("{side} is unknown: {reason}"),
            })
            .collect();
        Ok(Checked { holds, text: format!("{}: {}", self.text, found.join(", ")) })
    }
}

const NOT_MEASURED: &str = "it was not measured";

impl Side {
    fn parse(text: &str, schemes: &[String]) -> Result<Side, MetricError> {
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
        // Names of schemes and workloads may contain dots.
        let scheme = schemes
            .iter()
            .filter(|scheme| name.strip_prefix(scheme.as_str()).is_some_and(|rest| rest.starts_with('.')))
            .max_by_key(|scheme| scheme.len());
        let Some(scheme) = scheme else {
            let found = name.split('.').next().unwrap_or(name);
            let known: Vec<&str> = schemes.iter().map(String::as_str).collect();
            let message =
                format!("found `{name}`, expected a number or SCHEME.METRIC; the schemes are {}", known.join(", "));
            return Err(MetricError { message, nearest: nearest(found, known.iter().copied()) });
        };
        let rest = &name[scheme.len() + 1..];
        // Names of metrics may contain dots too: the longest one counts.
        let is_metric = ["flows.", "links.", "uplinks.", "jain("].iter().any(|begin| rest.starts_with(begin));
        let splits = rest.match_indices('.').filter(|_| !is_metric).map(|(at, _)| (&rest[..at], &rest[at + 1..]));
        let found = iter::once((ALL, rest)).chain(splits).find_map(|(of, name)| Some((of, Metric::read(name).ok()?)));
        let (workload, metric) = match found {
            Some(found) => found,
            None if is_metric => (ALL, Metric::read(rest)?),
            None => (ALL, Metric::read(rest.rsplit('.').next().unwrap_or(rest))?),
        };
        Ok(Side { factor, of: Some(Quantity { scheme: scheme.clone(), workload: workload.into(), metric }) })
    }

    /// Returns the value, or the reason why it is unknown.
    fn value(&self, comparison: &Comparison, runs: &[(Summary, PathBuf)]) -> Result<Result<f64, String>, ReportError> {
        let Some(Quantity { scheme, workload, metric }) = &self.of else { return Ok(Ok(self.factor)) };
        let known = comparison.workloads();
        if !known.contains(&workload.as_str()) {
            return Ok(Err(format!("no workload is called `{workload}`; workloads are {}", known.join(", "))));
        }
        if metric.compared().is_none() {
            return self.of_runs(comparison, runs, metric, workload, scheme);
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

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Quantity { scheme, workload, metric }) = &self.of else { return write!(f, "{}", self.factor) };
        if self.factor != 1.0 {
            write!(f, "{} * ", self.factor)?;
        }
        match workload.as_str() {
            ALL => write!(f, "{scheme}.{metric}"),
            _ => write!(f, "{scheme}.{workload}.{metric}"),
        }
    }
}
