//! What servers ask users to remember: any `Set-Cookie` and any challenge is taken or ignored, and what
//! comes of it can stand in a header field of a request.
#![no_main]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libfuzzer_sys::fuzz_target;
use plimsoll_client::{CookieJar, CookiePlace, DigestAnswers, DigestLogin};
use plimsoll_model::Secret;

const NOW: Duration = Duration::from_secs(1_767_225_600);

fuzz_target!(|data: &[u8]| {
    let now: SystemTime = UNIX_EPOCH + NOW;
    let lines = || data.split(|byte| *byte == b'\n');
    let place = CookiePlace {
        host: "a.example.org",
        path: "/shop/cart?x",
        is_secure: false,
    };
    let mut jar = CookieJar::default();
    let mut answers = DigestAnswers::default();
    for line in lines() {
        jar.take(line, place, now);
        answers.challenge(std::iter::once(line), false);
    }
    let mut sent = Vec::new();
    jar.write(place, now, &mut sent);
    assert!(sent.len() <= CookieJar::MOST * (CookieJar::MOST_BYTES + 3));
    assert!(
        !sent
            .iter()
            .any(|byte| byte.is_ascii_control() && *byte != b'\t')
    );
    let elsewhere = CookiePlace {
        host: "elsewhere.example",
        ..place
    };
    let mut leaked = Vec::new();
    jar.write(elsewhere, now, &mut leaked);
    assert!(leaked.is_empty());
    let login = DigestLogin {
        user: "ann".to_owned(),
        password: Secret::new("secret"),
    };
    if let Some(answer) = answers.authorization(&login, "GET", "/") {
        let is_control = |byte: u8| byte.is_ascii_control() && byte != b'\t';
        assert!(!answer.expose().bytes().any(is_control));
    }
});
