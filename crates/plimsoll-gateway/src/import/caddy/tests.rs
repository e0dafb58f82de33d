use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::import::tests::translation::{check_translation, loaded};

fn imported(text: &str) -> Imported {
    let mut include = |name: &str| match name {
        "sites/*" => Ok(vec![(
            "sites/a".to_owned(),
            "a.test {\n\trespond a\n}\n".to_owned(),
        )]),
        _ => Err("there are no files here".into()),
    };
    let imported = import_caddy("Caddyfile", text, &mut include).unwrap();
    loaded(imported)
}

/// The translation has these lines in this order, and its notes are these.
#[track_caller]
fn check(text: &str, lines: &[&str], notes: &[&str]) {
    check_translation(&imported(text), lines, notes);
}

#[test]
fn a_site_with_files_and_an_api() {
    check(
        "{\n\temail admin@example.org\n}\n\nexample.org, www.example.org {\n\tencode zstd gzip\n\troot * /var/www\n\treverse_proxy /api/* localhost:9000\n\tfile_server\n\theader -Server\n}\n",
        &[
            "[[listen]]\naddress = \":443\"\nname = \"port-443\"\ntls = { acme = { names = [\"example.org\", \"www.example.org\"], contact = \"admin@example.org\", accept_terms = true } }\n",
            "[[listen]]\naddress = \":80\"\nname = \"port-80\"\nredirect_https = true\n",
            "[[route]]\nlisten = \"port-443\"\nhost = \"example.org\"\nprefix = \"/api/\"\nproxy = \"http://localhost:9000\"\ncompress = { codings = [\"zstd\", \"gzip\"] }\nresponse_headers = { remove = [\"Server\"] }\n",
            "host = \"example.org\"\nprefix = \"/\"\nfiles = { root = \"/var/www\", clean_urls = false, optional = true }\n",
            "host = \"www.example.org\"\nprefix = \"/api/\"",
        ],
        &["accept_terms"],
    );
}

#[test]
fn the_first_line_may_be_the_address_of_the_only_site() {
    check(
        ":8080\n\nrespond /health \"ok\" 200\nreverse_proxy 10.0.0.1:80 10.0.0.2:80 {\n\tlb_policy least_conn\n\thealth_uri /up\n\thealth_interval 5s\n\theader_up X-Real-IP {remote_host}\n\theader_up -X-Secret\n\theader_up Host {upstream_hostport}\n}\n",
        &[
            "address = \":8080\"\nname = \"port-8080\"\n",
            "path = \"/health\"\nrespond = { status = 200, body = \"ok\" }",
            "prefix = \"/\"\nproxy = { to = \"server-1\", host = \"server\", headers = { X-Real-IP = \"{client}\", X-Secret = false } }",
            "[upstream.server-1]\nservers = [\"http://10.0.0.1:80\", \"http://10.0.0.2:80\"]\nbalance = \"least_requests\"\nhealth = { path = \"/up\", interval = \"5s\" }\n",
        ],
        &[],
    );
}

#[test]
fn handlers_exclude_one_another_and_prefixes_are_taken_off() {
    check(
        "localhost {\n\thandle_path /api/* {\n\t\treverse_proxy :9000\n\t}\n\thandle /ws {\n\t\treverse_proxy :9001\n\t}\n\thandle {\n\t\troot * /srv\n\t\ttry_files {path} /index.html\n\t\tfile_server\n\t}\n}\n",
        &[
            "tls = { self_signed = [\"localhost\"] }",
            "prefix = \"/api/\"\nproxy = { to = \"http://localhost:9000\", strip = true }",
            "path = \"/ws\"\nproxy = \"http://localhost:9001\"",
            "prefix = \"/\"\nfiles = { root = \"/srv\", clean_urls = false, optional = true, fallback = \"index.html\" }",
        ],
        &[],
    );
}

