//! The provider `custom`: a request of one's own for each alert, with placeholders in its URL and body.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::notify::{HttpRequest, Message, Notifier, Outgoing};
use crate::time::Timestamp;
use crate::yaml::block::Block;

/// The settings of the provider.
#[derive(Clone)]
pub(super) struct CustomProvider {
    url: String,
    method: &'static str,
    body: String,
    fields: Vec<(String, String)>,
    triggered: String,
    resolved: String,
}

/// What placeholders stand for besides the result, for each endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EndpointFacts {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) url: String,
    /// Of its alert.
    pub(super) description: String,
}

struct Custom {
    provider: CustomProvider,
    /// By the keys of endpoints.
    endpoints: BTreeMap<String, EndpointFacts>,
}

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/// Why a provider sends nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum CustomProviderError {
    #[error("`url` is missing")]
    NoUrl,
    #[error("method: must be one of {}", METHODS.join(", "))]
    Method,
    #[error(
        "url: must be a URL that begins with `http://` or `https://`, without placeholders in its host"
    )]
    Url,
}

impl CustomProvider {
    pub(super) fn compile(block: &Block) -> Result<Self, CustomProviderError> {
        let url = block.text("url").ok_or(CustomProviderError::NoUrl)?;
        let method = block.text("method").unwrap_or_else(|| "GET".to_owned());
        let method = METHODS.into_iter().find(|known| *known == method);
        let method = method.ok_or(CustomProviderError::Method)?;
        let placeholders = block.block("placeholders");
        let states = placeholders.and_then(|block| block.block("ALERT_TRIGGERED_OR_RESOLVED"));
        let state = |key: &'static str| {
            let text = states.as_ref().and_then(|states| states.text(key));
            text.unwrap_or_else(|| key.to_owned())
        };
        // Placeholders are no part of the host: a value could then lead elsewhere.
        let prefix = url.split('[').next().unwrap_or_default();
        let is_open = Url::parse(prefix).is_ok_and(|url| url.has_host())
            && (prefix.len() == url.len() || prefix.matches('/').count() >= 3);
        if !is_open || !(url.starts_with("http://") || url.starts_with("https://")) {
            return Err(CustomProviderError::Url);
        }
        Ok(Self {
            method,
            body: block.text("body").unwrap_or_default(),
            fields: block.texts("headers"),
            triggered: state("TRIGGERED"),
            resolved: state("RESOLVED"),
            url,
        })
    }

    pub(super) fn notifier(&self, endpoints: BTreeMap<String, EndpointFacts>) -> Arc<dyn Notifier> {
        Arc::new(Custom {
            provider: self.clone(),
            endpoints,
        })
    }
}

impl fmt::Debug for CustomProvider {
    /// Without the URL and the fields, which hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomProvider")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom")
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

impl Notifier for Custom {
    fn outgoing(&self, message: &Message, _now: Timestamp) -> Outgoing {
        let provider = &self.provider;
        let unknown = EndpointFacts::default();
        let facts = self.endpoints.get(&message.monitor).unwrap_or(&unknown);
        let state = if message.kind.is_trouble() {
            &provider.triggered
        } else {
            &provider.resolved
        };
        // Gatus escapes quotes in errors, for bodies of JSON.
        let errors = message.text.replace('"', "\\\"");
        let conditions = if message.text.is_empty() {
            String::new()
        } else {
            format!("❌ - `{}`", message.text)
        };
        let values = [
            ("[ALERT_DESCRIPTION]", &facts.description),
            ("[ENDPOINT_NAME]", &facts.name),
            ("[ENDPOINT_GROUP]", &facts.group),
            ("[ENDPOINT_URL]", &facts.url),
            ("[RESULT_ERRORS]", &errors),
            ("[RESULT_CONDITIONS]", &conditions),
            ("[ALERT_TRIGGERED_OR_RESOLVED]", state),
        ];
        let (mut url, mut content) = (provider.url.clone(), provider.body.clone());
        for (placeholder, value) in values {
            let encoded = utf8_percent_encode(value, NON_ALPHANUMERIC).to_string();
            url = url.replace(placeholder, &encoded);
            content = content.replace(placeholder, value);
        }
        // Its host has no placeholder, and values are encoded.
        let url = Url::parse(&url).unwrap_or_else(|_| self.base());
        HttpRequest {
            fields: provider.fields.clone(),
            content,
            ..HttpRequest::new(provider.method, url)
        }
        .into()
    }

    fn groups(&self) -> bool {
        false
    }
}

impl Custom {
    /// The URL before its first placeholder.
    fn base(&self) -> Url {
        let prefix = self.provider.url.split('[').next().unwrap_or_default();
        Url::parse(prefix).expect("it was parsed when the provider was compiled")
    }
}
