//! `plimsoll serve`: the files of a directory.

pub(crate) mod stand_in;

use std::path::{Path, PathBuf};

use plimsoll_model::document::readable_toml_string;
use plimsoll_model::{ByteSize, counted};
use plimsoll_server::Notices;

use crate::commands::serve::stand_in::{Original, StandIn};
use crate::commands::serving::{self, Brought};
use crate::exit::Exit;
use crate::flags::{ServingArgs, quoted_path};
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Serve the files of a directory
///
/// SIGTERM and Ctrl-C drain open connections; a second signal stops at once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory to serve [default: .]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,

    #[command(flatten)]
    site: SiteArgs,

    /// Reload pages in the browser when a file changes, and cache nothing (for development)
    #[arg(long, help_heading = "Site")]
    live: bool,

    /// Report all errors, print what would be served and exit
    #[arg(long, visible_alias = "validate", conflicts_with = "print_config")]
    check: bool,

    #[command(flatten)]
    serving: ServingArgs,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Site")]
pub(crate) struct SiteArgs {
    /// Index file of a directory, repeatable; the first that exists is served
    #[arg(long, value_name = "NAME")]
    index: Vec<String>,

    /// Do not serve about.html for /about
    #[arg(long)]
    no_clean_urls: bool,

    /// Handling of a missing or extra slash at the end of a path
    #[arg(long, value_name = "POLICY", value_parser = ["redirect", "ignore"])]
    trailing_slash: Option<String>,

    /// Serve this file for unknown paths whose last segment has no dot
    #[arg(long, value_name = "FILE")]
    fallback: Option<String>,

    /// Serve a single-page application: same as --fallback index.html
    #[arg(long, conflicts_with = "fallback")]
    spa: bool,

    /// List directories without an index file
    #[arg(long)]
    listing: bool,

    /// Serve names that begin with a dot
    #[arg(long)]
    hidden: bool,

    /// Disable compression; precompressed files are still served
    #[arg(long)]
    no_compress: bool,

    /// Cache-Control of every file [default: by its name]
    #[arg(long, value_name = "VALUE")]
    cache_control: Option<String>,

    /// Apply _redirects and _headers at the root in this dialect
    #[arg(long, value_name = "DIALECT", value_parser = ["netlify", "cloudflare"])]
    dialect: Option<String>,

    /// Short links from a file or URL, one alias and URL per line, for paths that name no file; repeatable
    #[arg(long, value_name = "FILE|URL")]
    redirects: Vec<String>,

    /// Redirect status of short links
    #[arg(long, value_name = "STATUS", value_parser = ["301", "302", "303", "307", "308"])]
    redirect_status: Option<String>,

    /// Refresh lists of short links from URLs at this interval
    #[arg(long, value_name = "TIME", value_parser = checked_duration)]
    refresh: Option<String>,

    /// Memory for cached files per worker
    #[arg(long, value_name = "SIZE", value_parser = plimsoll_model::parse_byte_size)]
    cache: Option<ByteSize>,
}

/// A duration as it was written.
fn checked_duration(text: &str) -> Result<String, String> {
    plimsoll_model::parse_duration(text)
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

/// Runs the command; under the variables of servy or gosherve, where these serve and as they do unless flags say otherwise.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    run_for(args, StandIn::of_environment()?)
}

/// Serves in the place of another program, under whose name it was started.
pub(crate) fn run_as(args: &Args, original: Original) -> Result<Exit, Failed> {
    run_for(args, Some(StandIn::for_program(original)?))
}

fn run_for(args: &Args, stand_in: Option<StandIn>) -> Result<Exit, Failed> {
    let serving = args.serving.or_check(args.check);
    let Some(stand_in) = stand_in else {
        args.site.check()?;
        let directory = args.directory.as_deref().unwrap_or(Path::new("."));
        if args.check {
            describe(directory, &args.site)?;
        }
        return serving.serve(&route(Some(directory), &args.site, args.live));
    };
    let site = args.site.clone().preferring(&stand_in);
    site.check()?;
    let directory = args.directory.as_deref().or(stand_in.directory.as_deref());
    let directory = match directory {
        // There are short links, at least.
        None if !site.redirects.is_empty() => None,
        given => Some(given.unwrap_or(Path::new("."))),
    };
    if let (true, Some(directory)) = (args.check, directory) {
        describe(directory, &site)?;
    }
    let routes = route(directory, &site, args.live);
    serving.serve_preferring(&routes, &stand_in.preferred(), Brought::all())
}

