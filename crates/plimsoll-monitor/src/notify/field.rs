//! Settings of channels: each is declared once; the configuration, its schema, forms, imports and the documentation follow
//! that declaration.

use std::collections::BTreeMap;

use lettre::message::Mailbox;
use plimsoll_model::Secret;
use plimsoll_model::document::{Value, as_text};
use url::Url;

use crate::notify::settings::Settings;

/// A setting of a channel.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its key in the table of the channel.
    pub key: &'static str,
    /// What it is, without a full stop; for forms and the documentation.
    pub about: &'static str,
    /// What it may be.
    pub kind: FieldKind,
    /// Without it there is no channel.
    pub is_required: bool,
    /// What holds if it is not given.
    pub default: Option<&'static str>,
}

/// The kinds of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// One line.
    Text,
    /// Several lines.
    Lines,
    /// A credential, or the name of the variable that has it.
    Secret,
    /// A URL that is a credential by itself.
    SecretUrl,
    /// The same with placeholders.
    SecretTemplate,
    /// A URL.
    Url,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// A whole number up to the second one, from the first one on.
    Number(usize, usize),
    /// One text or several.
    Texts,
    /// An address of mail.
    Address,
    /// One address of mail or several.
    Addresses,
    /// Names with credentials, such as header fields.
    SecretPairs,
}

impl FieldKind {
    /// Whether it is shown to nobody again.
    pub const fn is_secret(self) -> bool {
        matches!(
            self,
            Self::Secret | Self::SecretUrl | Self::SecretTemplate | Self::SecretPairs
        )
    }
}

impl Field {
    /// Whether it decides which server receives messages, and with them the credentials of the channel.
    pub fn leads(&self) -> bool {
        let is_address = matches!(
            self.kind,
            FieldKind::Url | FieldKind::SecretUrl | FieldKind::SecretTemplate
        );
        is_address || self.key == "host"
    }

    const fn new(key: &'static str, kind: FieldKind, about: &'static str) -> Self {
        Self {
            key,
            about,
            kind,
            is_required: false,
            default: None,
        }
    }

    pub(super) const fn text(key: &'static str, about: &'static str) -> Self {
        Self::new(key, FieldKind::Text, about)
    }

    pub(super) const fn lines(key: &'static str, about: &'static str) -> Self {
        Self::new(key, FieldKind::Lines, about)
    }

    pub(super) const fn secret(key: &'static str, about: &'static str) -> Self {
        Self::new(key, FieldKind::Secret, about)
    }

    pub(super) const fn secret_url(about: &'static str) -> Self {
        Self::new("url", FieldKind::SecretUrl, about).required()
    }

    pub(super) const fn secret_template(key: &'static str, about: &'static str) -> Self {
        Self::new(key, FieldKind::SecretTemplate, about)
    }

    pub(super) const fn url(about: &'static str) -> Self {
        Self::new("url", FieldKind::Url, about)
    }

    /// The vendor's address, which a proxy or a receiver of one's own may replace.
    pub(super) const fn vendor(default: &'static str) -> Self {
        Self::url("address of the API").or(default)
    }

    /// The first word holds if none is given.
    pub(super) const fn choice(
        key: &'static str,
        known: &'static [&'static str],
        about: &'static str,
    ) -> Self {
        let field = Self::new(key, FieldKind::Choice(known), about);
        match known {
            [first, ..] => field.or(first),
            [] => field,
        }
    }

    pub(super) const fn number(
        key: &'static str,
        (least, most): (usize, usize),
        about: &'static str,
    ) -> Self {
        Self::new(key, FieldKind::Number(least, most), about)
    }

    pub(super) const fn texts(key: &'static str, about: &'static str) -> Self {
        Self::new(key, FieldKind::Texts, about)
    }

    pub(super) const fn address(key: &'static str, about: &'static str) -> Self {
        Self::new(key, FieldKind::Address, about)
    }

    pub(super) const fn addresses(key: &'static str, about: &'static str) -> Self {
        Self::new(key, FieldKind::Addresses, about)
    }

    pub(super) const fn secret_pairs(key: &'static str, about: &'static str) -> Self {
        Self::new(key, FieldKind::SecretPairs, about)
    }

    pub(super) const fn required(self) -> Self {
        Self {
            is_required: true,
            ..self
        }
    }

    pub(super) const fn or(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    /// Notes its value or its default, if there is one; `None` if a problem was noted.
    fn read(&self, settings: &mut Settings<'_>, values: &mut Values) -> Option<()> {
        let value = match settings.table.take_value(self.key) {
            Some(value) => Some(self.value(settings, value)?),
            None => self.default_value(),
        };
        if self.is_required && value.as_ref().is_none_or(FieldValue::is_empty) {
            settings.table.missing(self.key, self.about);
            return None;
        }
        values.0.extend(value.map(|value| (self.key, value)));
        Some(())
    }

    fn default_value(&self) -> Option<FieldValue> {
        let text = self.default?;
        Some(match self.kind {
            FieldKind::Url => FieldValue::Url(Url::parse(text).ok()?),
            FieldKind::Number(..) => FieldValue::Number(text.parse().ok()?),
            _ => FieldValue::Text(text.to_owned()),
        })
    }

    fn value<'t>(&self, settings: &Settings<'t>, value: Value<'t>) -> Option<FieldValue> {
        match self.kind {
            FieldKind::Text | FieldKind::Lines => Some(FieldValue::Text(value.text()?)),
            FieldKind::Address => {
                let text = as_text(&value)?.to_owned();
                is_address(&value, &text)?;
                Some(FieldValue::Text(text))
            }
            FieldKind::Secret | FieldKind::SecretTemplate => {
                let secret = settings.revealed(value)?;
                Some(FieldValue::Secret(Secret::new(secret)))
            }
            FieldKind::SecretUrl => Some(FieldValue::Url(settings.web_of(value)?)),
            FieldKind::Url => {
                let text = as_text(&value)?;
                Some(FieldValue::Url(crate::notify::settings::web(&value, text)?))
            }
            FieldKind::Choice(known) => {
                let text = as_text(&value)?;
                if !known.contains(&text) {
                    return value.wrong(format!("`{text}` is not one of {}", known.join(", ")));
                }
                Some(FieldValue::Text(text.to_owned()))
            }
            FieldKind::Number(least, most) => {
                let whole = value.whole(least as u64..=most as u64)?;
                Some(FieldValue::Number(usize::try_from(whole).ok()?))
            }
            FieldKind::Texts | FieldKind::Addresses => {
                let all = value.elements().into_iter().map(|one| {
                    let text = as_text(&one)?.to_owned();
                    if self.kind == FieldKind::Addresses {
                        is_address(&one, &text)?;
                    }
                    Some(text)
                });
                let all: Vec<_> = all.collect();
                Some(FieldValue::Texts(all.into_iter().collect::<Option<_>>()?))
            }
            FieldKind::SecretPairs => {
                let mut table = value.table()?;
                let pairs = table
                    .rest_of_fields()
                    .into_iter()
                    .map(|(name, value)| Some((name, Secret::new(settings.revealed(value)?))));
                let pairs: Vec<_> = pairs.collect();
                table.finish();
                Some(FieldValue::Pairs(pairs.into_iter().collect::<Option<_>>()?))
            }
        }
    }
}

