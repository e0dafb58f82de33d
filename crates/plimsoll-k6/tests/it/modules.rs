//! Modules besides k6/http.

use std::sync::{Arc, Mutex};

use plimsoll_k6::{Invocation, RemoteModules, Script, ScriptText, run};

use crate::fixture::{check, run_script};
use crate::server::Server;

#[test]
fn modules_resolve_paths_by_their_own() {
    let ran = run_script(
        "const text = open(import.meta.resolve('./data.json'));
         const folder = import.meta.resolve('.//x/../').length;
         export default () => {
           console.log(text.length, import.meta.resolve('k6/http'), import.meta.resolve('https://h/x.js'), import.meta.resolve('/a/./b/../c.js'));
           console.log(import.meta.resolve('./a/../data.json') === import.meta.resolve('../' + import.meta.resolve('./').split('/').at(-1) + '/data.json'), folder > 0);
         };",
        "",
    );
    assert_eq!(
        ran.console,
        [
            "Info: 25 k6/http https://h/x.js file:///a/c.js",
            "Info: true true"
        ],
        "{ran:#?}"
    );
}

#[test]
fn checks_groups_and_metrics_are_counted() {
    let ran = run_script(
        "import { check, group, sleep } from 'k6';
         import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
         const counter = new Counter('my_count'), gauge = new Gauge('my_gauge'), rate = new Rate('my_rate'), trend = new Trend('my_trend', true);
         export const options = { iterations: 2, thresholds: { 'my_count{kind:b}': [], 'checks{group:::outer::inner}': [] } };
         export default function () {
           const all = check(5, { 'is five': (v) => v === 5, 'is six': (v) => v === 6, 'a value': 1 });
           const result = group('outer', () => group('inner', () => { check(1, { 'nested': () => true }, { extra: 'x' }); return 'r'; }));
           counter.add(2, { kind: 'b' }); counter.add(1); gauge.add(__ITER + 4); rate.add(true); rate.add(0);
           [10, 20, 30].forEach((v) => trend.add(v)); sleep(0.01);
           console.log(all, result, counter.name);
         }",
        "",
    );
    assert_eq!(
        ran.log,
        ["Info: false r my_count", "Info: false r my_count"]
    );
    assert_eq!(ran.code, 0, "failing checks change no code");
    assert_eq!(ran.metric("checks", "passes"), 6.0);
    assert_eq!(ran.metric("checks", "fails"), 2.0);
    assert_eq!(ran.metric("checks{group:::outer::inner}", "passes"), 2.0);
    assert_eq!(ran.metric("my_count", "count"), 6.0);
    assert_eq!(ran.metric("my_count{kind:b}", "count"), 4.0);
    assert_eq!(ran.metric("my_gauge", "value"), 5.0);
    assert_eq!(ran.metric("my_rate", "value"), 0.5);
    assert!((ran.metric("my_trend", "med") - 20.0).abs() < 0.02);
    assert!(ran.metric("iteration_duration", "min") >= 10.0);
    let inner = &ran.export["root_group"]["groups"]["outer"]["groups"]["inner"];
    assert_eq!(inner["checks"]["nested"]["passes"], 2);
    for expected in [
        "✗ is six\n      ↳  0% — ✓ 0 / ✗ 2",
        "CUSTOM",
        "my_trend",
        "iterations",
    ] {
        assert!(
            ran.stdout.contains(expected),
            "no {expected} in {}",
            ran.stdout
        );
    }
}

#[test]
fn a_check_that_throws_fails_and_throws() {
    let ran = run_script(
        "import { check, fail } from 'k6';
         export const options = { iterations: 2, vus: 1 };
         export default function () {
           if (__ITER === 1) fail('given up');
           check(null, { 'throws': (v) => v.x, 'never': () => true });
         }",
        "",
    );
    assert_eq!(ran.code, 0, "exceptions of iterations change no code");
    assert_eq!(ran.metric("checks", "fails"), 1.0);
    assert_eq!(ran.metric("iterations", "count"), 2.0);
    assert!(
        ran.log[0].starts_with("Error: TypeError: "),
        "{:#?}",
        ran.log
    );
    assert!(ran.log[0].contains("/-:5:"), "{:#?}", ran.log);
    assert!(
        ran.log[1].starts_with("Error: GoError: given up"),
        "{:#?}",
        ran.log
    );
}

