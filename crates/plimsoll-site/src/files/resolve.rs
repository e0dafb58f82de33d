//! From the path of a request to what answers it: index files, clean URLs, slashes, fallbacks.

use std::io;

use crate::files::path::{SitePath, escaped};
use crate::files::tree::{SiteFile, Tree, TreeEntry};

/// Mapping of URL paths to files.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The files that stand for a directory; the first that exists.
    pub index: Vec<String>,
    /// `/about` is `about.html` too.
    pub clean_urls: bool,
    /// Treatment of a missing or superfluous slash.
    pub trailing_slash: TrailingSlash,
    /// The page for paths that name nothing, for pages that route by themselves; names with a dot are
    /// files, and not found all the same.
    pub fallback: Option<String>,
    /// Directories without an index are listed.
    pub listing: bool,
    /// Names that begin with a dot are served too.
    pub hidden: bool,
}

/// Treatment of a missing or superfluous slash at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrailingSlash {
    /// Clients are sent to the path with it or without it, so that relative links hold.
    Redirect,
    /// Both paths are answered alike.
    Ignore,
    /// Redirects the path of a folder to that with a slash, with or without an index. The path of a file with a slash is a 404.
    Folders,
    /// Folders have only paths with a slash and files only paths without one; others are a 404.
    Exact,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            index: vec!["index.html".to_owned()],
            clean_urls: true,
            trailing_slash: TrailingSlash::Redirect,
            fallback: None,
            listing: false,
            hidden: false,
        }
    }
}

/// The result of resolving a path.
#[derive(Debug)]
pub(crate) enum Resolved {
    /// The file at that path of the tree.
    File(String, SiteFile),
    /// The file that stands for all paths which name nothing.
    Fallback(String, SiteFile),
    /// The path with its slash put right, escaped.
    Redirect(String),
    /// The entries of that directory.
    Listing(String),
    NotFound,
}

/// Directories that are gone up to find a page for what is not found.
const MOST_LEVELS: usize = 32;

/// Files that say how a site is served, and are not a part of it.
const RULES: [&str; 2] = ["_redirects", "_headers"];

impl Layout {
    /// Fails only for reasons that have nothing to do with the path.
    pub(crate) fn resolve(&self, tree: &dyn Tree, path: &SitePath) -> io::Result<Resolved> {
        let is_kept_back =
            (!self.hidden && path.is_hidden()) || RULES.contains(&path.joined.as_str());
        if !is_kept_back && let Some(resolved) = self.named(tree, path)? {
            return Ok(resolved);
        }
        if let Some(fallback) = &self.fallback
            && !is_kept_back
            && !path.last().contains('.')
            && let Some(TreeEntry::File(file)) = found(tree, fallback)?
        {
            return Ok(Resolved::Fallback(fallback.clone(), file));
        }
        Ok(Resolved::NotFound)
    }

    fn named(&self, tree: &dyn Tree, path: &SitePath) -> io::Result<Option<Resolved>> {
        let name = &path.joined;
        let redirects = self.trailing_slash == TrailingSlash::Redirect;
        let has_one_path = matches!(
            self.trailing_slash,
            TrailingSlash::Folders | TrailingSlash::Exact
        );
        let file = |name: &str, file| {
            if path.has_gaps || (path.has_slash && redirects) {
                Resolved::Redirect(format!("/{}", escaped(&path.joined)))
            } else {
                Resolved::File(name.to_owned(), file)
            }
        };
        let entry = found(tree, name)?;
        if let Some(TreeEntry::File(entry)) = entry {
            let is_named = !(has_one_path && path.has_slash);
            return Ok(is_named.then(|| file(name, entry)));
        }
        let is_directory = entry.is_some();
        let is_page = self.clean_urls
            && !name.is_empty()
            && (!path.has_slash || !(is_directory || has_one_path));
        if is_page {
            let page = format!("{name}.html");
            if let Some(TreeEntry::File(entry)) = found(tree, &page)? {
                return Ok(Some(file(&page, entry)));
            }
        }
        if !is_directory {
            return Ok(None);
        }
        let (is_bare, slashes) = (!path.has_slash, self.trailing_slash);
        if is_bare && slashes == TrailingSlash::Exact {
            return Ok(None);
        }
        let leads_to_slash = is_bare && slashes == TrailingSlash::Folders;
        let index = self.index(tree, name)?;
        if index.is_none() && !self.listing && !leads_to_slash {
            return Ok(None);
        }
        if path.has_gaps || (is_bare && redirects) || leads_to_slash {
            let slash = if name.is_empty() { "" } else { "/" };
            return Ok(Some(Resolved::Redirect(format!(
                "/{}{slash}",
                escaped(name)
            ))));
        }
        Ok(Some(match index {
            Some((name, file)) => Resolved::File(name, file),
            None => Resolved::Listing(name.clone()),
        }))
    }

    fn index(&self, tree: &dyn Tree, directory: &str) -> io::Result<Option<(String, SiteFile)>> {
        for index in &self.index {
            let name = below(directory, index);
            if let Some(TreeEntry::File(file)) = found(tree, &name)? {
                return Ok(Some((name, file)));
            }
        }
        Ok(None)
    }
}

