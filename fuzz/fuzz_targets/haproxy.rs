//! Files of HAProxy: any text is translated to a file of TOML, or its error has a place within it; so has each note. The same
//! for any text as the condition of a rule.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_gateway::{import_haproxy, is_haproxy};
use plimsoll_model::document::Document;

fuzz_target!(|text: &str| {
    is_haproxy(text);
    imported(text);
    let condition = text.replace(['\n', '\r'], " ");
    imported(&format!(
        "defaults\n mode http\nfrontend a\n bind :80\n acl c {condition}\n use_backend b if {condition}\n http-request deny unless c\n default_backend b\nbackend b\n server s 10.0.0.1:80\n"
    ));
});

fn imported(text: &str) {
    let lines = text.lines().count().max(1);
    match import_haproxy("haproxy.cfg", text) {
        Err(error) => assert!((1..=lines + 1).contains(&error.line), "{error}"),
        Ok(imported) => {
            for note in &imported.notes {
                assert!((1..=lines + 1).contains(&note.line), "{note}");
            }
            let problems = Document::parse(&imported.toml).into_problems();
            assert!(problems.is_empty(), "{problems:?} in {}", imported.toml);
        }
    }
}
