//! The text of an attack: whether the server stayed healthy comes first.

use plimsoll_model::{CaseAnswer, ChaosCase, ChaosMemory, ChaosSummary, HealthyFigures};

use super::WIDTH;
use super::numbers::{bytes, count, duration, optional};
use super::page::{Page, padded_right, shortened};
use super::style::{Emphasis, Style};

/// Columns of an answer, and those that are left for the name of a case and what it is about.
const ANSWER: usize = "accepted as one, then ended, 200".len();
const ABOUT: usize = WIDTH - ANSWER - 8;

/// The summary, with a line feed at its end.
pub fn chaos(summary: &ChaosSummary, style: Style) -> String {
    let mut page = Page::new(style);
    let title = format!("{}: {}", summary.class, summary.about);
    page.wrapped(Emphasis::Strong, &title);
    page.wrapped(
        Emphasis::Faint,
        &format!(
            "{} at {}, for {}{}",
            summary.url,
            summary.address,
            duration(summary.elapsed),
            if summary.interrupted {
                ", interrupted"
            } else {
                ""
            }
        ),
    );
    objectives(&mut page, summary);
    page.heading("healthy client", "");
    healthy(&mut page, &summary.healthy);
    page.heading("hostile clients", "");
    hostile(&mut page, summary);
    if let Some(memory) = &summary.memory {
        page.heading("memory of the server", &memory.target);
        resident(&mut page, memory);
    }
    if !summary.cases.is_empty() {
        cases(&mut page, &summary.cases);
    }
    page.finish()
}

fn objectives(page: &mut Page, summary: &ChaosSummary) {
    let breached = summary.objectives.iter().filter(|it| !it.met).count();
    let remark = match breached {
        0 => "the server stayed healthy".to_owned(),
        breached => format!("{breached} of {} breached", summary.objectives.len()),
    };
    page.heading("objectives", &remark);
    for objective in &summary.objectives {
        let text = format!("{}: {}", objective.objective, objective.observed);
        if objective.met {
            page.line(&format!("  ✓ met       {text}"));
        } else {
            page.line(&format!("  ✗ breached  {text}"));
        }
    }
}

fn healthy(page: &mut Page, figures: &HealthyFigures) {
    let quantile = |fraction| optional(figures.latency.quantile(fraction));
    page.pairs(&[
        ("served", count(figures.served)),
        ("failed", count(figures.failed())),
        (
            "latency",
            format!(
                "p50 {}, p99 {}, max {}",
                quantile(0.5),
                quantile(0.99),
                optional(figures.latency.max())
            ),
        ),
    ]);
    if let Some(failure) = &figures.first_failure {
        page.pairs(&[("first failure", failure.clone())]);
    }
}

fn hostile(page: &mut Page, summary: &ChaosSummary) {
    let figures = &summary.hostile;
    let each = |name: &str, number: &u64| format!("{} {name}", count(*number));
    let mut rows = vec![
        ("sent", format!("{} {}", count(figures.sent), figures.unit)),
        (
            "connections",
            format!(
                "{} opened, {} could not be, {} ended by the server",
                count(figures.connections),
                count(figures.refused),
                count(figures.ended)
            ),
        ),
        (
            "bytes",
            format!(
                "{} sent, {} received",
                bytes(figures.bytes_sent),
                bytes(figures.bytes_received)
            ),
        ),
    ];
    let mut list = |label, parts: Vec<String>| {
        if !parts.is_empty() {
            rows.push((label, parts.join(", ")));
        }
    };
    let statuses = figures.statuses.iter();
    list(
        "responses",
        statuses
            .map(|(status, number)| match status {
                0 => count(*number),
                status => format!("{} × {status}", count(*number)),
            })
            .collect(),
    );
    let goaways = figures.goaways.iter();
    list("goaway", goaways.map(|(name, it)| each(name, it)).collect());
    let resets = figures.resets.iter();
    list("resets", resets.map(|(name, it)| each(name, it)).collect());
    page.pairs(&rows);
}

fn resident(page: &mut Page, memory: &ChaosMemory) {
    let ended = if memory.ended { "; it has ended" } else { "" };
    page.pairs(&[(
        "resident",
        format!(
            "{} before, {} at most, {} after{ended}",
            bytes(memory.before_bytes),
            bytes(memory.peak_bytes),
            bytes(memory.after_bytes)
        ),
    )]);
}

fn cases(page: &mut Page, cases: &[ChaosCase]) {
    let unsafe_cases = cases.iter().filter(|case| !case.is_safe()).count();
    let remark = match unsafe_cases {
        0 => format!("{}, each answered safely", cases.len()),
        some => format!("{some} of {} not answered safely", cases.len()),
    };
    page.heading("cases", &remark);
    let widest = cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
    for case in cases {
        let mark = if case.is_safe() { "✓" } else { "✗" };
        page.line(&format!(
            "  {mark} {}  {}  {}",
            padded_right(&case.name, widest),
            padded_right(&answer(case.answer), ANSWER),
            if case.is_safe() {
                String::new()
            } else {
                shortened(&case.about, ABOUT.saturating_sub(widest))
            },
        ));
    }
}

fn answer(answer: CaseAnswer) -> String {
    match answer.status() {
        Some(status) => format!("{}, {status}", answer.name()),
        None => answer.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::chaos as fixture;

    #[test]
    fn a_summary_reports_the_objectives_first() {
        insta::assert_snapshot!(chaos(&fixture::smuggled(), Style::Plain));
    }

    #[test]
    fn a_flood_reports_what_the_server_did() {
        insta::assert_snapshot!(chaos(&fixture::flooded(), Style::Plain));
    }
}
