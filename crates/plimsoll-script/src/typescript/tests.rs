use proptest::prelude::*;
use rquickjs::{Context, Module, Runtime};

use super::*;

/// Strips a text, and makes sure that every token stays where it is and that the engine accepts the result.
fn stripped(text: &str) -> String {
    let made = strip_types(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(made.chars().count(), text.chars().count(), "{made}");
    for (is, was) in made.chars().zip(text.chars()) {
        assert_eq!(is_newline(is), is_newline(was), "{made}");
        assert!(is == was || matches!(is, ' ' | ';' | '(' | ')'), "{made}");
    }
    compile(&made).unwrap_or_else(|error| panic!("{error}\n{made}"));
    made
}

fn is_newline(character: char) -> bool {
    tokens::is_newline(character)
}

fn compile(text: &str) -> Result<(), String> {
    let runtime = Runtime::new().unwrap();
    let context = Context::full(&runtime).unwrap();
    context.with(|ctx| {
        let made = Module::declare(ctx.clone(), "test", text);
        let Err(_) = made else { return Ok(()) };
        let error = format!("{:?}", ctx.catch().into_exception());
        // Modules are looked for once the text is parsed.
        if error.contains("could not load module") {
            return Ok(());
        }
        Err(error)
    })
}

/// Compares what is left, with one space for several.
fn check(text: &str, expected: &str) {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeezed(&stripped(text)), squeezed(expected), "{text}");
}

fn check_rejected(text: &str, expected: &str) {
    let error = strip_types(text).expect_err(text).to_string();
    assert!(error.starts_with(expected), "{error}");
}

