//! Paths of requests: a normal form has no part that two readers could understand differently, and what is below a
//! prefix is the rest of the same path.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::http::{NormalPath, below};

fuzz_target!(|input: (&str, &str)| {
    let (raw, prefix) = input;
    let is_dots = |name: &str| matches!(name.split(';').next(), Some("." | ".."));
    let cleaned = NormalPath::cleaned(raw);
    assert!(cleaned.text().starts_with('/') && !cleaned.text().contains("//"));
    assert!(!cleaned.text().split('/').any(is_dots));
    if let Ok(path) = NormalPath::parse(raw) {
        assert!(!path.text().contains(['\\', '\0']));
        for reading in path.other_readings() {
            assert!(!reading.text().split('/').any(is_dots));
        }
    }
    if let Some(rest) = below(raw, prefix) {
        assert!(raw.ends_with(rest));
    }
});
