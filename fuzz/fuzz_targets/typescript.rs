//! Types of any text are removed or rejected, and every line stays where it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_script::strip_types;

const NEWLINES: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

fuzz_target!(|text: &str| {
    let Ok(stripped) = strip_types(text) else {
        return;
    };
    let newlines =
        |text: &str| -> String { text.chars().filter(|it| NEWLINES.contains(it)).collect() };
    assert_eq!(newlines(&stripped), newlines(text));
    // Only enums, namespaces and properties of parameters become more than they were.
    let is_longer = ["enum", "namespace", "module", "constructor"];
    if is_longer.iter().any(|word| text.contains(word)) {
        return;
    }
    assert_eq!(stripped.chars().count(), text.chars().count());
});