#[test]
fn snippets_files_and_texts_are_in_their_places() {
    check(
        "(common) {\n\theader X-Site {args[0]}\n}\nimport sites/*\nhttp://b.test {\n\timport common b\n\trespond <<END\n\t\thello\n\t\tyou\n\t\tEND 200\n\tredir /old https://{host}/new permanent\n}\n",
        &[
            "host = \"a.test\"\nprefix = \"/\"\nrespond = { status = 200, body = \"a\" }",
            "host = \"b.test\"\npath = \"/old\"\nredirect = { to = \"https://{host}/new\", status = 301 }\nresponse_headers = { set = { X-Site = \"b\" } }",
            "host = \"b.test\"\nprefix = \"/\"\nrespond = { status = 200, body = \"hello\\nyou\" }",
        ],
        &["accept_terms"],
    );
}

#[test]
fn passwords_and_addresses_keep_clients_out_rather_than_in() {
    let hash = "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG";
    check(
        &format!(
            "http://a.test {{\n\tbasic_auth /admin/* {{\n\t\tbob {hash}\n\t}}\n\t@outside not remote_ip 10.0.0.0/8\n\trespond @outside 403\n\treverse_proxy :9000\n}}\n\
            http://b.test {{\n\t@odd expression {{method}}.startsWith(\"P\")\n\tbasic_auth @odd {{\n\t\tbob {hash}\n\t}}\n\treverse_proxy :9000\n}}\n\
            http://c.test {{\n\tforward_auth auth:9091 {{\n\t\turi /verify\n\t\tcopy_headers Remote-User\n\t}}\n\treverse_proxy :9000\n}}\n"
        ),
        &[
            "[map.clients-1]\nkey = \"{client}\"\nnetworks = { \"10.0.0.0/8\" = \"1\" }\ndefault = \"0\"\n",
            "host = \"a.test\"\nregex = \"/admin/.*\"\nplaces = { \"map:clients-1\" = \"0\" }\nrespond = { status = 403, body = \"\" }\nbasic_auth = { users = { bob = \"$2a$14$",
            "host = \"a.test\"\nregex = \"/.*\"\nplaces = { \"map:clients-1\" = \"0\" }\nrespond = { status = 403, body = \"\" }\n\n",
            "host = \"a.test\"\nregex = \"/admin/.*\"\nproxy = \"http://localhost:9000\"\nbasic_auth = { users = { bob = \"$2a$14$",
            "host = \"a.test\"\nregex = \"/.*\"\nproxy = \"http://localhost:9000\"\n\n",
            "host = \"b.test\"\nprefix = \"/\"\nproxy = \"http://localhost:9000\"\nbasic_auth = ",
            "host = \"c.test\"\nprefix = \"/\"\nproxy = { to = \"http://localhost:9000\", auth = { to = \"http://auth:9091/verify\", copy = [\"Remote-User\"] } }",
        ],
        &[],
    );
}

#[test]
fn errors_lead_to_a_page_or_a_text() {
    check(
        "http://a.test {\n\troot * /srv/errors\n\treverse_proxy :9000\n\trespond /no 403\n\terror /gone 410\n\thandle_errors {\n\t\trewrite * /50x.html\n\t\tfile_server\n\t}\n}\n\
        http://b.test {\n\tforward_auth auth:9091 {\n\t\turi /verify\n\t}\n\treverse_proxy :9000\n\thandle_errors 404 5xx {\n\t\trespond \"gone\"\n\t}\n}\n\
        http://c.test {\n\treverse_proxy :9000\n\thandle_errors {\n\t\trespond \"{err.status_code}\"\n\t}\n}\n",
        &[
            "path = \"/gone\"\nrespond = { status = 410, body = \"\" }\non_status = { 4xx = \"errors (Caddyfile:6)\", 5xx",
            "path = \"/no\"\nrespond = { status = 403, body = \"\" }\n\n",
            "prefix = \"/\"\nproxy = \"http://localhost:9000\"\non_status = { 4xx = \"errors (Caddyfile:6)\", 5xx = \"errors (Caddyfile:6)\" }\n",
            "name = \"errors (Caddyfile:6)\"\ninternal = true\nrespond = { file = \"/srv/errors/50x.html\", type = \"text/html; charset=utf-8\" }\n",
            "host = \"b.test\"\nprefix = \"/\"\nproxy = { to = \"http://localhost:9000\", auth = { to = \"http://auth:9091/verify\" } }\non_status = { 5xx = \"errors (Caddyfile:16)\" }\n",
            "name = \"errors (Caddyfile:16)\"\ninternal = true\nrespond = { body = \"gone\" }\n",
            "host = \"c.test\"\nprefix = \"/\"\nproxy = \"http://localhost:9000\"\n",
        ],
        &["Caddyfile:22: handle_errors: left out"],
    );
}