/// The nearest `404.html`, in the requested directory or one above it.
pub(crate) fn not_found_page(
    tree: &dyn Tree,
    path: &str,
) -> io::Result<Option<(String, SiteFile)>> {
    let mut directory = path;
    for _ in 0..MOST_LEVELS {
        directory = directory.rsplit_once('/').map_or("", |(above, _)| above);
        let name = below(directory, NOT_FOUND);
        if let Some(TreeEntry::File(file)) = found(tree, &name)? {
            return Ok(Some((name, file)));
        }
        if directory.is_empty() {
            break;
        }
    }
    Ok(None)
}

/// The page for paths that name nothing.
pub(crate) const NOT_FOUND: &str = "404.html";

fn below(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    }
}

fn found(tree: &dyn Tree, path: &str) -> io::Result<Option<TreeEntry>> {
    match tree.find(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::files::changes::Changes;
    use crate::files::directory::Directory;

    /// `file NAME`, `to PATH`, `list NAME` or `nothing`.
    fn resolved(layout: &Layout, raw: &str) -> String {
        let root = tempfile::tempdir().unwrap();
        for name in [
            "index.html",
            "about.html",
            "both.html",
            "both/index.html",
            "docs/index.html",
            "docs/404.html",
            "docs/deep/x",
            "empty/x.txt",
            "a b/ü.txt",
            ".git/config",
            ".well-known/x",
            "_redirects",
        ] {
            let file = root.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, name).unwrap();
        }
        let tree = Directory::new(root.path().to_owned(), Changes::none());
        let path = SitePath::parse(raw).unwrap();
        match layout.resolve(&tree, &path).unwrap() {
            Resolved::File(name, _) => format!("file {name}"),
            Resolved::Fallback(name, _) => format!("fallback {name}"),
            Resolved::Redirect(to) => format!("to {to}"),
            Resolved::Listing(name) => format!("list {name}"),
            Resolved::NotFound => match not_found_page(&tree, &path.joined).unwrap() {
                Some((name, _)) => format!("not found {name}"),
                None => "nothing".to_owned(),
            },
        }
    }

    #[test]
    fn paths_by_default() {
        for (raw, expected) in [
            ("/", "file index.html"),
            ("//", "to /"),
            ("/index.html", "file index.html"),
            ("/about", "file about.html"),
            ("/about.html", "file about.html"),
            ("/about/", "to /about"),
            ("/about.html/", "to /about.html"),
            ("/both", "file both.html"),
            ("/both/", "file both/index.html"),
            ("/docs", "to /docs/"),
            ("//docs", "to /docs/"),
            ("/docs/", "file docs/index.html"),
            ("/docs//deep/x", "to /docs/deep/x"),
            ("/docs/missing", "not found docs/404.html"),
            ("/docs/deep/x/y", "not found docs/404.html"),
            ("/empty/", "nothing"),
            ("/empty", "nothing"),
            ("/a%20b/%C3%BC.txt", "file a b/ü.txt"),
            ("/a%20b/%C3%BC.txt/", "to /a%20b/%C3%BC.txt"),
            ("/.git/config", "nothing"),
            ("/.well-known/x", "file .well-known/x"),
            ("/_redirects", "nothing"),
            ("/missing", "nothing"),
        ] {
            assert_eq!(resolved(&Layout::default(), raw), expected, "{raw}");
        }
    }

    #[test]
    fn paths_by_other_policies() {
        let plain = Layout {
            clean_urls: false,
            trailing_slash: TrailingSlash::Ignore,
            listing: true,
            hidden: true,
            ..Layout::default()
        };
        for (raw, expected) in [
            ("/about", "nothing"),
            ("/docs", "file docs/index.html"),
            ("/docs/index.html/", "file docs/index.html"),
            ("/empty", "list empty"),
            ("/.git/", "list .git"),
            ("/.git/config", "file .git/config"),
        ] {
            assert_eq!(resolved(&plain, raw), expected, "{raw}");
        }
        let folders = Layout {
            trailing_slash: TrailingSlash::Folders,
            ..Layout::default()
        };
        let exact = Layout {
            trailing_slash: TrailingSlash::Exact,
            ..Layout::default()
        };
        for (raw, of_folders, of_exact) in [
            ("/", "file index.html", "file index.html"),
            ("/about.html", "file about.html", "file about.html"),
            ("/about.html/", "nothing", "nothing"),
            ("/about/", "nothing", "nothing"),
            ("/docs", "to /docs/", "nothing"),
            ("/docs/", "file docs/index.html", "file docs/index.html"),
            ("/empty", "to /empty/", "nothing"),
            ("/empty/", "nothing", "nothing"),
            ("/.git", "nothing", "nothing"),
        ] {
            assert_eq!(resolved(&folders, raw), of_folders, "{raw}");
            assert_eq!(resolved(&exact, raw), of_exact, "{raw}");
        }
        let fallback = Layout {
            fallback: Some("index.html".to_owned()),
            ..Layout::default()
        };
        for (raw, expected) in [
            ("/any/where", "fallback index.html"),
            ("/any/where/", "fallback index.html"),
            ("/missing.js", "nothing"),
            ("/.git/x", "nothing"),
            ("/about", "file about.html"),
        ] {
            assert_eq!(resolved(&fallback, raw), expected, "{raw}");
        }
    }
}
