//! Requests of scripts: what they are, how they are made, what is measured.

pub(crate) mod error_code;

mod ntlm;

mod authentication;

mod execute;

mod jar;

mod request;

mod response;

pub(crate) use self::execute::{
    Connections, fields_of, perform, perform_batch, placed, protocol_name,
};
pub(crate) use self::jar::{CookieOptions, Jars};
pub(crate) use self::request::{BodyForm, HttpRequest, bytes_of, parse, texts};
pub(crate) use self::response::{HttpResponse, Timings, canonical, shown, to_parts};
