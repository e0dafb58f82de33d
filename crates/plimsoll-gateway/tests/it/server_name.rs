//! The name by which the certificates of servers are verified.

use plimsoll_server::config::ConfigProblem;
use plimsoll_testkit::http::get;
use plimsoll_testkit::{Authority, MaterialFiles, Origin, eventually};

use crate::server::{Served, compiled};

/// A server at an address whose certificate names only a host; `/healthz` leads to an origin that counts.
fn named(authority: &Authority, files: &MaterialFiles, origin: &Origin) -> Served {
    let leaf = authority.issue(&["upstream.test"]);
    let certificate = files.write("server.pem", leaf.pem());
    let key = files.write("server.key", leaf.key_pem());
    Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ cert = \"{}\", key = \"{}\" }}\nhttp3 = true\n\
        [[route]]\npath = \"/healthz\"\nproxy = \"{}\"\n[[route]]\nrespond = {{ body = \"named\" }}\n",
        certificate.display(),
        key.display(),
        origin.url("").trim_end_matches('/')
    ))
}

#[test]
fn a_server_is_verified_by_its_configured_name_over_every_version() {
    let (authority, files, origin) = (Authority::new(), MaterialFiles::new(), Origin::hello());
    let server = named(&authority, &files, &origin);
    let ca = files.write("ca.pem", &authority.pem());
    for protocol in ["http1", "http2", "http3"] {
        let gateway = |name: &str, more: &str| {
            Served::routes(&format!(
                "[[route]]\nproxy = \"all\"\n[upstream.all]\nservers = \"https://{}\"\nprotocol = \"{protocol}\"\n\
                tls = {{ ca = \"{}\"{name} }}\n{more}\n",
                server.address(),
                ca.display()
            ))
        };
        let right = gateway(", server_name = \"upstream.test\"", "");
        assert_eq!(get(right.address(), "/").text(), "named", "{protocol}");
        for name in ["", ", server_name = \"other.test\""] {
            let wrong = gateway(name, "");
            assert_eq!(get(wrong.address(), "/").status, 502, "{protocol}: {name}");
        }
        // Checks use the same name.
        let before = origin.requests();
        let checking = gateway(
            ", server_name = \"upstream.test\"",
            "health = { path = \"/healthz\", interval = \"20ms\" }",
        );
        eventually(|| origin.requests() > before);
        checking.end();
    }
}

#[test]
fn a_name_that_no_certificate_can_be_for_is_an_error() {
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nproxy = \"all\"\n\
        [upstream.all]\nservers = \"https://10.0.0.1\"\ntls = { insecure = true, server_name = \"a b\" }\n";
    let problems: Vec<ConfigProblem> = compiled(text).unwrap_err();
    let messages: Vec<_> = problems.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(
        messages,
        ["`a b` is not a name that a certificate can be for"]
    );
}
