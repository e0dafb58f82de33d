//! Runs scripts and keeps what they print.

use std::sync::{Arc, Mutex};

use plimsoll_client::forward::Speaks;
use plimsoll_k6::{Invocation, Outcome, Output, Overrides, Script, ScriptText, run};
use serde_json::Value;

/// A module of TypeScript beside each script.
const TYPED: &str = "import { Options } from 'k6/options';
import type { Response } from 'k6/http';
import exec from 'k6/execution';

export interface User { name: string; age?: number }
export const options: Options = {};
export class Greeter<T extends User> {
  private readonly prefix: string = 'hi';
  greet(user: T, response?: Response): string { return `${this.prefix} ${user!.name as string} ${exec.scenario.name}`; }
}
export const fails = (at: number): never => { const position: number = at; throw new Error(`typed ${position}`); };
";

/// A module of CommonJS beside each script. It says that it exports by no declaration.
const COMMON: &str = "// export const nothing = 0;
class FormData { constructor() { this.parts = 2; } }
exports.FormData = FormData;
exports.count = 0;
exports.bump = () => ++module.exports.count;
exports.isThis = this === exports;
";

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: u8,
    pub(crate) message: String,
    /// Lines of `console`, then messages, each with its level.
    pub(crate) log: Vec<String>,
    /// The lines of `console` alone.
    pub(crate) console: Vec<String>,
    pub(crate) stdout: String,
    pub(crate) outputs: Vec<Output>,
    pub(crate) export: Value,
}

impl Ran {
    /// A figure of a metric in the exported summary.
    pub(crate) fn metric(&self, name: &str, figure: &str) -> f64 {
        let value = &self.export["metrics"][name][figure];
        value
            .as_f64()
            .unwrap_or_else(|| panic!("no {figure} of {name} in {self:#?}"))
    }

    pub(crate) fn has_metric(&self, name: &str) -> bool {
        !self.export["metrics"][name].is_null()
    }
}

/// Runs a script, in which `URL` stands for that of the server.
pub(crate) fn run_with(
    text: &str,
    url: &str,
    overrides: Overrides,
    is_interrupted: &dyn Fn() -> bool,
) -> Ran {
    run_over(Speaks::Negotiated, text, url, overrides, is_interrupted)
}

/// The same over a version of HTTP.
pub(crate) fn run_over(
    speaks: Speaks,
    text: &str,
    url: &str,
    overrides: Overrides,
    is_interrupted: &dyn Fn() -> bool,
) -> Ran {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("data.json"),
        "[{\"n\":1},{\"n\":2},{\"n\":3}]",
    )
    .unwrap();
    let table = "name,text\nann,plain\nbob,\"say \"\"hi\"\", twice\"\n";
    std::fs::write(directory.path().join("table.csv"), table).unwrap();
    std::fs::create_dir(directory.path().join("inner")).unwrap();
    for (name, text) in [
        ("inner/text.txt", "within"),
        (
            "inner/open.js",
            "export const text = open('./text.txt'); export const load = (path) => open(path);",
        ),
        (
            "inner/common.js",
            "exports.text = JSON.parse(JSON.stringify([1])).map(() => open('text.txt'))[0]; exports.data = require('../reads.js').text;",
        ),
        (
            "inner/part.proto",
            "syntax = 'proto3'; package p; message Part { int64 size = 1; } service S { rpc Get(Part) returns (Part); }",
        ),
        (
            "inner/whole.proto",
            "syntax = 'proto3'; package w; import 'part.proto'; service S { rpc Get(p.Part) returns (p.Part); }",
        ),
        ("reads.js", "exports.text = open('data.json');"),
        ("lib.js", "export const seven = 7;"),
        ("typed.ts", TYPED),
        ("common.js", COMMON),
        (
            "cycle_a.js",
            "exports.name = 'a'; exports.seen = require('./cycle_b.js').seen;",
        ),
        ("cycle_b.js", "exports.seen = require('./cycle_a.js').name;"),
        (
            "again.js",
            "export { FormData as Form, default as whole } from './common.js'; export * as all from './common.js';",
        ),
        (
            "broken.js",
            "exports.a = 1; throw new Error('broken at its end');",
        ),
    ] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let text = ScriptText::Given {
        // The name of a method ends in the same letters.
        text: text
            .replace("ForURL", "For\0")
            .replace("URL", url)
            .replace('\0', "URL"),
        directory: directory.path().canonicalize().unwrap(),
    };
    let log: Arc<Mutex<Vec<(String, bool)>>> = Arc::default();
    let lines = Arc::clone(&log);
    let script = match Script::load(&text) {
        Ok(script) => script,
        Err(error) => {
            return Ran {
                code: 107,
                message: error.to_string(),
                log: Vec::new(),
                console: Vec::new(),
                stdout: String::new(),
                outputs: Vec::new(),
                export: Value::Null,
            };
        }
    };
    let outcome: Outcome = run(&Invocation {
        overrides,
        environment: vec![("GREETING".to_owned(), "hi".to_owned())],
        workers: 2,
        speaks,
        ..Invocation::new(
            script,
            Arc::new(move |level, text, source| {
                let line = (format!("{level:?}: {text}"), source.is_console());
                lines.lock().unwrap().push(line);
            }),
            is_interrupted,
        )
    });
    let stdout = outcome.outputs.iter().map(|output| match output {
        Output::Stdout(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        _ => String::new(),
    });
    let log = log.lock().unwrap().clone();
    let console = log.iter().filter(|(_, is_console)| *is_console);
    Ran {
        console: console.map(|(line, _)| line.clone()).collect(),
        code: outcome.exit.number(),
        message: outcome.message,
        log: log.into_iter().map(|(line, _)| line).collect(),
        stdout: stdout.collect(),
        outputs: outcome.outputs,
        export: outcome
            .export
            .map_or(Value::Null, |text| serde_json::from_str(&text).unwrap()),
    }
}

pub(crate) fn run_script(text: &str, url: &str) -> Ran {
    run_with(text, url, Overrides::default(), &|| false)
}

/// Runs the body of a default function, which prints by `console.log`, and compares what it prints.
pub(crate) fn check(imports: &str, body: &str, url: &str, expected: &[&str]) {
    let text = format!("{imports}\nexport default function () {{ {body} }}");
    let ran = run_script(&text, url);
    let expected: Vec<_> = expected
        .iter()
        .map(|line| format!("Info: {line}"))
        .collect();
    assert_eq!(ran.log, expected, "{body}");
    assert_eq!(ran.code, 0, "{ran:#?}");
}
