//! Configurations of `plimsoll up`: any text is one, or has problems, each with a place within it.
#![no_main]

use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use plimsoll_server::Counters;
use plimsoll_server::config::Compiler;

fuzz_target!(|text: &str| {
    // Nothing is there that a file could name.
    let counters = Arc::<Counters>::default();
    let mut compiler = Compiler::new(Path::new("/nonexistent"), &counters);
    compiler.actions.push(plimsoll_gateway::PROXY);
    compiler.actions.push(plimsoll_gateway::CONNECT);
    compiler.guards.extend(plimsoll_gateway::GUARDS);
    compiler.sections.push(plimsoll_gateway::UPSTREAMS);
    compiler.sections.push(plimsoll_gateway::TRACES);
    compiler.listens.extend(plimsoll_gateway::LISTENS);
    if let Err(problems) = compiler.compile(text) {
        assert!(!problems.is_empty());
        let lines = text.matches('\n').count() + 1;
        for problem in problems {
            assert!(problem.line <= lines, "{problem:?}");
        }
    }
});
