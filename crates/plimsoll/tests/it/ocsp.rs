//! OCSP stapling, with openssl as the responder and as the client.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use plimsoll_testkit::{MaterialFiles, eventually};

use crate::plimsoll::plimsoll;
use crate::served::Served;

/// An authority with one certificate, and where it answers about that.
struct OcspAuthority {
    files: MaterialFiles,
    port: u16,
}

/// A responder that runs until it is dropped.
struct Responder(Child);

impl OcspAuthority {
    fn new() -> Self {
        let files = MaterialFiles::new();
        // Free now; openssl says so if somebody else has taken it meanwhile.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let authority = Self { files, port };
        let extensions = format!(
            "[leaf]\nsubjectAltName = DNS:a.test\nauthorityInfoAccess = OCSP;URI:http://127.0.0.1:{port}/\n\
             [signer]\nextendedKeyUsage = OCSPSigning\n"
        );
        authority.files.write("extensions", &extensions);
        let new = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        authority.openssl(&format!(
            "req -x509 {new} -keyout ca.key -out ca.pem -subj /CN=authority -days 2"
        ));
        for (name, serial, section) in [("leaf", "0x5aa5", "leaf"), ("signer", "7", "signer")] {
            authority.openssl(&format!(
                "req {new} -keyout {name}.key -out {name}.csr -subj /CN={name}"
            ));
            authority.openssl(&format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -set_serial {serial} -days 2 \
                 -extfile extensions -extensions {section} -out {name}.pem"
            ));
        }
        let chain =
            ["leaf.pem", "ca.pem"].map(|name| fs::read_to_string(authority.path(name)).unwrap());
        authority.files.write("chain.pem", &chain.concat());
        authority.say("V\t391231235959Z\t\t5AA5\tunknown\t/CN=leaf\n");
        authority
    }

    /// What the responder is to know.
    fn say(&self, index: &str) {
        self.files.write("index.txt", index);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.path(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("openssl");
        command
            .args(line.split_whitespace())
            .current_dir(self.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn openssl(&self, line: &str) -> Output {
        let output = self
            .command(line)
            .output()
            .expect("openssl is installed by `cargo xtask test`");
        assert!(output.status.success(), "{line}: {output:?}");
        output
    }

    /// - `signer`: whose certificate and key sign: `ca`, or `signer` for the authority.
    fn respond(&self, signer: &str) -> Responder {
        let mut responder = self.started(signer);
        // A connection without a request would keep it waiting.
        let output = || fs::read_to_string(self.path("log")).unwrap();
        eventually(|| {
            // The certificate names the port, which was free when it was made: a connection of another test may
            // have it for a moment.
            if responder.0.try_wait().unwrap().is_some() {
                responder = self.started(signer);
            }
            output().contains("waiting for OCSP client connections")
        });
        responder
    }

    fn started(&self, signer: &str) -> Responder {
        let port = self.port;
        let log = fs::File::create(self.path("log")).unwrap();
        let child = self
            .command(&format!(
                "ocsp -index index.txt -port {port} -CA ca.pem -rsigner {signer}.pem -rkey {signer}.key -nmin 60"
            ))
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Responder(child)
    }

    /// What a client is shown of the revocation.
    fn shown(&self, up: &Served) -> String {
        let address = up.url.trim_start_matches("https://").trim_end_matches('/');
        let line = format!("s_client -connect {address} -servername a.test -status");
        let output = self.command(&line).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn serve(&self, ocsp: &str) -> Served {
        let text = format!(
            "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
             tls = {{ cert = \"chain.pem\", key = \"leaf.key\", ocsp = {ocsp} }}\n[[route]]\nrespond = {{}}\n"
        );
        let path = self.files.write("plimsoll.toml", &text);
        Served::start(&["up", &path.to_string_lossy()])
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_response_is_fetched_kept_and_shown() {
    let authority = OcspAuthority::new();
    let up = authority.serve("true");
    let shown = authority.shown(&up);
    assert!(shown.contains("OCSP response: no response sent"), "{shown}");
    drop(up);
    // A delegate of the authority signs.
    let responder = authority.respond("signer");
    let up = authority.serve("true");
    eventually(|| authority.shown(&up).contains("Cert Status: good"));
    assert!(authority.path("chain.pem.ocsp").exists());
    drop((up, responder));
    // Without a responder, its last response is shown on.
    let up = authority.serve("true");
    let shown = authority.shown(&up);
    assert!(
        shown.contains("OCSP Response Status: successful"),
        "{shown}"
    );
}

#[test]
fn what_is_no_response_for_the_certificate_is_not_shown() {
    let authority = OcspAuthority::new();
    let _responder = authority.respond("ca");
    let port = authority.port;
    authority.openssl(&format!(
        "ocsp -issuer ca.pem -cert signer.pem -url http://127.0.0.1:{port}/ -respout other.der -noverify"
    ));
    authority.say("R\t391231235959Z\t200101000000Z\t5AA5\tunknown\t/CN=leaf\n");
    let up = authority.serve("\"other.der\"");
    let shown = authority.shown(&up);
    assert!(shown.contains("OCSP response: no response sent"), "{shown}");
    drop(up);
    authority.files.write("text.der", "no response");
    for (file, expected) in [
        ("text.der", "is no response of OCSP in DER"),
        ("none.der", "cannot read"),
    ] {
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n\
             tls = {{ cert = \"chain.pem\", key = \"leaf.key\", ocsp = \"{file}\" }}\n"
        );
        let path = authority.files.write("bad.toml", &text);
        let output = plimsoll(&["up", "--check", &path.to_string_lossy()]).exits(2);
        assert!(output.stderr.contains(expected), "{output}");
    }
}

#[test]
fn a_certificate_that_is_revoked_is_reported_of() {
    let authority = OcspAuthority::new();
    authority.say("R\t391231235959Z\t200101000000Z\t5AA5\tunknown\t/CN=leaf\n");
    let _responder = authority.respond("ca");
    let mut up = authority.serve("true");
    eventually(|| authority.shown(&up).contains("Cert Status: revoked"));
    up.child.kill().unwrap();
    let mut output = String::new();
    let stderr = up.child.stderr.as_mut().unwrap();
    std::io::Read::read_to_string(stderr, &mut output).unwrap();
    assert!(
        output.contains("chain.pem: its authority has revoked this certificate"),
        "{output}"
    );
}
