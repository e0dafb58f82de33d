//! OpenAPI documents that answer: what they allow is answered as they say, and everything else is a problem.
//!
//! Problems are those of RFC 9457. The client selects response, example and media type by `Prefer`
//! (RFC 7240) and `accept`.

mod beside;

mod calls;

mod expression;

mod fit;

mod form;

mod nest;

mod request;

mod response;

mod route;

use std::path::{Path, PathBuf};

use http::StatusCode;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use plimsoll_formats::Remark;
use plimsoll_formats::openapi::{Api, parse_api};
use serde_json::{Value, json};

use url::Url;

use crate::callback::OutgoingCallback;
use crate::request::RequestView;
use crate::store::collection::StoredResponse;

pub use self::fit::{Fit, UnfitContent};

pub(crate) use self::calls::{CallbackError, CallbackHosts, UnsentCallback};

use self::expression::Exchange;
use self::request::RequestCheck;
use self::route::Routes;

/// A document that answers.
#[derive(Debug)]
pub struct OpenApi {
    file: PathBuf,
    api: Api,
    routes: Routes,
    /// By the numbers of operations.
    checks: Vec<RequestCheck>,
    options: OpenApiOptions,
    /// Where callbacks may be sent.
    hosts: CallbackHosts,
    /// The prefix of its paths, without a slash at its end.
    prefix: String,
}

/// Settings of a document's mock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenApiOptions {
    /// Requests that it does not allow are refused.
    pub validates: bool,
    /// Contents are made by chance, not taken from examples.
    pub is_dynamic: bool,
    /// Random seed: the same request always gets the same response.
    pub seed: u64,
}

/// Settings of all documents, in place of those that their files give.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DocumentSettings {
    /// Whether requests that a document does not allow are refused.
    pub(crate) validates: Option<bool>,
    /// Where callbacks may be sent.
    pub(crate) callbacks: Option<CallbackHosts>,
}

/// The longest summary of an error, in characters.
const LONGEST_SUMMARY: usize = 300;

/// Why a request is not answered as it wants to be.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    detail: String,
    errors: Vec<Value>,
    fields: Vec<(HeaderName, HeaderValue)>,
}

impl OpenApi {
    /// Compiles a document, and reports which parts of it are not looked at.
    ///
    /// - `file`: where it was read; the files that it refers to are in the same folder or below.
    /// - `prefix`: what comes before its paths, normalised.
    pub fn new(
        file: &Path,
        text: &str,
        prefix: &str,
        options: OpenApiOptions,
    ) -> Result<(Self, Vec<Remark>), Vec<Remark>> {
        let own_name = file.file_name().unwrap_or_default().to_string_lossy();
        let folder = file.parent().unwrap_or(Path::new(""));
        let mut api = parse_api(text, &own_name, &mut |name| Ok(beside::read(folder, name)?))?;
        let mut left_out = std::mem::take(&mut api.left_out);
        let routes = Routes::new(&api);
        let checks = api.operations.iter();
        let checks = checks.map(|operation| RequestCheck::new(operation, &mut left_out));
        let made = Self {
            file: file.to_owned(),
            checks: checks.collect(),
            routes,
            options,
            hosts: CallbackHosts::default(),
            prefix: prefix.trim_end_matches('/').to_owned(),
            api,
        };
        Ok((made, left_out))
    }

    /// Changes its settings.
    pub(crate) fn override_settings(&mut self, settings: &DocumentSettings) {
        if let Some(validates) = settings.validates {
            self.options.validates = validates;
        }
        if let Some(hosts) = &settings.callbacks {
            self.hosts.clone_from(hosts);
        }
    }

    /// The callbacks of the operation that has answered a request: each as it is sent, or why it is not.
    pub(crate) fn callbacks(
        &self,
        request: &RequestView<'_>,
        response: &StoredResponse,
    ) -> Vec<Result<OutgoingCallback, UnsentCallback>> {
        let has_some = self
            .api
            .operations
            .iter()
            .any(|it| !it.callbacks.is_empty());
        if !has_some || !response.status.is_success() {
            return Vec::new();
        }
        let Some((number, places)) = self.found(request) else {
            return Vec::new();
        };
        let operation = &self.api.operations[number];
        let Some(base) = calls::url_of(request) else {
            return Vec::new();
        };
        let exchange = Exchange {
            request,
            places: &places,
            response,
        };
        let callbacks = operation.callbacks.iter().map(|callback| {
            let target = expression::filled(&callback.url, &exchange);
            let made = target.map_err(CallbackError::from).and_then(|target| {
                calls::callback(
                    &self.api,
                    callback,
                    &target,
                    &base,
                    &self.hosts,
                    self.options,
                )
            });
            made.map_err(|cause| UnsentCallback {
                name: callback.name.clone(),
                method: operation.method.clone(),
                path: operation.path.clone(),
                cause,
            })
        });
        callbacks.collect()
    }

    /// Names and methods of its webhooks.
    pub(crate) fn webhooks(&self) -> impl Iterator<Item = (&str, &str)> {
        let webhooks = self.api.webhooks.iter();
        webhooks.map(|it| (it.name.as_str(), it.method.as_str()))
    }

    /// A webhook as it is sent to a URL, or why it cannot be; nothing if it has none of that name.
    pub(crate) fn webhook(
        &self,
        name: &str,
        url: Url,
    ) -> Option<Result<OutgoingCallback, CallbackError>> {
        let webhook = self.api.webhooks.iter().find(|it| it.name == name)?;
        Some(calls::outgoing(&self.api, webhook, url, self.options))
    }