#[test]
fn shared_arrays_are_made_once_and_cannot_be_changed() {
    let ran = run_script(
        "import { SharedArray } from 'k6/data';
         import { seven } from './lib.js';
         const data = new SharedArray('data', () => { console.log('made'); return JSON.parse(open('./data.json')); });
         const bytes = open('data.json', 'b');
         export const options = { vus: 3, iterations: 3 };
         export default function () {
           let failed = 0;
           try { data[0] = 1 } catch { failed++ }
           'use strict'; try { (() => { 'use strict'; data[0].n = 9 })() } catch { failed++ }
           console.log(data.length, data[1].n, data[9], data.map((it) => it.n), [...data].length, failed, seven, bytes.byteLength);
         }",
        "",
    );
    assert_eq!(ran.log[0], "Info: made");
    let expected = "Info: 3 2 undefined [ 1, 2, 3 ] 3 2 7 25";
    assert_eq!(ran.log[1..], [expected, expected, expected]);
}

#[test]
fn execution_knows_where_it_is() {
    let ran = run_script(
        "import exec from 'k6/execution';
         export const options = { scenarios: { one: { executor: 'per-vu-iterations', vus: 1, iterations: 2, exec: 'run', tags: { t: 'v' }, env: { OWN: 'o' } } },
                                  thresholds: { 'iterations{t:v}': [], 'iterations{mine:2}': [], 'iterations{scenario:one}': [] } };
         try { exec.vu.idInTest } catch (error) { console.log(error.message) }
         export function run() {
           console.log(exec.scenario.name, exec.scenario.executor, exec.scenario.iterationInTest, exec.vu.idInTest, exec.vu.iterationInScenario, __VU, __ITER,
                       __ENV.GREETING, __ENV.OWN, exec.instance.vusInitialized, exec.instance.iterationsCompleted, exec.test.options.scenarios.one.vus);
           exec.vu.tags.mine = exec.scenario.iterationInTest + 1;
           console.log(exec.vu.tags.mine, exec.vu.tags.scenario, Object.keys(exec.vu.tags).length, exec.scenario.startTime > 1e12, exec.instance.currentTestRunDuration > 0);
         }",
        "",
    );
    let lines: Vec<_> = ran
        .log
        .iter()
        .filter(|line| !line.contains("vu of k6/execution"))
        .collect();
    assert_eq!(
        lines,
        [
            "Info: one per-vu-iterations 0 1 0 1 0 hi o 1 0 1",
            "Info: 1 one 4 true true",
            "Info: one per-vu-iterations 1 1 1 1 1 hi o 1 1 1",
            "Info: 2 one 4 true true",
        ]
    );
    assert_eq!(ran.metric("iterations{t:v}", "count"), 2.0);
    assert_eq!(ran.metric("iterations{mine:2}", "count"), 1.0);
    assert_eq!(ran.metric("iterations{scenario:one}", "count"), 2.0);
}

#[test]
fn texts_are_encoded_and_hashed() {
    check(
        "import encoding, { b64encode } from 'k6/encoding'; import crypto from 'k6/crypto';",
        "console.log(b64encode('hi?~'), encoding.b64decode('aGk', 'rawstd', 's'), new Uint8Array(encoding.b64decode('AP8=')), b64encode('hi?~', 'rawurl'));
         console.log(crypto.md5('a', 'hex'), crypto.sha256('a', 'base64'));
         const h = crypto.createHMAC('sha256', 'key'); h.update('a'); h.update('b');
         console.log(h.digest('hex') === crypto.hmac('sha256', 'key', 'ab', 'hex'), crypto.randomBytes(4).byteLength, crypto.hexEncode(new Uint8Array([1, 255]).buffer));
         try { crypto.createHash('sha0') } catch (error) { console.log(error.message.startsWith('no hash `sha0`')) }
         console.log(crypto.sha1('abc', 'hex'), globalThis.crypto.getRandomValues(new Uint8Array(3)).length, globalThis.crypto.randomUUID().length);
         console.log(new TextDecoder().decode(new TextEncoder().encode('é')), new TextEncoder().encode('é').length)",
        "",
        &[
            "aGk/fg== hi Uint8Array(2) [ 0, 255 ] aGk_fg",
            "0cc175b9c0f1b6a831c399e269772661 ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=",
            "true 4 01ff",
            "true",
            "a9993e364706816aba3e25717850c26c9cd0d89d 3 36",
            "é 2",
        ],
    );
}

