//! Files of Traefik: any text is translated to a file of TOML, or its error has a place within it; so has each note. The same
//! for any text as the rule of a router.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_gateway::{import_traefik, is_traefik};
use plimsoll_model::document::{Document, toml_string};

fuzz_target!(|text: &str| {
    is_traefik(text);
    imported(text);
    // Texts of TOML are texts of YAML too.
    let rule = toml_string(&text.replace(['\n', '\r'], " "));
    imported(&format!(
        "http:\n  routers:\n    a:\n      rule: {rule}\n      service: b\n  services:\n    b: {{ loadBalancer: {{ servers: [ {{ url: \"http://b:80\" }} ] }} }}\n"
    ));
});

fn imported(text: &str) {
    let lines = text.lines().count().max(1);
    match import_traefik("traefik.yml", text) {
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
