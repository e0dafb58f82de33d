//! One exchange, as a person reads it: the verdict, the way, the time, the conditions.

use std::time::Duration;

use plimsoll_model::{
    Checked, CheckedCall, CheckedRedirect, Exchange, Judgement, Phase, TlsSession, Verdict,
};

use super::WIDTH;
use super::numbers::{NOTHING, bytes, count, duration};
use super::page::{Page, padded_left, padded_right, shortened, width};
use super::style::{Emphasis, Style};
use crate::date::date;

/// Columns of the bars of all phases together.
const BAR: usize = 48;

/// Conditions that are longer do not take part in the alignment of what was found.
const ALIGNED: usize = 46;

/// The exchange, the principal facts first.
pub fn check(checked: &Checked, style: Style) -> String {
    let mut page = Page::new(style);
    title(&mut page, checked);
    redirects(&mut page, &checked.redirects);
    conditions(&mut page, &checked.judgements);
    if let Some(answer) = &checked.call {
        call(&mut page, answer);
    }
    phases(&mut page, checked);
    connection(&mut page, checked);
    page.finish()
}

fn title(page: &mut Page, checked: &Checked) {
    let url = shortened(
        &checked.url,
        WIDTH.saturating_sub(width(&checked.method) + 1),
    );
    let title = format!("{} {url}", checked.method);
    let title = page.style().apply(Emphasis::Strong, &title);
    page.line(&title);
    let exchange = &checked.exchange;
    let took = duration(exchange.latency_from_started());
    match &exchange.outcome {
        Ok(status) => {
            let emphasis = match checked.verdict() {
                Verdict::Met => Emphasis::Strong,
                Verdict::Unmet | Verdict::Failed => Emphasis::Error,
            };
            let status = page.style().apply(emphasis, &status.to_string());
            page.line(&format!(
                "{status} in {took}, {} of content",
                bytes(checked.content_bytes)
            ));
        }
        Err(failure) => {
            let text = format!("failed after {took}: {failure}");
            page.marked("✗", Emphasis::Error, &text);
        }
    }
}

fn redirects(page: &mut Page, redirects: &[CheckedRedirect]) {
    if redirects.is_empty() {
        return;
    }
    page.heading("redirects", "");
    let times: Vec<String> = redirects.iter().map(|it| duration(it.took)).collect();
    let time_width = times.iter().map(|text| width(text)).max().unwrap_or(0);
    for (redirect, time) in redirects.iter().zip(&times) {
        let room = WIDTH.saturating_sub(time_width + 9);
        let (status, url) = (redirect.status, shortened(&redirect.url, room));
        page.line(&format!(
            "  {status}  {}  {url}",
            padded_left(time, time_width)
        ));
    }
}

fn conditions(page: &mut Page, judgements: &[Judgement]) {
    if judgements.is_empty() {
        return;
    }
    let unmet = judgements
        .iter()
        .filter(|judgement| judgement.met == Some(false))
        .count();
    let remark = if judgements[0].met.is_none() {
        "not judged: no complete response came".to_owned()
    } else if unmet == 0 {
        "all met".to_owned()
    } else {
        format!("{unmet} of {} unmet", judgements.len())
    };
    page.heading("conditions", &remark);
    let columns = judgements
        .iter()
        .map(|judgement| width(&judgement.condition))
        .filter(|columns| *columns <= ALIGNED)
        .max();
    for judgement in judgements {
        condition(page, judgement, columns.unwrap_or(0));
    }
}

/// The answer to a call of gRPC.
fn call(page: &mut Page, call: &CheckedCall) {
    page.heading("call", "");
    let emphasis = if call.status.is_ok() {
        Emphasis::Strong
    } else {
        Emphasis::Error
    };
    let status = format!("{} {}", call.status, call.status.code());
    page.line(&format!(
        "  {:<15}  {}",
        "status",
        page.style().apply(emphasis, &status)
    ));
    let shown = |text: &str| {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        shortened(&text, WIDTH - 19)
    };
    if let Some(message) = &call.message {
        page.line(&format!("  {:<15}  {}", "message", shown(message)));
    }
    page.line(&format!("  {:<15}  {}", "messages", count(call.messages)));
    if !call.json.is_empty() {
        page.line(&format!("  {:<15}  {}", "answer", shown(&call.json)));
    }
}

