//! `report.html`: the rows of its tables.

use regex::Regex;

use super::{Figures, Statuses, parse_figure};

/// Rows by their heading.
const ROWS: [(&str, &str); 19] = [
    ("started", "started"),
    ("ok", "ok"),
    ("failed", "failed"),
    ("aborted", "aborted"),
    ("dropped", "dropped"),
    ("missed", "missed"),
    ("received", "received"),
    ("sent", "sent"),
    ("connections", "connections opened"),
    ("in window", "completed in window"),
    ("min", "min"),
    ("mean", "mean"),
    ("p50", "p50"),
    ("p75", "p75"),
    ("p90", "p90"),
    ("p95", "p95"),
    ("p99", "p99"),
    ("p99.9", "p99.9"),
    ("max", "max"),
];

pub(super) fn figures(page: &str) -> Figures {
    let rows = rows(page);
    ROWS.into_iter()
        .filter_map(|(name, heading)| {
            let (_, value) = rows.iter().find(|(found, _)| *found == heading)?;
            Some((name, parse_figure(value)?))
        })
        .collect()
}

pub(super) fn statuses(page: &str) -> Statuses {
    let rows = rows(page).into_iter();
    let statuses = rows.filter_map(|(heading, value)| {
        let status = heading.parse().ok()?;
        Some((status, value.replace(',', "").parse().ok()?))
    });
    statuses.collect()
}

/// Headings with the first value behind each.
fn rows(page: &str) -> Vec<(&str, &str)> {
    let row = Regex::new(r"<tr><th>([^<]*)</th><td>([^<]*)</td>").expect("the pattern is valid");
    let rows = row.captures_iter(page).map(|found| {
        let [heading, value] = found.extract().1;
        (heading, value)
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_by_their_heading() {
        let page = "<tr><th>started</th><td>1,200</td></tr><tr><th>p99</th><td>≥ 8.02 ms</td></tr>";
        let figures = figures(page);
        assert!((figures["started"].value - 1200.0).abs() < 1e-9);
        assert!(figures["p99"].is_bound);
        let page = "<tr><th>200</th><td>1,200</td></tr><tr><th>cores</th><td>2</td></tr>";
        assert_eq!(statuses(page), Statuses::from([(200, 1200)]));
    }
}
