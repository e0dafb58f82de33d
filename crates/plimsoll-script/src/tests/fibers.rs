//! Suspended calls, promises, timers, cancelling.

use super::*;
use crate::{ErrorKind, Resume, Step};

/// Runs a program whose calls get the replies of `reply`, in virtual time; returns its result and its calls.
fn drive(
    text: &str,
    mut reply: impl FnMut(&str) -> String,
) -> (Result<Option<String>, String>, Vec<String>) {
    let clock = TestClock::new(Duration::ZERO);
    let vm = vm_on(Rc::clone(&clock));
    let program = program(text).unwrap();
    let mut fiber = vm.spawn(Some(TIME), call(&vm, &program, "null")).unwrap();
    let mut calls = Vec::new();
    let mut resume = Resume::Continue;
    loop {
        let step = fiber.resume(resume);
        resume = Resume::Continue;
        let mut has_completed = false;
        while let Some((id, call)) = vm.take_started() {
            vm.complete(id, reply(&call));
            calls.push(call);
            has_completed = true;
        }
        match step {
            Step::Call(call) => {
                resume = Resume::Reply(reply(&call));
                calls.push(call);
            }
            Step::Idle { .. } if has_completed => {}
            Step::Idle { until } => {
                let until = until.expect("it waits for something");
                clock.advance(until.saturating_duration_since(clock.now()));
            }
            Step::Done(result) => {
                return (result.map_err(|error| error.to_string()), calls);
            }
        }
    }
}

#[test]
fn native_functions_wait_deep_in_calls_of_scripts() {
    let text = "export default () => [1, 2].map((n) => JSON.parse(JSON.stringify({ toJSON: () => wait(`call ${n}`) })) + n)";
    let (result, calls) = drive(text, str::to_uppercase);
    assert_eq!(result, Ok(Some("[\"CALL 11\",\"CALL 22\"]".to_owned())));
    assert_eq!(calls, ["call 1", "call 2"]);
}

#[test]
fn replies_may_throw_and_scripts_catch_that() {
    let text = "export default () => { try { wait('a') } catch (error) { return error.message + wait('b') } }";
    let (result, _) = drive(text, |call| match call {
        "a" => "error: no".to_owned(),
        _ => "!".to_owned(),
    });
    assert_eq!(result, Ok(Some("\"no!\"".to_owned())));
}

#[test]
fn started_calls_settle_promises_beside_the_script() {
    let text = "export default async () => {
        const both = Promise.all([start('a'), start('b')]);
        const blocked = wait('c');
        const failed = await start('d').catch((error) => error.message);
        return [...(await both), blocked, failed];
    }";
    let (result, calls) = drive(text, |call| match call {
        "d" => "error: no".to_owned(),
        call => call.to_uppercase(),
    });
    assert_eq!(result, Ok(Some("[\"A\",\"B\",\"C\",\"no\"]".to_owned())));
    assert_eq!(calls, ["a", "b", "c", "d"]);
}

#[test]
fn timers_run_in_order_and_hold_the_loop() {
    let text = "export default async () => {
        const log = [];
        setTimeout((...given) => log.push(...given), 30, 'late', 'r');
        setTimeout(() => log.push('soon'), 10);
        setTimeout(() => log.push('never'), 20);
        clearTimeout(3);
        let n = 0;
        await new Promise((done) => { const id = setInterval(() => { log.push(n); if (++n === 2) { clearInterval(id); done() } }, 12) });
        await new Promise((done) => setTimeout(done, 10));
        return log;
    }";
    let (result, _) = drive(text, str::to_owned);
    let expected = "[\"soon\",0,1,\"late\",\"r\"]";
    assert_eq!(result, Ok(Some(expected.to_owned())));
}

#[test]
fn unhandled_rejections_and_errors_of_timers_end_the_work() {
    for (text, expected) in [
        (
            "export default () => { Promise.reject(new TypeError('lost')) }",
            "TypeError: lost",
        ),
        (
            "export default () => { setTimeout(() => { throw new Error('timer') }, 5) }",
            "Error: timer",
        ),
        (
            "export default async () => { throw new Error('async') }",
            "Error: async",
        ),
        ("export default () => { start('x') }", "Error: rejected"),
    ] {
        let (result, _) = drive(text, |_| "error: rejected".to_owned());
        let error = result.unwrap_err();
        assert!(error.contains(expected), "{error} for {text}");
    }
    let handled = "export default () => { const p = Promise.reject(1); setTimeout(() => p.catch(() => 0), 1) }";
    assert_eq!(drive(handled, str::to_owned).0, Ok(None));
}

#[test]
fn the_budget_counts_computing_and_not_waiting() {
    let clock = TestClock::new(Duration::ZERO);
    let vm = vm_on(Rc::clone(&clock));
    let program = program("export default () => { wait('long'); for (;;); }").unwrap();
    let mut fiber = vm.spawn(Some(TIME), call(&vm, &program, "null")).unwrap();
    assert!(matches!(fiber.resume(Resume::Continue), Step::Call(_)));
    clock.advance(TIME * 100);
    // From here on each look at the clock costs something, as computing does.
    clock.per_look.set(Duration::from_millis(100));
    let step = fiber.resume(Resume::Reply(String::new()));
    let Step::Done(Err(error)) = step else {
        panic!("it never ends otherwise");
    };
    assert_eq!(error.kind, ErrorKind::Time(TIME));
    assert!(fiber.computed() < TIME * 2, "{:?}", fiber.computed());
}