#[test]
fn fields_of_responses_and_the_realm_of_passwords() {
    let hash = "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG";
    check(
        &format!(
            ":80 {{\n\tbasic_auth bcrypt Staff {{\n\t\tbob {hash}\n\t}}\n\theader X-A b\n\treverse_proxy :9000 {{\n\t\theader_down -Server\n\t\theader_down X-C d\n\t\theader_down X-E f g\n\t}}\n}}\n"
        ),
        &[
            "proxy = \"http://localhost:9000\"\nbasic_auth = { realm = \"Staff\", users = { bob = \"$2a$14$",
            "response_headers = { set = { X-C = \"d\", X-A = \"b\" }, remove = [\"Server\"] }\n",
        ],
        &[
            "Caddyfile:9: header_down: `X-E` is left out: it has no value, or replaces a part of one",
        ],
    );
}

#[test]
fn php_is_scripts_files_and_a_front_controller() {
    check(
        "http://blog.test {\n\troot * /var/www/html\n\tphp_fastcgi unix//run/php/php-fpm.sock\n\tfile_server\n}\n",
        &[
            "regex = \".*\\\\.php(/.*)?\"\nproxy = { to = \"unix:/run/php/php-fpm.sock\", protocol = \"fastcgi\", fastcgi = { root = \"/var/www/html\" } }",
            "name = \"index.php (Caddyfile:3)\"\ninternal = true",
            "files = { root = \"/var/www/html\"",
            "on_status = { 404 = { to = \"index.php (Caddyfile:3)\", status = \"own\" }",
        ],
        &[],
    );
}

#[test]
fn what_caddy_never_reaches_is_left_out_and_what_has_no_counterpart_is_named() {
    check(
        "http://a.test {\n\trespond /a/* 404\n\treverse_proxy /a/b/* :9000\n\treverse_proxy :9001 {\n\t\tlb_policy first\n\t\thandle_response {\n\t\t}\n\t}\n\ttemplates\n\ttls {\n\t\tdns cloudflare x\n\t}\n}\n*.b.test {\n\trespond {$TEXT:hello}\n}\n",
        &[
            "prefix = \"/a/\"\nrespond = { status = 404, body = \"\" }",
            "prefix = \"/\"\nproxy = \"http://localhost:9001\"",
            "host = \"*.b.test\"",
            "body = \"hello\"",
        ],
        &[
            "reverse_proxy: left out: what stands before it takes all of its requests",
            "lb_policy: `first` is left out",
            "handle_response: left out",
            "templates: left out",
            "`*.b.test`: certificates for all subdomains",
            "{$TEXT}: is `hello` here",
        ],
    );
}

