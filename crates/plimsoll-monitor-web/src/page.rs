//! Status pages: rendered on the server, useful without a script, live with one.
//!
//! A [`PagePlan`] says what a page shows. Its `snapshot` is made from the board and the store when something has
//! changed, once for all readers, and stays while the store is away; `html`, `feed` and `statuspage` render it in the
//! language of the reader. What serves them lies above, in `visit`.

pub mod subscribe;

pub(crate) mod snapshot;

pub(crate) mod cache;

pub(crate) mod html;

pub(crate) mod feed;

pub(crate) mod statuspage;

mod words;

pub(crate) mod live;

pub(crate) mod share;

pub(crate) mod sessions;

pub use plimsoll_monitor::config::Language;
pub use plimsoll_monitor::config::page::{
    Guard, Logo, PageComponent, PageGroup, PagePassword, PagePlan,
};

pub(crate) use crate::page::cache::Pages;
pub(crate) use crate::page::html::{chart, icon, phases, sparkline};
pub(crate) use crate::page::sessions::Sessions;
pub(crate) use crate::page::snapshot::{PublicIncident, Rows, incidents_of};
pub(crate) use crate::page::words::Words;
