//! The header of a request: the fields of the script, credentials, cookies.

use plimsoll_client::forward::Fields;
use plimsoll_client::{Endpoint, basic_authorization};
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

use super::request::{HttpRequest, Login, Target};
use super::response::canonical;
use crate::user::UserState;

/// The header of a request.
pub(super) struct Header {
    pub(super) fields: Vec<(String, String)>,
    /// Only if the script sets it.
    pub(super) authority: Option<String>,
    pub(super) cookies: Vec<(String, String)>,
}

/// The fields of a request that is sent once, and its authority where the script sets it.
pub(crate) fn fields_of(
    user: &UserState,
    request: &HttpRequest,
    target: &Target,
) -> (Vec<(String, String)>, Option<String>) {
    let made = fields(user, request, target, &request.fields, true);
    (made.fields, made.authority)
}

/// The fields of a request as scripts see them: without those that are made of its URL when it is sent, with the host that it sets.
pub(super) fn shown_fields(
    fields: &[(String, String)],
    request: &HttpRequest,
    host: Option<&str>,
) -> Vec<(String, String)> {
    let is_given = |name: &str| {
        let mut given = request.fields.iter();
        given.any(|(other, _)| other.eq_ignore_ascii_case(name))
    };
    let mut shown = fields.to_vec();
    shown.retain(|(name, _)| name != "Authorization" || is_given("authorization"));
    shown.extend(host.map(|host| ("Host".to_owned(), host.to_owned())));
    shown
}

/// Fields of a response as scripts see them: `content-type` as `Content-Type`.
pub(crate) fn as_shown(fields: &Fields) -> Vec<(String, String)> {
    let text = |bytes| String::from_utf8_lossy(bytes);
    let fields = fields.iter();
    fields
        .map(|(name, value)| (canonical(&text(name)), text(value).into_owned()))
        .collect()
}

/// The header of a request.
pub(super) fn fields(
    user: &UserState,
    request: &HttpRequest,
    target: &Target,
    given: &[(String, String)],
    keeps_cookies: bool,
) -> Header {
    let url = &target.url;
    let mut fields = Vec::with_capacity(given.len() + 2);
    let mut authority = None;
    let mut cookie = None;
    for (name, value) in given {
        if name.eq_ignore_ascii_case("host") {
            authority = Some(value.clone());
        } else if name.eq_ignore_ascii_case("cookie") {
            cookie = Some(value.clone());
        } else {
            fields.push((canonical(name), value.clone()));
        }
    }
    let has =
        |fields: &[(String, String)], wanted: &str| fields.iter().any(|(name, _)| name == wanted);
    if !has(&fields, "User-Agent") {
        let agent = user.shared.options.user_agent.clone();
        fields.push(("User-Agent".to_owned(), agent));
    }
    let is_basic = !url.username().is_empty() && request.login == Login::Basic;
    if is_basic && !has(&fields, "Authorization") {
        let endpoint = Endpoint::try_from(url).ok();
        let credentials = endpoint.as_ref().and_then(Endpoint::credentials);
        if let Some((name, password)) = credentials {
            let value = basic_authorization(name, password).expose().to_owned();
            fields.push(("Authorization".to_owned(), value));
        }
    }
    // Those of the script come first, then those of the jar that it does not replace.
    let mut line = cookie.unwrap_or_default();
    let mut push = |name: &str, value: &str| {
        if !line.is_empty() {
            line.push_str("; ");
        }
        line.push_str(name);
        line.push('=');
        line.push_str(value);
    };
    let own = request.cookies.iter().filter(|_| keeps_cookies);
    for (name, value, _) in own.clone() {
        push(name, value);
    }
    let is_replaced = |name: &str| {
        own.clone()
            .any(|(other, _, replaces)| *replaces && other == name)
    };
    let now = SystemClock.wall();
    for (name, value) in user.jars.borrow().cookies(request.jar, url, now) {
        if !is_replaced(&name) {
            push(&name, &value);
        }
    }
    let cookies = line.split("; ").filter_map(|pair| pair.split_once('='));
    let cookies = cookies
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect();
    if !line.is_empty() {
        fields.push(("Cookie".to_owned(), line));
    }
    Header {
        fields,
        authority,
        cookies,
    }
}
