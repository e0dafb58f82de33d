//! Configurations of nginx: any text is translated to a file of TOML, or its error has a place within it; so has each note.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_gateway::import_nginx;
use plimsoll_model::document::Document;

fuzz_target!(|text: &str| {
    let lines = text.lines().count().max(1);
    let mut include = |_: &str| Err("there are no files here".into());
    match import_nginx("nginx.conf", text, &mut include) {
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
