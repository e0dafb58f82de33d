//! The files of one run, as `--out DIR` keeps them.

use plimsoll_model::{RunSummary, escaped_html};

use crate::document::ConditionsDocument;
use crate::export::{Exporter, Html};
use crate::page::unbroken;
use crate::record::RunRecord;
use crate::text::{Detail, Style};
use crate::{SummaryDocument, latency_log, series_csv, text};

/// The summary for programs, by `schemas/load-summary.v1.json`.
pub const SUMMARY_JSON: &str = "summary.json";
/// The summary for people, as printed.
pub const SUMMARY_TEXT: &str = "summary.txt";
/// One row a second.
pub const SERIES_CSV: &str = "series.csv";
/// Latencies in the HdrHistogram V2 log format.
pub const LATENCY_HDR: &str = "latency.hdr";
/// The conditions alone.
pub const CONDITIONS_JSON: &str = "conditions.json";

/// The page for people.
pub const REPORT_HTML: &str = "report.html";

/// All of them.
pub const NAMES: [&str; 6] = [
    SUMMARY_JSON,
    SUMMARY_TEXT,
    SERIES_CSV,
    LATENCY_HDR,
    CONDITIONS_JSON,
    REPORT_HTML,
];

/// The data of `handleSummary()`, of runs of scripts.
pub const SCRIPT_JSON: &str = "script.json";

/// A flame graph of the measured window.
pub const PROFILE_SVG: &str = "profile.svg";
/// Its folded stacks.
pub const PROFILE_FOLDED: &str = "profile.folded";
/// The same for pprof.
pub const PROFILE_PPROF: &str = "profile.pb.gz";

/// Those that are there only if a profile was taken.
pub const PROFILE_NAMES: [&str; 3] = [PROFILE_SVG, PROFILE_FOLDED, PROFILE_PPROF];

/// A file's name and content.
pub type NamedFile = (&'static str, Vec<u8>);

/// Every file of `run`, in a fixed order.
pub fn of_run(run: &RunSummary) -> Vec<NamedFile> {
    vec![
        (
            SUMMARY_JSON,
            SummaryDocument::from_summary(run).to_json().into_bytes(),
        ),
        (
            SUMMARY_TEXT,
            text::summary(run, Detail::Full, Style::Plain).into_bytes(),
        ),
        (SERIES_CSV, series_csv(run).into_bytes()),
        (LATENCY_HDR, latency_log(run)),
        (
            CONDITIONS_JSON,
            ConditionsDocument::from_conditions(&run.conditions)
                .to_json()
                .into_bytes(),
        ),
        (
            REPORT_HTML,
            Html.export(&[RunRecord::from_summary("run", run)]),
        ),
    ]
}

/// Before this, further sections of the page are added. Text on the page is escaped, so there is one footer.
const FOOTER: &str = "<footer>";

/// A table that a page has beside those of every run: of a script, or of what functions cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraTable {
    /// Its title, plain text.
    pub title: String,
    /// The heads of its columns.
    pub head: Vec<String>,
    /// As many cells as `head` has.
    pub rows: Vec<Vec<String>>,
}

impl ExtraTable {
    /// A section with its title.
    pub(crate) fn html(&self) -> String {
        let cells = |cells: &[String], tag: &str| {
            let cells = cells.iter();
            let cells = cells.map(|cell| format!("<{tag}>{}</{tag}>", cell_html(cell)));
            cells.collect::<String>()
        };
        let rows = self.rows.iter();
        let rows = rows.map(|row| format!("<tr>{}</tr>", cells(row, "td")));
        format!(
            "<section><h2>{}</h2><div class=\"wide\"><table><tr>{}</tr>{}</table></div></section>\n",
            escaped_html(&self.title),
            cells(&self.head, "th"),
            rows.collect::<String>()
        )
    }
}

/// Longer words are broken on a narrow screen.
const LONG: usize = 20;

/// The text of a cell, in which a number stays with its unit and the name of a metric is broken between its parts.
fn cell_html(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let word_html = escaped_html(word);
        if word.len() <= LONG {
            return word_html;
        }
        word_html.replace('_', "_<wbr>").replace('{', "<wbr>{")
    });
    unbroken(&words.collect::<Vec<_>>().join(" "))
}

