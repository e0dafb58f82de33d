//! Samples of a run in the form of `bench_load`'s: a comment with the parameters, rows of counters, a
//! comment with the summary.

use std::fmt::Write as _;
use std::time::Duration;

use plimsoll_model::{LoadModel, Moment, ResourceSample, RunSummary};

/// The columns, by name.
const COLUMNS: &str = "t_ms,rss_kb,cpu_user_ticks,cpu_sys_ticks,inflight_requests,completed,errors,\
                       avg_latency_us";

/// Ticks of the kernel's accounting are hundredths of a second (proc(5), `USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

const IN_MEMORY: &str = "writing to memory does not fail";

/// One row a sample.
///
/// Memory is in units of 1,024 bytes; ticks, `completed` and `errors` are counted from the start;
/// the latency is the mean of those exchanges that ended since the row before, from the actual start.
/// Without a target on this machine its columns are zero.
pub fn samples_csv(run: &RunSummary, every: Duration) -> String {
    let load = &run.load;
    let rate = match load.model {
        LoadModel::Open { rate } => rate.per_second(),
        LoadModel::Closed => 0.0,
    };
    let mut csv = format!(
        "# plimsoll load url={} target_rps={rate} duration_s={:.1} concurrency={} sample_ms={}\n\
         {COLUMNS}\n",
        load.url.replace(char::is_whitespace, "%20"),
        load.duration.unwrap_or(run.window).as_secs_f64(),
        load.connections,
        every.as_millis()
    );
    let mut before = Moment::default();
    for moment in &run.moments {
        let target = moment.target.unwrap_or_default();
        writeln!(
            csv,
            "{},{},{},{},{},{},{},{}",
            moment.at.as_millis(),
            kilobytes(&target),
            ticks(target.cpu.user),
            ticks(target.cpu.system),
            moment.in_flight,
            moment.ok,
            moment.errors,
            mean(
                moment.latency_sum.saturating_sub(before.latency_sum),
                moment.latencies - before.latencies.min(moment.latencies)
            )
        )
        .expect(IN_MEMORY);
        before = *moment;
    }
    let targets = || run.moments.iter().filter_map(|moment| moment.target);
    let spent = targets()
        .next()
        .zip(targets().next_back())
        .map(|(first, last)| last.cpu.since(first.cpu))
        .unwrap_or_default();
    let latency = run
        .latency
        .from_started
        .observed()
        .mean()
        .unwrap_or_default();
    writeln!(
        csv,
        "# summary duration_s={:.1} target_rps={rate} achieved_rps={:.1} completed={} errors={} \
         avg_latency_us={} peak_rss_kb={} cpu_user_ticks_total={} cpu_sys_ticks_total={}",
        run.window.as_secs_f64(),
        run.requests_per_second(),
        run.counts.ok,
        run.counts.errors(),
        latency.as_micros(),
        targets()
            .map(|sample| kilobytes(&sample))
            .max()
            .unwrap_or(0),
        ticks(spent.user),
        ticks(spent.system)
    )
    .expect(IN_MEMORY);
    csv
}

fn kilobytes(sample: &ResourceSample) -> u64 {
    sample.memory.total_bytes() / 1_024
}

fn ticks(time: Duration) -> u128 {
    time.as_nanos() / TICK.as_nanos()
}

fn mean(sum: Duration, count: u64) -> u128 {
    sum.as_micros() / u128::from(count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn rows_between_two_comments() {
        insta::assert_snapshot!(samples_csv(&fixture::open(), Duration::from_millis(100)));
    }

    #[test]
    fn every_run_has_the_same_shape() {
        for (name, run) in fixture::all() {
            let csv = samples_csv(&run, Duration::from_millis(100));
            let lines: Vec<_> = csv.lines().collect();
            assert_eq!(lines.len(), run.moments.len() + 3, "{name}");
            assert!(lines[0].starts_with("# plimsoll load url="), "{name}");
            assert_eq!(lines[1].split(',').count(), 8);
            for row in &lines[2..lines.len() - 1] {
                let cells = row.split(',').map(|cell| cell.parse::<u64>().is_ok());
                assert_eq!(cells.filter(|is_number| *is_number).count(), 8, "{row}");
            }
            assert!(lines[lines.len() - 1].starts_with("# summary duration_s="));
        }
    }
}