/// - `columns`: of the text, so that what was found is aligned.
fn condition(page: &mut Page, judgement: &Judgement, columns: usize) {
    let (word, emphasis) = match judgement.met {
        Some(true) => ("✓ met", None),
        Some(false) => ("✗ unmet", Some(Emphasis::Error)),
        None => ("  -", None),
    };
    let text = shortened(&judgement.condition, WIDTH - 11);
    let text = match judgement.met {
        Some(_) => padded_right(&text, columns),
        None => text,
    };
    let text = format!("  {}  {text}", padded_right(word, 7));
    let found = match (judgement.met, &judgement.observed) {
        (None, _) => String::new(),
        (Some(_), None) => "was not there".to_owned(),
        (Some(_), Some(observed)) => format!("was {observed}"),
    };
    let left = WIDTH.saturating_sub(width(&text) + 2);
    let is_beside = width(&found) <= left;
    let columns = if is_beside { left } else { WIDTH - 11 };
    let found = page
        .style()
        .apply(Emphasis::Faint, &shortened(&found, columns));
    let shown = match emphasis {
        Some(emphasis) => page.style().apply(emphasis, &text),
        None => text,
    };
    match (judgement.met, is_beside) {
        (None, _) => page.line(&shown),
        (Some(_), true) => page.line(&format!("{shown}  {found}")),
        (Some(_), false) => {
            page.line(&shown);
            page.line(&format!("{}{found}", " ".repeat(11)));
        }
    }
}

fn phases(page: &mut Page, checked: &Checked) {
    let exchange = &checked.exchange;
    let latency = exchange.latency_from_started();
    let mut rows: Vec<(Phase, Duration, &str)> = exchange
        .phases
        .iter()
        .map(|(phase, took)| (phase, took, "█"))
        .collect();
    if let Err(failure) = &exchange.outcome {
        let rest = latency.saturating_sub(exchange.phases.total());
        rows.push((failure.phase, rest, "░"));
    }
    page.heading("phases", "");
    let whole: Duration = rows.iter().map(|(_, took, _)| *took).sum();
    let times: Vec<String> = rows.iter().map(|(_, took, _)| duration(*took)).collect();
    let total = duration(latency);
    let time_width = times.iter().chain([&total]).map(|text| width(text)).max();
    let time_width = time_width.unwrap_or(0);
    let mut before = Duration::ZERO;
    for ((phase, took, mark), time) in rows.iter().zip(&times) {
        let bar = bar(before, *took, whole.as_secs_f64(), mark);
        before += *took;
        page.line(&format!(
            "  {}  {}  {bar}",
            padded_right(phase.name(), 15),
            padded_left(time, time_width)
        ));
    }
    let total = padded_left(&total, time_width);
    page.line(&format!(
        "  {}  {}",
        padded_right("total", 15),
        page.style().apply(Emphasis::Strong, &total)
    ));
}

/// Bar of a phase within the whole: at least one column, so that the shortest can be seen.
fn bar(before: Duration, took: Duration, whole: f64, mark: &str) -> String {
    let column = |at: Duration| {
        let share = if whole > 0.0 {
            at.as_secs_f64() / whole
        } else {
            0.0
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share is between 0 and 1, give or take"
        )]
        let column = (share * BAR as f64).round() as usize;
        column.min(BAR)
    };
    let start = column(before).min(BAR - 1);
    let end = column(before + took).max(start + 1);
    format!("{}{}", " ".repeat(start), mark.repeat(end - start))
}

fn connection(page: &mut Page, checked: &Checked) {
    let exchange = &checked.exchange;
    let mut rows = Vec::new();
    if let Some(peer) = exchange.peer {
        rows.push(("peer", peer.to_string()));
    }
    if exchange.outcome.is_ok() {
        rows.push(("protocol", exchange.protocol.to_string()));
    }
    if let Some(tls) = &checked.tls {
        session(&mut rows, tls, checked);
    }
    if exchange.bytes_sent > 0 || exchange.bytes_received > 0 {
        rows.push(("bytes", traffic(exchange)));
    }
    if !rows.is_empty() {
        page.heading("connection", "");
        page.pairs(&rows);
    }
}

fn traffic(exchange: &Exchange) -> String {
    format!(
        "{} sent, {} received",
        count(exchange.bytes_sent),
        count(exchange.bytes_received)
    )
}

fn session(rows: &mut Vec<(&'static str, String)>, tls: &TlsSession, checked: &Checked) {
    let resumed = if tls.resumed { ", resumed" } else { "" };
    let cipher = tls.cipher.as_deref().map(|cipher| format!(", {cipher}"));
    let cipher = cipher.unwrap_or_default();
    rows.push(("tls", format!("{}{cipher}{resumed}", tls.version)));
    let Some(certificate) = &tls.certificate else {
        return;
    };
    let or_nothing = |text: &str| match text {
        "" => NOTHING.to_owned(),
        text => text.to_owned(),
    };
    rows.push(("certificate", or_nothing(&certificate.subject)));
    if !certificate.names.is_empty() {
        rows.push(("names", names(&certificate.names)));
    }
    rows.push(("issuer", or_nothing(&certificate.issuer)));
    let days = certificate.days_left(checked.at);
    let left = match days {
        0.. => format!("{} days left", count(days.unsigned_abs())),
        _ => "expired".to_owned(),
    };
    let until = match date(certificate.not_after) {
        Some(date) => format!("{date}, {left}"),
        None => left,
    };
    rows.push(("valid until", until));
}

/// The first names; a certificate may have hundreds.
fn names(all: &[String]) -> String {
    const SHOWN: usize = 4;

    let shown = all
        .iter()
        .take(SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
