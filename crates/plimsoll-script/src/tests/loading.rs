//! Modules, their results and their errors.

use std::fs;
use std::thread;

use super::*;

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
fn errors_have_their_locations_in_bytecode_too() {
    for (text, expected) in [
        ("let a = 1;\nexport defaut a;", "/nowhere/main.js:2:"),
        (
            "export default () => {\n  return missing.name;\n}",
            // The engine records positions of statements, calls, `new` and `throw`, not of names behind `return` and `=`. Such an
            // error has the position of its function.
            "/nowhere/main.js:1:1: ReferenceError: missing is not defined",
        ),
        (
            "export default () => {\n  missing.name;\n}",
            "/nowhere/main.js:2:3: ReferenceError: missing is not defined",
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
        ("export default () => { throw 'text' }", "text was thrown"),
        ("export const a = 1", "has no function"),
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
        ("export default () => 1n", "BigInt"),
        (
            "export default () => { throw { toJSON() { throw 1 } } }",
            "something was thrown",
        ),
        (
            "export default async () => (await import('./late.js')).a",
            "was not imported when",
        ),
    ] {
        let message = answer(text, "null").unwrap_err();
        assert!(message.contains(expected), "{message} for {text}");
    }
}

#[test]
fn modules_come_from_their_folder_only_and_are_compiled_once() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("in/lib")).unwrap();
    for (file, text) in [
        ("secret.js", "export const a = 1"),
        (
            "in/lib/a.js",
            "import all from '../all.json'; import '../main.js'; export const a = all.length",
        ),
        ("in/all.json", "[1, 2]"),
        (
            "in/main.js",
            "import { a } from './lib/a.js'; export default () => a",
        ),
        (
            "in/out.js",
            "import { a } from '../secret.js'; export default () => a",
        ),
        ("in/bad.json", "alert(1)"),
        (
            "in/bad.js",
            "import a from './bad.json'; export default () => a",
        ),
        (
            "in/by_link.js",
            "import { a } from './link.js'; export default () => a",
        ),
        ("in/syntax.js", "import './broken.js'"),
        ("in/broken.js", "\n\n  export default ("),
    ] {
        fs::write(root.join(file), text).unwrap();
    }
    std::os::unix::fs::symlink(root.join("secret.js"), root.join("in/link.js")).unwrap();
    let folder = Rc::new(Folder::new(root.join("in")));
    let compile = |file: &str| {
        let name = folder.name_of(file.as_ref()).unwrap();
        Program::compile(Rc::clone(&folder) as Rc<dyn crate::Sources>, &name, LIMITS)
    };
    for (file, expected) in [
        ("out.js", "lies outside of"),
        ("by_link.js", "lies outside of"),
        ("bad.js", "is no JSON"),
        ("syntax.js", "in/broken.js:3:"),
    ] {
        let message = compile(file).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    assert!(folder.name_of("../secret.js".as_ref()).is_err());
    let program = compile("main.js").unwrap();
    // Nothing of it is read again, on whichever thread it runs.
    drop(directory);
    let names: Vec<_> = program.names().map(str::to_owned).collect();
    assert_eq!(names.len(), 3);
    assert!(names[0].ends_with("in/all.json"));
    let threads = [0, 1].map(|_| {
        let program = program.clone();
        thread::spawn(move || {
            let vm = vm();
            vm.run(Some(TIME), call(&vm, &program, "null")).unwrap()
        })
    });
    for thread in threads {
        assert_eq!(thread.join().unwrap().unwrap(), "2");
    }
}