/// A page of results with further tables, each a section of its own. Tables without rows are left out.
pub fn with_tables(page: &[u8], tables: &[ExtraTable]) -> Vec<u8> {
    let mut sections = String::new();
    for table in tables.iter().filter(|table| !table.rows.is_empty()) {
        sections.push_str(&table.html());
    }
    sections.push_str(FOOTER);
    let page = String::from_utf8_lossy(page).replacen(FOOTER, &sections, 1);
    page.into_bytes()
}

/// The files of a script's run: those of every run, and its summary as JSON. Tables without rows are left out.
///
/// - `summary`: the data of `handleSummary()`.
pub fn of_script(run: &RunSummary, tables: &[ExtraTable], summary: String) -> Vec<NamedFile> {
    let mut files = of_run(run);
    for (name, content) in &mut files {
        if *name == REPORT_HTML {
            *content = with_tables(content, tables);
        }
    }
    files.push((SCRIPT_JSON, summary.into_bytes()));
    files
}

/// The same with the files of a profile, to which the page then has a link.
///
/// - `profile`: some of [`PROFILE_NAMES`], or none.
pub fn of_run_with(run: &RunSummary, profile: Vec<NamedFile>) -> Vec<NamedFile> {
    let mut files = of_run(run);
    if profile.iter().any(|(name, _)| *name == PROFILE_SVG) {
        let link = format!(
            "<section><h2>Profile</h2><p><a href=\"{PROFILE_SVG}\">Where the target's processor time \
             went</a> in the measured window, as a flame graph</p></section>\n{FOOTER}"
        );
        for (name, content) in &mut files {
            if *name == REPORT_HTML {
                let page = String::from_utf8_lossy(content).replacen(FOOTER, &link, 1);
                *content = page.into_bytes();
            }
        }
    }
    files.extend(profile);
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_run_gives_every_file() {
        for (name, run) in fixture::all() {
            let files = of_run(&run);
            let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
            assert_eq!(
                names,
                [
                    "summary.json",
                    "summary.txt",
                    "series.csv",
                    "latency.hdr",
                    "conditions.json",
                    "report.html"
                ]
            );
            for (file, content) in files {
                assert_eq!(content.last(), Some(&b'\n'), "{file} of {name}");
            }
        }
    }

    #[test]
    fn a_page_has_a_link_to_a_profile_if_there_is_one() {
        let (_, run) = fixture::all().remove(0);
        let page = |files: Vec<NamedFile>| {
            let page = files.into_iter().find(|(name, _)| *name == REPORT_HTML);
            String::from_utf8(page.unwrap().1).unwrap()
        };
        let profile = vec![(PROFILE_SVG, b"<svg/>".to_vec())];
        let files = of_run_with(&run, profile);
        assert_eq!(files.len(), NAMES.len() + 1);
        assert!(page(files).contains("<a href=\"profile.svg\">"));
        assert_eq!(page(of_run_with(&run, Vec::new())), page(of_run(&run)));
    }

    #[test]
    fn the_page_of_a_script_has_its_tables() {
        let (_, run) = fixture::all().remove(0);
        let table = |title: &str, rows: &[[&str; 2]]| ExtraTable {
            title: title.to_owned(),
            head: vec!["check".to_owned(), "passed".to_owned()],
            rows: rows
                .iter()
                .map(|row| row.map(str::to_owned).to_vec())
                .collect(),
        };
        let rows = [["a < b", "3"], ["http_req_duration{a:b}", "3 ms"]];
        let tables = [table("Checks", &rows), table("Nothing", &[])];
        let files = of_script(&run, &tables, "{}".to_owned());
        assert_eq!(files.len(), NAMES.len() + 1);
        let (_, page) = files.iter().find(|(name, _)| *name == REPORT_HTML).unwrap();
        let page = String::from_utf8_lossy(page);
        assert!(page.contains("<h2>Checks</h2>"));
        assert!(page.contains("<td>a &lt; b</td><td>3</td>"));
        assert!(page.contains("<td>http_<wbr>req_<wbr>duration<wbr>{a:b}</td><td>3\u{a0}ms</td>"));
        assert!(!page.contains("Nothing"));
    }
}
