//! The text of a run of the harness: a line each second, the summary at the end.

use plimsoll_model::{
    AgentStanding, LoadtestConnections, LoadtestShape, LoadtestSummary, LoadtestTick, rate_figures,
};

use super::WIDTH;
use super::numbers::{NOTHING, bytes, count, duration, optional, plural, share};
use super::page::{Page, shortened};
use super::style::{Emphasis, Style};
use super::summary::agents::agents;

/// One line of at most 80 columns for the second that has just gone by, without a line feed.
///
/// - `before`: the state a second ago.
pub fn loadtest_line(tick: &LoadtestTick, before: &LoadtestTick, style: Style) -> String {
    let seconds = tick.at.saturating_sub(before.at).as_secs_f64();
    let per_second = if seconds > 0.0 {
        tick.ok.saturating_sub(before.ok) as f64 / seconds
    } else {
        0.0
    };
    let figures = format!(
        "{:>5} {:>9} req/s {:>13} in all {:>8} in flight {:>7}",
        format!("{}s", tick.at.as_secs()),
        rate_figures(per_second),
        count(tick.ok),
        count(tick.in_flight),
        tick.memory_bytes.map_or_else(|| NOTHING.to_owned(), bytes),
    );
    let errors = match tick.errors {
        0 => String::new(),
        errors => format!("  {} failed", count(errors)),
    };
    let figures = shortened(&figures, WIDTH - errors.chars().count().min(WIDTH));
    format!("{figures}{}", style.apply(Emphasis::Error, &errors))
}

/// The agents of a fleet side by side, behind such a line: as many as fit into 80 columns, without a line feed.
pub fn loadtest_agents(agents: &[AgentStanding], style: Style) -> String {
    const INDENT: usize = 6;
    let cell = |agent: &AgentStanding| {
        let rate = match agent.per_second {
            _ if agent.is_lost => "lost".to_owned(),
            _ if agent.is_over => "done".to_owned(),
            Some(rate) => format!("{}/s", rate_figures(rate)),
            None => NOTHING.to_owned(),
        };
        let failed = match agent.errors {
            0 => String::new(),
            errors => format!(" {} failed", count(errors)),
        };
        format!("{} {rate}{failed}", shortened(&agent.name, 24))
    };
    let cells: Vec<String> = agents.iter().map(cell).collect();
    let line = shortened(&cells.join("  "), WIDTH - INDENT);
    let line = format!("{:INDENT$}{line}", "");
    style.apply(Emphasis::Faint, &line)
}

/// The summary, with a line feed at its end.
pub fn loadtest(summary: &LoadtestSummary, style: Style) -> String {
    let mut page = Page::new(style);
    title(&mut page, summary);
    for caution in &summary.cautions {
        page.line("");
        page.marked("!", Emphasis::Warning, caution);
    }
    agents(&mut page, &summary.agents, summary.elapsed);
    checks(&mut page, summary);
    latency(&mut page, summary);
    failures(&mut page, summary);
    page.finish()
}

fn title(page: &mut Page, summary: &LoadtestSummary) {
    let shape = &summary.shape;
    let title = format!(
        "{} over {}",
        plural(shape.workers as u64, "worker", "workers"),
        shape.protocol
    );
    let title = page.style().apply(Emphasis::Strong, &title);
    page.line(&title);
    page.wrapped(Emphasis::Faint, &layout(shape));
    if summary.interrupted {
        page.line("");
        page.marked(
            "!",
            Emphasis::Warning,
            "interrupted: what was measured until then follows",
        );
    }
}

fn layout(shape: &LoadtestShape) -> String {
    let connections = match shape.connections {
        LoadtestConnections::Kept => "a connection kept by each",
        LoadtestConnections::Fresh => "a fresh connection for each check",
        LoadtestConnections::Shared => "connections shared",
    };
    let network = if shape.own_network {
        ", in a network namespace of its own"
    } else {
        ""
    };
    format!(
        "closed loop, {connections}, {}, {} with a ramp of {}, timeout {}{network}",
        plural(shape.listeners as u64, "listener", "listeners"),
        duration(shape.duration),
        duration(shape.ramp),
        duration(shape.timeout),
    )
}