#[test]
fn paths_that_a_handler_is_not_for_are_those_of_another_one() {
    check(
        "http://a.test {\n\t@page not path /api/*\n\tencode @page gzip\n\thandle_path /docs* {\n\t\troot * /docs\n\t\tfile_server\n\t}\n\thandle @page {\n\t\treverse_proxy web:80\n\t}\n}\n\
        http://b.test {\n\t@page not path /api/*\n\theader @page X-A b\n\treverse_proxy web:80\n}\n",
        &[
            "prefix = \"/docs\"\nfiles = { root = \"/docs\"",
            "compress = { codings = [\"gzip\"] }",
            "host = \"a.test\"\nprefix = \"/api/\"\nrespond = { status = 404, body = \"\" }\n\n",
            "host = \"a.test\"\nprefix = \"/\"\nproxy = \"http://web:80\"\ncompress",
            "host = \"b.test\"\nprefix = \"/api/\"\nproxy = \"http://web:80\"\n\n",
            "host = \"b.test\"\nprefix = \"/\"\nproxy = \"http://web:80\"\nresponse_headers = { set = { X-A = \"b\" } }",
        ],
        &[],
    );
}

#[test]
fn what_is_taken_off_is_named_where_paths_are_expressions() {
    check(
        "http://a.test {\n\t@page not path /edit/*\n\theader @page X-A b\n\thandle /api* {\n\t\treverse_proxy api:80\n\t}\n\thandle_path /edit/* {\n\t\treverse_proxy edit:80\n\t}\n\thandle_path /docs/* {\n\t\troot * /docs\n\t\tfile_server\n\t}\n\thandle_path /ws {\n\t\treverse_proxy ws:80\n\t}\n\trespond rest\n}\nhttp://b.test {\n\thandle_path /ws {\n\t\treverse_proxy ws:80\n\t}\n}\n",
        &[
            "regex = \"/edit/.*\"\nproxy = { to = \"http://edit:80\", rewrite = { from = \"^/edit/*\", to = \"/\" } }\n\n",
            "regex = \"/docs/.*\"\nfiles = { root = \"/docs\", clean_urls = false, optional = true, strip = \"/docs\" }\nresponse_headers",
            "regex = \"/ws\"\nproxy = { to = \"http://ws:80\", rewrite",
            "regex = \"/.*\"\nrespond",
            "path = \"/ws\"\nproxy = { to = \"http://ws:80\", rewrite = { from = \"^/ws/*\", to = \"/\" } }",
        ],
        &[],
    );
}

#[test]
fn what_the_environment_says_has_a_name_that_stands_for_it() {
    check(
        "{$SITE_HOST} {\n\treverse_proxy {$UPSTREAM}:{$PORT}\n}\n:443 {\n\ttls internal\n\trespond 204\n}\n",
        &[
            "names = [\"site-host.example\"]",
            "host = \"site-host.example\"\nprefix = \"/\"\nproxy = \"http://upstream.example:8080\"",
            "listen = \"port-443\"\nprefix = \"/\"\nrespond = { status = 204",
        ],
        &[
            "{$SITE_HOST}: is `site-host.example` here",
            "{$UPSTREAM}",
            "{$PORT}: is `8080`",
            "accept_terms",
        ],
    );
}

