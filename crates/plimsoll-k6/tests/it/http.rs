//! k6/http.

use std::time::Duration;

use plimsoll_testkit::{Origin, Script, Step};

use crate::fixture::{check, run_script};
use crate::server::Server;

const IMPORT: &str = "import http from 'k6/http';";

#[test]
fn responses_have_what_scripts_read() {
    let server = Server::start();
    check(
        "import http, { get } from 'k6/http';",
        "const r = get('URL/json?a=1');
         console.log(r.status, r.status_text, r.proto, r.url.endsWith('/json?a=1'), r.error_code, r.error === '');
         console.log(r.headers['Content-Type'], r.remote_ip, r.remote_port > 0, r.timings.duration > 0, r.timings.looking_up);
         console.log(r.timings.duration - (r.timings.sending + r.timings.waiting + r.timings.receiving) < 1e-6);
         console.log(r.request.method, r.request.headers['User-Agent'].length, typeof r.body, r.cookies);
         const e = http.get('URL/echo'); console.log(e.headers['X-One']);
         const m = http.get('URL/404'); console.log(m.status, m.error_code, m.body)",
        &server.url(),
        &[
            "200 200 OK HTTP/1.1 true 0 true",
            "application/json 127.0.0.1 true true 0",
            "true",
            "GET 1 string {}",
            "1, 2",
            "404 1404 missing",
        ],
    );
}

/// A pause is in one phase only: the two together are not longer than the request was for the script, whose clock has
/// milliseconds.
#[test]
fn a_pause_counts_for_the_phase_that_it_is_in() {
    let pause = Step::Pause(Duration::from_millis(50));
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello";
    let begin = Script::new().then(Step::ReadHead);
    let (head, rest) = (Step::Write(head.into()), Step::Write("world".into()));
    let within_content = begin.clone().then(head.clone()).then(pause.clone());
    let before_head = begin.then(pause).then(head);
    for (script, phase, metric) in [
        (
            within_content.then(rest.clone()),
            "receiving",
            "http_req_receiving",
        ),
        (before_head.then(rest), "waiting", "http_req_waiting"),
    ] {
        let origin = Origin::scripted(script);
        let text = format!(
            "import http from 'k6/http';
             export default function () {{
               const began = Date.now(); const r = http.get('URL'); const took = Date.now() - began;
               const t = r.timings;
               console.log(r.body, t.{phase} > 40, t.waiting + t.receiving <= took + 2);
             }}"
        );
        let ran = run_script(&text, &origin.url("/"));
        assert_eq!(ran.console, ["Info: helloworld true true"], "{phase}");
        assert!(ran.metric(metric, "min") > 40.0, "{ran:#?}");
    }
}

#[test]
fn json_follows_paths() {
    let server = Server::start();
    check(
        IMPORT,
        "const r = http.get('URL/json'); const show = (path) => console.log(r.json(path));
         ['name', 'list.1.tag', 'list.#', 'list.#.id', 'list.#(tag==\"b\").id', 'list.#(id>0)#.tag', 'a\\\\.b.c', 'na*', 'none.x', 'empty', 'list.9'].forEach(show);
         console.log(r.json().list.length);
         try { http.get('URL/').json() } catch (error) { console.log(error.message.startsWith('cannot parse json')) }
         console.log(http.get('URL/').json('a'))",
        &server.url(),
        &["n", "b", "2", "[ 1, 2 ]", "2", "[ \"a\", \"b\" ]", "true", "n", "undefined", "null", "undefined", "2", "true", "undefined"],
    );
}

