//! A response whose content or fields have places.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::action::{Action, Answer};
use crate::message::request::Request;
use crate::message::response::{Response, ResponseBody};
use crate::place::Template;

/// The response to fill.
#[derive(Debug)]
pub(crate) struct Fill {
    pub(crate) status: StatusCode,
    /// Fields that are the same for every request.
    pub(crate) fields: HeaderMap,
    /// Fields with places; those of which nothing is left are not there.
    pub(crate) filled: Vec<(HeaderName, Template)>,
    pub(crate) content: FillContent,
}

/// Content of the response.
#[derive(Debug)]
pub(crate) enum FillContent {
    Bytes(Bytes),
    Template(Template),
}

/// Fills the response for each request.
#[derive(Debug)]
pub(crate) struct Filled(pub(crate) Arc<Fill>);

impl Action for Filled {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let fill = &*self.0;
        let mut response = Response::new(fill.status).with_field_map(fill.fields.clone());
        for (name, template) in &fill.filled {
            let mut text = Vec::new();
            let value = template.field(request, &mut text);
            if let Some(value) = value.and_then(|it| HeaderValue::from_bytes(it).ok()) {
                response = response.with_field(name.clone(), value);
            }
        }
        let content = match &fill.content {
            FillContent::Bytes(bytes) => bytes.clone(),
            FillContent::Template(template) => {
                let mut text = Vec::new();
                template.fill(request, &mut text);
                text.into()
            }
        };
        Answer::now(response.with_body(ResponseBody::Bytes(content)))
    }
}
