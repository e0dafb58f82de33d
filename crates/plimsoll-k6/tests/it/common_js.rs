//! `require()`, CommonJS modules, and constructors that need no `new`.

use crate::fixture::{check, run_script};

#[test]
fn require_is_a_global_function_that_modules_hand_on() {
    // The helper that esbuild writes into its bundles, called by names that no text has in quotes behind `require`.
    let ran = run_script(
        "var r=(x=>typeof require!==\"undefined\"?require:typeof Proxy!==\"undefined\"?new Proxy(x,{get:(a,b)=>(typeof require!==\"undefined\"?require:a)[b]}):x)(function(x){throw Error(x)});
         var crypto = r('k6/crypto'), files = ['lib', 'common'].map((name) => r(`./${name}.js`)), data = r('./' + 'data.json');
         export default function () {
           console.log(crypto.md5('a', 'hex').length, files[0].seven, files[1].FormData.name, data.length, typeof globalThis.require);
           try { require('k6') } catch (error) { console.log(error.message) }
         }",
        "",
    );
    assert_eq!(
        ran.log,
        [
            "Info: 32 7 FormData 3 function",
            "Info: require() can only be used in the init context, outside of functions",
        ],
        "{ran:#?}"
    );
}

#[test]
fn modules_of_k6_are_objects_that_scripts_change() {
    check(
        "import http from 'k6/http'; import { group } from 'k6';
         const same = require('k6/http'), k6 = require('k6');
         same.get = (url) => `mine ${url}`; k6.extra = 1;",
        "console.log(http === same, http.get('x'), typeof http.post, require === globalThis.require, k6.group === group, k6.extra)",
        "",
        &["true mine x function true true 1"],
    );
}

#[test]
fn names_are_imported_from_common_js_modules() {
    check(
        "import common, { FormData, default as again, missing, count as before, isThis } from './common.js';
         import * as all from './common.js';
         import {
           Form,
           whole, all as every,
         } from './again.js';
         common.bump();",
        "console.log(new FormData().parts, missing, before, common.count, isThis, common === again);
         console.log(Object.keys(all).join(), all.FormData === FormData, all.default === common);
         console.log(Form === FormData, whole === common, every.FormData === FormData, require.length >= 0);",
        "",
        &[
            "2 undefined 0 1 true true",
            "FormData,count,bump,isThis true true",
            "true true true true",
        ],
    );
}

#[test]
fn common_js_modules_run_once_and_may_require_each_other() {
    let ran = run_script(
        "const a = require('./cycle_a.js'), again = require('./cycle_a.js');
         const fails = (name) => { try { require(name); return 'no error' } catch (error) { return error.message } };
         const errors = [fails('./broken.js'), fails('./broken.js'), fails(''), fails('lodash').slice(0, 10), fails('./none.js').startsWith('cannot read')];
         exports.default = () => { console.log(a.seen, a === again, errors) };",
        "",
    );
    assert_eq!(
        ran.log,
        [
            "Info: a true [ \"broken at its end\", \"broken at its end\", \"require() needs the name or the path of a module\", \"`lodash` i\", true ]"
        ],
        "{ran:#?}"
    );
}

#[test]
fn errors_of_common_js_modules_have_their_lines() {
    let ran = run_script(
        "import { FormData } from './common.js';\nimport './lib.js';\nexport default () => {\n  throw new Error('here');\n};",
        "",
    );
    assert!(ran.log[0].contains(":4:"), "{:?}", ran.log);
    let ran = run_script("export * from './common.js';\nexport default () => {}", "");
    assert_eq!(ran.code, 107);
    assert!(
        ran.message.contains("export each by its name"),
        "{}",
        ran.message
    );
}

#[test]
fn constructors_need_no_new() {
    check(
        "import { Trend, Rate, Counter, Gauge } from 'k6/metrics'; import { SharedArray } from 'k6/data';
         import http from 'k6/http'; import grpc from 'k6/net/grpc'; import { Blob } from 'k6/websockets';
         const metrics = [Trend('aa', true), Rate('bb'), Counter('cc'), Gauge('dd')];
         const data = SharedArray('numbers', () => [1, 2]);
         class Own extends Counter { twice(value) { this.add(2 * value) } }
         const own = new Own('own'), client = grpc.Client();",
        "metrics.forEach((metric) => metric.add(1)); own.twice(2);
         console.log(metrics.map((it) => it.name).join(), metrics[0] instanceof Trend, metrics[0] instanceof Rate, own instanceof Own, Trend.name);
         console.log(data.length, data[1], http.CookieJar() instanceof http.CookieJar, client instanceof grpc.Client);
         console.log(Blob(['ab']).size, TextEncoder().encode('a')[0], Blob(['ab']) instanceof Blob);",
        "",
        &["aa,bb,cc,dd true false true Trend", "2 2 true true", "2 97 true"],
    );
}

#[test]
fn files_are_relative_to_the_module_that_is_loaded() {
    check(
        "import { text, load } from './inner/open.js'; import { SharedArray } from 'k6/data';
         const common = require('./inner/common.js'), main = load('./data.json');
         const shared = new SharedArray('inner', () => [require('./inner/common.js').text, load('data.json')]);",
        "console.log(text, common.text, common.data === main, main.length, shared[0], shared[1] === main)",
        "",
        &["within within true 25 within true"],
    );
}

#[test]
fn imports_see_what_a_script_assigns_to_its_module() {
    check(
        "import http, { get, request } from 'k6/http'; import ws, { connect } from 'k6/ws'; import html, { parseHTML } from 'k6/html';
         import { sleep } from 'k6'; import k6 from 'k6';
         const before = { ...http };
         http.get = (url) => `mine ${url}`; http.request = () => 'never'; ws.connect = () => 'connected'; html.parseHTML = () => 'parsed';
         k6.sleep = () => 'slept';",
        "console.log(get('x'), http.get === get, request(), connect(), parseHTML());
         console.log(before.get === get, before.post === http.post, typeof before.get, Object.keys(http).length === Object.keys(before).length);
         console.log(http.expectedStatuses === before.expectedStatuses, k6.sleep(), typeof sleep(0));",
        "",
        &["mine x true never connected parsed", "false true function true", "true slept undefined"],
    );
}
