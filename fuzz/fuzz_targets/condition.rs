//! A condition that can be parsed can be judged, and says what was written.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use plimsoll_client::check::{Condition, Observed};

fuzz_target!(|text: &str| {
    let condition = match Condition::parse(text) {
        Ok(condition) => condition,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert_eq!(condition.text(), text.trim());
    let again = Condition::parse(condition.text()).expect("it was parsed before");
    let headers = [("etag".to_owned(), b"\xff\x00".to_vec())];
    let observed = Observed {
        status: 200,
        time: Duration::from_millis(250),
        size: 9,
        body: b"all is ok",
        headers: &headers,
    };
    assert_eq!(condition.is_met(&observed), again.is_met(&observed));
});
