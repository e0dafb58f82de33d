//! `plimsoll monitor export-pages`: a status page as files, for servers of static files.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_client::fetch::{Ask, Fetched, Fetcher};
use plimsoll_site::crawl::html_links;
use url::Url;

use crate::commands::monitor::done;
use crate::commands::monitor::server::LIMITS;
use crate::exit::Exit;
use crate::problem::{Failed, Problem};

/// What is exported, and from where.
#[derive(Debug, clap::Args)]
pub(super) struct ExportPages {
    /// Folder for the files, as the root of a site; files that it has are replaced
    dir: PathBuf,

    /// Page at `/status/SLUG`; the one at `/` unless it is given
    #[arg(long, value_name = "SLUG")]
    page: Option<String>,

    /// Address of the running monitor; with the host of a page, that page is at `/`
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: Url,
}

/// Files of one export.
const MOST: usize = 10_000;

/// Links from the start to a file: months of the history and occurrences of maintenance link to the next one without an end.
const MOST_STEPS: usize = 24;

/// Below a page: what no link leads to.
const UNLINKED: [&str; 8] = [
    "api/v2/summary.json",
    "api/v2/status.json",
    "api/v2/components.json",
    "api/v2/incidents.json",
    "api/v2/scheduled-maintenances.json",
    "badge.svg",
    "shields.json",
    "embed",
];

/// Below a page: what a file cannot do.
const LIVE: [&str; 4] = ["events", "subscribe", "share", "password"];

/// Below `/`: what is no part of the page there.
const OTHERS: [&str; 8] = [
    "admin", "agent", "api/v1", "healthz", "metrics", "ping", "readyz", "status",
];

pub(super) fn run(plan: &ExportPages) -> Result<Exit, Failed> {
    let path = match &plan.page {
        Some(slug) => format!("/status/{slug}/"),
        None => "/".to_owned(),
    };
    let start = plan
        .url
        .join(&path)
        .map_err(|error| could_not(&error, &plan.url))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| could_not(&error, &start))?;
    // Connections that are kept live on the runtime's thread.
    let local = tokio::task::LocalSet::new();
    let count = local.block_on(&runtime, export(&start, &plan.dir))?;
    done(&format!("{count} files in {}", plan.dir.display()))
}

async fn export(start: &Url, dir: &Path) -> Result<usize, Failed> {
    let fetcher = Fetcher::new(LIMITS).map_err(|error| could_not(&error, start))?;
    let mut known = BTreeSet::from([start.path().to_owned()]);
    let mut waiting = VecDeque::from([(start.clone(), 0)]);
    for name in UNLINKED {
        let url = start.join(name).map_err(|error| could_not(&error, start))?;
        known.insert(url.path().to_owned());
        waiting.push_back((url, 1));
    }
    let mut count = 0;
    while let Some((url, steps)) = waiting.pop_front() {
        let answer = fetcher.get(&url, Ask::default()).await;
        let answer = answer.map_err(|error| {
            Problem::caused_by(&error)
                .about(url.as_str())
                .hint("start the monitor with `plimsoll monitor`, or give the address of another one by --url")
                .could_not_run()
        })?;
        if answer.status != 200 {
            // A component or an incident may be gone since its page was read.
            if url == *start {
                return Err(refused(&url, answer.status));
            }
            continue;
        }
        let is_page = answer.content_type().starts_with("text/html");
        let Some(file) = file_of(&url, is_page) else {
            continue;
        };
        write(&dir.join(file), &answer.content)?;
        count += 1;
        if !is_page || steps == MOST_STEPS {
            continue;
        }
        for link in links(&answer, &url, start) {
            if known.len() >= MOST {
                return Err(Problem::new(format!("the page has more than {MOST} files"))
                    .about(start.as_str())
                    .could_not_run());
            }
            if known.insert(link.path().to_owned()) {
                waiting.push_back((link, steps + 1));
            }
        }
    }
    Ok(count)
}