#[test]
fn bodies_are_sent_in_every_form() {
    let server = Server::start();
    check(
        IMPORT,
        "console.log(http.post('URL/echo', 'text').body);
         console.log(http.put('URL/echo', { a: 'x y', list: [1, 2], none: null }).body);
         console.log(http.patch('URL/echo', new Uint8Array([104, 105]).buffer).body);
         console.log(http.del('URL/echo', JSON.stringify({ a: 1 }), { headers: { 'Content-Type': 'application/json' } }).body);
         console.log(new Uint8Array(http.get('URL/bytes', { responseType: 'binary' }).body));
         console.log(http.get('URL/bytes', { responseType: 'none' }).body, http.head('URL/json').body, http.options('URL/').status);
         const file = http.post('URL/echo', { f: http.file('data', 'a.txt', 'text/plain'), n: 'v' });
         console.log(file.body.includes('name=\"f\"; filename=\"a.txt\"'), file.body.includes('\\r\\n\\r\\nv\\r\\n'));
         console.log(http.get('URL/gzip').body, http.request('post', http.url`URL/echo?${7}`, 'u').body)",
        &server.url(),
        &[
            "text",
            "a=x+y&list=1&list=2&none=",
            "hi",
            "{\"a\":1}",
            "Uint8Array(3) [ 0, 255, 1 ]",
            "null  200",
            "true true",
            "hello u",
        ],
    );
    let requests = server.requests();
    let head = |index: usize| requests[index].head.as_str();
    assert!(
        head(1).contains("Content-Type: application/x-www-form-urlencoded\r\n"),
        "{}",
        head(1)
    );
    assert!(head(3).contains("Content-Type: application/json\r\n"));
    assert!(!head(0).contains("Content-Type"));
    assert!(
        head(7).is_empty()
            || requests
                .iter()
                .any(|it| it.head.contains("multipart/form-data; boundary="))
    );
    assert_eq!(requests.last().unwrap().target, "/echo?7");
}

#[test]
fn redirects_are_followed_and_each_exchange_is_measured() {
    let server = Server::start();
    let ran = run_script(
        "import http from 'k6/http';
         export default () => {
           const r = http.get('URL/redirect'); console.log(r.status, r.url.endsWith('/json'));
           console.log(http.get('URL/redirect', { redirects: 0 }).status, http.get('URL/endless').status);
         }",
        &server.url(),
    );
    assert_eq!(ran.log, ["Info: 200 true", "Info: 302 302"]);
    assert_eq!(ran.metric("http_reqs", "count"), 2.0 + 1.0 + 11.0);
    assert_eq!(ran.metric("http_req_failed", "passes"), 0.0);
}

#[test]
fn cookies_last_for_an_iteration_and_scripts_have_jars() {
    let server = Server::start();
    let ran = run_script(
        "import http from 'k6/http';
         export const options = { iterations: 2 };
         export default () => {
           const first = http.get('URL/cookie');
           const c = first.cookies.sid[0];
           console.log(first.body, c.value, c.http_only, c.max_age, http.get('URL/cookie').body);
           const jar = http.cookieJar(); jar.set('URL', 'mine', 'm');
           console.log(jar.cookiesForURL('URL/cookie').mine, http.get('URL/cookie', { cookies: { sid: { value: 'x', replace: true }, p: 'q' } }).body);
           const own = new http.CookieJar(); own.set('URL/', 'o', '1'); console.log(http.get('URL/cookie', { jar: own }).body);
           jar.delete('URL', 'mine'); jar.clear('URL'); console.log(JSON.stringify(jar.cookiesForURL('URL')));
         }",
        &server.url(),
    );
    let once = [
        "Info: none s1 true 60 sid=s1; other=o",
        "Info: [ \"m\" ] sid=x; p=q; other=o; mine=m",
        "Info: o=1",
        "Info: {}",
    ];
    assert_eq!(ran.log, [once, once].concat(), "{ran:#?}");
}

