//! Requests of scripts: what they are, how they are made, what is measured.

pub(crate) mod error_code;

mod address;

mod ntlm;

mod authentication;

mod batch;

mod connections;

mod execute;

mod header;

mod jar;

mod known_targets;

mod redirect;

mod request;

mod response;

pub(crate) use self::address::Address;
pub(crate) use self::batch::perform_batch;
pub(crate) use self::connections::{Connections, endpoint_of, placed};
pub(crate) use self::execute::{perform, protocol_name};
pub(crate) use self::header::{as_shown, fields_of};
pub(crate) use self::jar::{CookieOptions, Jars};
pub(crate) use self::known_targets::KnownTargets;
pub(crate) use self::request::{
    BodyForm, HttpRequest, RefusedRequest, Target, bytes_of, name_of, parse, parse_plain, texts,
};
pub(crate) use self::response::{HttpResponse, NoResponse, PROPERTIES, Timings};
