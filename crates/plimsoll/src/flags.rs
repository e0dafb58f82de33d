//! Flags that several subcommands share, and what they are compiled to.

mod body;

mod habits;

pub(crate) mod number;

mod observe;

mod plan_file;

mod problems;

mod request;

mod response;

mod connection;

#[cfg(feature = "site")]
mod serving;

pub(crate) use self::body::BodyArgs;
pub(crate) use self::connection::{ConnectionArgs, connection_variables, key_log_of};
#[cfg(feature = "lab")]
pub(crate) use self::observe::NamedPlace;
#[cfg(feature = "site")]
pub(crate) use self::observe::token_in;
pub(crate) use self::observe::{ObserveArgs, unobservable};
pub(crate) use self::plan_file::plan_file;
pub(crate) use self::problems::Problems;
pub(crate) use self::request::{OnTheWay, RequestArgs, RequestParts, Way};
pub(crate) use self::response::ResponseArgs;
#[cfg(feature = "site")]
pub(crate) use self::serving::{Preferred, ServingArgs, listen_address, quoted_path};