    /// The operation of a request by its number, and what stands in the places of its path.
    fn found(&self, request: &RequestView<'_>) -> Option<(usize, Vec<(&str, String)>)> {
        let path = route::with_slashes(&request.path, request.own_path());
        let has_method =
            |found: &route::MatchedRoute<'_>| self.number(found, request.method).is_some();
        let found = self.routes.find(self.inner(&path)?, &has_method)?;
        let number = self.number(&found, request.method)?;
        Some((number, found.places))
    }

    /// Methods and paths of its operations, as the document has them.
    pub fn requests(&self) -> impl Iterator<Item = (&str, &str)> {
        let operations = self.api.operations.iter();
        operations.map(|it| (it.method.as_str(), it.path.as_str()))
    }

    /// File of the document.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Files of the document and of its references.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> {
        let others = self.api.files.iter();
        let others = others.map(|name| self.file.with_file_name(name));
        std::iter::once(self.file.clone()).chain(others)
    }

    /// Number of operations.
    pub fn operations(&self) -> usize {
        self.api.operations.len()
    }

    /// Whether it has something at such a path.
    pub fn covers(&self, path: &str) -> bool {
        self.inner(path)
            .is_some_and(|path| self.routes.find(path, &|_| true).is_some())
    }

    fn inner<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.prefix.as_str())?;
        match rest {
            "" => Some("/"),
            rest if rest.starts_with('/') => Some(rest),
            _ => None,
        }
    }

    /// Its response to a request; nothing if the path is not in the document.
    pub(crate) fn answer(&self, request: &RequestView<'_>) -> Option<StoredResponse> {
        let path = route::with_slashes(&request.path, request.own_path());
        let has_method =
            |found: &route::MatchedRoute<'_>| self.number(found, request.method).is_some();
        let found = self.routes.find(self.inner(&path)?, &has_method)?;
        Some(match self.response(request, &found) {
            Ok(response) => response,
            Err(refusal) => refusal.response(),
        })
    }

    /// The number of the operation of a method.
    fn number(&self, found: &route::MatchedRoute<'_>, method: &str) -> Option<usize> {
        let of_method = |method: &str| found.operation(&self.api, method);
        of_method(method).or_else(|| {
            // An operation of GET answers HEAD, without its content.
            (method == "HEAD").then(|| of_method("GET"))?
        })
    }

    fn response(
        &self,
        request: &RequestView<'_>,
        found: &route::MatchedRoute<'_>,
    ) -> Result<StoredResponse, Refusal> {
        let Some(number) = self.number(found, request.method) else {
            let methods = found.methods(&self.api);
            let detail = format!("{} has {methods}, not {}", found.path(), request.method);
            let mut refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, detail);
            if let Ok(methods) = HeaderValue::from_str(&methods) {
                refusal.fields.push((ALLOW, methods));
            }
            return Err(refusal);
        };
        let operation = &self.api.operations[number];
        if self.options.validates
            && let Err(refusal) = self.checks[number].check(operation, request, &found.places)
        {
            // Clients of the document know its own responses.
            let own = response::of_refusal(&self.api, operation, request, &refusal, self.options);
            return own.unwrap_or(Err(refusal));
        }
        response::for_operation(&self.api, operation, request, self.options)
    }

    /// Whether it has an operation of that method for the path of a request.
    pub(crate) fn has_operation(&self, request: &RequestView<'_>) -> bool {
        self.found(request).is_some()
    }
}

impl Refusal {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            errors: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// - `schemes`: of the credentials that would do, as the document writes them.
    fn unauthorized(detail: String, schemes: &[&str]) -> Self {
        let mut refusal = Self::new(StatusCode::UNAUTHORIZED, detail);
        let mut challenges: Vec<String> = Vec::new();
        for scheme in schemes {
            // Both need a realm, Digest a nonce too (RFC 7617, section 2; RFC 7616, section 3.3). Credentials are not
            // checked, so the nonce is always the same.
            let challenge = match scheme.to_ascii_lowercase().as_str() {
                "basic" => "Basic realm=\"*\"".to_owned(),
                "digest" => "Digest realm=\"*\", nonce=\"abc123\"".to_owned(),
                _ => (*scheme).to_owned(),
            };
            if !challenges.contains(&challenge) {
                challenges.push(challenge);
            }
        }
        let challenge = HeaderValue::from_str(&challenges.join(", "));
        let challenge = challenge.unwrap_or(HeaderValue::from_static("Bearer"));
        refusal.fields.push((WWW_AUTHENTICATE, challenge));
        refusal
    }

    /// The error in one short line of ASCII.
    fn summary(&self) -> String {
        let error = self.errors.first().map(|error| {
            let text = |key: &str| error[key].as_str().unwrap_or_default();
            let name = [text("in"), text("name"), text("pointer")];
            let name = name.into_iter().filter(|it| !it.is_empty());
            let name = name.collect::<Vec<_>>().join(" ");
            format!(": {name} {}", text("message"))
        });
        let line = format!("{}{}", self.detail, error.unwrap_or_default());
        let plain = line
            .chars()
            .map(|it| if it.is_ascii_graphic() { it } else { ' ' });
        plain.take(LONGEST_SUMMARY).collect()
    }

    fn response(self) -> StoredResponse {
        let mut document = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        if !self.errors.is_empty() {
            document["errors"] = Value::Array(self.errors);
        }
        let kind = HeaderValue::from_static("application/problem+json");
        let mut fields = self.fields;
        fields.push((CONTENT_TYPE, kind));
        StoredResponse {
            status: self.status,
            fields,
            content: document.to_string().into(),
            written: None,
        }
    }
}

#[cfg(test)]
mod tests;