/// The parts of the status page that a page links to, without their queries.
fn links(page: &Fetched, at: &Url, start: &Url) -> Vec<Url> {
    let html = String::from_utf8_lossy(&page.content);
    let found = html_links(&html, at).links.into_iter();
    found
        .filter(|link| is_part(link, start))
        .map(|mut link| {
            link.set_query(None);
            link.set_fragment(None);
            link
        })
        .collect()
}

fn is_part(link: &Url, start: &Url) -> bool {
    let Some(below) = link.path().strip_prefix(start.path()) else {
        return false;
    };
    let begins = |name: &&str| {
        let rest = below.strip_prefix(*name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_root = start.path() == "/";
    link.origin() == start.origin()
        && !LIVE.iter().any(&begins)
        && !(is_root && OTHERS.iter().any(begins))
}

/// Where a URL's file lies; `None` if its path is no place for one.
fn file_of(url: &Url, is_page: bool) -> Option<PathBuf> {
    let mut file = PathBuf::new();
    for segment in url.path_segments()?.filter(|it| !it.is_empty()) {
        let name = percent_encoding::percent_decode_str(segment).decode_utf8();
        let name = name.ok()?;
        if matches!(&*name, "." | "..") || name.contains(['/', '\\', '\0']) {
            return None;
        }
        file.push(&*name);
    }
    if is_page {
        file.push("index.html");
    }
    (file != Path::new("")).then_some(file)
}

fn write(file: &Path, content: &[u8]) -> Result<(), Failed> {
    let made = file.parent().map_or(Ok(()), fs::create_dir_all);
    let written = made.and_then(|()| plimsoll_wire::files::replace(file, content));
    written.map_err(|error| {
        Problem::caused_by(&error)
            .about(&file.display().to_string())
            .could_not_run()
    })
}

fn refused(start: &Url, status: u16) -> Failed {
    let problem = match status {
        401 | 403 => Problem::new("the page asks for a password: files would show it to everyone"),
        404 => Problem::new("there is no such page")
            .hint("give its slug by --page, or its host in --url"),
        status => Problem::new(format!("the monitor answers with status {status}")),
    };
    problem.about(start.as_str()).could_not_run()
}

fn could_not(error: &dyn std::error::Error, url: &Url) -> Failed {
    Problem::caused_by(error)
        .about(url.as_str())
        .could_not_run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_files_below_the_folder() {
        let file = |path: &str, is_page| {
            let url = Url::parse("http://a/").unwrap().join(path).unwrap();
            file_of(&url, is_page).map(|it| it.display().to_string())
        };
        assert_eq!(file("/", true).unwrap(), "index.html");
        assert_eq!(
            file("/components/a.b", true).unwrap(),
            "components/a.b/index.html"
        );
        assert_eq!(
            file("/components/%C3%BC", true).unwrap(),
            "components/ü/index.html"
        );
        assert_eq!(file("/badge.svg", false).unwrap(), "badge.svg");
        for path in ["/a%2f..%2fb", "/%5c", "/%00", "/%ff"] {
            assert_eq!(file(path, true), None, "{path}");
        }
    }

    #[test]
    fn only_what_a_file_can_show_is_a_part() {
        let part = |start: &str, link: &str| {
            is_part(&Url::parse(link).unwrap(), &Url::parse(start).unwrap())
        };
        for (link, expected) in [
            ("http://a/history", true),
            ("http://a/events", false),
            ("http://a/subscribe/feed", false),
            ("http://a/admin/", false),
            ("http://a/status/b/", false),
            ("http://a/statuses", true),
            ("http://b/history", false),
            ("https://a/history", false),
        ] {
            assert_eq!(part("http://a/", link), expected, "{link}");
        }
        assert!(part("http://a/status/b/", "http://a/status/b/incidents/m1"));
        assert!(!part("http://a/status/b/", "http://a/history"));
    }
}
