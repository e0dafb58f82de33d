//! Arguments of every tool that sends requests.

use super::super::arguments::{Argument, Kind, Passed};

pub(super) const URL: Argument = Argument {
    name: "url",
    kind: Kind::Url,
    passed: Passed::Positional,
    doc: "URL of an allowed target, such as http://127.0.0.1:8080/",
};

pub(super) const METHOD: Argument = Argument {
    name: "method",
    kind: Kind::Text,
    passed: Passed::Flag("--method"),
    doc: "Request method [default: GET, or POST with a body]",
};

pub(super) const HEADERS: Argument = Argument {
    name: "headers",
    kind: Kind::Texts,
    passed: Passed::Flag("--header"),
    doc: "Request headers, each `Name: value`",
};

pub(super) const BODY: Argument = Argument {
    name: "body",
    kind: Kind::Body,
    passed: Passed::Stdin("--data-file"),
    doc: "Request body",
};

pub(super) const EXPECT: Argument = Argument {
    name: "expect",
    kind: Kind::Texts,
    passed: Passed::Flag("--expect"),
    doc: "Conditions on responses: `status == 200`, `time < 300ms`, `body contains 'ok'`, `body.json($.ok) == true`, \
          `header.etag exists`, `cert.days > 14`",
};

pub(super) const HTTP2: Argument = Argument {
    name: "http2",
    kind: Kind::Switch,
    passed: Passed::Flag("--http2"),
    doc: "Use HTTP/2: by ALPN for https, with prior knowledge for http",
};

pub(super) const HTTP3: Argument = Argument {
    name: "http3",
    kind: Kind::Switch,
    passed: Passed::Flag("--http3"),
    doc: "Use HTTP/3 (https only)",
};

pub(super) const INSECURE: Argument = Argument {
    name: "insecure",
    kind: Kind::Switch,
    passed: Passed::Flag("--insecure"),
    doc: "Accept any certificate",
};

pub(super) const TIMEOUT: Argument = Argument {
    name: "timeout",
    kind: Kind::Time,
    passed: Passed::Flag("--timeout"),
    doc: "Timeout of a request: seconds, or text such as \"500ms\"",
};
