//! Manifests of Kubernetes: any text is translated to a file of TOML, or its error has a place within it; so has each note.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_gateway::{import_kubernetes, is_kubernetes};
use plimsoll_model::document::Document;

fuzz_target!(|text: &str| {
    is_kubernetes(text);
    let lines = text.lines().count().max(1);
    match import_kubernetes("ingress.yml", text) {
        Err(error) => assert!((1..=lines + 1).contains(&error.line), "{error}"),
        Ok(imported) => {
            for note in &imported.notes {
                assert!((1..=lines + 1).contains(&note.line), "{note}");
            }
            let problems = Document::parse(&imported.toml).into_problems();
            assert!(problems.is_empty(), "{problems:?} in {}", imported.toml);
        }
    }
});
