//! Bounds on time, memory and stack.

use proptest::prelude::*;

use super::*;

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
        "export default () => { const all = []; for (;;) all.push('x'.repeat(1e5) + all.length) }",
        "export default () => 'x'.repeat(2 ** 28)",
        "export default () => new ArrayBuffer(2 ** 28).byteLength",
    ] {
        let message = answer(text, "null").unwrap_err();
        let expected = "wanted more than 8 MiB of memory";
        assert!(message.ends_with(expected), "{message} for {text}");
    }
}

/// The engine looks at the time at each ten thousandth call, which may each copy a megabyte.
#[test]
fn a_script_that_hogs_memory_ends_in_time_too() {
    for hog in [
        "try { 'x'.repeat(1e6) + n; n++ } catch {}",
        "try { const all = []; all.length = 1e5; all.fill(n); n++ } catch {}",
        "try { new Uint8Array(1e6); n++ } catch {}",
    ] {
        let text = format!(
            "let n = 0; export default (it) => {{ for (; it === 1;) {{ {hog} }} return n }}"
        );
        let (program, vm) = (program(&text).unwrap(), vm());
        // The clock passes a millisecond whenever it is read.
        let time = Duration::from_millis(5);
        let error = vm.run(Some(time), call(&vm, &program, "1")).unwrap_err();
        assert_eq!(error.to_string(), "took longer than 5ms", "{hog}");
        let made = vm.run(Some(TIME), call(&vm, &program, "2")).unwrap();
        let made: u32 = made.unwrap().parse().unwrap();
        assert!(made < 100, "{made} for {hog}");
    }
}

#[test]
fn a_stack_that_the_system_does_not_map_is_an_error_with_the_setting_to_raise() {
    // More than an address space has.
    let limits = Limits {
        stack: 1 << 60,
        ..Limits::default()
    };
    let message = Stacks::new(limits).take_stack().err().unwrap().to_string();
    assert!(
        message.starts_with("no stack for another virtual user: "),
        "{message}"
    );
    assert!(
        message.ends_with("; raise vm.max_map_count (sysctl)"),
        "{message}"
    );
}

#[test]
fn endless_recursion_ends_on_the_stack_of_a_fiber() {
    for text in [
        "export default () => { const f = () => f() + 1; return f() }",
        "export default () => { const f = (a) => [1].map(() => f([a])); return f() }",
        "export default () => { let a = []; for (let i = 0; i < 2e4; i++) a = [a]; return JSON.stringify(a).length }",
        "export default () => new RegExp('(?:'.repeat(5e4) + ')'.repeat(5e4)).test('x')",
        "export default () => { const f = () => { try { return f() } catch { return f() } }; let n = 0; const g = () => { n++; g() }; try { g() } catch {}; g() }",
    ] {
        let message = answer(text, "null").unwrap_err();
        let is_stack = message.contains("stack") || message.contains("nest");
        assert!(is_stack, "{message} for {text}");
    }
}

#[test]
fn a_vm_goes_on_after_an_error() {
    let program = program(
        "let n = 0; export default (it) => { if (it === 0) throw new Error('no'); for (; it === 1;); return ++n }",
    )
    .unwrap();
    let vm = vm();
    let error = vm.run(Some(TIME), call(&vm, &program, "0")).unwrap_err();
    assert!(!error.spoils());
    let error = vm.run(Some(TIME), call(&vm, &program, "1")).unwrap_err();
    assert!(error.spoils());
    let answer = vm.run(Some(TIME), call(&vm, &program, "2")).unwrap();
    assert_eq!(answer.unwrap(), "1");
}

#[test]
fn a_computing_script_is_cancelled_by_a_condition() {
    let program = program("export default () => { try { for (;;); } catch { return 1 } }").unwrap();
    let clock = TestClock::new(Duration::from_millis(1));
    let end = clock.now() + TIME;
    let vm = vm_on(clock);
    vm.waiter().end_when(move |now| now >= end);
    let error = vm.run(None, call(&vm, &program, "null")).unwrap_err();
    assert_eq!(error.kind, crate::ErrorKind::Cancelled);
    assert!(vm.waiter().is_cancelled());
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
