//! What is wrong with the settings of a channel as a whole.

use crate::notify::channel::template::TemplateError;

/// Why settings make no channel; each begins with the key that it is about, if it is about one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    /// Of AWS.
    #[error("{key}: `{region}` is no region")]
    Region {
        /// The setting that names it.
        key: &'static str,
        /// The region.
        region: String,
    },
    /// Of Amazon SNS.
    #[error("topic: must be an ARN such as `arn:aws:sns:eu-central-1:123456789012:ops`")]
    Topic,
    /// Of mail.
    #[error("an address is not understood")]
    MailAddress,
    /// More receivers than the vendor takes.
    #[error("to: at most {0} receive a mail")]
    Receivers(usize),
    /// Of GitHub.
    #[error("repository: must be `OWNER/NAME`")]
    Repository,
    /// One half of a login.
    #[error("`username` and `password` are given together")]
    HalfLogin,
    /// Two ways to sign in.
    #[error("either `username` and `password` or `token` are given")]
    TwoLogins,
    /// A name or value that HTTP does not permit.
    #[error("headers: `{0}` is no header field of HTTP")]
    NoField(String),
    /// Fields that say where a message ends.
    #[error("headers: `{0}` is set by this program")]
    OwnField(String),
    /// The value of a header field.
    #[error("headers: `{name}`: {error}")]
    FieldTemplate {
        /// The field.
        name: String,
        /// Its template.
        error: TemplateError,
    },
    /// Of a webhook.
    #[error("body: {0}")]
    BodyTemplate(TemplateError),
    /// A template of JSON makes something else.
    #[error("body: what it makes is no JSON: {0}")]
    BodyJson(serde_json::Error),
    /// A webhook leads to a host that is known before a message is.
    #[error(
        "url: must be a URL that begins with `https://` or `http://`, without placeholders in its host"
    )]
    Url,
    /// Of a webhook.
    #[error("url: {0}")]
    UrlTemplate(TemplateError),
}
