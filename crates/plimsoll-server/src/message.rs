//! One request and its response, whatever the version of HTTP.

pub(crate) mod request;

pub(crate) mod fields;

pub(crate) mod connection;

pub(crate) mod events;

pub(crate) mod interim;

pub(crate) mod body;

pub(crate) mod response;

pub(crate) mod verbatim;

pub(crate) mod file;
