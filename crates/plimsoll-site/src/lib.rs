//! Sites: files of a directory, with conditions, ranges and compression, and redirects.
//!
//! [`FILES`] is the action that routes of a server's configuration name. A site is a tree of files, looked up by a
//! [`Layout`]; what was requested lately is kept, ready to be sent, by each worker, and looked at again only when
//! the kernel reports a change. Everything is opened beneath the root.
//!
//! It answers requests and nothing else: listening, TLS and limits are the server's.

mod rules;

mod events;

mod figures;

pub mod crawl;

pub mod pack;

mod files;

mod config;

pub use crate::config::{FILES, directory};
pub use crate::files::resolve::{Layout, TrailingSlash};
pub use crate::files::{CacheControl, SitePlan};
pub use crate::rules::links::{LinkPlace, LinkSource, LinksError, load_links};
pub use crate::rules::refresh::refresh_path;
pub use crate::rules::reload::{CheckedRules, check_rules};
