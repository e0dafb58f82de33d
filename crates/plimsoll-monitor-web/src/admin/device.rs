//! Devices by which a member has signed in before, so that strangers' failures do not keep that member out.
//!
//! A browser keeps a random name with a tag, whose key is the hash of the member's password: no other state is needed, and
//! another password ends it. It opens nothing; it only has a count of attempts of its own. An address from which the member
//! has an open session counts too, for browsers that keep no cookies.

use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::request::Parts;
use plimsoll_monitor::store::{StoreError, User};
use plimsoll_monitor::time::Timestamp;
use ring::hmac;
use std::net::IpAddr;
use std::time::Duration;

use crate::cookies::Cookie;
use crate::limits::source;
use crate::random;
use crate::request::{client_of, is_tls};
use crate::state::Api;

/// Presented with the form of the sign-in only.
const DEVICE: Cookie<'static> = Cookie {
    name: "plimsoll-device",
    path: "/admin/sign-in",
    age: Duration::from_hours(180 * 24),
};

fn key(user: &User) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, user.password.expose().as_bytes())
}

fn content(user: &User, device: &str) -> String {
    format!("plimsoll device {} {device}", user.id.0)
}

/// Has the browser remember that the user has signed in by it.
pub(super) fn remember(response: &mut Response, user: &User, is_tls: bool) {
    // Without random numbers, only the address is remembered.
    let Some(device) = random::token() else {
        return;
    };
    let tag = hmac::sign(&key(user), content(user, &device).as_bytes());
    let tag = BASE64_URL_SAFE_NO_PAD.encode(tag.as_ref());
    DEVICE.set(response, &format!("{device}.{tag}"), is_tls);
}

/// What is known of the client of a request, if the user has signed in by it before.
pub(super) async fn known(
    api: &Api,
    request: &Parts,
    user: &User,
    now: Timestamp,
) -> Result<Option<String>, StoreError> {
    let is_tls = is_tls(&request.headers, &request.extensions);
    if let Some(device) = DEVICE
        .read(&request.headers, is_tls)
        .and_then(|value| verified(user, value))
    {
        return Ok(Some(device.to_owned()));
    }
    let own = source(client_of(&request.extensions));
    let handle = &api.handle;
    let sessions = handle.store.sessions(handle.org, user.id, now).await?;
    let is_own = sessions.iter().any(|session| {
        let address: Option<IpAddr> = session.address.parse().ok();
        address.is_some_and(|address| source(address) == own)
    });
    Ok(is_own.then_some(own))
}

/// The name of the device in the value of a cookie that was set for this user with this password.
fn verified<'v>(user: &User, value: &'v str) -> Option<&'v str> {
    let (device, tag) = value.split_once('.')?;
    let tag = BASE64_URL_SAFE_NO_PAD.decode(tag).ok()?;
    hmac::verify(&key(user), content(user, device).as_bytes(), &tag).ok()?;
    Some(device)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::header::SET_COOKIE;
    use plimsoll_model::Secret;

    use super::*;
    use plimsoll_monitor::store::{Role, UserId};

    fn user(id: i64, password: &str) -> User {
        User {
            id: UserId(id),
            name: "ann".to_owned(),
            role: Role::Admin,
            password: Secret::new(password),
            must_change: false,
            totp: None,
            created: Timestamp(0),
            seen: None,
        }
    }

    #[test]
    fn a_device_is_of_one_user_with_one_password() {
        let mut response = Response::new(Body::empty());
        remember(&mut response, &user(1, "one"), false);
        let set = response.headers()[SET_COOKIE].to_str().unwrap();
        let value = set.split(['=', ';']).nth(1).unwrap();
        assert!(verified(&user(1, "one"), value).is_some());
        assert!(verified(&user(2, "one"), value).is_none());
        assert!(verified(&user(1, "two"), value).is_none());
        let (device, _) = value.split_once('.').unwrap();
        for forged in ["", ".", device, &format!("{device}."), &format!("x{value}")] {
            assert!(verified(&user(1, "one"), forged).is_none(), "{forged}");
        }
    }
}
