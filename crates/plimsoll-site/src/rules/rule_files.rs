//! `_redirects` and `_headers` at the root of a tree, read again when they change.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_formats::Remark;
use plimsoll_formats::site::{Dialect, Lenient, parse_header_rules, parse_redirects};
use plimsoll_server::Notices;

use crate::events::SiteEvent;
use crate::files::path::SitePath;
use crate::files::resolve::{Layout, Resolved};
use crate::files::tree::{Tag, Tree, TreeEntry};
use crate::rules::Rules;

/// Bytes of such a file: 2,100 rules, Cloudflare's limit, of 2,000 characters each, its limit on lines.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

const REDIRECTS: &str = "_redirects";
const HEADERS: &str = "_headers";

/// The rules of a site, the same for all workers.
#[derive(Debug)]
pub(crate) struct RuleFiles {
    dialect: Dialect,
    notices: Notices,
    read: Mutex<Option<ReadRules>>,
}

#[derive(Debug, Clone)]
struct ReadRules {
    tags: [Option<Tag>; 2],
    rules: Arc<Rules>,
}

impl RuleFiles {
    /// - `notices`: receives what is wrong in them.
    pub(crate) fn new(dialect: Dialect, notices: Notices) -> Self {
        Self {
            dialect,
            notices,
            read: Mutex::default(),
        }
    }

    /// The rules as they are now; those from before where they cannot be read.
    pub(crate) fn rules(&self, tree: &dyn Tree, layout: &Layout) -> Arc<Rules> {
        let redirects = self.read(tree, REDIRECTS);
        let headers = self.read(tree, HEADERS);
        let tags = [&redirects, &headers].map(|file| file.as_ref().map(|(tag, _)| tag.clone()));
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known
            && known.tags == tags
        {
            return Arc::clone(&known.rules);
        }
        let text = |file: &Option<(Tag, String)>| {
            file.as_ref()
                .map(|(_, text)| text.clone())
                .unwrap_or_default()
        };
        // Where files come first, a rule leads no further from a path that has one.
        let exists = |path: &str| {
            let Ok(path) = SitePath::parse(&crate::files::path::escaped(path)) else {
                return false;
            };
            self.dialect == Dialect::Netlify
                && matches!(layout.resolve(tree, &path), Ok(Resolved::File(..)))
        };
        let (rules, of_redirects, of_headers) = Rules::compile(
            parse_redirects(&text(&redirects), self.dialect),
            parse_header_rules(&text(&headers), self.dialect),
            self.dialect,
            &exists,
        );
        self.report(REDIRECTS, &of_redirects);
        self.report(HEADERS, &of_headers);
        let rules = Arc::new(rules);
        *known = Some(ReadRules {
            tags,
            rules: Arc::clone(&rules),
        });
        rules
    }

    /// The file's tag and text, if it is there.
    fn read(&self, tree: &dyn Tree, name: &str) -> Option<(Tag, String)> {
        let file = match tree.find(name) {
            Ok(TreeEntry::File(file)) => file,
            Ok(TreeEntry::Directory) => return None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.report(name, &[Remark::whole(format!("cannot be read: {error}"))]);
                return None;
            }
        };
        if file.part.length() > MOST_BYTES {
            let message = format!("is longer than {MOST_BYTES} bytes");
            self.report(name, &[Remark::whole(message)]);
            return None;
        }
        let bytes = file.part.read().ok()?;
        Some((file.tag, String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn report(&self, source: &str, remarks: &[Remark]) {
        for remark in remarks {
            let event = SiteEvent::Remark { source, remark };
            self.notices.report(&event.into());
        }
    }
}

/// No rules at all.
pub(crate) fn none() -> Arc<Rules> {
    let (rules, ..) = Rules::compile(
        Lenient::default(),
        Lenient::default(),
        Dialect::Netlify,
        &|_| false,
    );
    Arc::new(rules)
}
