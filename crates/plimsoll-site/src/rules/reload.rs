//! `_redirects` and `_headers` at the root of a tree, read again when they change.
//!
//! They are read before the first request, and by a thread of their own when they change, so that no request waits for
//! them: until the new rules are ready, the old ones hold.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use plimsoll_formats::Remark;
use plimsoll_formats::site::{Dialect, Lenient, parse_header_rules, parse_redirects};
use plimsoll_server::Notices;

use crate::events::SiteEvent;
use crate::files::directory::Directory;
use crate::files::path::SitePath;
use crate::files::resolve::{Layout, Resolved};
use crate::files::tree::{SiteFile, Tag, Tree, TreeEntry};
use crate::rules::Rules;

/// Bytes of such a file: some 300,000 rules as they are usually written.
const MOST_BYTES: u64 = 32 * 1024 * 1024;

const REDIRECTS: &str = "_redirects";
const HEADERS: &str = "_headers";

/// The rules of a site, the same for all workers.
#[derive(Debug)]
pub(crate) struct RuleFiles {
    reader: Arc<RuleReader>,
}

/// Reads the rules.
#[derive(Debug)]
struct RuleReader {
    dialect: Dialect,
    layout: Layout,
    tree: Arc<dyn Tree>,
    notices: Notices,
    read: Mutex<ReadRules>,
    /// Number of times that they were read.
    version: AtomicU64,
    /// Number of times that they were found to have changed.
    changes: AtomicU64,
}

#[derive(Debug)]
struct ReadRules {
    tags: Tags,
    rules: Arc<Rules>,
    /// A thread reads them.
    is_being_read: bool,
}

/// Those of the two files.
type Tags = [Option<Tag>; 2];

impl RuleFiles {
    /// Reads the rules, and has a thread look for what is probably not meant in them.
    ///
    /// - `notices`: receives what is wrong in them.
    pub(crate) fn new(
        dialect: Dialect,
        tree: Arc<dyn Tree>,
        layout: Layout,
        notices: Notices,
    ) -> Self {
        let reader = Arc::new(RuleReader::new(dialect, tree, layout, notices));
        reader.read();
        reader.spawn(true);
        Self { reader }
    }

    /// Number of times that they were read: the rules are the same for the same number.
    pub(crate) fn version(&self) -> u64 {
        self.reader.version.load(Ordering::Acquire)
    }

    /// The rules as they were last read.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.reader.lock().rules)
    }

    /// Has them read again if their files have changed. Looks for both files, and does not wait for anything else.
    pub(crate) fn refresh(&self) {
        let reader = &self.reader;
        let tags = [REDIRECTS, HEADERS].map(|name| reader.find(name).map(|file| file.tag));
        let mut read = reader.lock();
        if read.tags == tags {
            return;
        }
        reader.changes.fetch_add(1, Ordering::AcqRel);
        if !read.is_being_read {
            read.is_being_read = true;
            drop(read);
            reader.spawn(false);
        }
    }
}