#[test]
fn failures_are_responses_with_codes_unless_scripts_want_them_thrown() {
    let server = Server::start();
    let refused = plimsoll_testkit::refused_address();
    let ran = run_script(
        &format!(
            "import http from 'k6/http';
             export default () => {{
               for (const [url, params] of [['http://{refused}/'], ['URL/close'], ['URL/hang', {{ timeout: '50ms' }}], ['ftp://x/'], ['http://no.invalid/']]) {{
                 const r = http.get(url, params); console.log(r.status, r.error_code, r.body, r.error !== '');
               }}
               try {{ http.get('http://{refused}/', {{ throw: true }}); }} catch (error) {{ console.log(error.message.includes('refused')) }}
             }}"
        ),
        &server.url(),
    );
    let lines: Vec<_> = ran
        .log
        .iter()
        .filter(|line| line.starts_with("Info"))
        .collect();
    assert_eq!(lines[0], "Info: 0 1212 null true");
    assert_eq!(lines[1], "Info: 0 1000 null true");
    assert_eq!(lines[2], "Info: 0 1050 null true");
    assert_eq!(lines[3], "Info: 0 1000 null true");
    assert!(
        ["Info: 0 1101 null true", "Info: 0 1100 null true"].contains(&lines[4].as_str()),
        "{}",
        lines[4]
    );
    assert_eq!(lines[5], "Info: true");
    let warnings = ran
        .log
        .iter()
        .filter(|line| line.starts_with("Warning: Request Failed: GET"));
    assert_eq!(warnings.count(), 5, "{:#?}", ran.log);
    // The invalid URL was never requested.
    assert_eq!(ran.metric("http_reqs", "count"), 6.0);
    assert_eq!(ran.metric("http_req_failed", "passes"), 6.0);
}

#[test]
fn warnings_show_no_credentials_of_urls() {
    let refused = plimsoll_testkit::refused_address();
    let text = format!(
        "import http from 'k6/http';
         export default () => {{ http.get('http://me:hunter2@{refused}/a?api_key=hunter3&b=1') }}"
    );
    let log = run_script(&text, "").log.join("\n");
    assert!(log.contains("Request Failed: GET"), "{log}");
    assert!(
        !log.contains("hunter2") && !log.contains("hunter3"),
        "{log}"
    );
    assert!(log.contains("&b=1"), "{log}");
}

#[test]
fn batches_run_at_once_and_keep_their_shape() {
    let server = Server::start();
    let ran = run_script(
        "import http from 'k6/http';
         export const options = { batch: 4, batchPerHost: 3 };
         export default () => {
           const list = http.batch(['URL/json', ['POST', 'URL/echo', 'b', { tags: { t: '1' } }], { method: 'GET', url: 'URL/404' }]);
           console.log(Array.isArray(list), list.map((r) => r.status));
           const named = http.batch({ a: 'URL/', b: ['PUT', 'URL/echo', 'put'] }); console.log(named.a.body, named.b.body);
           const many = http.batch(Array(12).fill('URL/')); console.log(many.length, many.every((r) => r.status === 200));
         }",
        &server.url(),
    );
    assert_eq!(
        ran.log,
        [
            "Info: true [ 200, 200, 404 ]",
            "Info: hello put",
            "Info: 12 true"
        ]
    );
    assert!(
        (2..=3).contains(&server.connections()),
        "{}",
        server.connections()
    );
}

#[test]
fn promises_of_requests_run_beside_the_script() {
    let server = Server::start();
    check(
        IMPORT,
        "} export async function other() {} {",
        &server.url(),
        &[],
    );
    let ran = run_script(
        "import http from 'k6/http';
         export default async () => {
           const both = [http.asyncRequest('GET', 'URL/json'), http.asyncRequest('POST', 'URL/echo', 'later')];
           console.log(http.get('URL/').body);
           const [one, other] = await Promise.all(both); console.log(one.json('name'), other.body);
           // An unknown way to authenticate is none.
           console.log((await http.asyncRequest('GET', 'URL/', null, { auth: 'kerberos' })).body);
         }",
        &server.url(),
    );
    assert_eq!(ran.log, ["Info: hello", "Info: n later", "Info: hello"]);
}

