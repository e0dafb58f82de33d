//! Rules of mocks: any text is a set of them or has problems with places within it; a set finds by its index what it
//! finds by looking at each rule. The first line is the path of a request.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use plimsoll_mock::rules::{Strategy, Tiebreaker};
use plimsoll_mock::{KeptRequest, config};

fuzz_target!(|text: &str| {
    let (target, rules) = text.split_once('\n').unwrap_or(("/", text));
    // Nothing is there that a rule could name.
    match config::parse(rules, Path::new("/nonexistent")) {
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in problems {
                let line = problem.problem.map_or(0, |problem| problem.line);
                assert!(line <= rules.matches('\n').count() + 1);
            }
        }
        Ok(set) => {
            let request = KeptRequest::made("GET", target);
            let view = request.view();
            let is_fixed = matches!(
                set.strategy(),
                Strategy::FirstMatch | Strategy::Priority(Tiebreaker::FirstMatch)
            );
            let found = set.find(&view);
            if is_fixed {
                assert_eq!(found, set.scan(&view));
            }
        }
    }
});
