//! `KEY=A,B,...` and `KEY=A..B:STEP`: a key of the scenario and the values it takes.

use anabranch_results::Axis;
use anabranch_scenario::ScenarioError;
use anabranch_units::{Bytes, Rate, Time};

/// Maximum number of points of a sweep, and of values of a key.
pub const MAX_POINTS: usize = 1_000_000;

/// Reads one `--over`: a list, or a countable range.
pub fn axis(text: &str) -> Result<Axis, ScenarioError> {
    let Some((key, values)) = text.split_once('=') else {
        return Err(wrong(text, "there is no `=`"));
    };
    axis_of(key.trim(), values)
}

/// Reads the values of `key`.
pub fn axis_of(key: &str, values: &str) -> Result<Axis, ScenarioError> {
    let text = format!("{key}={values}");
    if key.is_empty() {
        return Err(wrong(&text, "there is no key before the `=`"));
    }
    let values = match range(values.trim()).map_err(|message| wrong(&text, &message))? {
        Some(values) => values,
        None => split(values),
    };
    axis_from(key, values)
}

/// Returns the axis of `key` over `values`, which must be distinct and not empty.
pub fn axis_from(key: &str, values: Vec<String>) -> Result<Axis, ScenarioError> {
    let text = format!("{key}={}", values.join(","));
    if values.is_empty() || values.iter().any(String::is_empty) {
        return Err(wrong(&text, "a value is missing"));
    }
    let mut sorted: Vec<&String> = values.iter().collect();
    sorted.sort();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(wrong(&text, &format!("the value `{}` is given twice", twice[0])));
    }
    match key {
        "seed" => return Err(elsewhere(&text, "the seeds of a sweep are given with --seeds N")),
        "load_balancer.scheme" | "load_balancer.host" | "load_balancer.switch" => {
            return Err(elsewhere(&text, "load balancers are given with --schemes A,B,... (a pair as host+switch)"));
        }
        _ if key == "name" || key.split('.').next() == Some("compare") => {
            return Err(elsewhere(&text, "this key does not change a run; sweep one that does"));
        }
        _ => {}
    }
    let numbers = values.iter().map(|value| number(value)).collect::<Option<Vec<f64>>>();
    let kinds_agree = values.windows(2).all(|pair| kind(&pair[0]) == kind(&pair[1]));
    let numbers = numbers.filter(|_| kinds_agree).unwrap_or_default();
    Ok(Axis { key: key.to_string(), values, numbers, meaning: String::new() })
}

fn wrong(text: &str, message: &str) -> ScenarioError {
    ScenarioError::new(format!("--over {text}: {message}")).help(
        "write --over KEY=A,B,... or KEY=A..B:STEP, for example --over workload.0.load=0.3..0.9:0.1 or \
         --over topology.link_rate=100Gbps,400Gbps",
    )
}

fn elsewhere(text: &str, remedy: &str) -> ScenarioError {
    ScenarioError::new(format!("--over {text}: this key is not for --over")).help(remedy)
}

/// Splits at commas outside of brackets, braces and quotes.
fn split(text: &str) -> Vec<String> {
    let (mut values, mut value, mut depth, mut quoted) = (Vec::new(), String::new(), 0i32, false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                values.push(std::mem::take(&mut value).trim().to_string());
                continue;
            }
            _ => {}
        }
        value.push(c);
    }
    values.push(value.trim().to_string());
    values
}

/// A number in units of its last digit, so that ranges are enumerated without rounding.
#[derive(Clone, Debug)]
struct Decimal {
    units: i128,
    digits: u32,
    unit: String,
}

/// Parses `0.35Gbps` and the like; `None` if it is no number.
fn decimal(text: &str) -> Option<Decimal> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if !unit.chars().all(|c| c.is_ascii_alphabetic()) {
        return None;
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.trim_start_matches('-').is_empty() || fraction.len() > 15 || whole.len() > 18 {
        return None;
    }
    let units = format!("{whole}{fraction}").parse().ok()?;
    Some(Decimal { units, digits: fraction.len() as u32, unit: unit.to_string() })
}

