//! Files that people already have, parsed to plain values: requests, and data for them.
//!
//! [`parse`] reads a file of requests, whatever its [`Format`], and gives a [`RequestFile`]: the
//! requests in order, and what of the file they cannot carry. [`Table`] holds the rows that fill
//! the [`Template`]s of such requests.
//!
//! Nothing here opens a file or a socket, reads a clock or knows a flag. Where a file names another
//! one, the caller reads it.

#![forbid(unsafe_code)]

mod remark;

mod request;

mod multipart;

mod access_log;

pub mod har;

pub mod openapi;

mod template;

mod table;

pub mod grpc;

pub mod mockoon;

pub mod postman;

pub mod site;

pub mod wiremock;

pub mod yaml;

#[cfg(test)]
mod fixture;

pub use crate::multipart::{
    BodyPart, FormError, LONGEST_PART_HEADER, MOST_PARTS, MultipartError, MultipartForm,
    is_multipart, parse_multipart,
};
pub use crate::remark::{Place, Remark};
pub use crate::request::environment::{Environment, EnvironmentError, environments};
pub use crate::request::format::{Format, UnknownFormat, appearance, parse};
pub use crate::request::{Arrival, FileRequest, ReadError, ReadFile, RequestFile};
pub use crate::table::Table;
pub use crate::table::json5::{Json5Error, json5_to_json};
pub use crate::table::records::csv_to_json;
pub use crate::template::{
    Date, DateFormat, DateOffset, DatePart, DateToken, Generator, Millionths, MissingVariable,
    Part, ResponsePart, ResponseValue, Template, TemplateError, is_target_byte,
};
