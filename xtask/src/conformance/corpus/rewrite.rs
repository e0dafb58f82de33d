//! Rules by which scripts are rewritten for a short run against the stand-in.
//!
//! Hosts become that of the stand-in, in every file of the repository. Pauses become short. The shape of the run is changed at
//! run time, by code behind the main script, so that its text stays as it was written: each scenario has one virtual user with
//! two iterations, whose number does not depend on timing.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::grpc;

/// URLs that are names and not addresses, and modules.
const KEPT: [&str; 9] = [
    "jslib.k6.io",
    "cdnjs.cloudflare.com",
    "cdn.jsdelivr.net",
    "unpkg.com",
    "raw.githubusercontent.com",
    "www.w3.org",
    "schemas.xmlsoap.org",
    "schemas.microsoft.com",
    "xmlns",
];

static URL: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"\b(https?|wss?)://([A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9]|[A-Za-z0-9])(:\d+)?";
    Regex::new(pattern).expect("the pattern is fixed")
});

static SLEEP: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(function\s+|[.\w$])?\bsleep\(").expect("the pattern is fixed"));

static LATER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(\},\s*|=>\s*\w+\([^)]*\),\s*)(\d{3,})(\s*\))").expect("the pattern is fixed")
});

/// Addresses that are no URLs, as gRPC clients have them; their host may be a place in a template.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern =
        r#"(['"`])(?:\$\{[^}`]*\}|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?):\d{4,5}(['"`])"#;
    Regex::new(pattern).expect("the pattern is fixed")
});

/// Connecting with an address, up to the end of the call or the beginning of its parameters.
static CONNECT: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(\.connect\(\s*(?:\$\{[^}]*\}|[^,(){};])+?)(\s*\)|\s*,\s*\{)";
    Regex::new(pattern).expect("the pattern is fixed")
});

static SECURE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"plaintext:\s*false").expect("the pattern is fixed"));

/// `HOST:PORT` of the servers that take the place of those in scripts.
#[derive(Debug, Clone)]
pub(super) struct Addresses {
    /// Of the stand-in.
    pub(super) http: String,
    /// Of the gRPC server.
    pub(super) grpc: String,
}

/// A pause of this many seconds at most.
const PAUSE: &str = "0.01";

/// Milliseconds after which something happens at most.
const LATER_MS: u64 = 200;

/// Any file with addresses.
///
/// - `address`: `HOST:PORT` of the stand-in.
pub(super) fn hosts(text: &str, address: &str) -> String {
    let replaced = URL.replace_all(text, |found: &Captures<'_>| {
        let (scheme, host) = (&found[1], &found[2]);
        if KEPT.iter().any(|kept| host.contains(kept)) {
            return found[0].to_owned();
        }
        // The stand-in has no certificate.
        let scheme = if scheme.starts_with("ws") {
            "ws"
        } else {
            "http"
        };
        format!("{scheme}://{address}")
    });
    replaced.into_owned()
}

/// A file of JavaScript or TypeScript.
pub(super) fn code(text: &str, addresses: &Addresses) -> String {
    let text = hosts(text, &addresses.http);
    let text = SLEEP.replace_all(&text, |found: &Captures<'_>| match found.get(1) {
        // A method, a declaration, or the end of another name.
        Some(_) => found[0].to_owned(),
        None => format!("((t) => sleep(t > {PAUSE} ? {PAUSE} : t))("),
    });
    let text = LATER.replace_all(&text, |found: &Captures<'_>| {
        let millis: u64 = found[2].parse().unwrap_or(u64::MAX);
        format!("{}{}{}", &found[1], millis.min(LATER_MS), &found[3])
    });
    if text.to_lowercase().contains("grpc") {
        return calls(&text, addresses);
    }
    text.into_owned()
}

/// A file that calls methods of gRPC, or has addresses for one that does.
fn calls(text: &str, addresses: &Addresses) -> String {
    let text = ADDRESS.replace_all(text, |found: &Captures<'_>| {
        format!("{}{}{}", &found[1], addresses.grpc, &found[2])
    });
    if !grpc::has_client(&text) {
        return text.into_owned();
    }
    // The server has no certificate.
    let text = SECURE.replace_all(&text, "plaintext: true");
    let text = CONNECT.replace_all(&text, |found: &Captures<'_>| {
        let (head, end) = (&found[1], &found[2]);
        if end.ends_with(')') {
            format!("{head}, {{ plaintext: true }})")
        } else {
            format!("{head}, {{ plaintext: true, ")
        }
    });
    text.into_owned()
}

/// The main script, with what makes its run a short one.
pub(super) fn main(text: &str, addresses: &Addresses) -> String {
    let mut made = code(text, addresses);
    // k6 rejects the mere name in modules.
    let exports = if made.contains("exports.options") {
        "exports.options"
    } else {
        "null"
    };
    made.push_str(&SHORTENED.replace("EXPORTED", exports));
    made
}

