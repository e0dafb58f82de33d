//! `plimsoll crawl`: what a site consists of, found by its links.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_model::{counted, parse_duration};
use plimsoll_site::crawl::{CrawlError, CrawlPlan, Crawled, CrawledUrl, crawl, json_list};
use plimsoll_site::{LinkPlace, load_links};
use tokio::runtime::Runtime;
use url::Url;

use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Crawl a site and report its URLs and broken links
///
/// Print one URL per line, ready for `load --from`. Exit with 1 if the first URL gets an error status.
#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Args {
    /// URL to start from; `-` or nothing reads it from standard input
    #[arg(value_name = "URL", default_value = "-")]
    url: String,

    /// Concurrent requests
    // Between what browsers open to one host (6) and what a small server notices.
    #[arg(short = 'c', long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u16).range(1..=256))]
    connections: u16,

    /// Maximum number of requests
    // A larger site is rarely meant, and an endless one (calendars, sessions in paths) has to end.
    #[arg(long, value_name = "N", default_value = "10000")]
    most: usize,

    /// Timeout of a request
    // A page that takes longer is of no use to a visitor either.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    timeout: Duration,

    /// Respect robots.txt
    #[arg(long)]
    robots: bool,

    /// Check links to places within pages too, such as `page.html#part`
    #[arg(long)]
    anchors: bool,

    /// Exit with 1 if a link is broken
    #[arg(long)]
    fail_on_broken: bool,

    /// Print the paths as a sorted JSON array without leading slashes
    #[arg(long)]
    json: bool,

    /// Write the aliases of these short links (file or URL) to redirects.json
    #[arg(long, value_name = "FILE|URL", requires = "out")]
    redirects: Option<String>,

    /// Write paths.json, urls.txt and, with --redirects, redirects.json into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let start = start(&args.url)?;
    let plan = CrawlPlan {
        start,
        concurrency: args.connections.into(),
        most: args.most,
        timeout: args.timeout,
        robots: args.robots,
        anchors: args.anchors,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Problem::new(format!("cannot start: {error}")).could_not_run())?;
    let crawled = runtime.block_on(crawl(&plan)).map_err(|error| {
        let problem = Problem::caused_by(&error);
        match error {
            CrawlError::Scheme(_) => problem.usage(),
            CrawlError::Prepare(_) | CrawlError::Start { .. } => problem.could_not_run(),
        }
    })?;
    let is_missing = crawled.start().is_some_and(CrawledUrl::is_broken);
    let urls = urls(&crawled);
    let mut without_aliases = None;
    if let Some(folder) = &args.out {
        write(folder, "paths.json", &json_list(&crawled.paths()))?;
        write(folder, "urls.txt", &urls)?;
        if let Some(links) = &args.redirects {
            match aliases(links, &runtime) {
                Ok(aliases) => write(folder, "redirects.json", &json_list(&aliases))?,
                // The site was crawled all the same.
                Err(failed) => without_aliases = Some(failed),
            }
        }
    }
    let text = if args.json {
        json_list(&crawled.paths())
    } else {
        urls
    };
    terminal::print(text.trim_end()).map_err(|error| Problem::caused_by(&error).could_not_run())?;
    report(&crawled, args.most);
    if let Some(failed) = without_aliases {
        return Err(failed);
    }
    Ok(
        if is_missing || args.fail_on_broken && crawled.broken().next().is_some() {
            Exit::Objective
        } else {
            Exit::Fine
        },
    )
}

/// The URL, from the command line or the first line of standard input.
fn start(given: &str) -> Result<Url, Failed> {
    let mut line = String::new();
    let text = if given == "-" {
        let read = std::io::stdin().lock().read_line(&mut line);
        read.map_err(|error| Problem::caused_by(&error).could_not_run())?;
        line.trim()
    } else {
        given
    };
    let with_scheme = if text.contains("://") {
        text.to_owned()
    } else {
        format!("http://{text}")
    };
    Url::parse(&with_scheme)
        .map_err(|error| Problem::with("URL", format!("`{text}` is no URL: {error}")).usage())
}

/// The URLs that respond, one a line.
fn urls(crawled: &Crawled) -> String {
    let fine = crawled.found.iter().filter(|(_, url)| !url.is_broken());
    fine.fold(String::new(), |lines, (url, _)| lines + url + "\n")
}

/// How often a list is requested, and the time between: servers that are about to start, or briefly overloaded, answer with a
/// page in place of the list.
const TRIES: usize = 3;
const BETWEEN_TRIES: Duration = Duration::from_secs(1);

/// The aliases of a list, sorted.
fn aliases(given: &str, runtime: &Runtime) -> Result<Vec<String>, Failed> {
    let place = if given.starts_with("http://") || given.starts_with("https://") {
        let url = Url::parse(given)
            .map_err(|error| Problem::with("--redirects", error.to_string()).usage())?;
        LinkPlace::Url(url)
    } else {
        LinkPlace::File(PathBuf::from(given))
    };
    let mut loaded = load_links(&place);
    for _ in 1..TRIES {
        if loaded.is_ok() || matches!(place, LinkPlace::File(_)) {
            break;
        }
        // A timer is made within the runtime.
        runtime.block_on(async { tokio::time::sleep(BETWEEN_TRIES).await });
        loaded = load_links(&place);
    }
    let links = loaded.map_err(|reason| {
        Problem::with("--redirects", format!("{place}: {reason}")).could_not_run()
    })?;
    let remarks: Vec<_> = links
        .remarks
        .iter()
        .map(|remark| Problem::new(format!("{place}{}: {}", remark.place, remark.message)))
        .collect();
    terminal::print_warnings(&remarks);
    let mut names: Vec<_> = links.entries.into_iter().map(|alias| alias.name).collect();
    names.sort();
    Ok(names)
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Failed> {
    let path = folder.join(name);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
    written.map_err(|error| {
        Problem::new(format!("cannot write {}: {error}", path.display())).could_not_run()
    })
}

/// Broken links, each with the pages that link to it, and the counts.
fn report(crawled: &Crawled, most: usize) {
    let broken: Vec<_> = crawled
        .broken()
        .map(|(url, found)| {
            let status = found.status.map(|status| status.to_string());
            let reason = status.or_else(|| found.failure.clone()).unwrap_or_default();
            let problem = Problem::new(format!("{url}: {reason}"));
            if found.referrers.is_empty() {
                return problem;
            }
            let referrers: Vec<_> = found.referrers.iter().map(String::as_str).collect();
            problem.hint(format!("linked from {}", referrers.join(", ")))
        })
        .collect();
    terminal::print_warnings(&broken);
    if crawled.is_cut_short {
        let message = format!("there is more than the {most} pages allowed by the limit");
        terminal::print_warnings(&[Problem::new(message).hint("--most takes more")]);
    }
    let count = counted(crawled.found.len() as u64, "URL");
    terminal::print_notes(&[Problem::new(format!("{count}, {} broken", broken.len()))]);
}