#[test]
fn callbacks_say_what_is_expected() {
    let server = Server::start();
    let ran = run_script(
        "import http from 'k6/http';
         http.setResponseCallback(http.expectedStatuses(404, { min: 500, max: 599 }));
         export const options = { thresholds: { 'http_req_failed{name:own}': ['rate<1'] } };
         export default () => {
           http.get('URL/404'); http.get('URL/');
           http.get('URL/404', { responseCallback: http.expectedStatuses(200), tags: { name: 'own' } });
           http.get('URL/404', { responseCallback: null });
         }",
        &server.url(),
    );
    assert_eq!(ran.code, 99);
    assert_eq!(ran.metric("http_req_failed", "passes"), 2.0);
    assert_eq!(ran.metric("http_req_failed", "fails"), 1.0);
    assert_eq!(ran.metric("http_req_failed{name:own}", "passes"), 1.0);
}

#[test]
fn connections_are_kept_between_iterations_unless_options_say_otherwise() {
    for (option, connections) in [
        ("", 1),
        ("noVUConnectionReuse: true", 3),
        ("noConnectionReuse: true", 6),
    ] {
        let server = Server::start();
        let ran = run_script(
            &format!(
                "import http from 'k6/http'; export const options = {{ iterations: 3, {option} }};
                 export default () => {{ http.get('URL/'); http.get('URL/') }}"
            ),
            &server.url(),
        );
        assert_eq!(ran.metric("http_reqs", "count"), 6.0);
        assert_eq!(server.connections(), connections, "{option}");
    }
}

#[test]
fn ntlm_authenticates_the_connection_in_three_steps() {
    let server = Server::start();
    let with_user = server.url().replace("http://", "http://me:secret@");
    let ran = run_script(
        &format!(
            "import http from 'k6/http';
             export default () => {{
               const r = http.post('{with_user}/ntlm', 'body', {{ auth: 'ntlm' }});
               console.log(r.status, r.body, r.request.headers.Authorization);
               console.log(http.get('URL/ntlm', {{ auth: 'ntlm' }}).status);
             }}"
        ),
        &server.url(),
    );
    assert_eq!(ran.log, ["Info: 200 hello undefined", "Info: 401"]);
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    assert!(!requests[0].head.contains("Authorization"));
    assert!(
        requests[2]
            .head
            .contains("Authorization: NTLM TlRMTVNTUAAD")
    );
    assert!(requests[..3].iter().all(|request| request.body == b"body"));
    assert_eq!(server.connections(), 1);
    // As in k6: the first 401 of a request is expected, the challenge itself is not.
    assert_eq!(ran.metric("http_req_failed", "passes"), 1.0);
}

#[test]
fn users_log_in_and_bodies_are_compressed() {
    let server = Server::start();
    let with_user = server.url().replace("http://", "http://me:secret@");
    let ran = run_script(
        &format!(
            "import http from 'k6/http';
             export default () => {{
               const r = http.get('{with_user}/digest', {{ auth: 'digest' }}); console.log(r.status, r.request.headers.Authorization);
               console.log(http.get('{with_user}/').request.headers.Authorization, http.get('{with_user}/').url.includes('secret'));
               for (const compression of ['br', 'zstd', 'gzip, zstd', 'gzip']) http.post('URL/echo', 'x'.repeat(100), {{ compression }});
             }}"
        ),
        &server.url(),
    );
    assert_eq!(ran.log, ["Info: 200 undefined", "Info: undefined true",]);
    let requests = server.requests();
    assert!(
        requests[1]
            .head
            .contains("Authorization: Digest username=\"me\"")
    );
    assert!(
        requests[2]
            .head
            .contains("Authorization: Basic bWU6c2VjcmV0\r\n")
    );
    assert!(
        !requests[0].head.contains("Authorization"),
        "{}",
        requests[0].head
    );
    let magic = |index: usize| {
        let request = &requests[requests.len() - 4 + index];
        assert!(request.body.len() < 100, "{index}");
        request.body[..4].to_vec()
    };
    // RFC 8878, section 3.1.1; brotli has no magic number.
    assert_ne!(magic(0), b"xxxx");
    for index in [1, 2] {
        assert_eq!(magic(index), [0x28, 0xb5, 0x2f, 0xfd]);
    }
    assert!(
        requests[requests.len() - 2]
            .head
            .contains("Content-Encoding: gzip, zstd\r\n")
    );
    let compressed = requests.last().unwrap();
    assert!(
        compressed.head.contains("Content-Encoding: gzip\r\n"),
        "{}",
        compressed.head
    );
    assert_eq!(compressed.body[..2], [0x1f, 0x8b]);
    assert!(compressed.body.len() < 100);
}

