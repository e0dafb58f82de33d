//! Where requests have their tokens.

use http::header::{AUTHORIZATION, COOKIE, HeaderName, HeaderValue};
use plimsoll_server::{FieldEdits, Request};

/// Where a token is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenPlace {
    /// `Authorization: Bearer TOKEN`.
    Authorization,
    /// The whole value of another field.
    Field(HeaderName),
    Cookie(String),
    /// The parameter of a query.
    Query(String),
}

/// The places of a token, of which the first counts that has one.
#[derive(Debug, Clone)]
pub(crate) struct TokenPlaces(pub(crate) Vec<TokenPlace>);

/// A request has several tokens where one belongs: two readers could take different ones.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request has more than one token")]
pub(crate) struct SeveralTokens;

impl TokenPlaces {
    /// The token of a request, if it has one.
    pub(super) fn token<'r>(
        &self,
        request: &Request<'r>,
    ) -> Result<Option<&'r str>, SeveralTokens> {
        for place in &self.0 {
            if let Some(token) = place.token(request)? {
                return Ok(Some(token));
            }
        }
        Ok(None)
    }

    /// The fields that may have it.
    pub(super) fn fields(&self) -> Vec<HeaderName> {
        let fields = self.0.iter().filter_map(|place| match place {
            TokenPlace::Authorization => Some(AUTHORIZATION),
            TokenPlace::Field(name) => Some(name.clone()),
            TokenPlace::Cookie(_) | TokenPlace::Query(_) => None,
        });
        fields.collect()
    }

    /// Removes the tokens of a request from its fields.
    pub(super) fn removing(&self, request: &Request<'_>) -> FieldEdits {
        let fields = self.fields().into_iter();
        let edits = fields.fold(FieldEdits::new(), FieldEdits::remove);
        let cookies: Vec<_> = self.0.iter().filter_map(TokenPlace::cookie).collect();
        if cookies.is_empty() || request.header("cookie").is_none() {
            return edits;
        }
        let is_token = |name: &[u8]| cookies.iter().any(|it| it.as_bytes() == name);
        without_cookies(request, is_token, edits)
    }

    /// The query without its tokens; `None` if it has none.
    pub(super) fn query_without(&self, query: Option<&str>) -> Option<String> {
        let query = query?;
        let is_token = |parameter: &&str| {
            let name = parameter.split('=').next().unwrap_or_default();
            let mut places = self.0.iter();
            places.any(|place| matches!(place, TokenPlace::Query(known) if known == name))
        };
        if !query.split('&').any(|it| is_token(&it)) {
            return None;
        }
        let others = query.split('&').filter(|it| !is_token(it));
        Some(others.collect::<Vec<_>>().join("&"))
    }
}

/// Removes cookies from a request by their names.
pub(crate) fn without_cookies(
    request: &Request<'_>,
    is_removed: impl Fn(&[u8]) -> bool,
    edits: FieldEdits,
) -> FieldEdits {
    let fields = request.values("cookie");
    let pairs = fields
        .flat_map(|value| value.split(|byte| *byte == b';'))
        .map(<[u8]>::trim_ascii)
        .filter(|pair| !pair.is_empty());
    let others = pairs.filter(|pair| {
        let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
        !is_removed(name.trim_ascii())
    });
    let others: Vec<_> = others.collect();
    match HeaderValue::from_bytes(&others.join(&b"; "[..])) {
        Ok(value) if !value.is_empty() => edits.set(COOKIE, value),
        _ => edits.remove(COOKIE),
    }
}

impl TokenPlace {
    fn cookie(&self) -> Option<&str> {
        match self {
            Self::Cookie(name) => Some(name),
            _ => None,
        }
    }

    fn token<'r>(&self, request: &Request<'r>) -> Result<Option<&'r str>, SeveralTokens> {
        match self {
            Self::Authorization => {
                let value = only(request.values("authorization"))?;
                Ok(value.and_then(bearer))
            }
            Self::Field(name) => {
                let value = only(request.values(name.as_str()))?;
                let value = value.and_then(|it| std::str::from_utf8(it).ok());
                Ok(value.map(str::trim).filter(|it| !it.is_empty()))
            }
            Self::Cookie(name) => {
                let fields = request.values("cookie");
                let pairs = fields
                    .filter_map(|value| std::str::from_utf8(value).ok())
                    .flat_map(|value| value.split(';'))
                    .filter_map(|pair| pair.trim().split_once('='));
                let values = pairs.filter(|(known, _)| *known == name);
                only(values.map(|(_, value)| value).filter(|it| !it.is_empty()))
            }
            Self::Query(name) => {
                let parameters = request.query.unwrap_or_default().split('&');
                let pairs = parameters.filter_map(|it| it.split_once('='));
                let values = pairs.filter(|(known, _)| *known == name);
                only(values.map(|(_, value)| value).filter(|it| !it.is_empty()))
            }
        }
    }
}

/// The only one of several values.
fn only<T>(mut values: impl Iterator<Item = T>) -> Result<Option<T>, SeveralTokens> {
    let first = values.next();
    if values.next().is_some() {
        return Err(SeveralTokens);
    }
    Ok(first)
}

/// The token of a value of `authorization` (RFC 6750, section 2.1); nothing with another scheme.
fn bearer(value: &[u8]) -> Option<&str> {
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Bearer ") {
        return None;
    }
    let token = std::str::from_utf8(token).ok()?.trim();
    Some(token).filter(|it| !it.is_empty())
}
