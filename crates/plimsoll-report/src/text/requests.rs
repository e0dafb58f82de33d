//! The table of figures per request.

use plimsoll_model::{RequestFigures, RunSummary};

use super::numbers::{NOTHING, bounded, count, share};
use super::page::{Page, shortened};
use super::style::Emphasis;

/// Rows that are printed; all of them are in the JSON and HTML documents.
const MOST: usize = 10;

/// Columns of a name.
const NAME: usize = 36;

/// Adds the table to `page`, the worst request first; nothing where there is only one.
pub(super) fn requests(page: &mut Page, run: &RunSummary) {
    if run.requests.is_empty() {
        return;
    }
    let site = site(&run.load.url);
    let shown = run.requests.iter().take(MOST);
    let more = match run.requests.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("the worst {MOST}, {more} more in --json and report.html"),
    };
    page.heading("by request", &more);
    page.line(&format!(
        "  {:<NAME$}{:>10}{:>10}{:>10}{:>10}",
        "", "count", "errors", "p50", "p99"
    ));
    for figures in shown {
        let line = line(figures, site);
        if figures.errors() > 0 {
            let line = page.style().apply(Emphasis::Error, &line);
            page.line(&line);
        } else {
            page.line(&line);
        }
    }
}

/// Scheme, host and port of `url`: the first request's, which need not be repeated in each row.
pub(super) fn site(url: &str) -> &str {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let rest = url.get(authority..).unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    url.get(..authority + end).unwrap_or_default()
}

/// - `site`: left out of names.
fn line(figures: &RequestFigures, site: &str) -> String {
    let name = figures.name.replacen(site, "", 1);
    let errors = match figures.errors() {
        0 => NOTHING.to_owned(),
        errors => share(errors, figures.count()),
    };
    let quantile = |fraction| bounded(figures.latency.quantile(fraction));
    format!(
        "  {:<NAME$}{:>10}{errors:>10}{:>10}{:>10}",
        shortened(&name, NAME - 1),
        count(figures.count()),
        quantile(0.5),
        quantile(0.99),
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::super::style::Style;
    use super::*;
    use crate::fixture;

    fn printed(requests: Vec<RequestFigures>) -> String {
        let mut page = Page::new(Style::Plain);
        let run = RunSummary {
            requests,
            ..fixture::closed()
        };
        super::requests(&mut page, &run);
        page.finish()
    }

    #[test]
    fn the_worst_request_comes_first() {
        assert_snapshot!(printed(fixture::requests()), @"
    by request
                                               count    errors       p50       p99
      POST /login                                406    10.1 %   9.49 ms   21.0 ms
      search                                   2,030         -   48.0 ms    108 ms
      GET /products/{{id}}                     8,120         -   1.10 ms   2.47 ms
    ");
    }

    #[test]
    fn a_long_table_is_cut() {
        let many = (0..25).map(|number| RequestFigures {
            name: format!("GET /{number}"),
            ok: 7,
            ..RequestFigures::default()
        });
        let text = printed(many.collect());
        assert_eq!(
            text.lines().filter(|line| line.contains("GET /")).count(),
            MOST
        );
        assert!(text.contains("15 more"), "{text}");
    }

    #[test]
    fn a_single_request_has_no_table() {
        assert_eq!(printed(Vec::new()).trim(), "");
    }
}
