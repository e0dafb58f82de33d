//! Objects whose properties are made when they are read.

use rquickjs::Object;

use super::*;
use crate::{LazyProperties, PropertyLayout, lazy_object};

struct Three(Rc<Cell<u32>>);

impl LazyProperties for Three {
    fn make<'js>(&self, ctx: &Ctx<'js>, index: usize) -> rquickjs::Result<Value<'js>> {
        self.0.set(self.0.get() + 1);
        ctx.eval(["1", "'x'", "({ d: 2 })"][index])
    }
}

/// The result of a function of an object, by the lazy object and by one that has had its properties from the start; and how many
/// properties the lazy one has made.
fn both(function: &str) -> (String, String, u32) {
    let made = Rc::new(Cell::new(0));
    let results = Rc::new(RefCell::new(Vec::new()));
    let (counted, kept) = (Rc::clone(&made), Rc::clone(&results));
    let function = format!(
        "(it) => {{ try {{ return JSON.stringify(({function})(it)) ?? 'nothing' }} catch (error) {{ return String(error) }} }}"
    );
    vm().run(Some(TIME), move |ctx| {
        let class = "globalThis.Kind = class Kind { method() { return this.a + this.c.d } }; Kind.prototype";
        let prototype: Object<'_> = ctx.eval(class)?;
        let layout = PropertyLayout::new(ctx, &["a", "b", "c"], prototype)?;
        let lazy = lazy_object(&layout, Box::new(Three(counted)))?;
        let plain: Value<'_> =
            ctx.eval("Object.assign(new Kind(), { a: 1, b: 'x', c: { d: 2 } })")?;
        let function: Function<'_> = ctx.eval(function.as_str())?;
        for object in [lazy, plain] {
            let text: String = function.call((object,))?;
            kept.borrow_mut().push(text);
        }
        Ok(())
    })
    .unwrap();
    let results = results.take();
    (results[0].clone(), results[1].clone(), made.get())
}

#[test]
fn scripts_see_an_ordinary_object() {
    for function in [
        "(it) => [it.a, it.b, it.c.d, it.c === it.c, it.missing]",
        "(it) => it.method()",
        "(it) => [it instanceof Kind, Object.getPrototypeOf(it) === Kind.prototype]",
        "(it) => [typeof it, `${it}`, Object.prototype.toString.call(it)]",
        "(it) => Object.keys(it)",
        "(it) => Object.entries(it)",
        "(it) => it",
        "(it) => ({ ...it })",
        "({ b, ...rest }) => [b, rest]",
        "(it) => { const names = []; for (const name in it) names.push(name); return names }",
        "(it) => ['a' in it, 'method' in it, 'toString' in it, 'missing' in it]",
        "(it) => [it.hasOwnProperty('a'), Object.hasOwn(it, 'method'), Reflect.ownKeys(it)]",
        "(it) => Object.getOwnPropertyDescriptor(it, 'c')",
        "(it) => { it.b += 'y'; return it }",
        "(it) => { it.e = 5; return [it.e, it, Object.keys(it)] }",
        "(it) => { it.c.d = 9; return it }",
        "(it) => [delete it.b, it, 'b' in it, it.b, delete it.missing]",
        "(it) => { delete it.a; it.a = 3; return [it, Object.keys(it)] }",
        "(it) => { it.method = () => 7; return it.method() }",
        "(it) => { delete it.c; return it.method() }",
        "(it) => Object.assign(it, { a: 2, z: 1 })",
        "(it) => { Object.defineProperty(it, 'w', { value: 1 }); return [it.w, Object.keys(it)] }",
        "(it) => { const kept = new Set([it]); return kept.has(it) }",
        "(it) => [it == it, it?.c?.d, it?.missing?.d]",
        "(it) => { it.self = it; return it.self === it }",
        "(it) => Object.create(it).b",
        "(it) => it.missing()",
    ] {
        let (lazy, plain, _) = both(function);
        assert_eq!(lazy, plain, "{function}");
    }
}

#[test]
fn only_what_is_read_is_made_and_objects_once() {
    let made = |function| both(function).2;
    assert_eq!(made("(it) => it.b"), 1);
    assert_eq!(made("(it) => it.c.d + it.c.d"), 1);
    assert_eq!(made("(it) => it.missing"), 0);
    assert_eq!(made("(it) => Object.keys(it).length"), 3);
}

#[test]
fn garbage_collection_finds_cycles_through_them() {
    let freed = Rc::new(Cell::new(0));
    let held = Rc::clone(&freed);
    vm().run(Some(TIME), move |ctx| {
        let prototype = Object::new(ctx.clone())?;
        let layout = PropertyLayout::new(ctx, &["a", "b", "c"], prototype)?;
        for function in [
            "(it) => { it.c.back = it }",
            "(it, other) => { it.e = other; other.a = it }",
            "(it) => { it.e = {}; it.e = it; it.e = 1; delete it.e }",
        ] {
            let lazy = || lazy_object(&layout, Box::new(Three(Rc::clone(&held))));
            let function: Function<'_> = ctx.eval(function)?;
            function.call::<_, ()>((lazy()?, lazy()?))?;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(Rc::strong_count(&freed), 1);
}
