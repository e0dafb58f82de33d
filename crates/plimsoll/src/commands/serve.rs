//! `plimsoll serve`: the files of a directory.

use std::path::PathBuf;

use plimsoll_model::ByteSize;

use crate::exit::Exit;
use crate::flags::{ServingArgs, quoted, quoted_path};
use crate::problem::Failed;

/// Serves the files of a directory.
///
/// SIGTERM and Ctrl-C stop listening and let open connections end; the second time they do not wait.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The directory.
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,

    #[command(flatten)]
    site: SiteArgs,

    #[command(flatten)]
    serving: ServingArgs,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Site")]
pub(crate) struct SiteArgs {
    /// The file that stands for its directory; may be given several times, the first that is there does.
    #[arg(long, value_name = "NAME")]
    index: Vec<String>,

    /// Do not answer /about with about.html.
    #[arg(long)]
    no_clean_urls: bool,

    /// What becomes of a slash too many or too few at the end of a path.
    #[arg(long, value_name = "POLICY", value_parser = ["redirect", "ignore"])]
    trailing_slash: Option<String>,

    /// Answer paths that name nothing, and have no dot in their last name, with this file.
    #[arg(long, value_name = "FILE")]
    fallback: Option<String>,

    /// List directories without an index.
    #[arg(long)]
    listing: bool,

    /// Serve names that begin with a dot too.
    #[arg(long)]
    hidden: bool,

    /// Compress nothing; copies beside the files are sent all the same.
    #[arg(long)]
    no_compress: bool,

    /// The cache-control of every file, in place of what its name tells.
    #[arg(long, value_name = "VALUE")]
    cache_control: Option<String>,

    /// Heed _redirects and _headers at the root, as this dialect has them.
    #[arg(long, value_name = "DIALECT", value_parser = ["netlify", "cloudflare"])]
    dialect: Option<String>,

    /// Short links for paths that name no file: lines of an alias and a URL, in a file or behind a URL; may be given several times.
    #[arg(long, value_name = "FILE|URL")]
    redirects: Vec<String>,

    /// What clients are told of short links.
    #[arg(long, value_name = "STATUS", value_parser = ["301", "302", "303", "307", "308"])]
    redirect_status: Option<String>,

    /// How long a list of short links from a URL holds before it is asked for again.
    #[arg(long, value_name = "TIME", value_parser = checked_duration)]
    refresh: Option<String>,

    /// What each worker keeps in memory of the files.
    #[arg(long, value_name = "SIZE", value_parser = plimsoll_model::parse_byte_size)]
    cache: Option<ByteSize>,
}

/// A duration as it was written.
fn checked_duration(text: &str) -> Result<String, String> {
    plimsoll_model::parse_duration(text)
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    args.serving.serve(&route(args))
}

/// What the flags mean, as a route.
fn route(args: &Args) -> String {
    let mut keys = vec![format!("root = {}", quoted_path(&args.directory))];
    keys.extend(args.site.keys(&args.site.redirects));
    format!("[[route]]\nfiles = {{ {} }}\n", keys.join(", "))
}

impl SiteArgs {
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
        let names: Vec<_> = site.index.iter().map(|name| quoted(name)).collect();
        key(
            "index",
            (!names.is_empty()).then(|| format!("[{}]", names.join(", "))),
        );
        let set = |is_given: bool, value: &str| is_given.then(|| value.to_owned());
        key("clean_urls", set(site.no_clean_urls, "false"));
        key("trailing_slash", site.trailing_slash.as_deref().map(quoted));
        key("fallback", site.fallback.as_deref().map(quoted));
        key("listing", set(site.listing, "true"));
        key("hidden", set(site.hidden, "true"));
        key("compress", set(site.no_compress, "false"));
        key("cache_control", site.cache_control.as_deref().map(quoted));
        key(
            "cache",
            site.cache.map(|size| quoted(&format!("{}B", size.0))),
        );
        key("dialect", site.dialect.as_deref().map(quoted));
        let lists: Vec<_> = redirects.iter().map(|list| quoted(list)).collect();
        key(
            "redirects",
            (!lists.is_empty()).then(|| format!("[{}]", lists.join(", "))),
        );
        key("redirect_status", site.redirect_status.clone());
        key("refresh", site.refresh.as_deref().map(quoted));
        keys
    }
}
