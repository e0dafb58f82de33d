//! Servers for tests of requests that another service authorizes.

use crate::{Logic, Origin, Reply, Script, Step};

/// A service that knows the cookie `session=ann`, and says by other cookies what it is to respond with.
pub fn authorization_service() -> Origin {
    let logic = Logic::new(|question| {
        let cookie = question.field("cookie").unwrap_or_default();
        let said = cookie
            .strip_prefix("status=")
            .and_then(|it| it.parse().ok());
        match said {
            _ if cookie == "session=ann" => Reply::new(
                202,
                &[
                    ("x-user", "ann"),
                    ("x-level", "2"),
                    ("set-cookie", "session=renewed"),
                ],
            ),
            Some(status) => Reply::new(status, &[("location", "/login"), ("x-service", "yes")]),
            None => Reply::new(
                401,
                &[
                    ("www-authenticate", "Bearer"),
                    ("x-service", "yes"),
                    ("set-cookie", "csrf=1"),
                ],
            ),
        }
    });
    let script = move |_| Script::new().then(Step::Reply(logic.clone()));
    Origin::builder().script(script).start()
}

/// A server that says by `x-seen` which fields `x-user` and `x-other` it has received: `ann/`, `ann+bob/1`.
pub fn user_echo() -> Origin {
    let logic = Logic::new(|question| {
        let users = question.all("x-user").join("+");
        let other = question.all("x-other").join("+");
        Reply::new(200, &[("x-seen", &format!("{users}/{other}"))])
    });
    let script = move |_| Script::new().then(Step::Reply(logic.clone()));
    Origin::builder().script(script).start()
}
