//! The tags `name` and `url`, and the URLs of responses: as scripts write them.

use std::sync::{Arc, Mutex};

use plimsoll_k6::{Invocation, SampleFile, SampleFormat, SampleOutput, Script, ScriptText, run};
use plimsoll_testkit::{WebSocketHandshake, WebSocketOrigin};
use serde_json::Value;

use crate::fixture::{check, run_script};
use crate::server::Server;

/// Keeps what is written.
#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl SampleFile for Lines {}

/// The tags `name` and `url` of each sample of a metric, in order; `-` for none.
fn tagged(text: &str, metric: &str) -> Vec<(String, String)> {
    let text = ScriptText::Given {
        text: text.to_owned(),
        directory: std::env::temp_dir(),
    };
    let lines = Lines::default();
    let kept = lines.clone();
    let outcome = run(&Invocation {
        samples: vec![SampleOutput {
            name: "lines".to_owned(),
            format: SampleFormat::Json,
            open: Box::new(move || Ok(Box::new(kept.clone()))),
        }],
        ..Invocation::new(
            Script::load(&text).unwrap(),
            Arc::new(|_, _, _| {}),
            &|| false,
        )
    });
    assert_eq!(outcome.exit.number(), 0, "{}", outcome.message);
    let lines = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let points = lines.filter(|line| line["type"] == "Point" && line["metric"] == metric);
    let tag = |point: &Value, name: &str| {
        let tag = point["data"]["tags"][name].as_str();
        tag.unwrap_or("-").to_owned()
    };
    points
        .map(|point| (tag(&point, "name"), tag(&point, "url")))
        .collect()
}

