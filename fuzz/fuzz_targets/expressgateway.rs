//! Configurations of ExpressGateway: any text is translated to a file of TOML, or its problems have places within it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_gateway::{import_expressgateway, is_expressgateway};
use plimsoll_model::document::Document;

fuzz_target!(|text: &str| {
    is_expressgateway(text);
    let lines = text.lines().count().max(1);
    match import_expressgateway("config.toml", text) {
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in problems {
                assert!(problem.line <= lines + 1, "{problem}");
            }
        }
        Ok(imported) => {
            for note in &imported.notes {
                assert!(note.line <= lines + 1, "{note}");
            }
            let document = Document::parse(&imported.toml);
            let problems = document.into_problems();
            assert!(problems.is_empty(), "{problems:?} in {}", imported.toml);
        }
    }
});