impl RuleReader {
    fn new(dialect: Dialect, tree: Arc<dyn Tree>, layout: Layout, notices: Notices) -> Self {
        Self {
            dialect,
            layout,
            tree,
            notices,
            read: Mutex::new(ReadRules {
                tags: [None, None],
                rules: none(),
                is_being_read: true,
            }),
            version: AtomicU64::new(0),
            changes: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReadRules> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks through the rules, and reads them until they are those of the files.
    ///
    /// - `is_read`: they were read just now.
    fn run(&self, mut is_read: bool) {
        loop {
            let changes = self.changes.load(Ordering::Acquire);
            if !is_read {
                self.read();
            }
            is_read = false;
            self.look_through(changes);
            if self.is_done(changes) {
                break;
            }
        }
    }

    /// The same on a thread of its own.
    fn spawn(self: &Arc<Self>, is_read: bool) {
        let reader = Arc::clone(self);
        let thread = thread::Builder::new().name("site-rules".to_owned());
        if thread.spawn(move || reader.run(is_read)).is_err() {
            // Late is better than never.
            self.run(is_read);
        }
    }

    /// Whether nothing has changed since; then the next change is read by another thread.
    fn is_done(&self, changes: u64) -> bool {
        let mut read = self.lock();
        let is_done = self.changes.load(Ordering::Acquire) == changes;
        read.is_being_read = !is_done;
        is_done
    }

    /// Reads both files and puts their rules in force.
    fn read(&self) {
        let redirects = self.content(REDIRECTS);
        let headers = self.content(HEADERS);
        let tags = [&redirects, &headers].map(|file| file.as_ref().map(|(tag, _)| tag.clone()));
        let text = |file: Option<(Tag, String)>| file.map(|(_, text)| text).unwrap_or_default();
        let (rules, of_redirects, of_headers) = Rules::compile(
            parse_redirects(&text(redirects), self.dialect),
            parse_header_rules(&text(headers), self.dialect),
            self.dialect,
        );
        self.report(REDIRECTS, &of_redirects);
        self.report(HEADERS, &of_headers);
        let mut read = self.lock();
        read.tags = tags;
        read.rules = Arc::new(rules);
        drop(read);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Reports what is probably not meant.
    fn look_through(&self, changes: u64) {
        let rules = Arc::clone(&self.lock().rules);
        let is_stale = || self.changes.load(Ordering::Acquire) != changes;
        let doubts = rules.doubts(&|path| self.exists(path), &is_stale);
        if !is_stale() {
            self.report(REDIRECTS, &doubts);
        }
    }

    /// Whether a path leads no further: where files come first, one that has a file.
    fn exists(&self, path: &str) -> bool {
        let Ok(path) = SitePath::parse(&crate::files::path::escaped(path)) else {
            return false;
        };
        self.dialect == Dialect::Netlify
            && matches!(
                self.layout.resolve(&*self.tree, &path),
                Ok(Resolved::File(..))
            )
    }

    /// The file of that name, if it is there.
    fn find(&self, name: &str) -> Option<SiteFile> {
        match self.tree.find(name) {
            Ok(TreeEntry::File(file)) => Some(file),
            Ok(TreeEntry::Directory) => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                self.report(name, &[Remark::whole(format!("cannot be read: {error}"))]);
                None
            }
        }
    }

    /// The file's tag and text, if it is there. One that is too long has no rules.
    fn content(&self, name: &str) -> Option<(Tag, String)> {
        let file = self.find(name)?;
        if file.part.length() > MOST_BYTES {
            let message = format!("is longer than {MOST_BYTES} bytes");
            self.report(name, &[Remark::whole(message)]);
            return Some((file.tag, String::new()));
        }
        let bytes = match file.part.read() {
            Ok(bytes) => bytes,
            Err(error) => {
                self.report(name, &[Remark::whole(format!("cannot be read: {error}"))]);
                return Some((file.tag, String::new()));
            }
        };
        Some((file.tag, String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn report(&self, source: &str, remarks: &[Remark]) {
        for remark in remarks {
            let event = SiteEvent::Remark { source, remark };
            self.notices.report(&event.into());
        }
    }
}

/// The rules of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedRules {
    /// Number of redirects.
    pub redirects: usize,
    /// Number of rules for header fields.
    pub headers: usize,
}

/// Reads the rules of a directory, without serving it.
///
/// - `notices`: receives what is wrong in them, and what is probably not meant.
pub fn check_rules(root: &Path, dialect: Dialect, notices: Notices) -> CheckedRules {
    let tree = Directory::new(root.to_owned(), Arc::default());
    let reader = RuleReader::new(dialect, Arc::new(tree), Layout::default(), notices);
    reader.read();
    reader.look_through(0);
    let rules = Arc::clone(&reader.lock().rules);
    CheckedRules {
        redirects: rules.redirects(),
        headers: rules.headers(),
    }
}

/// No rules at all.
pub(crate) fn none() -> Arc<Rules> {
    let (rules, ..) = Rules::compile(Lenient::default(), Lenient::default(), Dialect::Netlify);
    Arc::new(rules)
}