#[test]
fn a_cancelled_script_cannot_go_on() {
    let text = "export default () => { for (;;) { try { wait('a') } catch { wait('b') } finally { wait('c') } } }";
    let endless = program(text).unwrap();
    for ends_by_drop in [false, true] {
        let vm = vm();
        let mut fiber = vm.spawn(None, call(&vm, &endless, "null")).unwrap();
        assert!(matches!(fiber.resume(Resume::Continue), Step::Call(_)));
        if ends_by_drop {
            drop(fiber);
        } else {
            let Step::Done(Err(error)) = fiber.resume(Resume::Cancel) else {
                panic!("it went on");
            };
            assert_eq!(error.kind, ErrorKind::Cancelled);
            assert!(error.spoils());
        }
        assert!(vm.waiter().is_cancelled());
    }
    // The same while the event loop waits, and before anything ran.
    let forever =
        program("export default async () => { setInterval(() => 0, 10); await start('x') }")
            .unwrap();
    let one = vm();
    let mut fiber = one.spawn(None, call(&one, &forever, "null")).unwrap();
    assert!(matches!(
        fiber.resume(Resume::Continue),
        Step::Idle { until: Some(_) }
    ));
    assert!(matches!(fiber.resume(Resume::Cancel), Step::Done(Err(_))));
    let other = vm();
    let fiber = other.spawn(None, call(&other, &forever, "null")).unwrap();
    drop(fiber);
}

#[test]
fn many_fibers_wait_at_once_on_one_thread() {
    let program = program("let n = 0; export default () => wait(`a${++n}`) + wait('b')").unwrap();
    let stacks = Stacks::new(LIMITS);
    let mut waiting: Vec<_> = (0..20)
        .map(|_| {
            let vm = vm_with(&stacks);
            let fiber = vm.spawn(Some(TIME), call(&vm, &program, "null")).unwrap();
            (vm, fiber)
        })
        .collect();
    for (_, fiber) in &mut waiting {
        assert!(matches!(fiber.resume(Resume::Continue), Step::Call(call) if call == "a1"));
    }
    for (_, fiber) in waiting.iter_mut().rev() {
        let step = fiber.resume(Resume::Reply("x".to_owned()));
        assert!(matches!(step, Step::Call(call) if call == "b"));
    }
    for (_, fiber) in &mut waiting {
        let step = fiber.resume(Resume::Reply("y".to_owned()));
        assert!(matches!(step, Step::Done(Ok(Some(text))) if text == "\"xy\""));
    }
}

#[test]
fn waiting_where_nothing_drives_fails_and_leaves_a_message() {
    let program = program("export default () => wait('a')").unwrap();
    let vm = vm();
    let error = vm.run(Some(TIME), call(&vm, &program, "null")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Pending);
}

#[test]
fn a_vm_runs_one_fiber_after_the_other() {
    let program = program("let n = 0; export default () => wait(String(++n))").unwrap();
    let vm = vm();
    let loader = vm.loader();
    let exports = vm.run(None, move |ctx| loader.load(ctx, &program)).unwrap();
    for expected in ["1", "2", "3"] {
        let loader = vm.loader();
        let mut fiber = vm
            .spawn(None, move |ctx| {
                let default = loader.exported(ctx, exports, "default")?;
                let function = default.into_function().unwrap();
                Ok(function.call::<_, String>(())?)
            })
            .unwrap();
        let step = fiber.resume(Resume::Continue);
        assert!(matches!(step, Step::Call(call) if call == expected));
        let step = fiber.resume(Resume::Reply("done".to_owned()));
        assert!(matches!(step, Step::Done(Ok(text)) if text == "done"));
    }
}

#[test]
fn work_that_ends_early_leaves_nothing_to_the_next() {
    let program = program(
        "export default () => { if (globalThis.isSecond) return 'fine'; globalThis.isSecond = true; setTimeout(() => { throw 1 }, 5); start('x'); Promise.reject(2); throw new Error('early') }",
    )
    .unwrap();
    let vm = vm();
    let error = vm.run(None, call(&vm, &program, "null")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Thrown("Error: early".to_owned()));
    assert!(vm.take_started().is_some());
    let result = vm.run(None, call(&vm, &program, "null"));
    assert_eq!(result, Ok(Some("\"fine\"".to_owned())));
}

fn vm_with(stacks: &Stacks) -> Vm<TextHost> {
    let clock = TestClock::new(Duration::ZERO);
    let vm: Vm<TextHost> = Vm::new(LIMITS, clock, stacks).unwrap();
    let waiter = vm.waiter().clone();
    vm.run(None, move |ctx| {
        let wait = move |ctx: Ctx<'_>, call: String| waiter.wait(&ctx, call);
        Ok(ctx
            .globals()
            .set("wait", Function::new(ctx.clone(), wait)?)?)
    })
    .unwrap();
    vm
}

#[test]
fn array_buffers_cross_without_a_copy() {
    let vm = vm();
    vm.run(None, |ctx| {
        let bytes = vec![1_u8, 2, 3];
        let at = bytes.as_ptr();
        let buffer = rquickjs::ArrayBuffer::new(ctx.clone(), bytes)?;
        let raw = buffer.as_raw().expect("it is not detached");
        assert_eq!(raw.ptr.as_ptr().cast_const(), at);
        ctx.globals().set("buffer", buffer)?;
        let sum: u32 = ctx.eval("new Uint8Array(buffer).reduce((a, b) => a + b, 0)")?;
        assert_eq!(sum, 6);
        Ok(())
    })
    .unwrap();
}
