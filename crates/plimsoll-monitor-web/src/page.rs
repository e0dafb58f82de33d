//! Status pages: rendered on the server, useful without a script, live with one.
//!
//! A [`PagePlan`] says what a page shows. Its `snapshot` is made from the board and the store when something has
//! changed, once for all readers, and stays while the store is away; `html`, `feed` and `statuspage` render it in the
//! language of the reader, and `routes` serves all of it at `/status/SLUG` and at `/` of the page's host.

pub mod subscribe;

mod snapshot;

mod cache;

mod html;

mod feed;

mod statuspage;

mod words;

mod live;

pub(crate) mod share;

mod routes;

pub use plimsoll_monitor::config::Language;
pub use plimsoll_monitor::config::page::{
    Guard, Logo, PageComponent, PageGroup, PagePassword, PagePlan,
};

pub(crate) use crate::page::cache::Pages;
pub(crate) use crate::page::html::chart;
pub(crate) use crate::page::routes::{Sessions, at_root, at_slug, merge, parameter};
pub(crate) use crate::page::snapshot::{PublicIncident, Rows, incidents_of};
pub(crate) use crate::page::words::Words;
