//! The table of servers that were observed: what each tier of a request costs.

use plimsoll_model::{ClockDifference, DurationText, ObservedServer, RunSummary, ServerCost, Unit};

use crate::text::numbers::{NOTHING, bytes, duration, uncertainty};
use crate::text::page::{Page, shortened};

/// Columns of a name.
const NAME: usize = 18;

/// Adds the table; nothing where no server was observed by name.
pub(super) fn servers(page: &mut Page, run: &RunSummary) {
    if run.observed.is_empty() {
        return;
    }
    page.heading("cost of each server", "");
    let head = ["", "CPU/req", "memory", "throttled", "gaps", "clock offset"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    // One that was observed is in the list by its own name.
    if let Some(target) = &run.target
        && run
            .observed
            .iter()
            .all(|server| server.target != target.name)
    {
        let mut row = vec![shortened(&target.name, NAME)];
        row.extend(of_cost(target, run));
        row.extend([NOTHING, NOTHING, NOTHING].map(str::to_owned));
        rows.push(row);
    }
    rows.extend(run.observed.iter().map(|server| row(server, run)));
    page.table(&rows);
    page.line("");
}

fn row(server: &ObservedServer, run: &RunSummary) -> Vec<String> {
    let mut row = vec![shortened(&server.name, NAME)];
    match &server.cost {
        Some(cost) => row.extend(of_cost(cost, run)),
        None => row.extend([NOTHING, NOTHING].map(str::to_owned)),
    }
    if !server.is_whole {
        // That of a part of the window; a caution says of which.
        row[1].push('*');
    }
    let throttled = server.throttled.filter(|it| !it.time.is_zero());
    row.push(throttled.map_or(NOTHING.to_owned(), |it| duration(it.time)));
    let unseen = server.unseen();
    row.push(if unseen.is_zero() {
        NOTHING.to_owned()
    } else {
        duration(unseen)
    });
    row.push(server.clock.map_or(NOTHING.to_owned(), clock));
    row
}

fn of_cost(cost: &ServerCost, run: &RunSummary) -> [String; 2] {
    let per_request = cost.cost.cpu_us_per_request();
    [
        per_request.map_or(NOTHING.to_owned(), |micros| {
            let uncertainty = uncertainty(micros, run.server_cpu_error_us(cost));
            format!("{}{uncertainty}", Unit::Microseconds.show(micros))
        }),
        bytes(cost.memory.total_bytes()),
    ]
}

/// `+3.00 s ± 0.12 ms`.
fn clock(clock: ClockDifference) -> String {
    let sign = if clock.offset_ns < 0 { '−' } else { '+' };
    let offset = std::time::Duration::from_nanos(clock.offset_ns.unsigned_abs());
    format!(
        "{sign}{} ± {}",
        DurationText(offset),
        DurationText(clock.error)
    )
}
