//! Checks of a comparison for scripts: `prime.slowdown_p99 < 2`.

use crate::comparison::{ALL, Comparison, METRICS, Metric};
use std::fmt;

/// A statement `LEFT OP RIGHT` about the means of a comparison.
///
/// A side is a number, `SCHEME.METRIC`, `SCHEME.WORKLOAD.METRIC`, or a number times one of these: `0.9 * ecmp.fct_p99`. The
/// operators are `<`, `<=`, `>` and `>=`.
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
    metric: &'static str,
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

/// An invalid assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssertionError {
    /// What was found and what is allowed.
    pub message: String,
    /// The nearest valid choice.
    pub nearest: Option<String>,
}

impl fmt::Display for AssertionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for AssertionError {}

fn wrong<T>(message: impl Into<String>) -> Result<T, AssertionError> {
    Err(AssertionError { message: message.into(), nearest: None })
}

impl Assertion {
    /// Reads an assertion about a comparison of `schemes`; `nearest` returns the closest of several names.
    ///
    /// # Errors
    /// [`AssertionError`] if it is no comparison of two sides, or names a scheme or metric that does not exist.
    pub fn parse(
        text: &str,
        schemes: &[String],
        nearest: fn(&str, &[&str]) -> Option<String>,
    ) -> Result<Self, AssertionError> {
        let found = OPERATORS
            .iter()
            .filter_map(|(sign, operator)| Some((text.find(sign)?, *sign, *operator)))
            .min_by_key(|(at, sign, _)| (*at, usize::MAX - sign.len()));
        let Some((at, sign, operator)) = found else {
            return wrong("found no operator, expected SCHEME.METRIC < NUMBER; operators are <, <=, > and >=");
        };
        let side = |text: &str| Side::parse(text.trim(), schemes, nearest);
        let (left, right) = (side(&text[..at])?, side(&text[at + sign.len()..])?);
        if left.of.is_none() && right.of.is_none() {
            return wrong("found two numbers, expected SCHEME.METRIC on a side");
        }
        Ok(Assertion { text: text.trim().to_string(), left, operator, right })
    }

    /// Checks it. A side with unfinished flows, without a value, or with a metric that was not measured is unknown.
    pub fn check(&self, comparison: &Comparison) -> Checked {
        let values = [self.left.value(comparison), self.right.value(comparison)];
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
                Ok(value) => format!("{side} is {}", crate::significant_digits(*value, 4)),
                Err(reason) => format!("{side} is unknown: {reason}"),
            })
            .collect();
        Checked { holds, text: format!("{}: {}", self.text, found.join(", ")) }
    }
}

impl Side {
    fn parse(
        text: &str,
        schemes: &[String],
        nearest: fn(&str, &[&str]) -> Option<String>,
    ) -> Result<Side, AssertionError> {
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
            return Err(AssertionError {
                message: format!(
                    "found `{name}`, expected a number or SCHEME.METRIC; the schemes are {}",
                    known.join(", ")
                ),
                nearest: nearest(found, &known),
            });
        };
        let rest = &name[scheme.len() + 1..];
        let (workload, metric) = rest.rsplit_once('.').unwrap_or((ALL, rest));
        let Some(metric) = Metric::named(metric) else {
            let known: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
            return Err(AssertionError {
                message: format!("no metric is called `{metric}`; metrics are {}", known.join(", ")),
                nearest: nearest(metric, &known),
            });
        };
        Ok(Side {
            factor,
            of: Some(Quantity { scheme: scheme.clone(), workload: workload.into(), metric: metric.name }),
        })
    }

    fn value(&self, comparison: &Comparison) -> Result<f64, String> {
        let Some(Quantity { scheme, workload, metric }) = &self.of else { return Ok(self.factor) };
        let known = comparison.workloads();
        if !known.contains(&workload.as_str()) {
            return Err(format!("no workload is called `{workload}`; workloads are {}", known.join(", ")));
        }
        let Some(row) = comparison.row(workload, scheme, metric) else { return Err("it has no run".into()) };
        let Some(mean) = row.mean else { return Err("it was not measured".into()) };
        match row.ranks() {
            true => Ok(self.factor * mean),
            false => Err(format!("{} flows did not finish", row.unfinished_flows)),
        }
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
