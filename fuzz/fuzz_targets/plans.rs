//! Plans of `plimsoll lab`: any text is a plan or has problems, each with a place within it.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use plimsoll_lab::matrix::{compile, turns};

fuzz_target!(|text: &str| {
    match compile(text, Path::new(""), "plimsoll") {
        Ok(plan) => {
            assert!(!plan.targets.is_empty() && !plan.loads.is_empty() && !plan.sizes.is_empty());
            let cells = plan.targets.len() * plan.loads.len() * plan.sizes.len();
            if cells < 1000 && plan.repeats < 10 {
                assert_eq!(turns(&plan).len(), cells * plan.repeats as usize);
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            let lines = text.matches('\n').count() + 1;
            for problem in problems {
                assert!((1..=lines).contains(&problem.line) && problem.column > 0);
            }
        }
    }
});