/// Prints what of a directory would be served, and what is wrong with its rules.
fn describe(directory: &Path, site: &SiteArgs) -> Result<(), Failed> {
    let mut text = format!("files of {}", directory.display());
    let dialect = site.dialect.as_deref().and_then(|name| name.parse().ok());
    if let Some(dialect) = dialect.filter(|_| directory.is_dir()) {
        let notices = Notices::new(serving::report);
        let rules = plimsoll_site::check_rules(directory, dialect, notices);
        let (redirects, headers) = (rules.redirects as u64, rules.headers as u64);
        text.extend([
            ", with ",
            &counted(redirects, "redirect"),
            " and ",
            &counted(headers, "rule"),
            " for header fields",
        ]);
    }
    for list in &site.redirects {
        text.extend(["\nshort links of ", list]);
    }
    terminal::print(&text).map_err(|error| Problem::caused_by(&error).could_not_run())
}

/// The route that the flags stand for.
fn route(directory: Option<&Path>, site: &SiteArgs, is_live: bool) -> String {
    let root = directory.map(|directory| format!("root = {}", quoted_path(directory)));
    let mut keys: Vec<_> = root.into_iter().collect();
    keys.extend(site.keys(&site.redirects));
    keys.extend(is_live.then(|| "live = true".to_owned()));
    format!("[[route]]\nfiles = {{ {} }}\n", keys.join(", "))
}

impl SiteArgs {
    /// The same, with what another program would do where nothing is given.
    fn preferring(mut self, stand_in: &StandIn) -> Self {
        if self.redirects.is_empty() {
            self.redirects.extend(stand_in.redirects.clone());
        }
        let status = || stand_in.original.redirect_status().to_string();
        self.redirect_status.get_or_insert_with(status);
        let cache_control = || stand_in.original.cache_control().to_owned();
        self.cache_control.get_or_insert_with(cache_control);
        self
    }

    /// Rejects flags that have nothing to act on.
    pub(crate) fn check(&self) -> Result<(), Failed> {
        let is_url = |list: &String| list.starts_with("http://") || list.starts_with("https://");
        if self.refresh.is_some() && !self.redirects.iter().any(is_url) {
            let problem = Problem::with("--refresh", "there is no list from a URL to load again");
            return Err(problem.hint("give --redirects URL").usage());
        }
        Ok(())
    }

    /// Lists of short links.
    pub(crate) fn redirects(&self) -> &[String] {
        &self.redirects
    }

    /// Whether names that begin with a dot are served.
    pub(crate) fn hidden(&self) -> bool {
        self.hidden
    }

    /// The flags as keys of `files`.
    ///
    /// - `redirects`: the lists of short links among them.
    pub(crate) fn keys(&self, redirects: &[String]) -> Vec<String> {
        let site = self;
        let mut keys = Vec::new();
        let mut key = |name: &str, value: Option<String>| {
            keys.extend(value.map(|value| format!("{name} = {value}")));
        };
        let names: Vec<_> = site
            .index
            .iter()
            .map(|name| readable_toml_string(name))
            .collect();
        key(
            "index",
            (!names.is_empty()).then(|| format!("[{}]", names.join(", "))),
        );
        let set = |is_given: bool, value: &str| is_given.then(|| value.to_owned());
        key("clean_urls", set(site.no_clean_urls, "false"));
        key(
            "trailing_slash",
            site.trailing_slash.as_deref().map(readable_toml_string),
        );
        let fallback = if site.spa {
            Some("index.html")
        } else {
            site.fallback.as_deref()
        };
        key("fallback", fallback.map(readable_toml_string));
        key("listing", set(site.listing, "true"));
        key("hidden", set(site.hidden, "true"));
        key("compress", set(site.no_compress, "false"));
        key(
            "cache_control",
            site.cache_control.as_deref().map(readable_toml_string),
        );
        key(
            "cache",
            site.cache
                .map(|size| readable_toml_string(&format!("{}B", size.0))),
        );
        key("dialect", site.dialect.as_deref().map(readable_toml_string));
        let lists: Vec<_> = redirects
            .iter()
            .map(|list| readable_toml_string(list))
            .collect();
        key(
            "redirects",
            (!lists.is_empty()).then(|| format!("[{}]", lists.join(", "))),
        );
        key("redirect_status", site.redirect_status.clone());
        key("refresh", site.refresh.as_deref().map(readable_toml_string));
        keys
    }
}