fn is_address(value: &Value<'_>, text: &str) -> Option<()> {
    match text.parse::<Mailbox>() {
        Ok(_) => Some(()),
        Err(_) => value.wrong(format!("`{text}` is no address of mail")),
    }
}

#[derive(Debug, Clone)]
enum FieldValue {
    Text(String),
    Secret(Secret),
    Url(Url),
    Number(usize),
    Texts(Vec<String>),
    Pairs(Vec<(String, Secret)>),
}

impl FieldValue {
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::Secret(secret) => secret.expose().is_empty(),
            Self::Texts(all) => all.is_empty(),
            Self::Pairs(all) => all.is_empty(),
            Self::Url(_) | Self::Number(_) => false,
        }
    }
}

/// The settings of a channel, each as it was declared.
///
/// What is required is there. It is an error of the program to ask for a setting that is not declared, or as another kind.
#[derive(Debug)]
pub(crate) struct Values(BTreeMap<&'static str, FieldValue>);

const DECLARED: &str = "the channel declares this setting as required and of this kind";

impl Values {
    /// The credentials among them. What has placeholders is a text, and so is the type of the content.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let is_text = |text: &Secret| text.expose().contains("{{") || text.expose().is_empty();
        let secrets = self.0.values().flat_map(|value| match value {
            FieldValue::Secret(secret) => vec![secret.clone()],
            FieldValue::Pairs(pairs) => {
                let pairs = pairs.iter();
                let pairs = pairs.filter(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
                pairs.map(|(_, secret)| secret.clone()).collect()
            }
            _ => Vec::new(),
        });
        secrets.filter(|it| !is_text(it)).collect()
    }

    /// Reads all fields; problems are noted in the settings.
    pub(crate) fn read(fields: &[Field], settings: &mut Settings<'_>) -> Option<Self> {
        let mut values = Self(BTreeMap::new());
        let mut is_fine = true;
        // Every field is read before it is known that one is wrong.
        for field in fields {
            is_fine &= field.read(settings, &mut values).is_some();
        }
        is_fine.then_some(values)
    }

    pub(crate) fn text(&self, key: &str) -> String {
        self.maybe_text(key).expect(DECLARED)
    }

    pub(crate) fn maybe_text(&self, key: &str) -> Option<String> {
        match self.0.get(key)? {
            FieldValue::Text(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            _ => None,
        }
    }

    pub(crate) fn secret(&self, key: &str) -> Secret {
        self.maybe_secret(key).expect(DECLARED)
    }

    pub(crate) fn maybe_secret(&self, key: &str) -> Option<Secret> {
        match self.0.get(key)? {
            FieldValue::Secret(secret) => Some(secret.clone()),
            _ => None,
        }
    }

    pub(crate) fn url(&self) -> Url {
        self.maybe_url().expect(DECLARED)
    }

    pub(crate) fn maybe_url(&self) -> Option<Url> {
        match self.0.get("url")? {
            FieldValue::Url(url) => Some(url.clone()),
            _ => None,
        }
    }

    pub(crate) fn number(&self, key: &str) -> Option<usize> {
        match self.0.get(key)? {
            FieldValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn texts(&self, key: &str) -> Vec<String> {
        match self.0.get(key) {
            Some(FieldValue::Texts(all)) => all.clone(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn pairs(&self, key: &str) -> Vec<(String, Secret)> {
        match self.0.get(key) {
            Some(FieldValue::Pairs(all)) => all.clone(),
            _ => Vec::new(),
        }
    }
}
