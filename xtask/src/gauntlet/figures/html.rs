//! `report.html`: the rows of its tables.

use regex::Regex;

use super::{Figures, parse_figure};

/// Rows by their heading.
const ROWS: [(&str, &str); 13] = [
    ("started", "started"),
    ("ok", "ok"),
    ("failed", "failed"),
    ("aborted", "aborted"),
    ("dropped", "dropped"),
    ("missed", "missed"),
    ("received", "received"),
    ("sent", "sent"),
    ("connections", "connections opened"),
    ("p50", "p50"),
    ("p90", "p90"),
    ("p99", "p99"),
    ("max", "max"),
];

pub(super) fn figures(page: &str) -> Figures {
    let row = Regex::new(r"<tr><th>([^<]*)</th><td>([^<]*)</td>").expect("the pattern is valid");
    let rows: Vec<(&str, &str)> = row
        .captures_iter(page)
        .map(|found| {
            let [heading, value] = found.extract().1;
            (heading, value)
        })
        .collect();
    ROWS.into_iter()
        .filter_map(|(name, heading)| {
            let (_, value) = rows.iter().find(|(found, _)| *found == heading)?;
            Some((name, parse_figure(value)?))
        })
        .collect()
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
    }
}