/// The JavaScript of declarations that are more than types: in the same lines, accepted by the engine.
fn emitted(text: &str) -> String {
    let made = strip_types(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(made.lines().count(), text.lines().count(), "{made}");
    compile(&made).unwrap_or_else(|error| panic!("{error}\n{made}"));
    made
}

/// Runs declarations that are more than types, and compares the JSON of `result`.
fn check_emitted(text: &str, expected: &str) {
    let made = emitted(text);
    let runtime = Runtime::new().unwrap();
    let context = Context::full(&runtime).unwrap();
    let result: String = context.with(|ctx| {
        ctx.eval(format!("{made}\n;JSON.stringify(result)"))
            .unwrap_or_else(|_| panic!("{:?}\n{made}", ctx.catch().into_exception()))
    });
    assert_eq!(result, expected, "{made}");
}

/// Runs statements and returns the text of `result`.
fn run(text: &str) -> String {
    let made = stripped(text);
    let runtime = Runtime::new().unwrap();
    let context = Context::full(&runtime).unwrap();
    context.with(|ctx| {
        let made: String = ctx
            .eval(format!("{made}\n;String(result)"))
            .unwrap_or_else(|_| panic!("{:?}\n{made}", ctx.catch().into_exception()));
        made
    })
}

#[test]
fn annotations_become_spaces() {
    assert_eq!(
        stripped("const a: number = 1, b: string[] = [];\nlet c!: Map<string, number>;"),
        "const a         = 1, b           = [];\nlet c                      ;"
    );
    check(
        "function f(this: Window, a?: number, ...b: T[]): void {}",
        "function f( a , ...b ) {}",
    );
    check("function f(this: Window) {}", "function f( ) {}");
    check(
        "const { a, b: [c] }: { a: X, b: [Y] } = d;",
        "const { a, b: [c] } = d;",
    );
    check(
        "try {} catch (error: unknown) {}",
        "try {} catch (error ) {}",
    );
    check(
        "for (const x of y as number[]) {} for (let i: number = 0; i < 1; i++) {}",
        "for (const x of y ) {} for (let i = 0; i < 1; i++) {}",
    );
    check(
        "function f(x: unknown): x is string { return true } function g(x): asserts x is Y {} function h(x): asserts x {}",
        "function f(x ) { return true } function g(x) {} function h(x) {}",
    );
    check(
        "function over(a: string): void;\nfunction over(a: number): void;\nfunction over(a: any) {}",
        "; ; function over(a ) {}",
    );
    check(
        "export function over(a: string): void\nexport function over(a: any) {}",
        "; export function over(a ) {}",
    );
    check(
        "async function* f<T>(a: T): AsyncGenerator<T> { yield* g<T>(a) }",
        "async function* f (a ) { yield* g (a) }",
    );
}

#[test]
fn casts_and_assertions_go() {
    check("x = y as unknown as T[] | null;", "x = y ;");
    check(
        "const a = { b: 1 } as const satisfies X;",
        "const a = { b: 1 } ;",
    );
    check("(x as any).y = z!.a![0]!();", "(x ).y = z .a [0] ();");
    check("a = <T>b; c = <const>['d'];", "a = b; c = ['d'];");
    check(
        "a = b! + c!; a! = 1; a!++; if (!a!) {} a = b !== c;",
        "a = b + c ; a = 1; a ++; if (!a ) {} a = b !== c;",
    );
    check(
        "return_ = x as T < 3;".replace("T < 3", "(T) < 3").as_str(),
        "return_ = x < 3;",
    );
    check(
        "a = b as T ? c : d; a = b as T || c as U && d;",
        "a = b ? c : d; a = b || c && d;",
    );
    check(
        "const as = 1, satisfies = 2; a = as as number;",
        "const as = 1, satisfies = 2; a = as ;",
    );
    check("a = b * c as T;", "a = b * c ;");
    check_rejected("a = b + c as T * d;", "1:16: without its type");
}

#[test]
fn generics_are_no_comparisons() {
    check(
        "f<T>(x); new Map<string, Array<number>>(); new Set<T>; a?.<T>(b); a?.b<T>(c); tag<T>`x`;",
        "f (x); new Map (); new Set ; a?. (b); a?.b (c); tag `x`;",
    );
    check(
        "const g = f<string>; const h = [f<a>, f<b>];",
        "const g = f ; const h = [f , f ];",
    );
    for same in [
        "a = b < c;",
        "a = b < c > d;",
        "a = b < c && d > e;",
        "if (a < b || c > (d)) {}",
        "a = b < c, d >> 1;",
        "for (let i = 0; i < n; i++) {}",
        "a = b << c >>> d >= e >> f; a >>= 1; a >>>= 2; a <<= 3;",
        "a = b < c - 1;",
        "a = b < 1;",
    ] {
        check(same, same);
    }
    check("f<<T>(x: T) => void>(g);", "f (g);");
    check(
        "const id = <T,>(x: T): T => x, b = async <T>(x: T) => x, c = <const T extends X = Y>(x: T) => x;",
        "const id = (x ) => x, b = async (x ) => x, c = (x ) => x;",
    );
    check(
        "class A<in T, out U extends X = Y> extends B<T>.C<U> implements D<T>, E.F {}"
            .replace(".C<U>", "")
            .as_str(),
        "class A extends B {}",
    );
}

#[test]
fn arrow_functions_keep_their_lines() {
    check(
        "f((x: number, y?: string): void => {}); g(async (x: T): Promise<T> => x); (a, b): c => d;",
        "f((x , y ) => {}); g(async (x ) => x); (a, b) => d;",
    );
    check(
        "a = b ? (c) : d => e; a = b ? (c): d => e : f; a = b ? (c) => d : e; a = b ? (c, d) : e;",
        "a = b ? (c) : d => e; a = b ? (c) => e : f; a = b ? (c) => d : e; a = b ? (c, d) : e;",
    );
    check(
        "a = ({ b = 1, c }: D = {}) => b; e = ([f]: G) => f; h = i => j; k = async l => l;",
        "a = ({ b = 1, c } = {}) => b; e = ([f] ) => f; h = i => j; k = async l => l;",
    );
    // A line may not end before an arrow, nor before the parameters of an async one.
    check("f((a): {\n  x: number\n} => a)", "f((a ) => a)");
    check(
        "const f = async <\n  T\n>(a: T) => a",
        "const f = async ( a ) => a",
    );
    assert_eq!(
        run("const f = () => { return <\nT,\n>(a: T) => a }; var result = f()(7)"),
        "7"
    );
    check(
        "a = (b = (c) => d, e) => f; a = ((b)); a = (((b), c));",
        "a = (b = (c) => d, e) => f; a = ((b)); a = (((b), c));",
    );
}

#[test]
fn declarations_of_types_go() {
    for text in [
        "type A = string",
        "type A<T extends B = C> = T extends (infer U extends D)[] ? U : never;",
        "type A = | 'a' | `b${C}` | -1 | 1n | null | typeof x.y<Z> | import('x').Y<Z> | unique symbol;",
        "type A = keyof B & readonly C[] | D['e'][number] | [a: string, b?: F, ...rest: G[]] | [H?];",
        "type A = { -readonly [K in keyof B as `x${K}`]-?: B[K]; } | { readonly [k: string]: C, d?: E; f?(g: H): I; get j(): K; set j(l: M); new (n: O): P; <Q>(r: Q): S; [Symbol.iterator](): T }",
        "type A = (a: B, ...c: D[]) => E; ",
        "type A = new (...a: any[]) => B;",
        "type A = abstract new () => B",
        "type A = ((a) => B) | (C) | ((D)[]) | (({ e }: F) => G)",
        "type A = B extends infer C extends D ? C : E",
        "type A = (x: unknown) => x is string",
        "type A = {\n  a: string\n  b(): void\n  'c': D\n  0: E\n}",
        "interface A extends B<C>, D.E { f: G; (h: I): J }",
        "interface A { <T>(x: T): T }",
        "declare const a: B;",
        "declare let a: B, c: D",
        "declare function a(b: C): D;",
        "declare class A extends B { c: D; e(f: G): H; constructor(i: J); static k: L }",
        "declare module 'x' { export const a: `x${string}`; }",
        "declare module 'x';",
        "declare namespace A.B { type C = D }",
        "declare global { interface Window { a: B } }",
        "declare enum A { B = 1 }",
        "declare type A = B",
        "export type A = B;",
        "export interface A {}",
        "export declare const a: B;",
        "export default interface A {}",
        "export type { A, B } from './x';",
        "export type * from './x';",
        "export type * as A from './x';",
        "import type A from './x';",
        "import type { A } from './x';",
        "import type * as A from './x';",
        "import type A = require('x');",
        "export as namespace A;",
    ] {
        check(text, ";");
    }
    // What is before and after a type is not one statement.
    assert_eq!(
        run("var result = 1\ntype A = number\n(function () {})"),
        "1"
    );
    assert_eq!(run("var x = [5], result = x as any\n[0].length"), "5");
    let kept = "var type = 1, declare = 2, namespace = 3, module = 4, abstract = 5, is = 6; type = declare\nnamespace = module\nabstract = is; type\nnamespace";
    check(kept, kept);
}

#[test]
fn members_of_classes_lose_their_types() {
    check(
        "abstract class A<T> extends B<T> implements C { private readonly a: T; static b?: string = 'x'; protected c!: D\n declare e: F; [key: string]: G; abstract f(): void; g(): void; g(x?: T): void {} constructor(h: I) { super(h) } public static async *i<T>(): J {} get k(): L { return 1 } set k(l: L) {} override m = 1; #n: O = 2; static { this.o = 3 } }",
        "class A extends B { a ; static b = 'x'; c; ; ; ; ; g(x ) {} constructor(h ) { super(h) } static async *i () {} get k() { return 1 } set k(l ) {} m = 1; #n = 2; static { this.o = 3 } }",
    );
    check(
        "class A { get: number\n foo() {} static: string\n set = 1; readonly = 2; declare: X; abstract() {} }",
        "class A { get; foo() {} static; set = 1; readonly = 2; declare ; abstract() {} }",
    );
    assert_eq!(
        run("class A { x = 1\n public ['y'] = 2\n private *z() {} }\nvar result = new A().y"),
        "2"
    );
    assert_eq!(
        run("class A { x = 1 as any\n ['y'] = 2 }\nvar result = new A().x"),
        "1"
    );
    check(
        "export abstract class A {} export default abstract class B {}"
            .replace("export default abstract class B {}", "")
            .as_str(),
        "export class A {}",
    );
    check(
        "export default abstract class B { abstract a: C }",
        "export default class B { ; }",
    );
    check(
        "const A = class<T> implements B {}; const C = class D<T> {}",
        "const A = class {}; const C = class D {}",
    );
}

#[test]
fn imports_of_types_go() {
    check(
        "import { Options } from 'k6/options';\nimport http, { Response as R } from 'k6/http';\nexport const options: Options = {};\nhttp.get('x') as R;",
        "; import http, { } from 'k6/http'; export const options = {}; http.get('x') ;",
    );
    check(
        "import { type A, b, type C as D } from './x'; b();",
        "import { b, } from './x'; b();",
    );
    check("import { type A } from './x';", ";");
    check(
        "import A, { b } from './x'; b;",
        "import { b } from './x'; b;",
    );
    check(
        "import a, * as B from './x'; a; let c: B.D;",
        "import a from './x'; a; let c ;",
    );
    check(
        "import a, * as B from './x'; B.d;",
        "import * as B from './x'; B.d;",
    );
    check(
        "import './x'; import {} from './y';",
        "import './x'; import {} from './y';",
    );
    check(
        "import type from './x'; type();",
        "import type from './x'; type();",
    );
    check(
        "import { type as a, as } from './x'; a(as);",
        "import { type as a, as } from './x'; a(as);",
    );
    check(
        "import d from './x.json' with { type: 'json' }; export { d as e };",
        "import d from './x.json' with { type: 'json' }; export { d as e };",
    );
    check(
        "interface A {} const b = 1; export { A, b, type A as C };",
        "; const b = 1; export { b, };",
    );
    check(
        "import type A, { B } from './x'; import { c, type D } from './y'; export { A, B as E, c, D };",
        ";                                import { c, } from './y'; export { c, };",
    );
    check("import type { A } from './x'; export { A }", "; export { }");
    check(
        "export * from './x'; export * as y from './z'; export { default as w } from './v';",
        "export * from './x'; export * as y from './z'; export { default as w } from './v';",
    );
    // A name counts only where it is a value.
    check(
        "import { A, B, C } from './x'; a.A = { B: 1, ...C };",
        "import { C } from './x'; a.A = { B: 1, ...C };",
    );
    check(
        "import { A } from './x'; a = { A };",
        "import { A } from './x'; a = { A };",
    );
}

#[test]
fn javascript_stays_as_it_is() {
    for text in [
        "a = b / c / d; e = /[/\"'`]/g.test(f) ? /x/ : g; if (h) /y/.test(i); j = k\n/ l / m;",
        "a = `x${b ? `y${{ c: 1 }.c}` : '}'}z`; tag`${d}`;",
        "label: for (;;) { continue label; } do x++; while (y) z = 1",
        "var { a = 1, b: { c }, ...d } = e, [f, , g = 2, ...h] = i;",
        "({ a = 1 } = b); [c, d.e] = f; ({ g, h: i.j } = k);",
        "a = { get b() { return 1 }, set b(c) {}, async d() {}, *e() {}, async *f() {}, get: 1, set() {}, async: 2, [g]: 3, 'h': 4, 5: 6, ...i };",
        "a ??= b ?? (c || d); a **= (-(2 ** 3)) ** 2; a = b?.[c]?.(d)?.e ?? f; a = b ? .5 : 1;",
        "for (const a in b) {} for (var c = 1 in d ? 1 : 2; ;) break; for await (const e of f) {}"
            .split(" for (var")
            .next()
            .unwrap(),
        "switch (a) { case 1: case 'b': { break } default: c() }",
        "a = b\n++c\nd = e\n!f",
        "class A extends (B, C) { static #a = 1; #b() { return #a in this } static async *[c]() {} 'd'() {} 1() {} get [e]() { return 1 } }",
        "new A; new A.B(c).d(); new (e())(); function f() { return new.target }",
        "a = async function () { await b; for await (const c of d) {} }; e = function* () { const f = yield; yield* g; yield h, yield };",
        "a = 1..toString() + 1.5.toFixed() + 0xff + 1e-5 + 1_000n.toString() + .5;",
        "a = \"\\\"\" + '\\'' + `\\``; b = '\\\n';",
        "if (a) b; else if (c) d; else { e }",
        "a = (b, c); d = ((e) => (f))(g); h = i => ({ j: i });",
        "var größe = 1, \\u0061b = 2, 変数 = größe;",
        "import.meta.url; a = import('./x');",
        "export default class { } export const b = 1, c = 2;",
        "// type A = B\n/* let c: D */ 'use strict'; debugger; throw a",
        "a = b\n(c)\nd = e",
        "var let_ = 1; var async = 2; async(3); var get = async;",
        "a = typeof b === 'c' && void 0 === delete d.e;",
    ] {
        assert_eq!(stripped(text), text);
    }
}

#[test]
fn more_than_types_is_rejected_with_a_fix() {
    check_rejected("@b class A {}", "1:1: decorators");
    check_rejected("class A { @b c }", "1:11: decorators");
    check_rejected("import a = require('b');", "1:1: `import … = require()`");
    check_rejected("enum A { 1 }", "1:10: expected the name of a member");
    check_rejected("enum A { B = }", "1:14: expected an expression");
    check_rejected("namespace A { export { a } }", "1:15: a namespace exports");
    check_rejected("namespace A { ", "1:15: expected");
    check_rejected("module \"a\" { const b = 1 }", "1:1: a module in quotes");
    check_rejected("export = a;", "1:1: `export =`");
    check_rejected("let a: ;", "1:8: expected a type, found `;`");
    check_rejected(
        "let a = (x) => { b c };",
        "1:20: expected the end of the statement, found `c`",
    );
    check_rejected("f(", "1:3: expected an expression, but the file ends here");
    check_rejected("/* ", "1:1: the comment does not end");
    check_rejected("a = 'b", "1:5: the string does not end");
    check_rejected("a = `${b", "1:9: expected `}`, but the file ends here");
    check_rejected("größe = §;", "1:9: unexpected character '§'");
    check_rejected(&"(".repeat(100_000), "1:");
    check_rejected(&format!("type A = {}", "[".repeat(100_000)), "1:");
    check_rejected(&"a => ".repeat(100_000), "1:");
    check_rejected(&"`${".repeat(100_000), "1:");
    check_rejected(&"!".repeat(100_000), "1:");
    check_rejected(&"new ".repeat(100_000), "1:");
}

#[test]
fn readings_that_fail_are_not_tried_again() {
    let deep = 40;
    let text = format!("{}1{}", "(a = ".repeat(deep), ")".repeat(deep));
    check(&text, &text);
    let text = format!(
        "x = {}1{}",
        "f(a < b, (c ? (d".repeat(15),
        ") : e))".repeat(15)
    );
    check(&text, &text);
}

proptest! {
    #[test]
    fn no_text_panics(text in "[-a-z0-9 (){}<>=:;,.?!|&+*/'\"`$@#\\[\\]\n\\\\§é]{0,60}") {
        strip_types(&text).ok();
    }

    #[test]
    fn words_of_the_language_do_not_panic(words in proptest::collection::vec(prop_oneof![
        Just("type"), Just("interface"), Just("class"), Just("A"), Just("<"), Just(">"), Just("("), Just(")"), Just("{"), Just("}"),
        Just(":"), Just("?"), Just("=>"), Just("="), Just("as"), Just("extends"), Just("infer"), Just("import"), Just("export"),
        Just("from"), Just("'x'"), Just("declare"), Just("abstract"), Just("function"), Just("async"), Just("\n"), Just(","), Just(";"),
        Just("`${"), Just("`"), Just("["), Just("]"), Just("in"), Just("keyof"), Just("global"), Just("module"), Just("!"), Just("this"),
    ], 0..40)) {
        strip_types(&words.join(" ")).ok();
    }

    #[test]
    fn expressions_of_javascript_stay_as_they_are(text in expression()) {
        let text = format!("x = {text};\nlet y = 1");
        // Comparisons that look like type arguments are type arguments in TypeScript.
        if compile(&text).is_ok() && !text.contains('>') {
            prop_assert_eq!(strip_types(&text), Ok(text.clone()));
        }
    }
}

/// Expressions of JavaScript.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("a".to_owned()),
        Just("1.5".to_owned()),
        Just("'s'".to_owned()),
        Just("/r[/]/g".to_owned()),
        Just("as".to_owned()),
        Just("`t`".to_owned()),
        Just("async".to_owned()),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (
                two.clone(),
                prop_oneof![
                    Just("+"),
                    Just("<"),
                    Just("/"),
                    Just("&&"),
                    Just("??"),
                    Just(","),
                    Just("=="),
                    Just("in"),
                    Just("**")
                ]
            )
                .prop_map(|((a, b), operator)| format!("({a} {operator} {b})")),
            (two.clone(), inner.clone()).prop_map(|((a, b), c)| format!("({a} ? {b} : {c})")),
            two.clone().prop_map(|(a, b)| format!("f({a}, ...{b})")),
            two.clone().prop_map(|(a, b)| format!("[{a}, , {b}]")),
            two.clone().prop_map(|(a, b)| format!(
                "({{ k: {a}, [{b}]: 1, m(p = {a}) {{ return {b} }} }})"
            )),
            two.clone()
                .prop_map(|(a, b)| format!("`x${{{a}}}y${{{b}}}`")),
            two.prop_map(|(a, b)| format!(
                "(function (p = {a}) {{ if ({b}) return {b}\n else {{ }} }})"
            )),
            inner.clone().prop_map(|a| format!("-{a}.b?.[c]")),
            inner.prop_map(|a| format!("!new D({a}).e`t`")),
        ]
    })
}