fn checks(page: &mut Page, summary: &LoadtestSummary) {
    let shape = &summary.shape;
    let counts = &summary.found.counts;
    page.heading("checks", &format!("in {}", duration(summary.elapsed)));
    let success = counts.ok - counts.unmet;
    let of_all = share(success, counts.started);
    let processes = match shape.processes {
        1 => "checks and answers".to_owned(),
        _ => format!(
            "{} that check, {} that answer, and the {}",
            shape.client_processes,
            shape.origin_processes,
            if summary.agents.is_empty() {
                "first"
            } else {
                "agents"
            }
        ),
    };
    let mut rows = vec![
        ("total", count(counts.started), ""),
        ("success", count(success), of_all.as_str()),
        ("rps", rate_figures(summary.requests_per_second()), ""),
    ];
    for (label, number, remark) in [
        ("failed", counts.failed, "no complete response"),
        ("unmet", counts.unmet, "not with status 200"),
        ("aborted", counts.aborted, "under way at the end"),
    ] {
        if number > 0 {
            rows.push((label, count(number), remark));
        }
    }
    let opened = count(summary.found.connections_opened);
    rows.push(("connections", opened, "opened"));
    rows.push(("processes", count(shape.processes as u64), &processes));
    let memory = summary
        .peak_memory_bytes
        .map_or_else(|| NOTHING.to_owned(), bytes);
    rows.push(("rss", memory, "at its peak, all processes"));
    page.remarks(&rows);
}

fn latency(page: &mut Page, summary: &LoadtestSummary) {
    let latency = &summary.found.latency;
    page.heading("latency", "of a check, opening a connection included");
    let quantile = |fraction| optional(latency.quantile(fraction));
    page.remarks(&[
        ("p50", quantile(0.5), ""),
        ("p95", quantile(0.95), ""),
        ("p99", quantile(0.99), ""),
        ("max", optional(latency.max()), ""),
    ]);
}

fn failures(page: &mut Page, summary: &LoadtestSummary) {
    if summary.found.failures.is_empty() {
        return;
    }
    page.heading("failures", "with the first cause of each");
    for failure in &summary.found.failures {
        let text = format!("{} during {}", failure.kind, failure.phase);
        let text = page.style().apply(Emphasis::Error, &text);
        page.line(&format!("  {:>15}  {text}", count(failure.count)));
        if let Some(cause) = &failure.example.cause {
            let cause = shortened(cause, WIDTH - 19);
            page.line(&format!("{:19}{cause}", ""));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::loadtests;

    #[test]
    fn summaries() {
        for (name, summary) in loadtests::all() {
            insta::assert_snapshot!(name, loadtest(&summary, Style::Plain));
        }
    }

    #[test]
    fn agents_stand_side_by_side_in_80_columns() {
        let agent = |name: &str, per_second| AgentStanding {
            name: name.to_owned(),
            per_second,
            ..AgentStanding::default()
        };
        let failing = AgentStanding {
            errors: 1_234,
            ..agent("web2", Some(9_876.4))
        };
        let lost = AgentStanding {
            is_over: true,
            is_lost: true,
            ..agent("web3", None)
        };
        let line = loadtest_agents(
            &[
                agent("web1", Some(21_345.0)),
                failing,
                lost,
                agent("web4", None),
            ],
            Style::Plain,
        );
        assert_eq!(
            line,
            "      web1 21,345/s  web2 9,876/s 1,234 failed  web3 lost  web4 -"
        );
        let many = vec![agent("a-machine-with-a-long-name-indeed", Some(1.0)); 9];
        let line = loadtest_agents(&many, Style::Plain);
        assert!(line.chars().count() <= WIDTH, "{line}");
    }

    #[test]
    fn lines() {
        let tick = loadtests::tick;
        let idle = LoadtestTick::default();
        let lines = [
            loadtest_line(&tick(1), &idle, Style::Plain),
            loadtest_line(&tick(2), &tick(1), Style::Plain),
            loadtest_line(&idle, &idle, Style::Plain),
        ];
        insta::assert_snapshot!(lines.join("\n"));
        let most = LoadtestTick {
            ok: u64::MAX,
            errors: u64::MAX,
            in_flight: u64::MAX,
            memory_bytes: Some(u64::MAX),
            ..tick(1_000_000)
        };
        let line = loadtest_line(&most, &idle, Style::Plain);
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
}
