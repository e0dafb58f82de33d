//! Requests of scripts: what they are, how they are made, what is measured.

pub(crate) mod error_code;

mod address;

mod ntlm;

mod authentication;

mod execute;

mod jar;

mod redirect;

mod request;

mod response;

pub(crate) use self::execute::{
    Connections, endpoint_of, fields_of, perform, perform_batch, placed, protocol_name,
};
pub(crate) use self::jar::{CookieOptions, Jars};
pub(crate) use self::request::{
    BodyForm, HttpRequest, RefusedRequest, Target, bytes_of, name_of, parse, texts,
};
pub(crate) use self::response::{HttpResponse, Timings, canonical, refused_parts, to_parts};
