use std::fs;
use std::time::SystemTime;

use proptest::prelude::*;

use super::*;
use crate::modules::{Folder, Modules};

/// A clock on which a millisecond passes whenever somebody looks at it.
struct Ticking(Instant, Cell<u32>);

impl Ticking {
    #[expect(clippy::disallowed_methods, reason = "it is where the clock begins")]
    fn new() -> Self {
        Self(Instant::now(), Cell::new(0))
    }
}

impl Clock for Ticking {
    fn now(&self) -> Instant {
        self.1.set(self.1.get() + 1);
        self.0 + Duration::from_millis(self.1.get().into())
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Keeps what is said, and answers questions with what was asked.
#[derive(Default)]
struct Heard(RefCell<Vec<(Level, String)>>);

impl Host for Heard {
    fn ask(&self, name: &str, arguments: &str) -> Result<String, String> {
        match name {
            "refused" => Err("that is not to be had".to_owned()),
            _ => Ok(format!("{{\"{name}\":{arguments}}}")),
        }
    }

    fn say(&self, level: Level, text: &str) {
        self.0.borrow_mut().push((level, text.to_owned()));
    }
}

const TIME: Duration = Duration::from_secs(1);

fn runtime(sources: Rc<dyn Sources>) -> Runtime {
    let limits = Limits {
        memory: 8 << 20,
        ..Limits::default()
    };
    let host = Rc::new(Heard::default());
    Runtime::new(limits, Rc::new(Ticking::new()), sources, host).unwrap()
}

/// What the default export of a text answers.
fn answer(text: &str, input: &str) -> Result<Option<String>, String> {
    let folder = Folder::new("/nowhere");
    let name = folder.with_text("main.js", text);
    let runtime = runtime(Rc::new(folder));
    let handler = runtime.load(&name, TIME).map_err(|it| it.to_string())?;
    runtime
        .call(handler, input, TIME)
        .map_err(|it| it.to_string())
}

#[test]
fn functions_answer() {
    for (text, expected) in [
        ("export default (it) => it.a + 1", Some("2")),
        (
            "export default async (it) => { await null; return [it.a] }",
            Some("[1]"),
        ),
        ("export default function () {}", None),
        (
            "const a = await Promise.resolve(7); export default () => a",
            Some("7"),
        ),
        (
            "export default () => new Promise(done => done('x'))",
            Some("\"x\""),
        ),
    ] {
        let answer = answer(text, "{\"a\":1}");
        assert_eq!(answer, Ok(expected.map(str::to_owned)), "{text}");
    }
}

#[test]
fn mistakes_are_told_with_their_places() {
    for (text, expected) in [
        ("let a = 1;\nexport defaut a;", "/nowhere/main.js:2:"),
        (
            "export default () => {\n  return nobody.name;\n}",
            "/nowhere/main.js:2:",
        ),
        (
            "export default () => nobody",
            "ReferenceError: nobody is not defined",
        ),
        (
            "export default async () => { await 0; throw new TypeError('no') }",
            "TypeError: no",
        ),
        (
            "export default () => { throw { code: 7 } }",
            "{\"code\":7} was thrown",
        ),
        ("export default () => { throw null }", "null was thrown"),
        (
            "export const a = 1",
            "/nowhere/main.js:1:1: has no function",
        ),
        ("export default 1", "has no function"),
        (
            "throw new Error('at once'); export default () => 1",
            "main.js:1:",
        ),
        (
            "export default () => new Promise(() => {})",
            "awaits what never comes",
        ),
        (
            "import a from 'lodash'; export default a",
            "`lodash` is no file",
        ),
        (
            "import a from './none.js'; export default a",
            "there is no file",
        ),
        (
            "export default () => { const f = () => f() + 1; return f() }",
            "Maximum call stack",
        ),
        ("export default () => 1n", "BigInt"),
        (
            "export default () => { throw { toJSON() { throw 1 } } }",
            "something was thrown",
        ),
    ] {
        let told = answer(text, "null").unwrap_err();
        assert!(told.contains(expected), "{told} for {text}");
    }
}

#[test]
fn nothing_is_endless_nor_beyond_all_bounds() {
    for text in [
        "export default () => { for (;;); }",
        "for (;;); export default () => 1",
        "export default () => { try { for (;;); } catch { for (;;); } finally { for (;;); } }",
        "export default async () => { for (;;) await null }",
        "export default () => { (async () => { for (;;) await null })(); return 1 }",
        "export default () => { throw { toJSON() { for (;;); } } }",
        "export default () => { throw Object.defineProperty(new Error(), 'name', { get() { for (;;); } }) }",
        "export default () => /(a*)*b/.test('a'.repeat(100))",
        "export default () => ({ toJSON() { for (;;); } })",
    ] {
        assert_eq!(
            answer(text, "null"),
            Err("took longer than 1s".to_owned()),
            "{text}"
        );
    }
    for text in [
        "export default () => { const all = []; for (;;) all.push('x'.repeat(1000) + all.length) }",
        "export default () => 'x'.repeat(2 ** 28)",
        "export default () => new ArrayBuffer(2 ** 28).byteLength",
    ] {
        let told = answer(text, "null").unwrap_err();
        let expected = "wanted more than 8 MiB of memory";
        assert!(told.ends_with(expected), "{told} for {text}");
    }
}

#[test]
fn a_runtime_goes_on_behind_a_mistake() {
    let folder = Folder::new("/nowhere");
    let name = folder.with_text(
        "main.js",
        "let n = 0; export default (it) => { if (it === 0) throw new Error('no'); for (; it === 1;); return ++n }",
    );
    let runtime = runtime(Rc::new(folder));
    let handler = runtime.load(&name, TIME).unwrap();
    assert!(!runtime.call(handler, "0", TIME).unwrap_err().spoils());
    assert!(runtime.call(handler, "1", TIME).unwrap_err().spoils());
    assert_eq!(runtime.call(handler, "2", TIME).unwrap().unwrap(), "1");
}

#[test]
fn the_prelude_is_gone_through_and_the_host_answers() {
    let folder = Folder::new("/nowhere");
    let name = folder.with_text(
        "main.js",
        "export default (it) => { console.log('a', 1, { b: [2] }, undefined); console.error(new TypeError('x'));
         return [it.asked, it.ask('name', 1, 'two')] }",
    );
    let host = Rc::new(Heard::default());
    let runtime = Runtime::new(
        Limits::default(),
        Rc::new(Ticking::new()),
        Rc::new(folder),
        Rc::clone(&host) as Rc<dyn Host>,
    )
    .unwrap();
    runtime
        .prelude("(ask) => (handler, input) => { try { ask('refused') } catch (error) { return handler({ asked: error.message + input, ask }) } }")
        .unwrap();
    let handler = runtime.load(&name, TIME).unwrap();
    let answer = runtime.call(handler, "3", TIME).unwrap().unwrap();
    assert_eq!(
        answer,
        "[\"that is not to be had3\",{\"name\":[1,\"two\"]}]"
    );
    let heard = host.0.borrow();
    assert_eq!(
        heard[0],
        (Level::Note, "a 1 {\"b\":[2]} undefined".to_owned())
    );
    assert_eq!(heard[1], (Level::Error, "TypeError: x".to_owned()));
}

#[test]
fn modules_come_from_their_folder_only_and_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("in/lib")).unwrap();
    fs::write(root.join("secret.js"), "export const a = 1").unwrap();
    fs::write(
        root.join("in/lib/a.js"),
        "import all from '../all.json'; export const a = all.length",
    )
    .unwrap();
    fs::write(root.join("in/all.json"), "[1, 2]").unwrap();
    fs::write(
        root.join("in/main.js"),
        "import { a } from './lib/a.js'; export default () => a",
    )
    .unwrap();
    fs::write(
        root.join("in/out.js"),
        "import { a } from '../secret.js'; export default () => a",
    )
    .unwrap();
    fs::write(root.join("in/bad.json"), "alert(1)").unwrap();
    fs::write(
        root.join("in/bad.js"),
        "import a from './bad.json'; export default () => a",
    )
    .unwrap();
    std::os::unix::fs::symlink(root.join("secret.js"), root.join("in/link.js")).unwrap();
    fs::write(
        root.join("in/by_link.js"),
        "import { a } from './link.js'; export default () => a",
    )
    .unwrap();
    let folder = Rc::new(Folder::new(root.join("in")));
    let one = runtime(Rc::clone(&folder) as Rc<dyn Sources>);
    for (file, expected) in [
        ("out.js", "lies outside of"),
        ("by_link.js", "lies outside of"),
        ("bad.js", "is no JSON"),
    ] {
        let name = folder.name_of(file.as_ref()).unwrap();
        let told = one.load(&name, TIME).unwrap_err().to_string();
        assert!(told.contains(expected), "{told}");
    }
    assert!(folder.name_of("../secret.js".as_ref()).is_err());
    let name = folder.name_of("main.js".as_ref()).unwrap();
    one.load(&name, TIME).unwrap();
    let kept = folder.kept();
    drop(directory);
    let mut modules = Modules::default();
    modules.add(&kept);
    assert!(modules.names().any(|name| name.ends_with("in/all.json")));
    let other = runtime(Rc::new(RefCell::new(modules)));
    let handler = other.load(&name, TIME).unwrap();
    assert_eq!(other.call(handler, "null", TIME).unwrap().unwrap(), "2");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_does_harm(text in "[a-z(){}\\[\\]=>;,.'`$/*+\\-0-9 \n\u{e9}\u{0}]{0,120}") {
        let module = format!("{text}\nexport default (it) => it");
        answer(&module, "null").ok();
        answer(&text, "null").ok();
    }
}