#[test]
fn timers_and_random_seeds_work() {
    let ran = run_script(
        "import { randomSeed } from 'k6'; import { setTimeout as later } from 'k6/timers';
         export const options = { iterations: 2 };
         export default async function () {
           randomSeed(7); const first = Math.random(); randomSeed(7);
           const order = [];
           later(() => order.push('late'), 20); setTimeout((x) => order.push(x), 5, 'soon');
           await new Promise((done) => later(done, 40));
           console.log(first === Math.random(), order);
         }",
        "",
    );
    let expected = "Info: true [ \"soon\", \"late\" ]";
    assert_eq!(ran.log, [expected, expected]);
}

#[test]
fn the_commonest_libraries_are_built_in() {
    check(
        "import { uuidv4, randomIntBetween, findBetween, parseDuration, randomItem, randomString } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';
         import { textSummary, humanizeValue } from 'https://jslib.k6.io/k6-summary/0.1.0/index.js';",
        "console.log(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(uuidv4()), randomIntBetween(3, 3), findBetween('<a><b>', '<', '>', true),
                     parseDuration('1m30s'), randomItem(['x']), randomString(3).length, humanizeValue(1500, { type: 'trend', contains: 'time' }, 'ms'), typeof textSummary)",
        "",
        &["true 3 [ \"a\", \"b\" ] 90000 x 3 1500.00ms function"],
    );
}

#[test]
fn stages_are_named_by_tags() {
    let ran = run_script(
        "import exec from 'k6/execution'; import { sleep } from 'k6';
         import { findBetween, getCurrentStageIndex, normalDistributionStages, parseDuration, tagWithCurrentStageIndex, tagWithCurrentStageProfile } from 'https://jslib.k6.io/k6-utils/1.6.0/index.js';
         const stages = [{ duration: '0s', target: 1 }, { duration: '10m', target: 1 }, { duration: '1s', target: 0 }];
         export const options = { scenarios: { s: { executor: 'ramping-vus', startVUs: 1, stages, gracefulStop: '0s' } } };
         export default () => {
           tagWithCurrentStageIndex(); tagWithCurrentStageProfile();
           console.log(getCurrentStageIndex(), exec.vu.tags.stage, exec.vu.tags.stage_profile);
           console.log(findBetween('x', '<', '>', true), findBetween('<a>', '<', '>'), parseDuration('100'), parseDuration('1.5s'));
           console.log(normalDistributionStages(10, 60, 2).map((it) => `${it.duration}:${it.target}`).join(' '));
           exec.test.abort('enough');
         }",
        "",
    );
    assert_eq!(ran.code, 108, "{ran:#?}");
    assert_eq!(
        ran.console,
        [
            "Info: 1 1 steady",
            "Info: null a 100 1500",
            "Info: 10s:1 20s:10 20s:1 10s:0"
        ],
        "{ran:#?}"
    );
    let none = run_script(
        "import { getCurrentStageIndex } from 'https://jslib.k6.io/k6-utils/1.6.0/index.js';
         export default () => { try { getCurrentStageIndex(); } catch (error) { console.log(error.message); } }",
        "",
    );
    assert_eq!(none.console, ["Info: the scenario default has no stages"]);
}

#[test]
fn what_is_not_supported_is_named_at_once() {
    for (import, expected) in [
        (
            "import { browser } from 'k6/browser'",
            "browser automation is not supported by plimsoll",
        ),
        (
            "import x from 'k6/x/sql'",
            "`k6/x/sql` is not supported by plimsoll, which has k6, k6/http",
        ),
        (
            "import ws from 'k6/experimental/grpc'",
            "was removed from k6; use k6/net/grpc",
        ),
        (
            "import x from 'https://example.org/a.js'",
            "remote modules are not fetched",
        ),
        (
            "import x from 'lodash'",
            "is neither a module of k6 nor a path",
        ),
        ("import x from './none.js'", "none.js"),
        ("const x = ;", "SyntaxError"),
    ] {
        let ran = run_script(&format!("{import};\nexport default () => {{}}"), "");
        assert_eq!(ran.code, 107, "{import}");
        assert!(
            ran.message.contains(expected),
            "no {expected} in {}",
            ran.message
        );
    }
}

