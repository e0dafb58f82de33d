//! The response cache: a shared cache as RFC 9111 describes it, with the extensions of RFC 5861.
//!
//! The rules are pure: `directives`, `freshness`, `entry` and `condition` see fields and times, and nothing else. `store`
//! keeps responses within a bound on memory, for all workers, and `disk` beside it in files. `layer` stands before the forwarding action of a route.
//!
//! Not kept: responses to methods other than GET, parts of content, responses with trailers, and content that is longer
//! than the limit for one response.

mod directives;

mod freshness;

mod lifetimes;

mod entry;

mod condition;

mod content;

mod store;

mod record;

mod disk;

mod body;

mod layer;

mod figures;

pub(crate) use self::disk::DiskPlan;
pub(crate) use self::entry::Staleness;
pub(crate) use self::figures::CacheFigures;
pub(crate) use self::layer::{CachePlan, Cached};
pub(crate) use self::lifetimes::{LifetimeStatus, Lifetimes};
pub(crate) use self::store::{Store, StoreState};
