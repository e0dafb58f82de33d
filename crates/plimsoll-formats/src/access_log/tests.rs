use proptest::prelude::*;

use super::*;

fn read(text: &str) -> RequestFile {
    parse(text).unwrap()
}

/// The requests with their hosts and weights.
fn requests(file: &RequestFile) -> Vec<String> {
    let requests = file.requests.iter().map(|request| {
        let method = request.method.as_deref().unwrap_or_default();
        let host = request.host.as_deref().unwrap_or("-");
        format!("{method} {} {host} ×{}", request.url, request.weight)
    });
    requests.collect()
}

fn milliseconds(file: &RequestFile) -> Vec<u128> {
    let arrivals = file.arrivals.iter();
    arrivals.map(|arrival| arrival.at.as_millis()).collect()
}

#[test]
fn lines_that_an_engine_has_cut_are_put_together_by_stream() {
    let line = |stream: &str, tag: &str, text: &str| {
        format!("2026-06-19T03:41:31.1Z {stream} {tag} {text}\n")
    };
    let log = [
        line(
            "stdout",
            "P",
            r#"10.0.0.7 - - [26/Nov/2026:09:12:01 +0000] "GET /a"#,
        ),
        line("stderr", "P", "worker process "),
        line("stdout", "F", r#"b HTTP/1.1" 200 1"#),
        line("stderr", "F", "started"),
    ];
    let file = read(&log.concat());
    assert_eq!(requests(&file), ["GET /ab - ×1"]);
    assert_eq!(file.left_out.len(), 1, "{:?}", file.left_out);
}

#[test]
fn lines_of_servers_and_balancers() {
    let table = [
        (
            "common",
            r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#,
            "GET /apache_pb.gif -",
        ),
        (
            "combined",
            r#"10.0.0.7 - - [26/Nov/2026:09:12:01 +0000] "HEAD /a?b=\x22c\x22 HTTP/1.1" 304 0 "https://x/" "Mozilla/5.0 [en]""#,
            "HEAD /a?b=\"c\" -",
        ),
        (
            "combined with a virtual host",
            r#"Shop.example:443 10.0.0.7 - - [26/Nov/2026:09:12:01 +0000] "GET /a HTTP/2.0" 200 1 "-" "-""#,
            "GET /a shop.example:443",
        ),
        (
            "Traefik",
            r#"10.0.0.7 - - [26/Nov/2026:09:12:01 +0000] "GET /whoami HTTP/1.1" 200 433 "-" "-" 1 "whoami@docker" "http://172.18.0.3:80" 2ms"#,
            "GET /whoami -",
        ),
        (
            "Envoy",
            r#"[2026-04-15T20:17:00.310Z] "GET /api/v1 HTTP/2" 200 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80""#,
            "GET /api/v1 locations",
        ),
        (
            "HAProxy",
            r#"Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2026:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1""#,
            "GET /index.html -",
        ),
        (
            "Application Load Balancer",
            r#"http 2026-07-02T22:23:00.186641Z app/lb/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET http://www.example.com:80/x?y=1 HTTP/1.1" "curl/7.46.0" - - arn:aws:x "Root=1-58337262" "-" "-" 0 2026-07-02T22:22:48.364000Z "forward" "-" "-""#,
            "GET /x?y=1 www.example.com:80",
        ),
        (
            "classic load balancer",
            r#"2026-05-13T23:39:43.945958Z my-lb 192.168.131.39:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET https://www.example.com:443/ HTTP/1.1" "curl/7.38.0" - -"#,
            "GET / www.example.com:443",
        ),
        (
            "nginx, JSON",
            r#"{"time_iso8601":"2026-11-26T09:12:01+00:00","request_method":"GET","request_uri":"/a?b","host":"x","status":"200","request_time":"0.012"}"#,
            "GET /a?b x",
        ),
        (
            "nginx, JSON with the request line",
            r#"{"msec":"1795684321.345","request":"GET /a HTTP/1.1","status":200}"#,
            "GET /a -",
        ),
        (
            "nginx, JSON with the path and its query",
            r#"{"time":"26/Nov/2026:09:12:01 +0000","method":"GET","uri":"/a","args":"b=1"}"#,
            "GET /a?b=1 -",
        ),
        (
            "Caddy",
            r#"{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a"},"duration":0.000929675,"status":200}"#,
            "GET /a localhost",
        ),
        (
            "Istio",
            r#"{"authority":"details:9080","method":"GET","path":"/details/0","response_code":200,"start_time":"2026-11-25T21:26:18.409Z","duration":"4"}"#,
            "GET /details/0 details:9080",
        ),
        (
            "Traefik, JSON",
            r#"{"DownstreamStatus":200,"Duration":1000,"RequestHost":"a.localhost","RequestMethod":"GET","RequestPath":"/b?c","StartUTC":"2026-11-26T09:12:01.5Z","time":"2026-11-26T09:12:02Z"}"#,
            "GET /b?c a.localhost",
        ),
        (
            "Google's load balancer",
            r#"{"httpRequest":{"requestMethod":"GET","requestUrl":"https://a.example/b","status":200},"timestamp":"2026-11-26T09:12:01.5Z"}"#,
            "GET /b a.example",
        ),
        (
            "Nginx Proxy Manager",
            r#"[26/Nov/2026:09:12:01 +0000] - 200 200 - GET https a.example "/b" [Client 192.0.2.1] [Length 5] "Mozilla/5.0" "-""#,
            "GET /b a.example",
        ),
        (
            "morgan",
            r#"::1 - - [Tue, 06 Feb 2018 06:31:06 GMT] "GET //a HTTP/1.1" 200 - "-" "-""#,
            "GET //a -",
        ),
        (
            "JSON behind the name of a container",
            r#"caddy-1  | {"ts":1646861401.5,"request":{"method":"GET","host":"h","uri":"/a"}}"#,
            "GET /a h",
        ),
        (
            "JSON without a time behind that of a container",
            r#"2026-06-19T03:41:31Z {"DownstreamStatus":200,"RequestMethod":"GET","RequestPath":"/api/x"}"#,
            "GET /api/x -",
        ),
        (
            "containerd",
            r#"2026-06-19T03:41:31.123456789Z stdout F Shop.example:443 10.0.0.7 - - [26/Nov/2026:09:12:01 +0000] "GET /a HTTP/2.0" 200 1"#,
            "GET /a shop.example:443",
        ),
        (
            "containerd, JSON without a time",
            r#"2026-06-19T03:41:31.123456789Z stdout F {"DownstreamStatus":200,"RequestMethod":"GET","RequestPath":"/api/x"}"#,
            "GET /api/x -",
        ),
        (
            "containerd, in two parts",
            "2026-06-19T03:41:31.1Z stdout P 10.0.0.7 - - [26/Nov/2026:09:12:01 +0000] \"GET /a\n2026-06-19T03:41:31.1Z stdout F b HTTP/1.1\" 200 1",
            "GET /ab -",
        ),
        (
            "Docker",
            r#"{"log":"10.0.0.7 - - [26/Nov/2026:09:12:01 +0000] \"GET /a HTTP/1.1\" 200 1\n","stream":"stdout","time":"2026-11-26T09:12:01.5Z"}"#,
            "GET /a -",
        ),
        (
            "Docker, JSON without a time",
            r#"{"log":"{\"method\":\"GET\",\"uri\":\"/a\"}\n","stream":"stdout","time":"2026-11-26T09:12:01.5Z"}"#,
            "GET /a -",
        ),
        (
            "LTSV",
            "time:[26/Nov/2026:09:12:01 +0000]\thost:192.0.2.1\treq:GET /a?b HTTP/1.1\tstatus:200",
            "GET /a?b 192.0.2.1",
        ),
        (
            "labelled values with bars",
            "time:2025-10-30T22:41:00+00:00|remote_addr:172.18.0.1|method:GET|uri:/version|status:200",
            "GET /version -",
        ),
        (
            "Squid",
            "1580740555.461    138 192.168.5.2 TCP_MISS/200 3853 GET http://a.example/b - HIER_DIRECT/1.2.3.4 text/html",
            "GET /b a.example",
        ),
        (
            "IIS",
            "#Software: Microsoft Internet Information Services 10.0\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs(User-Agent) sc-status\n2026-11-26 09:12:01 192.0.2.1 GET /a b=1 80 Mozilla/5.0+(X11) 200",
            "GET /a?b=1 -",
        ),
    ];
    for (server, line, expected) in table {
        assert!(looks_like_log(line), "{server}");
        assert_eq!(
            requests(&read(line)),
            [format!("{expected} ×1")],
            "{server}"
        );
    }
}

#[test]
fn requests_are_unique_and_arrivals_sorted() {
    let file = read(concat!(
        r#"{"ts":1646861402.5,"request":{"method":"GET","uri":"/a"},"duration":0.5}"#,
        "\n",
        r#"{"ts":1646861402.75,"request":{"method":"GET","uri":"/b"},"duration":1.5}"#,
        "\n",
        r#"{"ts":1646861403,"request":{"method":"GET","uri":"/a"}}"#,
        "\n",
    ));
    assert_eq!(requests(&file), ["GET /a - ×2", "GET /b - ×1"]);
    assert_eq!(milliseconds(&file), [0, 750, 1750]);
    let order: Vec<_> = file
        .arrivals
        .iter()
        .map(|arrival| arrival.request)
        .collect();
    assert_eq!(order, [1, 0, 0]);
}

#[test]
fn arrivals_of_a_second_are_spread_where_the_log_has_no_fractions() {
    let line = |second: u32| {
        format!("::1 - - [26/Nov/2026:09:12:{second:02} +0000] \"GET / HTTP/1.1\" 200 1\n")
    };
    let file = read(&[line(1), line(1), line(1), line(1), line(3), line(3)].concat());
    assert_eq!(milliseconds(&file), [0, 250, 500, 750, 2000, 2500]);
}

#[test]
fn lines_that_cannot_be_replayed_are_counted_by_cause() {
    let with = |request: &str, status: u16| {
        format!("::1 - - [26/Nov/2026:09:12:01 +0000] \"{request}\" {status} 1\n")
    };
    let text = [
        with("GET /a HTTP/1.1", 200),
        with("-", 400),
        with(r"\x16\x03\x01\x00", 400),
        with("CONNECT a:443 HTTP/1.1", 405),
        with("OPTIONS * HTTP/1.1", 200),
        with("GET /socket HTTP/1.1", 101),
        with("GET /caf\\xC3\\xA9 HTTP/1.1", 200),
        "cut off".to_owned(),
    ]
    .concat();
    let file = read(&text);
    assert_eq!(requests(&file), ["GET /a - ×1"]);
    let left_out: Vec<_> = file
        .left_out
        .iter()
        .map(|remark| remark.message.as_str())
        .collect();
    assert_eq!(
        left_out,
        [
            "1 line (not of an access log; the first is line 8)",
            "2 lines (no request; the first is line 2)",
            "2 lines (no path in the request; the first is line 4)",
            "1 line (another protocol from then on, such as WebSockets; the first is line 6)",
            "1 line (characters in the target that no URL has; the first is line 7)",
        ]
    );
}

#[test]
fn a_file_that_is_no_log_is_described() {
    for (text, expected) in [
        (
            "{\"level\":\"info\",\"msg\":\"x\"}\n{}",
            "JSON objects with the keys `level`, `msg`",
        ),
        ("a,b,c\n1,2,3\n4,5,6", "CSV with 3 columns"),
        ("\u{1f}\u{8b}x", "binary data"),
        ("#Fields: date time\n2026-11-26 09:12:01", "W3C's"),
        ("hello\nworld", "its first line is `hello`"),
        (
            "[26/Nov/2026:09:12:01 +0000] started",
            "a time and no request",
        ),
    ] {
        let remarks = parse(text).unwrap_err();
        assert!(remarks[0].message.contains(expected), "{remarks:?}");
        assert!(!looks_like_log(text), "{text}");
    }
}

proptest! {
    #[test]
    fn no_line_panics(lines in proptest::collection::vec(
        "[ -~]{0,40}|\\[[0-9A-Za-z/:. +T-]{0,30}\\] \"?(GET )?[ -~\u{e9}\u{1f600}]{0,20}\"?|\\{\"(ts|time|request)\": ?[0-9.eE-]{0,22}\\}",
        0..6,
    )) {
        let text = lines.join("\n");
        let _ = looks_like_log(&text);
        let _ = appearance(&text);
        if let Ok(file) = parse(&text) {
            prop_assert!(file.arrivals.is_sorted_by_key(|arrival| arrival.at));
            let weights: u32 = file.requests.iter().map(|request| request.weight).sum();
            prop_assert_eq!(weights as usize, file.arrivals.len());
        }
    }
}