#[test]
fn errors_have_their_line() {
    let mut include = |_: &str| Err("no such file".into());
    for (text, expected) in [
        (
            "a.test {\n\trespond x\n",
            "Caddyfile:1: the block is not closed",
        ),
        ("# nothing\n", "Caddyfile:1: there is no site"),
        ("a.test {\n}\n}\n", "Caddyfile:3: `}` closes no block"),
        ("a.test {\n\timport x\n}\n", "Caddyfile:2: no such file"),
        (
            "(a) {\n\timport a\n}\nb.test {\n\timport a\n}\n",
            "Caddyfile:2: snippets and files are nested too deeply",
        ),
    ] {
        let error = import_caddy("Caddyfile", text, &mut include).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

/// The routes of a site by their conditions, with the status or the kind of the action.
fn routes_of(text: &str) -> Vec<String> {
    let imported = imported(&format!("http://a.test {{\n{text}\n}}\n"));
    let routes = imported.toml.split("\n[[route]]\n").skip(1);
    let of_interest = |line: &&str| !line.starts_with("listen") && !line.starts_with("host");
    let routes = routes.map(|it| {
        it.lines()
            .filter(of_interest)
            .collect::<Vec<_>>()
            .join("; ")
    });
    routes
        .map(|it| it.trim_end_matches("; ").to_owned())
        .collect()
}

#[test]
fn what_comes_first_in_caddy_is_tried_first() {
    let proxy = |to: &str| format!("proxy = \"http://{to}:80\"");
    let no = "respond = { status = 403, body = \"\" }";
    let hash = "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG";
    let auth = format!("basic_auth = {{ users = {{ bob = \"{hash}\" }} }}");
    for (text, expected) in [
        // An expression before what takes everything.
        (
            "respond /admin* 403\nreverse_proxy a:80".to_owned(),
            vec![
                format!("regex = \"/admin.*\"; {no}"),
                format!("regex = \"/.*\"; {}", proxy("a")),
            ],
        ),
        // A layer that crosses a handler and the one behind it.
        (
            format!("header /a/* X-Y z\nhandle /a/* {{\nbasic_auth {{\nbob {hash}\n}}\nreverse_proxy a:80\n}}\nhandle {{\nreverse_proxy b:80\n}}"),
            vec![
                format!("prefix = \"/a/\"; {}; {auth}; response_headers = {{ set = {{ X-Y = \"z\" }} }}", proxy("a")),
                format!("prefix = \"/\"; {}", proxy("b")),
            ],
        ),
        // Conditions that are no paths, in the order of the file.
        (
            "@bad header X-Bad 1\nhandle @bad {\nrespond 403\n}\nhandle /a/* {\nreverse_proxy a:80\n}".to_owned(),
            vec![
                format!("regex = \"/.*\"; header = {{ x-bad = \"1\" }}; {no}"),
                format!("regex = \"/a/.*\"; {}", proxy("a")),
            ],
        ),
        // What is behind a password is what was there without it.
        (
            format!("basic_auth /up/in/* {{\nbob {hash}\n}}\nhandle_path /up/* {{\nreverse_proxy a:80\n}}\nhandle {{\nreverse_proxy b:80\n}}"),
            vec![
                format!("prefix = \"/up/in/\"; proxy = {{ to = \"http://a:80\", rewrite = {{ from = \"^/up/*\", to = \"/\" }} }}; {auth}"),
                format!("prefix = \"/up/\"; proxy = {{ to = \"http://a:80\", strip = true }}"),
                format!("prefix = \"/\"; {}", proxy("b")),
            ],
        ),
        // GET is not HEAD.
        (
            "@get method GET\nrespond @get got 200\n@post method POST PUT\nrespond @post sent 200\nrespond 403".to_owned(),
            vec![
                "prefix = \"/\"; places = { method = [\"GET\"] }; respond = { status = 200, body = \"got\" }".to_owned(),
                "prefix = \"/\"; method = [\"POST\", \"PUT\"]; respond = { status = 200, body = \"sent\" }".to_owned(),
                format!("prefix = \"/\"; {no}"),
            ],
        ),
        // A path is another one once it is rewritten.
        (
            "uri strip_prefix /app\nrespond /in/* 403\nreverse_proxy a:80".to_owned(),
            vec![
                format!("prefix = \"/in/\"; {no}"),
                format!("prefix = \"/app/in/\"; {no}"),
                "prefix = \"/\"; proxy = { to = \"http://a:80\", rewrite = { from = \"^/app\", to = \"\" } }".to_owned(),
            ],
        ),
        // So it is within blocks.
        (
            "uri strip_prefix /app\nhandle {\nrespond /in/* 403\nreverse_proxy a:80\n}".to_owned(),
            vec![
                format!("prefix = \"/in/\"; {no}"),
                format!("prefix = \"/app/in/\"; {no}"),
                format!("prefix = \"/\"; {}", proxy("a")),
            ],
        ),
        // A class may have bars and brackets.
        (
            "@in path_regexp ^/[(]|^/in\nrespond @in 403\nreverse_proxy a:80".to_owned(),
            vec![
                format!("regex = \".*(?:^/[(]|^/in).*\"; {no}"),
                format!("regex = \"/.*\"; {}", proxy("a")),
            ],
        ),
        // What cannot be translated keeps out all clients that it may be about.
        (
            "@odd header X-A *b*\nrespond @odd 403\nreverse_proxy a:80".to_owned(),
            vec!["prefix = \"/\"; respond = { status = 501, body = \"not translated\\n\" }".to_owned()],
        ),
        // What a handler does not respond to is not another one's.
        (
            "handle /a/* {\nrespond /a/b 200\n}\nhandle {\nreverse_proxy a:80\n}".to_owned(),
            vec![
                "path = \"/a/b\"; respond = { status = 200, body = \"\" }".to_owned(),
                "prefix = \"/a/\"; respond = { status = 404, body = \"\" }".to_owned(),
                format!("prefix = \"/\"; {}", proxy("a")),
            ],
        ),
        // Each branch of an expression begins where it says.
        (
            "@in path_regexp ^/in|^/ops$\nrespond @in 403\nreverse_proxy a:80".to_owned(),
            vec![
                format!("regex = \"/in.*\"; {no}"),
                format!("regex = \"/ops\"; {no}"),
                format!("regex = \"/.*\"; {}", proxy("a")),
            ],
        ),
    ] {
        assert_eq!(routes_of(&text), expected, "{text}");
    }
}

/// Words that files are made of.
const WORDS: [&str; 34] = [
    "a.test",
    ":80",
    "http://b.test",
    "{",
    "}",
    "{",
    "}",
    "\n",
    "\n",
    "\n",
    "(s)",
    "import",
    "s",
    "@m",
    "path",
    "/a/*",
    "/a/b*",
    "not",
    "handle",
    "handle_path",
    "route",
    "reverse_proxy",
    "file_server",
    "root",
    "basic_auth",
    "bob",
    "$2a$14$x",
    "header",
    "respond",
    "200",
    "\"q\\\"",
    "`r`",
    "<<END",
    "END",
];

#[test]
fn a_site_of_too_many_routes_is_closed() {
    let mut layers = String::new();
    let mut fields = String::new();
    for at in 0..14 {
        writeln!(layers, "header /a{at}* X-{at} 1").unwrap();
        writeln!(fields, "@f{at} header X-{at} 1\nheader @f{at} X-{at} 1").unwrap();
    }
    let within = format!("handle /in/* {{\n{layers}respond /in/no 403\nreverse_proxy a:80\n}}");
    for text in [
        format!("{fields}{within}\nreverse_proxy b:80"),
        format!("handle /in/* {{\n{fields}reverse_proxy a:80\n}}\nreverse_proxy b:80"),
    ] {
        assert_eq!(
            routes_of(&text),
            ["prefix = \"/\"; respond = { status = 501, body = \"not translated\\n\" }"]
        );
    }
}

proptest! {
    /// Each text is refused with a line, or what is written loads.
    #[test]
    fn any_text_is_refused_or_becomes_a_configuration_that_loads(numbers in prop::collection::vec(0..WORDS.len(), 0..60), text in ".{0,80}") {
        let words: Vec<_> = numbers.iter().map(|number| WORDS[*number]).collect();
        let mut include = |_: &str| Err("no such file".into());
        for file in [words.join(" "), text] {
            if let Ok(imported) = import_caddy("Caddyfile", &file, &mut include) {
                let problems = crate::import::loads::problems(&imported.toml, Path::new(""));
                prop_assert!(problems.is_empty(), "{:?}\n{}\n{}", problems, file, imported.toml);
            }
        }
    }
}
