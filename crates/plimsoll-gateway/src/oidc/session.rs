//! Sessions in cookies.

use plimsoll_client::jwt::{JwtClaims, JwtValidity};
use plimsoll_server::Request;

use super::OidcPlan;
use super::seal::Kind;
use crate::jwt::VerifiedToken;

/// Bytes of the value of a cookie: with its name and attributes browsers keep 4096.
const MOST_VALUE: usize = 3800;

/// The claims of the user do not fit into a cookie.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// The values of the cookies of that name, in their order.
pub(super) fn cookies<'r>(request: &Request<'r>, name: &str) -> impl Iterator<Item = &'r str> {
    let fields = request.values("cookie");
    fields
        .filter_map(|value| std::str::from_utf8(value).ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(move |(known, _)| *known == name)
        .map(|(_, value)| value)
}

/// The session of a cookie, if it was made here and has not ended.
pub(super) fn open(plan: &OidcPlan, sealed: &str, now: f64) -> Option<VerifiedToken> {
    let text = plan.seals.open(Kind::Session, sealed)?;
    let newline = text.iter().position(|byte| *byte == b'\n')?;
    let (begun, claims) = text.split_at(newline);
    let begun: f64 = std::str::from_utf8(begun).ok()?.parse().ok()?;
    // The lifetime may be another one than when it began.
    let validity = JwtValidity::until(begun + plan.lifetime.as_secs_f64());
    let claims = JwtClaims::parse(claims)?;
    validity
        .holds_at(now)
        .then(|| VerifiedToken::of_session(claims, validity))
}

/// The cookie of a session that begins now.
pub(super) fn begin(plan: &OidcPlan, claims: &JwtClaims, now: f64) -> Result<String, TooLarge> {
    let text = format!("{}\n{}", now.floor(), claims.to_json());
    let sealed = plan.seals.seal(Kind::Session, text.as_bytes());
    let sealed = sealed.filter(|it| it.len() <= MOST_VALUE).ok_or(TooLarge)?;
    Ok(cookie(&plan.cookie, &sealed, plan.lifetime.as_secs()))
}

/// A value of `set-cookie` that only this site, over TLS, and no script gets.
///
/// - `age`: in seconds; 0 removes the cookie.
pub(super) fn cookie(name: &str, value: &str, age: u64) -> String {
    format!("{name}={value}; Path=/; Max-Age={age}; Secure; HttpOnly; SameSite=Lax")
}