/// Whatever the script's own names are, these are in a block of their own. Chance is the same in every run.
const SHORTENED: &str = r#"
;{
  let seed = 1;
  Math.random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const all = typeof options !== "undefined" && options ? options : EXPORTED;
  const small = (one) => {
    for (const key of ["vus", "iterations", "duration", "maxDuration", "stages", "rate", "startRate", "timeUnit",
      "preAllocatedVUs", "maxVUs", "startVUs", "gracefulRampDown", "startTime", "gracefulStop"]) delete one[key];
  };
  if (all && typeof all === "object" && !Object.isFrozen(all)) {
    if (all.scenarios && Object.keys(all.scenarios).length > 0) {
      for (const one of Object.values(all.scenarios)) {
        small(one);
        Object.assign(one, { executor: "per-vu-iterations", vus: 1, iterations: 2, maxDuration: "20s" });
      }
    } else {
      for (const key of ["duration", "stages"]) delete all[key];
      Object.assign(all, { vus: 1, iterations: 2 });
    }
    delete all.minIterationDuration;
    delete all.rps;
    delete all.paused;
  }
}
"#;

/// Variables that a script reads, with values: addresses for those that name one.
pub(super) fn variables(texts: &[String], addresses: &Addresses) -> Vec<(String, String)> {
    static READ: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r#"__ENV(?:\.|\[['"])([A-Za-z_][A-Za-z0-9_]*)"#;
        Regex::new(pattern).expect("the pattern is fixed")
    });
    let mut names: Vec<_> = texts
        .iter()
        .flat_map(|text| READ.captures_iter(text).map(|found| found[1].to_owned()))
        .collect();
    names.sort();
    names.dedup();
    let made = names.into_iter().filter_map(|name| {
        let upper = name.to_uppercase();
        let has = |parts: &[&str]| parts.iter().any(|part| upper.contains(part));
        let is_url = has(&["URL", "ENDPOINT", "SERVER", "TARGET", "ORIGIN", "BASE"]);
        let is_host = has(&["HOST", "DOMAIN", "ADDR"]);
        let value = if (is_url || is_host) && has(&["GRPC"]) {
            addresses.grpc.clone()
        } else if is_url {
            format!("http://{}", addresses.http)
        } else if is_host {
            addresses.http.clone()
        } else if has(&[
            "USER", "LOGIN", "PASS", "TOKEN", "KEY", "SECRET", "CLIENT", "EMAIL", "ID",
        ]) {
            "value".to_owned()
        } else {
            return None;
        };
        Some((name, value))
    });
    made.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Addresses {
        Addresses {
            http: "h:1".to_owned(),
            grpc: "g:2".to_owned(),
        }
    }

    #[test]
    fn addresses_become_that_of_the_stand_in() {
        for (text, expected) in [
            (
                "'https://test.k6.io/contacts.php'",
                "'http://h:1/contacts.php'",
            ),
            ("`wss://echo.example:443/${a}`", "`ws://h:1/${a}`"),
            (
                "import x from 'https://jslib.k6.io/a/index.js'",
                "import x from 'https://jslib.k6.io/a/index.js'",
            ),
            (
                "xmlns='http://www.w3.org/2000/svg'",
                "xmlns='http://www.w3.org/2000/svg'",
            ),
            ("`https://${host}/a`", "`https://${host}/a`"),
            ("'http://localhost:3000'", "'http://h:1'"),
        ] {
            assert_eq!(hosts(text, "h:1"), expected);
        }
    }

    #[test]
    fn pauses_become_short() {
        for (text, expected) in [
            ("sleep(1)", "((t) => sleep(t > 0.01 ? 0.01 : t))(1)"),
            ("import { sleep } from 'k6'", "import { sleep } from 'k6'"),
            ("k6.sleep(5)", "k6.sleep(5)"),
            ("function sleep(a) {}", "function sleep(a) {}"),
            (
                "socket.setTimeout(() => {\n}, 10000)",
                "socket.setTimeout(() => {\n}, 200)",
            ),
        ] {
            assert_eq!(code(text, &addresses()), expected);
        }
    }

    #[test]
    fn clients_of_grpc_connect_in_the_clear() {
        const IMPORT: &str = "import grpc from 'k6/net/grpc';";
        for (text, expected) in [
            (
                "client.connect('grpcb.in:9001', {})",
                "client.connect('g:2', { plaintext: true, })",
            ),
            (
                "client.connect(`${__ENV.HOST}:9001`)",
                "client.connect(`g:2`, { plaintext: true })",
            ),
            (
                "client.connect(HOST, { plaintext: false })",
                "client.connect(HOST, { plaintext: true,  plaintext: true })",
            ),
            ("const HOST = \"localhost:50051\"", "const HOST = \"g:2\""),
            ("client.connect()", "client.connect()"),
        ] {
            let code = code(&format!("{IMPORT}{text}"), &addresses());
            assert_eq!(code, format!("{IMPORT}{expected}"));
        }
        let untouched = "socket.connect('localhost:9001')";
        assert_eq!(code(untouched, &addresses()), untouched);
    }

    #[test]
    fn variables_that_name_addresses_have_one() {
        let texts = [
            "__ENV.BASE_URL + __ENV['API_HOST'] + __ENV.TOKEN + __ENV.VUS + __ENV.GRPC_URL"
                .to_owned(),
        ];
        let value = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            value("API_HOST", "h:1"),
            value("BASE_URL", "http://h:1"),
            value("GRPC_URL", "g:2"),
            value("TOKEN", "value"),
        ];
        assert_eq!(variables(&texts, &addresses()), expected);
    }
}