#[test]
fn common_js_modules_require_and_export() {
    let ran = run_script(
        "const { check } = require('k6');
         const { seven } = require('./lib.js');
         const data = require('./data.json');
         exports.options = { iterations: 2, thresholds: { checks: ['rate==1'] } };
         exports.setup = () => ({ from: 'setup' });
         exports.default = function (given) { check(seven, { 'is seven': (n) => n === 7 }); console.log(data.length, given.from); };
         try { require('lodash') } catch (error) { console.log(error.message.includes('neither a module of k6')) }",
        "",
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(ran.metric("checks", "passes"), 2.0);
    let lines: Vec<_> = ran.log.iter().filter(|line| line.contains('3')).collect();
    assert_eq!(lines, ["Info: 3 setup", "Info: 3 setup"]);
    assert!(ran.log.contains(&"Info: true".to_owned()), "{:?}", ran.log);
    let ran = run_script(
        "module.exports = () => {\n  throw new Error('here');\n};",
        "",
    );
    assert!(ran.log[0].contains("/-:2:"), "{:?}", ran.log);
}

#[test]
fn files_are_read_in_pieces_and_as_csv() {
    let ran = run_script(
        "import { open, SeekMode } from 'k6/experimental/fs'; import csv from 'k6/experimental/csv';
         const file = await open('./data.json');
         const table = await open('./table.csv');
         const rows = await csv.parse(table, { asObjects: true });
         const lines = await csv.parse(table, { skipFirstLine: true, toLine: 1 });
         const parser = new csv.Parser(table);
         export default async function () {
           const buffer = new Uint8Array(5);
           console.log((await file.stat()).name, (await file.stat()).size, await file.read(buffer), new TextDecoder().decode(buffer));
           await file.seek(-3, SeekMode.End); console.log(await file.read(buffer), await file.read(buffer));
           console.log(rows.length, rows[1].name, rows[1].text, lines.length, lines[0]);
           const values = []; for (;;) { const { done, value } = await parser.next(); if (done) break; values.push(value[0]); } console.log(values);
         }",
        "",
    );
    assert_eq!(
        ran.log,
        [
            "Info: data.json 25 5 [{\"n\"",
            "Info: 3 null",
            "Info: 2 bob say \"hi\", twice 1 [ \"ann\", \"plain\" ]",
            "Info: [ \"name\", \"ann\", \"bob\" ]",
        ]
    );
}

#[test]
fn libraries_for_requests_and_texts_are_built_in() {
    let server = Server::start();
    check(
        "import { Httpx, Get, Post } from 'https://jslib.k6.io/httpx/0.1.0/index.js';
         import papaparse from 'https://jslib.k6.io/papaparse/5.1.1/index.js';
         import addresses from 'https://jslib.k6.io/url/1.0.0/index.js';
         const Address = addresses['UR' + 'L'], Params = addresses['UR' + 'LSearchParams'];",
        "const session = new Httpx({ ['baseU' + 'RL']: 'URL', headers: { 'X-Own': 'o' } });
         session.addTag('t', 'v');
         const r = session.post('/echo', 'body', { headers: { 'X-More': 'm' } });
         console.log(r.body, r.request.headers['X-Own'][0], r.request.headers['X-More'][0], session.get('/json').json('name'));
         console.log(session.batch([new Get('/json'), new Post('/echo', 'p')]).map((it) => it.status));
         console.log(papaparse.parse('a,b\\n1,\"x, y\"', { header: true, dynamicTyping: true }).data, papaparse.unparse([{ a: 1, b: 'q,' }]));
         const url = new Address('../x?a=1#h', 'http://user@host:81/p/q/r'); url.searchParams.append('b', 'c d'); url.port = '82';
         console.log(url.href, url.pathname, url.searchParams.get('b'), new Params({ k: 'v&' }).toString());
         try { new Address('nothing') } catch (error) { console.log(error.name) }",
        &server.url(),
        &[
            "body o m n",
            "[ 200, 200 ]",
            "[ { a: 1, b: \"x, y\" } ] a,b\r\n1,\"q,\"",
            "http://user@host:82/p/x?a=1&b=c+d#h /p/x c d k=v%26",
            "TypeError",
        ],
    );
}

#[test]
fn each_expectation_of_chai_is_a_check_in_the_group_of_its_block() {
    let chai = |config: &str| {
        let text = "import { describe, expect, chai } from 'https://jslib.k6.io/k6chaijs/4.5.0.1/index.js';
         CONFIG
         export const options = { iterations: 2 };
         export default function () {
           const held = describe('holds', () => { expect({ a: [1] }).to.deep.equal({ a: [1] }); expect('abc').to.be.a('string').that.includes('b'); expect([1, 2], 'pair').to.have.length.above(1); });
           const failed = describe('fails', () => { expect(1, 'one').to.be.above(2); console.log('not reached') });
           const thrown = describe('throws', () => { throw new Error('oops') });
           console.log(held, failed, thrown);
         }";
        run_script(&text.replace("CONFIG", config), "")
    };
    let ran = chai("");
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(ran.console[1], "Info: true false false", "{ran:#?}");
    let groups = &ran.export["root_group"]["groups"];
    let names = |group: &str| {
        let checks = groups[group]["checks"].as_object().unwrap();
        let checks = checks.values().map(|check| {
            let count = |key: &str| check[key].as_u64().unwrap();
            format!(
                "{} {}/{}",
                check["name"].as_str().unwrap(),
                count("passes"),
                count("fails")
            )
        });
        let mut checks: Vec<_> = checks.collect();
        checks.sort();
        checks
    };
    assert_eq!(
        names("holds"),
        [
            "expected ${this} to be a string 2/0",
            "expected ${this} to deeply equal { a: [ 1 ] } 2/0",
            "expected ${this} to include 'b' 2/0",
            "expected pair to have a length above 1 got ${actual} 2/0",
        ]
    );
    assert_eq!(names("fails"), ["expected one to be above 2 0/2"]);
    assert_eq!(names("throws"), ["Exception raised \"Error: oops\" 0/2"]);
    let ran = chai("chai.config.exitOnError = true;");
    assert_eq!(
        (ran.code, ran.metric("iterations", "count")),
        (108, 1.0),
        "{ran:#?}"
    );
}

#[test]
fn an_expectation_of_k6_testing_that_fails_aborts_the_run() {
    let ran = run_script(
        "import { expect } from 'https://jslib.k6.io/k6-testing/0.5.0/index.js';
         export const options = { iterations: 3 };
         export default function () {
           expect([1, 2]).toContain(2); expect({ a: 1, b: 2 }).toMatchObject({ a: 1 }); expect(1).not.toBe(2);
           expect.soft(1).toBe(2);
           console.log(__ITER);
           if (__ITER == 1) expect(1).toEqual(2);
         }",
        "",
    );
    assert_eq!(ran.console, ["Info: 0", "Info: 1"]);
    assert_eq!(ran.code, 108, "{ran:#?}");
    assert!(
        ran.message.contains("expected 2, received 1"),
        "{}",
        ran.message
    );
    let ran = run_script(
        "import { expect } from 'https://jslib.k6.io/k6-testing/0.5.0/index.js';
         export default () => expect.soft(1).toBe(2)",
        "",
    );
    assert_eq!(ran.code, 110, "a soft one marks the run as failed");
}

/// Libraries as a server has them, of which one cannot be fetched.
fn libraries(expectations: Option<&'static str>) -> RemoteModules {
    let fetch = move |url: &str| match expectations {
        Some(text) if url.contains("/k6chaijs/") => Ok(text.as_bytes().to_vec()),
        _ => Err(format!("no route to {url}").into()),
    };
    RemoteModules::new(None, None, Box::new(fetch)).unwrap()
}

#[test]
fn libraries_of_expectations_run_as_they_are_where_they_can_be_fetched() {
    let text = "import { describe, expect } from 'https://jslib.k6.io/k6chaijs/4.3.4.3/index.js';
         import { uuidv4 } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';
         export default () => console.log(describe('a', () => expect(1).to.equal(1)), uuidv4().length);";
    let text = ScriptText::Given {
        text: text.to_owned(),
        directory: std::env::temp_dir(),
    };
    let printed = |remote: RemoteModules| {
        let script = Script::load_with(&text, Some(remote)).unwrap();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&lines);
        let outcome = run(&Invocation::new(
            script,
            Arc::new(move |_, text, _| kept.lock().unwrap().push(text.to_owned())),
            &|| false,
        ));
        assert_eq!(outcome.exit.number(), 0, "{}", outcome.message);
        lines.lock().unwrap().clone()
    };
    let own = "exports.describe = (name) => `own ${name}`; exports.expect = () => {};";
    assert_eq!(printed(libraries(Some(own))), ["own a 36"]);
    let lines = printed(libraries(None));
    assert!(lines[0].contains("no route to"), "{lines:?}");
    assert!(
        lines[0].ends_with("plimsoll's own module takes its place"),
        "{lines:?}"
    );
    assert_eq!(lines[1..], ["true 36"]);
}

