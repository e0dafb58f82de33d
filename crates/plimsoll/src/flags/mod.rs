//! Flags that several subcommands share, and what they are compiled to.

mod problems;

mod request;

mod connection;

pub(crate) mod serving;

pub(crate) use self::connection::{ConnectionArgs, connection_variables};
pub(crate) use self::problems::Problems;
pub(crate) use self::request::{OnTheWay, RequestArgs, RequestParts, Way};