#[test]
fn enums_map_names_to_values_and_numbers_to_names() {
    check_emitted(
        "enum A { B, C = 5, D, E = 'e', 'F-G' = 1 << 2 | C, H }\nconst result = [A, A.B, A[5], A['F-G']];",
        r#"[{"0":"B","5":"F-G","6":"H","B":0,"C":5,"D":6,"E":"e","F-G":5,"H":6},0,"F-G",5]"#,
    );
    check_emitted(
        "const enum Method {\n  Get = `GET`, // one\n  Post = \"POST\",\n}\nvar result = [Method.Get, Method.Post, Object.keys(Method)]",
        r#"["GET","POST",["Get","Post"]]"#,
    );
    check_emitted(
        "const x = 2; enum A { B = x * 2, C, D = \"text\".length, E = -3, F, G = A.B + C }; let result = A;",
        r#"{"4":"D","5":"C","9":"G","B":4,"C":5,"D":4,"E":-3,"-3":"E","F":-2,"-2":"F","G":9}"#,
    );
    // A second declaration adds to the first; without semicolons.
    check_emitted(
        "enum A { B = 1 }\nlet a = 1\nenum A { C = B + 1 }\n{ enum A { D } a = A.D }\nvar result = [A, a]",
        r#"[{"1":"B","2":"C","B":1,"C":2},0]"#,
    );
    check_emitted(
        "enum A {}\nfunction f(): A { enum B { C } return B.C }\nvar result = [A, f()]",
        "[{},0]",
    );
    // Lines of what follows stay.
    let made = emitted("export enum A {\n  B,\n  C = 'c',\n}\nthrow new Error(A.C)\n");
    assert_eq!(made.lines().nth(4), Some("throw new Error(A.C)"));
    assert!(made.starts_with("export let A;"), "{made}");
    // An import that an enum alone uses is used.
    assert!(emitted("import { a, b } from 'c'; enum D { E = a }").contains("import { a,"));
    emitted("export enum A { B }\nexport enum A { C = 1 }\nexport default A");
}

