//! Events while a site is served that a person should see.

use plimsoll_formats::Remark;
use plimsoll_model::counted;
use plimsoll_server::{Notice, Severity};

/// One such moment.
#[derive(Debug)]
pub(crate) enum SiteEvent<'a> {
    /// Something in a file of rules or links is wrong, and left out.
    Remark {
        /// The file or URL.
        source: &'a str,
        /// Position and message.
        remark: &'a Remark,
    },
    /// A file cannot be opened, since too many are open.
    TooManyFiles,
    /// The folder is not there when the site starts, which its configuration permits.
    RootMissing {
        /// Its path.
        root: &'a std::path::Path,
    },
    /// The fallback is not there when the site starts.
    FallbackMissing {
        /// Its path in the site.
        file: &'a str,
    },
    /// A list of links holds from now on.
    LinksLoaded {
        /// The file or URL.
        source: &'a str,
        /// Number of links.
        links: usize,
    },
    /// A list of links could not be had, or is none; what held before still does.
    LinksKept {
        /// The file or URL.
        source: &'a str,
        /// Why.
        reason: &'a str,
        /// Number of links.
        links: usize,
    },
}

impl From<SiteEvent<'_>> for Notice {
    fn from(event: SiteEvent<'_>) -> Self {
        match event {
            SiteEvent::Remark { source, remark } => {
                let place = format!("{source}{}", remark.place);
                Self::new(Severity::Warning, &*remark.message).about(place)
            }
            SiteEvent::TooManyFiles => Self::new(
                Severity::Error,
                "too many open files; raise the limit with `ulimit -n` or LimitNOFILE=",
            ),
            SiteEvent::RootMissing { root } => {
                let message = "it is not there; until it is, every path gets a 404";
                Self::new(Severity::Warning, message).about(root.display().to_string())
            }
            SiteEvent::FallbackMissing { file } => {
                let message =
                    format!("`{file}` is not there; until it is, unknown paths get a 404");
                Self::new(Severity::Warning, message).about("fallback")
            }
            SiteEvent::LinksLoaded { source, links } => {
                Self::new(Severity::Note, counted(links as u64, "redirect")).about(source)
            }
            SiteEvent::LinksKept {
                source,
                reason,
                links,
            } => {
                let message = format!("{reason}; {} kept", counted(links as u64, "redirect"));
                Self::new(Severity::Warning, message).about(source)
            }
        }
    }
}