#[test]
fn typescript_runs_without_its_types() {
    let ran = run_script(
        "import { Greeter, fails, options as typed } from './typed.ts';
         export default function () {
           console.log(new Greeter().greet({ name: 'ann' }), JSON.stringify(typed));
           try { fails(7) } catch (error) { console.log(error.message, error.stack.includes('/typed.ts:11:')); }
         }",
        "",
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(ran.log, ["Info: hi ann default {}", "Info: typed 7 true"]);
}

#[test]
fn a_script_of_typescript_is_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script.ts");
    let load = |text: &str| {
        std::fs::write(&file, text).unwrap();
        Script::load(&ScriptText::File(file.clone())).map(drop)
    };
    load("import { Options } from 'k6/options';\nexport default function (data: unknown): void {}")
        .unwrap();
    load("export enum Color { Red }\nexport default (): Color => Color.Red;").unwrap();
    let error = load("const a = 1;\n@decorated class B {}")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("script.ts:2:1: decorators are not supported"),
        "{error}"
    );
    let error = load("let a: number = ;").unwrap_err().to_string();
    assert!(
        error.contains("script.ts:1:17: expected an expression"),
        "{error}"
    );
}

#[test]
fn proto_files_are_found_beyond_the_folder_of_the_script() {
    let ran = run_script(
        "import grpc from 'k6/net/grpc';
         const name = import.meta.resolve('./lib.js').split('/').at(-2);
         const load = (imports, ...files) => { try { new grpc.Client().load(imports, ...files); return true } catch (error) { return false } };
         console.log(load([], `../${name}/inner/part.proto`), load([`../${name}/inner`], 'whole.proto'), load(null, './inner/../inner/part.proto'));
         console.log(load(['inner'], 'whole.proto'), load(['inner/deep'], '../part.proto'), load([import.meta.resolve('./inner')], 'whole.proto'));
         // Imports are relative to the folders, not to the file.
         console.log(load([], 'inner/whole.proto'), load(['inner'], 'inner/part.proto'), load([], '../part.proto'));
         console.log(open(`../${name}/data.json`).length, open('nowhere/../data.json').length);
         export default () => {}",
        "",
    );
    let lines = [
        "Info: true true true",
        "Info: true true true",
        "Info: false false false",
        "Info: 25 25",
    ];
    assert_eq!(&ran.console[..4], lines, "{ran:#?}");
}

