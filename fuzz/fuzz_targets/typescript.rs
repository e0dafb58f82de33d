//! Types of any text are blanked or rejected, and every character that stays keeps its place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_script::strip_types;

fuzz_target!(|text: &str| {
    let Ok(stripped) = strip_types(text) else {
        return;
    };
    assert_eq!(stripped.chars().count(), text.chars().count());
    for (is, was) in stripped.chars().zip(text.chars()) {
        assert!(is == was || matches!(is, ' ' | ';' | '(' | ')'));
        assert!(is == was || !matches!(was, '\n' | '\r' | '\u{2028}' | '\u{2029}'));
    }
});