#[test]
fn namespaces_are_objects_of_what_they_export() {
    check_emitted(
        "namespace A {\n  const hidden = 1;\n  export const b = hidden + 1, { c, d: [e] } = { c: 3, d: [(x) => x] };\n  export function f() { return b }\n  export class G {}\n  export interface H {}\n  export enum I { J }\n  export namespace K { export const l = c }\n}\nvar result = [Object.keys(A).sort(), A.b, A.c, A.f(), A.K.l, A.I.J, typeof A.G]",
        r#"[["G","I","K","b","c","e","f"],2,3,2,3,0,"function"]"#,
    );
    check_emitted(
        "namespace A.B.C { export let n = 1; export function next() { n += 1; return n } }\nA.B.C.next(); A.B.C.n = 7;\nvar result = [A.B.C.n, A.B.C.next()]",
        "[7,8]",
    );
    // One that has types only is nothing; one may extend a function, a class or another one.
    check_emitted(
        "namespace T { export type A = 1; export interface B {} ; namespace U { type C = 2 } }\nfunction f() {}\nnamespace f { export const a = 1 }\nclass C {}\nnamespace C { export const b = 2 }\nnamespace D { export const c = 3 }\nnamespace D { export const d = 4 }\nvar result = [typeof T, f.a, C.b, D]",
        r#"["undefined",1,2,{"c":3,"d":4}]"#,
    );
    check_emitted(
        "namespace A { export const b = { c: 1 }; export async function g() {} export function* h() {} }\nimport b = A.b; import T = A.T;\nlet t: T; var result = [b.c, typeof A.g, typeof A.h]",
        r#"[1,"function","function"]"#,
    );
    check_emitted(
        "namespace A { export namespace B { export const c = 1 } export import d = B.c; export declare const e: 1; export abstract class F {} }\nvar result = A.d",
        "1",
    );
    emitted("export namespace A { export const b = 1 }\nexport import c = A.b");
    assert!(!emitted("namespace A { type B = 1 } export { A }").contains('A'));
}

#[test]
fn parameter_properties_are_assigned() {
    check_emitted(
        "class A { readonly d = 4; constructor(private readonly a: number, public b = 2, c?: number, protected override e?: string) { this.a += c ?? 0 } }\nclass B extends A { constructor(public f: string) { const g = f; super(1, 3, 5); this.b *= 2 } }\nvar result = [new A(1), new B('x')]",
        r#"[{"d":4,"a":1,"b":2},{"d":4,"a":6,"b":6,"f":"x"}]"#,
    );
    check_emitted(
        "class A { constructor(public a: number) {} m() { return new (class { constructor(private b: number) {} })(this.a) } }\nvar result = new A(3).m()",
        r#"{"b":3}"#,
    );
    // A parameter of that name is none.
    check_emitted(
        "class A { constructor(readonly, override = 1) { this.x = [readonly, override] } }\nvar result = new A(5)",
        r#"{"x":[5,1]}"#,
    );
}