#[test]
fn texts_that_are_not_base64_fail_as_by_k6() {
    check(
        "import encoding from 'k6/encoding';",
        "for (const encoding_ of ['std', 'rawstd']) {
           const made = [];
           for (const text of ['abc?', 'abc', 'a', 'YW=I', 'YWI==', 'YW==YW==', 'YW==\\n', ' YWI=', 'Y\\nWI=', 'YWJj\\r\\nYWJj', '====', '', 'abcde', 'YWJ=', 'ab=', 'YQ=x', 'YQ= =', 'YQ=\\n=', 'Y=', 'YWJj=', 'é===']) {
             try { made.push(`${encoding.b64decode(text, encoding_).byteLength}`) } catch (error) { made.push(error.message.replace('illegal base64 data at input byte ', '@')) }
           }
           console.log(made.join(' '));
         }
         try { encoding.b64decode('-_-_') } catch (error) { console.log(String(error), error instanceof Error) }",
        "",
        &[
            "@3 @0 @0 @2 @4 @4 1 @0 2 6 @0 0 @4 2 @3 @2 @2 1 @1 @4 @0",
            "@3 2 @0 @2 @3 @2 @2 @0 @4 6 @0 0 @4 @3 @2 @2 @2 @2 @1 @4 @0",
            "GoError: illegal base64 data at input byte 0 true",
        ],
    );
}

