//! State that a mock keeps over a reload of the server's configuration.

use std::sync::Arc;

use plimsoll_server::config::Compiler;
use plimsoll_server::{Counters, Engine};
use plimsoll_testkit::http::request;

use crate::mock::files;

const RULES: &str = r#"
[[rules]]
when.request.url_path = "/"
respond.text = "first"
scenario = { name = "visits", state = "Started", next = "again" }

[[rules]]
when.request.url_path = "/"
respond.text = "again"
"#;

#[test]
fn states_survive_a_reload_that_does_not_concern_them() {
    let folder = files(&[("rules.toml", RULES), ("other.toml", RULES)]);
    let counters = Arc::<Counters>::default();
    let mut compiler = Compiler::new(folder.path(), &counters);
    compiler.actions = vec![plimsoll_mock::KIND];
    let compile = |file: &str, idle: &str| {
        let text = format!(
            "[limits]\nidle_timeout = \"{idle}\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
             [[route]]\nmock = {{ file = \"{file}\" }}\n"
        );
        let plan = compiler.compile(&text);
        plan.unwrap_or_else(|problems| panic!("{problems:?}"))
    };
    let plan = compile("rules.toml", "10s");
    let mut engine = Engine::start(&plan.engine, counters).unwrap();
    drop(plan);
    let address = engine.addresses()[0];
    let text = || {
        request(address, "GET", "/", &["host: a"], "")
            .text()
            .to_owned()
    };
    assert_eq!(text(), "first");
    engine.reload(&compile("rules.toml", "20s").engine).unwrap();
    assert_eq!(text(), "again");
    // Another file has separate states.
    engine.reload(&compile("other.toml", "20s").engine).unwrap();
    assert_eq!(text(), "first");
}
