//! `cargo xtask book`: the documentation site, built by mdBook, then served and crawled by plimsoll itself.
//!
//! No link and no anchor may be broken, every page of `docs/` has to be reached, and no page may load anything from another host.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use regex::Regex;

use crate::bench::{free_ports, target_directory};
use crate::server::{Server, wait_for};
use crate::step::{self, cargo};
use crate::tidy::markdown_files;
use crate::{Failure, Outcome};

/// Version of mdBook that is installed, unless that one has been.
const MDBOOK: &str = "0.5.4";

/// Path of the site where it is crawled: links from the root of the host break there.
const BASE: &str = "/plimsoll/";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Path at which the site will lie on its host, with a slash at both ends
    #[arg(long, value_name = "PATH", default_value = BASE)]
    site_url: String,
    /// Only build it
    #[arg(long)]
    no_crawl: bool,
    /// Use this program instead of building plimsoll
    #[arg(long, value_name = "FILE", conflicts_with = "no_crawl")]
    program: Option<PathBuf>,
}

/// Runs the task.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Outcome {
    let target = target_directory(root)?;
    let mdbook = mdbook(root, &target)?;
    let site = target.join("book");
    let mut build = Command::new(mdbook);
    build
        .args(["build", "--dest-dir"])
        .arg(&site)
        .env("MDBOOK_OUTPUT__HTML__SITE_URL", &arguments.site_url);
    step::run(root, &mut build)?;
    let foreign = foreign_resources(&site)?;
    if !foreign.is_empty() {
        return Err(format!("pages load from other hosts:\n{}", foreign.join("\n")).into());
    }
    if arguments.no_crawl {
        return Ok(());
    }
    let program = if let Some(program) = &arguments.program {
        program.clone()
    } else {
        step::run(root, &mut cargo(&["build", "--locked", "-p", "plimsoll"]))?;
        target.join("debug/plimsoll")
    };
    crawl(root, &target, &site, &arguments.site_url, &program)
}

/// mdBook in a folder of its own, so that no other version that is installed builds the site.
fn mdbook(root: &Path, target: &Path) -> Result<PathBuf, Failure> {
    let folder = target.join(format!("tools/mdbook-{MDBOOK}"));
    let program = folder.join("bin/mdbook");
    if !program.is_file() {
        // It runs for seconds; with optimisation it takes several times as long to compile.
        let arguments = [
            "install",
            "--locked",
            "--debug",
            "--no-default-features",
            "--features",
            "search",
            "mdbook",
            "--version",
            MDBOOK,
            "--root",
        ];
        let mut install = cargo(&arguments);
        install.arg(&folder).env("CARGO_PROFILE_DEV_DEBUG", "false");
        step::run(root, &mut install)?;
    }
    Ok(program)
}

/// Serves the site at its path and crawls it.
fn crawl(root: &Path, target: &Path, site: &Path, base: &str, program: &Path) -> Outcome {
    let [port] = free_ports()?;
    let config = target.join("book.toml");
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:{port}\"\n\n[[route]]\nprefix = {:?}\nfiles = {{ root = {:?} }}\n",
        format!("/{}", base.trim_matches('/')),
        site.to_string_lossy()
    );
    fs::write(&config, text)
        .map_err(|error| format!("cannot write {}: {error}", config.display()))?;
    let _server = Server::start(Command::new(program).arg("up").arg(&config))?;
    wait_for(port)?;
    let host = format!("http://127.0.0.1:{port}");
    let mut crawl = Command::new(program);
    crawl
        .arg("crawl")
        .arg(format!("{host}{base}"))
        .args(["--anchors", "--fail-on-broken"]);
    println!("$ {}", step::shown(&crawl));
    let found = step::output(root, &mut crawl)?;
    let missing = not_reached(
        &found,
        &format!("{host}{base}"),
        &markdown_files(&root.join("docs"))?,
    );
    if missing.is_empty() {
        println!("{} URLs, none broken", found.lines().count());
        Ok(())
    } else {
        Err(format!("no link leads to {}", missing.join(", ")).into())
    }
}

/// The pages of `docs/` that a crawl has not found.
///
/// - `found`: URLs, one a line.
/// - `pages`: paths below `docs/`.
fn not_reached(found: &str, base: &str, pages: &[PathBuf]) -> Vec<String> {
    let is_found = |page: &str| {
        let url = format!("{base}{page}");
        found.lines().any(|line| line == url)
    };
    pages
        .iter()
        .filter(|page| !page.ends_with("SUMMARY.md"))
        .map(|page| page.with_extension("").to_string_lossy().into_owned())
        .filter(|page| {
            // The server has clean URLs, and mdBook makes index.html of README.md.
            let index = page.strip_suffix("README");
            let spellings = [page.clone(), format!("{page}.html")];
            !spellings.iter().any(|page| is_found(page)) && !index.is_some_and(is_found)
        })
        .collect()
}

/// Scripts, styles, images and frames of other hosts: `PAGE: ELEMENT`.
fn foreign_resources(site: &Path) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![site.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder)
            .map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            let is_read = path
                .extension()
                .is_some_and(|it| ["html", "css", "svg"].iter().any(|kind| it == *kind));
            if path.is_dir() {
                folders.push(path);
            } else if is_read {
                let text = fs::read_to_string(&path)
                    .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
                let name = path.strip_prefix(site).unwrap_or(&path);
                let elements = loaded_from_elsewhere(&text);
                found.extend(elements.map(|element| format!("{}: {element}", name.display())));
            }
        }
    }
    Ok(found)
}

/// What a page or style sheet loads from other hosts. Links that a reader follows are none.
fn loaded_from_elsewhere(text: &str) -> impl Iterator<Item = String> {
    let patterns = [
        r#"<(?:script|img|iframe|source|link|image|use|object|embed)\b[^>]*?\b(?:src|srcset|href|data)="(?:https?:)?//[^>]*>"#,
        r#"(?:url\(\s*["']?|@import\s+["'])(?:https?:)?//[^)"']*"#,
    ];
    patterns.into_iter().flat_map(move |pattern| {
        let pattern = Regex::new(pattern).expect("the pattern is valid");
        let found: Vec<_> = pattern
            .find_iter(text)
            .map(|found| found.as_str().to_owned())
            .collect();
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pages_load_from_other_hosts_is_found() {
        let text = r#"<a href="https://a.example/">a</a><script src="https://cdn.example/x.js"></script>
            <link rel="stylesheet" href="//fonts.example/a.css"><img src="images/a.png">
            <style>a { b: url(https://c.example/d.png) } c { d: url("e.png") }</style>"#;
        let found: Vec<_> = loaded_from_elsewhere(text).collect();
        assert_eq!(
            found,
            [
                r#"<script src="https://cdn.example/x.js">"#,
                r#"<link rel="stylesheet" href="//fonts.example/a.css">"#,
                "url(https://c.example/d.png"
            ]
        );
    }

    #[test]
    fn pages_that_no_link_leads_to_are_found() {
        let found = "http://a/b/\nhttp://a/b/load\nhttp://a/b/tutorials/one.html\n";
        let pages = [
            "README.md",
            "SUMMARY.md",
            "load.md",
            "tutorials/one.md",
            "tutorials/two.md",
        ];
        let pages = pages.map(PathBuf::from);
        assert_eq!(not_reached(found, "http://a/b/", &pages), ["tutorials/two"]);
    }
}