#[test]
fn hosts_are_where_the_options_say_unless_they_are_blocked() {
    let server = Server::start();
    let port = server.url().rsplit_once(':').unwrap().1.to_owned();
    let ran = run_script(
        &format!(
            "import http from 'k6/http';
             export const options = {{ hosts: {{ 'one.test': '127.0.0.1', '*.two.test:81': '127.0.0.1:{port}', 'listed.test': '127.1.2.3' }},
                                       blockHostnames: ['*.blocked.test'], blacklistIPs: ['127.1.0.0/16'] }};
             export default () => {{
               for (const url of ['http://one.test:{port}/a', 'http://x.two.test:81/b', 'http://x.blocked.test/', 'http://listed.test/']) {{
                 const r = http.get(url); console.log(r.status, r.error_code, r.error, r.url);
               }}
             }}"
        ),
        "",
    );
    let lines: Vec<_> = ran
        .log
        .iter()
        .filter(|line| line.starts_with("Info"))
        .collect();
    assert_eq!(
        lines,
        [
            &format!("Info: 200 0  http://one.test:{port}/a"),
            "Info: 200 0  http://x.two.test:81/b",
            "Info: 0 1111 hostname is blocked http://x.blocked.test/",
            "Info: 0 1110 ip is blacklisted http://listed.test/",
        ]
    );
    let heads: Vec<_> = server
        .requests()
        .into_iter()
        .map(|request| request.head.to_lowercase())
        .collect();
    assert!(
        heads[0].contains(&format!("host: one.test:{port}\r\n")),
        "{}",
        heads[0]
    );
    assert!(heads[1].contains("host: x.two.test:81\r\n"), "{}", heads[1]);
}

#[test]
fn requests_keep_to_the_rate_of_the_options() {
    let server = Server::start();
    let ran = run_script(
        "import http from 'k6/http';
         export const options = { vus: 4, iterations: 8, rps: 20 };
         export default () => { http.get('URL/') }",
        &server.url(),
    );
    assert_eq!(ran.metric("http_reqs", "count"), 8.0);
    // Eight requests have seven intervals of 50 ms, but for what the first virtual user is ahead.
    assert!(ran.export["state"]["testRunDurationMs"].is_null());
    assert!(ran.metric("http_reqs", "rate") < 24.0, "{ran:#?}");
}

#[test]
fn responses_without_a_body_say_so() {
    let ran = run_script(
        "import http from 'k6/http';
         export default () => {
           const show = (r) => {
             const tried = [() => r.json(), () => r.json('a'), () => r.html('p').text(), () => r.submitForm()].map((act) => { try { return act() } catch (error) { return `${error}`.split(' - ')[0].split(' in ')[0] } });
             console.log(JSON.stringify(r.body), !!r.body, r.error_code, String(tried[0]).split(' ').slice(0, 4).join(' '), tried.slice(1).join());
           };
           // Nothing was sent.
           show(http.post(undefined, '{}')); show(http.get('://x')); show(http.batch(['http://127.0.0.1:1/', '://x'])[0]);
           // Nothing came back.
           for (const url of ['http://127.0.0.1:1/', 'ftp://x/', '']) show(http.get(url));
         }",
        "",
    );
    let none = |code: u16| {
        let text = "GoError: cannot parse json ,,GoError: no form found for selector 'form'";
        format!("Info: [] true {code} {text}")
    };
    let null = |code: u16| {
        let text = "GoError: the body is null so we can't transform it to";
        format!("Info: null false {code} GoError: the body is {text} JSON,{text} HTML,{text} HTML")
    };
    assert_eq!(
        ran.console,
        [
            none(1020),
            none(1020),
            none(0),
            null(1212),
            null(1000),
            null(1000)
        ],
        "{ran:#?}"
    );
}
