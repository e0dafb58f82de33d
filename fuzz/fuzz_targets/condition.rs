//! A condition that can be parsed can be judged, and says what was written.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use plimsoll_client::check::{Condition, Facts, Observed};

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
    let facts = Facts {
        status: 200,
        time: Duration::from_millis(250),
        certificate_days: Some(14),
        ..Facts::default()
    };
    for body in [
        b"all is ok".as_slice(),
        b"{\"ok\": [true, 3, null, \"a\"]}",
        b"\xff",
    ] {
        let observed = Observed::new(facts, &headers, body, body.len() as u64);
        assert_eq!(condition.is_met(&observed), again.is_met(&observed));
        assert_eq!(condition.observe(&observed), again.observe(&observed));
    }
});