#[test]
fn errors_of_native_functions_have_the_name_of_k6() {
    let ran = run_script(
        "import { check, fail, group, sleep } from 'k6'; import http from 'k6/http'; import ws from 'k6/ws'; import { WebSocket } from 'k6/websockets';
         import grpc from 'k6/net/grpc'; import { SharedArray } from 'k6/data'; import { Counter } from 'k6/metrics'; import crypto from 'k6/crypto';
         import { parseHTML } from 'k6/html'; import { b64decode } from 'k6/encoding'; import secrets from 'k6/secrets';
         const client = new grpc.Client(), shared = new SharedArray('a', () => [1]), counter = new Counter('own');
         const names = (calls) => Object.entries(calls).map(([name, call]) => {
           try { call(); return `${name}: nothing`; } catch (error) { return error.name === 'GoError' && error instanceof Error ? '' : `${name}: ${error.name}`; }
         }).filter(Boolean).join();
         console.log('init', names({
           sleep: () => sleep(0), get: () => http.get('URL'), array: () => new SharedArray('', () => []), list: () => new SharedArray('b', () => 1),
           twice: () => new (class extends Counter {})('a b'), open: () => open('none.txt'), load: () => client.load([], 'none.proto'), need: () => require('./none.js'),
           socket: () => ws.connect('ws://127.0.0.1:1', () => {}),
         }));
         export default function () {
           console.log('iteration', names({
             fail: () => fail('x'), check: () => check(1, { 'a::b': () => true }), group: () => group('a::b', () => {}), sleep: () => sleep('x'),
             batch: () => http.batch(1), expected: () => http.expectedStatuses(), callback: () => http.setResponseCallback(1), jar: () => http.cookieJar().set('::', 'a', 'b'),
             json: () => http.get('http://127.0.0.1:1').json(), thrown: () => http.get('http://127.0.0.1:1', { throw: true }), handler: () => ws.connect('ws://127.0.0.1:1'),
             url: () => new WebSocket(), invoke: () => client.invoke('a.B/C', {}), connect: () => client.connect('http://x'), stream: () => new grpc.Stream(1, 'a.B/C'),
             hash: () => crypto.createHash('md6'), output: () => crypto.md5('a', 'octal'), random: () => crypto.randomBytes(0), each: () => parseHTML('<p>').each(1),
             base64: () => b64decode('?'), open: () => open('data.json'), array: () => new SharedArray('c', () => []), counter: () => new Counter('later'),
           }));
           try { shared[0] = 2; } catch (error) { console.log(error.name); }
           throw new Error('own');
         }",
        "",
    );
    assert_eq!(
        ran.console,
        [
            "Info: init ",
            "Info: init ",
            "Info: iteration ",
            "Info: TypeError",
            "Info: init "
        ],
        "{ran:#?}"
    );
    // An error of the script has its own.
    let mut log = ran.log.iter();
    assert!(
        log.any(|line| line.starts_with("Error: Error: own")),
        "{ran:#?}"
    );
}

#[test]
fn an_encoding_of_another_name_is_the_standard_one() {
    check(
        "import encoding, { b64encode } from 'k6/encoding';",
        "console.log(b64encode('hi?~', 'utf-8'), b64encode('hi?~', 'URL'), b64encode('hi?~', ''), b64encode('hi?~', null));
         console.log(encoding.b64decode('aGk/fg==', 'utf8', 's'), encoding.b64decode('aGk/fg==', 's').byteLength, encoding.b64decode(undefined).byteLength, encoding.b64decode(null, 'std', 's') === '');",
        "",
        &["aGk/fg== aGk/fg== aGk/fg== aGk/fg==", "hi?~ 4 0 true"],
    );
}
