//! The response cache: a shared cache as RFC 9111 describes it, with the extensions of RFC 5861.
//!
//! The rules are pure: `directives`, `freshness`, `entry` and `condition` see fields and times, and nothing else. `store`
//! keeps responses within a bound on memory, for all workers, and `disk` beside it in files. `layer` stands before the forwarding action of a route.
//!
//! What keeps a request from the cache is in `Cached::respond` and `Fetching::fetch` (`layer`), what keeps a response from it in
//! `may_store` and `Entry::new` (`entry`), and a content that turns out too long or has trailers in `Fetching::keep`.

mod directives;

mod freshness;

mod lifetimes;

mod entry;

mod condition;

mod content;

mod store;

mod stored_fields;

mod record;

mod disk;

mod body;

mod layer;

mod plan;

mod url_key;

mod figures;

pub(crate) use self::disk::DiskPlan;
pub(crate) use self::entry::Staleness;
pub(crate) use self::figures::CacheFigures;
pub(crate) use self::layer::Cached;
pub(crate) use self::lifetimes::{LifetimeStatus, Lifetimes};
pub(crate) use self::plan::{CachePlan, Exceptions};
pub(crate) use self::store::{Store, StoreState};