fn both(texts: &[&str]) -> Vec<(String, String)> {
    let texts = texts.iter();
    texts
        .map(|text| ((*text).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn every_way_to_request_keeps_urls_as_they_are_written() {
    let server = Server::start();
    let url = server.url();
    let text = format!(
        "import http from 'k6/http';
         export default async () => {{
           http.get('{url}'); http.get('{url}/a/../b?q=1'); http.get('{url}/x y');
           http.batch(['{url}', ['POST', '{url}//c']]);
           await http.asyncRequest('GET', '{url}?a={{b}}');
           http.get('{url}/redirect');
           http.get(http.url`{url}/${{7}}/d`); http.get(http.url`{url}/e`);
           http.get('{url}/f', {{ tags: {{ name: 'own' }} }});
         }}"
    );
    let at = |path: &str| format!("{url}{path}");
    let mut expected: Vec<_> = [
        "",
        "/a/../b?q=1",
        "/x%20y",
        "",
        "//c",
        "?a={b}",
        "/redirect",
        "/json",
    ]
    .iter()
    .map(|path| at(path))
    .collect();
    expected.extend([at("/${}/d"), at("/e"), "own".to_owned()]);
    let expected: Vec<_> = expected.iter().map(String::as_str).collect();
    let mut found = tagged(&text, "http_reqs");
    // Two of a batch come in any order.
    found[3..5].sort();
    assert_eq!(found, both(&expected));
    let targets: Vec<_> = server.requests().into_iter().map(|it| it.target).collect();
    assert_eq!(targets[..3], ["/", "/a/../b?q=1", "/x%20y"]);
    assert!(targets.contains(&"//c".to_owned()), "{targets:?}");
    assert!(targets.contains(&"/?a={b}".to_owned()), "{targets:?}");
}

#[test]
fn responses_and_thresholds_have_urls_as_they_are_written() {
    let server = Server::start();
    let url = server.url();
    let text = format!(
        "import http from 'k6/http';
         export const options = {{ thresholds: {{ 'http_reqs{{name:{url}}}': ['count==1'], 'http_reqs{{url:{url}/a/./b}}': ['count==1'] }} }};
         export default () => {{
           const r = http.get('{url}'); console.log(r.url === '{url}', r.request.url === '{url}');
           console.log(http.get('{url}/a/./b').url.endsWith('/a/./b'));
           const moved = http.get('{url}/redirect'); console.log(moved.url.endsWith('/json'), moved.request.url.endsWith('/redirect'));
         }}"
    );
    let ran = run_script(&text, "");
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(
        ran.log,
        ["Info: true true", "Info: true", "Info: true true"]
    );
}

#[test]
fn a_name_is_inherited_and_is_the_url_too() {
    let server = Server::start();
    let url = server.url();
    let body = format!(
        "http.get('{url}/a'); http.get(http.url`{url}/${{1}}`); http.get('{url}/b', {{ tags: {{ name: 'request' }} }});"
    );
    for (options, before) in [
        ("tags: { name: 'inherited' }", ""),
        (
            "scenarios: { s: { executor: 'per-vu-iterations', tags: { name: 'inherited' } } }",
            "",
        ),
        ("", "exec.vu.metrics.tags.name = 'inherited';"),
        ("", "exec.vu.tags.name = 'inherited';"),
    ] {
        let text = format!(
            "import http from 'k6/http'; import exec from 'k6/execution';
             export const options = {{ {options} }};
             export default () => {{ {before} {body} }}"
        );
        let expected = both(&["inherited", "inherited", "request"]);
        assert_eq!(tagged(&text, "http_reqs"), expected, "{options} {before}");
    }
}

#[test]
fn sockets_have_the_tags_of_their_modules() {
    let origin = WebSocketOrigin::greeting(|_| WebSocketHandshake::Refuse(403));
    let address = format!("ws://{}", origin.address());
    let script = |module: &str, open: &str, tags: &str| {
        let open = open.replace("ADDRESS", &address).replace("TAGS", tags);
        format!("{module}\nexport default function () {{ {open} }}")
    };
    let pair = |name: &str, url: &str| vec![(name.to_owned(), url.to_owned())];
    let module = "import ws from 'k6/ws';";
    let open = "ws.connect('ADDRESS', { tags: TAGS }, () => {});";
    // Only `url`, whatever the name is.
    let found = tagged(&script(module, open, "{}"), "ws_sessions");
    assert_eq!(found, pair("-", &address));
    let found = tagged(&script(module, open, "{ name: 'n' }"), "ws_sessions");
    assert_eq!(found, pair("n", &address));
    let module = "import { WebSocket } from 'k6/websockets';";
    let open = "new WebSocket('ADDRESS', null, { tags: TAGS }).onerror = () => {};";
    let found = tagged(&script(module, open, "{}"), "ws_sessions");
    assert_eq!(found, pair(&address, &address));
    let found = tagged(&script(module, open, "{ name: 'n' }"), "ws_sessions");
    assert_eq!(found, pair("n", "n"));
}

#[test]
fn what_is_no_request_is_a_response_with_an_error() {
    let server = Server::start();
    let ran = run_script(
        "import http from 'k6/http';
         const show = (r) => console.log(r.status, r.error_code, r.error, r.url, r.request === null);
         export default async () => {
           for (const url of ['http://h/x%zz', '://x', ' URL', undefined, null, 5]) show(http.get(url));
           show(await http.asyncRequest('GET', 'http://a b/'));
           show(http.get('URL', { timeout: 'soon' })); show(http.get('URL', { tags: { a: {} } }));
           show(http.post('URL', 'x', { compression: 'lzma' })); show(http.get('URL', { responseCallback: 1 }));
           const batch = http.batch(['URL', '://x', 'URL']); show(batch[0]); show(batch[1]); console.log(batch[2]);
         }",
        &server.url(),
    );
    let url = server.url();
    assert_eq!(
        ran.console,
        [
            "Info: 0 1020 invalid URL: parse \"http://h/x%zz\": invalid URL escape \"%zz\"  true".to_owned(),
            "Info: 0 1020 invalid URL: parse \"://x\": missing protocol scheme  true".to_owned(),
            format!("Info: 0 1020 invalid URL: parse \" {url}\": first path segment in URL cannot contain colon  true"),
            "Info: 0 1020 invalid URL: '#<nil>'  true".to_owned(),
            "Info: 0 1020 invalid URL: '#<nil>'  true".to_owned(),
            "Info: 0 1020 invalid URL: '#5'  true".to_owned(),
            "Info: 0 1020 invalid URL: parse \"http://a b/\": invalid character \" \" in host name  true".to_owned(),
            "Info: 0 0 params.timeout is not a duration  true".to_owned(),
            "Info: 0 0 params.tags has the tag 'a', which must be a string, a number or a boolean  true".to_owned(),
            "Info: 0 0 params.compression has `lzma`, which is not one of gzip, deflate, br and zstd  true".to_owned(),
            "Info: 0 0 unsupported responseCallback  true".to_owned(),
            "Info: 0 0   true".to_owned(),
            "Info: 0 1020 invalid URL: parse \"://x\": missing protocol scheme  true".to_owned(),
            "Info: null".to_owned(),
        ],
        "{ran:#?}"
    );
    assert_eq!(server.requests().len(), 0);
    assert!(!ran.has_metric("http_reqs"), "nothing was requested");
    // The option makes exceptions of them.
    let ran = run_script(
        "import http from 'k6/http'; export const options = { throw: true };
         export default async () => {
           try { http.get('://x') } catch (error) { console.log(error.message) }
           await http.asyncRequest('GET', '://x').catch((error) => console.log(error.message));
         }",
        "",
    );
    let expected = "Info: invalid URL: parse \"://x\": missing protocol scheme";
    assert_eq!(ran.console, [expected, expected]);
}

#[test]
fn schemes_and_hosts_fail_when_they_are_sent() {
    let ran = run_script(
        "import http from 'k6/http';
         export default () => {
           for (const url of ['ftp://x/', '/x', '', 'http:///x', 'http:x']) {
             const r = http.get(url); console.log(r.error_code, r.error, r.url);
           }
         }",
        "",
    );
    assert_eq!(
        ran.console,
        [
            "Info: 1000 unsupported protocol scheme \"ftp\" ftp://x/",
            "Info: 1000 unsupported protocol scheme \"\" /x",
            "Info: 1000 unsupported protocol scheme \"\" ",
            "Info: 1000 http: no Host in request URL http:///x",
            "Info: 1000 http: no Host in request URL http:x",
        ]
    );
    assert_eq!(ran.metric("http_reqs", "count"), 5.0);
}

#[test]
fn redirects_drop_the_cookie_field_and_keep_cookies_of_parameters() {
    let server = Server::start();
    check(
        "import http from 'k6/http';",
        "const r = http.get('URL/redirect', { headers: { Cookie: 'own=1', 'X-Mine': 'm' }, cookies: { p: 'q', s: { value: 'v', replace: true } } });
         console.log(r.status, JSON.stringify(r.request.cookies), r.request.headers['X-Mine'][0]);
         console.log(http.get('URL/redirect', { redirects: -1, cookies: { none: null, nor: undefined } }).status);
         const posted = http.post('URL/redirect', 'body', { headers: { 'Content-Type': 'text/x' } }); console.log(posted.request.method, posted.request.body);",
        &server.url(),
        &[
            "200 {\"own\":[{\"name\":\"own\",\"value\":\"1\",\"replace\":false}],\"p\":[{\"name\":\"p\",\"value\":\"q\",\"replace\":false}],\"s\":[{\"name\":\"s\",\"value\":\"v\",\"replace\":false}]} m",
            "302",
            "POST body",
        ],
    );
    let requests = server.requests();
    let has = |index: usize, field: &str| requests[index].head.contains(field);
    assert!(
        has(0, "Cookie: own=1; p=q; s=v\r\n"),
        "{}",
        requests[0].head
    );
    assert!(has(1, "Cookie: p=q; s=v\r\n"), "{}", requests[1].head);
    assert!(has(1, "X-Mine: m\r\n"));
    assert!(!has(2, "Cookie"), "{}", requests[2].head);
    let referer = format!("Referer: {}/redirect\r\n", server.url());
    assert!(has(1, &referer), "{}", requests[1].head);
    assert_eq!(requests[4].method, "GET");
    assert!(!has(4, "Content-Type"), "{}", requests[4].head);
}

#[test]
fn a_request_without_an_address_has_both_tags() {
    let text = "import http from 'k6/http'; export default () => { http.get(''); }";
    assert_eq!(tagged(text, "http_reqs"), both(&[""]));
}