/// Returns the values of `A..B:STEP`; `None` if the text is no range.
fn range(text: &str) -> Result<Option<Vec<String>>, String> {
    let Some((from, rest)) = text.split_once("..") else { return Ok(None) };
    let (to, step) = rest.split_once(':').map_or((rest, None), |(to, step)| (to, Some(step.trim())));
    let (Some(from), Some(to)) = (decimal(from.trim()), decimal(to.trim())) else { return Ok(None) };
    let Some(step) = step else { return Err("a range needs a step: A..B:STEP".into()) };
    let Some(step) = decimal(step) else { return Err(format!("the step `{step}` is no number")) };
    if from.unit != to.unit || (!step.unit.is_empty() && step.unit != from.unit) {
        return Err("the ends and the step of a range have one unit; list the values where they have several".into());
    }
    let digits = from.digits.max(to.digits).max(step.digits);
    let scaled = |d: &Decimal| d.units * 10i128.pow(digits - d.digits);
    let (first, last, by) = (scaled(&from), scaled(&to), scaled(&step));
    if by <= 0 {
        return Err("the step of a range is above zero".into());
    }
    if first > last {
        return Err("the start of a range must not be above its end".into());
    }
    if (last - first) / by >= MAX_POINTS as i128 {
        return Err(format!("that is more than {MAX_POINTS} values"));
    }
    let print = |units: i128| {
        let sign = if units < 0 { "-" } else { "" };
        let text = format!("{:0width$}", units.unsigned_abs(), width = digits as usize + 1);
        let (whole, fraction) = text.split_at(text.len() - digits as usize);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{sign}{whole}{point}{fraction}{}", from.unit)
    };
    let count = (last - first) / by;
    let mut values: Vec<String> = (0..=count).map(|i| print(first + i * by)).collect();
    // A key of type float takes `1.0`, not `1`, in TOML as well; an integer key takes only integers.
    if from.unit.is_empty() && values.iter().any(|value| value.contains('.')) {
        values.iter_mut().filter(|value| !value.contains('.')).for_each(|value| value.push_str(".0"));
    }
    Ok(Some(values))
}

/// Sort of quantity.
fn kind(value: &str) -> u8 {
    match value {
        _ if value.parse::<f64>().is_ok() => 0,
        _ if value.parse::<Rate>().is_ok() => 1,
        _ if value.parse::<Time>().is_ok() => 2,
        _ if value.parse::<Bytes>().is_ok() => 3,
        _ if value.ends_with("bdp") => 4,
        _ => 5,
    }
}

fn number(value: &str) -> Option<f64> {
    match kind(value) {
        0 => value.parse().ok(),
        1 => value.parse::<Rate>().ok().map(|rate| rate.0 as f64),
        2 => value.parse::<Time>().ok().map(|time| time.ps() as f64),
        3 => value.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64),
        4 => value.strip_suffix("bdp")?.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        axis(text).unwrap().values
    }

    #[test]
    fn ranges_are_exact_and_include_their_end() {
        assert_eq!(values("load=0.3..0.9:0.1"), ["0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"]);
        assert_eq!(values("load=0.5..1:0.25"), ["0.5", "0.75", "1.0"]);
        assert_eq!(values("radix=4..9:2"), ["4", "6", "8"]);
        assert_eq!(values("rate=100Gbps..400Gbps:100"), ["100Gbps", "200Gbps", "300Gbps", "400Gbps"]);
        assert_eq!(values("t=1us..2us:0.5us"), ["1us", "1.5us", "2us"]);
        assert_eq!(values("x=5..5:1"), ["5"]);
    }

    #[test]
    fn lists_keep_bracketed_parts_together() {
        assert_eq!(values("topology.link_rate=100Gbps, 400Gbps"), ["100Gbps", "400Gbps"]);
        assert_eq!(values("fault.0.links=[\"a\",\"b\"],[\"c\"]"), ["[\"a\",\"b\"]", "[\"c\"]"]);
        // A path is no range.
        assert_eq!(values("workload.0.path=../a.csv,../b.csv"), ["../a.csv", "../b.csv"]);
    }

    #[test]
    fn quantities_are_numbers_for_the_axis() {
        assert_eq!(axis("r=100Gbps,1Tbps").unwrap().numbers, [1e11, 1e12]);
        assert_eq!(axis("s=64KiB,1MiB").unwrap().numbers, [65536.0, 1048576.0]);
        assert_eq!(axis("w=1bdp,1.5bdp").unwrap().numbers, [1.0, 1.5]);
        assert_eq!(axis("w=1bdp,64KiB").unwrap().numbers, Vec::<f64>::new(), "no common measure");
        assert_eq!(axis("c=dctcp,nscc").unwrap().numbers, Vec::<f64>::new());
    }

    #[test]
    fn invalid_ranges_are_reported() {
        for (text, word) in [
            ("load", "no `=`"),
            ("=1", "no key"),
            ("load=", "missing"),
            ("load=1,,2", "missing"),
            ("load=0.3,0.5,0.3", "`0.3` is given twice"),
            ("load=0.3..0.9", "needs a step"),
            ("load=0.3..0.9:x", "step `x`"),
            ("load=0.3..0.9:0", "above zero"),
            ("load=0.9..0.3:0.1", "must not be above its end"),
            ("rate=1Gbps..2Tbps:1Gbps", "one unit"),
            ("x=0..10000000:1", "more than 1000000"),
            ("seed=1,2", "--seeds"),
            ("load_balancer.scheme=ecmp,prime", "--schemes"),
            ("compare.seeds=1,2", "does not change a run"),
        ] {
            let error = axis(text).unwrap_err();
            let message = format!("{error} {}", error.remedy().unwrap_or_default());
            assert!(message.contains(word), "{text}: {message}");
        }
    }
}
