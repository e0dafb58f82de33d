//! `cargo xtask planted`: whether `plimsoll compare` finds a difference that is there, and none that is not.
//!
//! Two servers that are the same but for so many nanoseconds more of a loop per request are compared: once with as many
//! as are a share of what a request costs, and many times with none. On a machine where nothing else runs, `--planted-tries 20`
//! tells how often such a difference is found.

use std::path::Path;
use std::process::Command;

use clap::Args;
use serde_json::Value;

use crate::step;
use crate::{Failure, Outcome};

/// How much is planted, and how often nothing is
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What is planted, in percent of what a request costs
    #[arg(long, default_value_t = 5.0)]
    percent: f64,

    /// Comparisons of a server with itself
    #[arg(long, default_value_t = 20)]
    tries: u32,

    /// Trials of each side in a comparison of a server with itself
    #[arg(long, default_value_t = 8)]
    trials: u32,

    /// Trials of each side where something is planted: on a machine that others use too, 5 % are less than one
    /// trial differs from the next
    #[arg(long, default_value_t = 30)]
    planted_trials: u32,

    /// Comparisons where something is planted
    #[arg(long, default_value_t = 1)]
    planted_tries: u32,

    /// Length of a trial
    #[arg(long, default_value_t = 1)]
    seconds: u32,
}

/// What each request costs both servers besides its answer, in nanoseconds.
///
/// With this the servers are the limit, not the generator. A server that has time to spare takes half of what is planted
/// out of that: it finds more to do each time it looks, so that it looks less often.
const WORK: f64 = 5000.0;

/// Of 20 comparisons of a server with itself, one may call a difference.
const MOST_CALLED: f64 = 1.0 / 20.0;

/// So many of the comparisons where something is planted have to find it.
const LEAST_FOUND: f64 = 18.0 / 20.0;

/// Runs the task; fails if the planted difference is not found, or one is called too often that is not there.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let build = |package: &[&str]| {
        let mut words = vec!["build", "--profile", "dist", "--locked"];
        words.extend(package);
        step::run(root, &mut step::cargo(&words))
    };
    build(&["--package", "plimsoll"])?;
    build(&["--package", "plimsoll-server", "--example", "bare_server"])?;
    let mut called = 0;
    let mut costs = Vec::new();
    for number in 1..=arguments.tries {
        let found = compare(root, arguments, arguments.trials, 0.0)?;
        println!("nothing planted, {number:>2}: {}", found.shown());
        called += u32::from(found.verdict != "no-difference-seen");
        costs.push(found.cost_us);
    }
    costs.sort_by(f64::total_cmp);
    let cost = match costs.get(costs.len() / 2) {
        Some(cost) => *cost,
        None => compare(root, arguments, arguments.trials, 0.0)?.cost_us,
    };
    let planted = cost * 1000.0 * arguments.percent / 100.0;
    let mut times_found = 0;
    for number in 1..=arguments.planted_tries {
        let found = compare(root, arguments, arguments.planted_trials, planted)?;
        println!(
            "{planted:.0} ns planted, {} % of {cost:.2} µs, {number:>2}: {}",
            arguments.percent,
            found.shown()
        );
        times_found += u32::from(found.verdict == "slower");
    }
    println!(
        "called without cause: {called} of {}; found: {times_found} of {}",
        arguments.tries, arguments.planted_tries
    );
    if f64::from(times_found) < LEAST_FOUND * f64::from(arguments.planted_tries) {
        return Err("the planted difference was not found often enough".into());
    }
    if f64::from(called) > MOST_CALLED * f64::from(arguments.tries).max(1.0 / MOST_CALLED) {
        return Err("differences that are not there were called too often".into());
    }
    Ok(())
}

/// What a comparison came to.
#[derive(Debug, PartialEq)]
struct Found {
    verdict: String,
    ratio: f64,
    interval: (f64, f64),
    /// Of the side that nothing is planted in.
    cost_us: f64,
}

impl Found {
    fn shown(&self) -> String {
        let (low, high) = self.interval;
        format!("{:.3} [{low:.3}–{high:.3}] {}", self.ratio, self.verdict)
    }
}

/// A server in which `planted` nanoseconds are, beside the same without them.
fn compare(
    root: &Path,
    arguments: &Arguments,
    trials: u32,
    planted: f64,
) -> Result<Found, Failure> {
    let release = crate::bench::target_directory(root)?.join("dist");
    let server = release.join("examples/bare_server");
    let server = server.to_string_lossy();
    let mut command = Command::new(release.join("plimsoll"));
    command
        .args(["compare", "--json", "--drive", "http://127.0.0.1:{port}/"])
        .args(["--pin", "0", "--driver-pin", "1"])
        .args(["--trials", &trials.to_string()])
        .args(["--seconds", &arguments.seconds.to_string()])
        .arg(format!("{server} {{port}} {:.0}", WORK + planted))
        .arg(format!("{server} {{port}} {WORK:.0}"));
    let json = step::output(root, &mut command)?;
    let document = serde_json::from_str(&json);
    let document = document.map_err(|error| format!("plimsoll compare: {error}"))?;
    found(&document).ok_or_else(|| "plimsoll compare has no verdict on the cost".into())
}

fn found(document: &Value) -> Option<Found> {
    const METRIC: &str = "cpu_us_per_request";
    let metrics = document.pointer("/pairs/0/metrics")?.as_array()?;
    let metric = metrics.iter().find(|metric| metric["metric"] == METRIC)?;
    let figure = |pointer: &str| metric.pointer(pointer)?.as_f64();
    Some(Found {
        verdict: metric.get("verdict")?.as_str()?.to_owned(),
        ratio: figure("/ratio")?,
        interval: (figure("/interval/low")?, figure("/interval/high")?),
        cost_us: figure("/peer")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_on_the_cost_is_read() {
        let document = serde_json::json!({"pairs": [{"metrics": [
            {"metric": "rps", "ratio": 2.0},
            {"metric": "cpu_us_per_request", "verdict": "slower", "ratio": 1.05, "peer": 4.0,
             "interval": {"low": 1.02, "high": 1.08}}]}]});
        let found = found(&document).unwrap();
        assert_eq!(found.shown(), "1.050 [1.020–1.080] slower");
        assert!((found.cost_us - 4.0).abs() < 1e-9);
        assert_eq!(super::found(&serde_json::json!({"pairs": []})), None);
    }
}
