//! What happens while a site is served that a person should know.

use std::fmt;
use std::sync::OnceLock;

use plimsoll_formats::Remark;

/// One such moment; shown as one line.
#[derive(Debug)]
pub enum SiteEvent<'a> {
    /// Something in a file of rules or links is wrong, and left out.
    Remark {
        /// The file or URL.
        source: &'a str,
        /// Where in it, and what.
        remark: &'a Remark,
    },
    /// A list of links holds from now on.
    LinksLoaded {
        /// The file or URL.
        source: &'a str,
        /// How many there are.
        links: usize,
    },
    /// A list of links could not be had, or is none; what held before still does.
    LinksKept {
        /// The file or URL.
        source: &'a str,
        /// Why.
        reason: &'a str,
        /// How many there are.
        links: usize,
    },
}

impl fmt::Display for SiteEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remark { source, remark } => {
                write!(f, "{source}{}: {}", remark.place, remark.message)
            }
            Self::LinksLoaded { source, links } => write!(f, "{source}: {links} redirects"),
            Self::LinksKept {
                source,
                reason,
                links,
            } => write!(f, "{source}: {reason}; {links} redirects are kept"),
        }
    }
}

/// Who is told; called by whichever thread it happens on.
type Listener = fn(&SiteEvent<'_>);

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Has `listener` told of everything from now on. The first one stays.
pub fn on_event(listener: Listener) {
    LISTENER.set(listener).ok();
}

pub(crate) fn emit(event: &SiteEvent<'_>) {
    if let Some(listener) = LISTENER.get() {
        listener(event);
    }
}
