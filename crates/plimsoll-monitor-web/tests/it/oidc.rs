//! Sign-in by `OpenID` Connect, against a provider on loopback that checks what a provider has to check, with real keys.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use http::{Method, StatusCode};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};
use url::Url;

use crate::admin::{Admin, Browser, PASSWORD};

const CLIENT: &str = "plimsoll";

/// With letters that have to be encoded in basic authentication.
const SECRET: &str = "s3cret:/+%";

/// A test key: nothing else is signed by it.
const RSA: &[u8] = include_bytes!("oidc_rsa.der");

/// A provider.
struct Provider {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    issuer: String,
    /// Who is signed in at the provider.
    user: Value,
    algorithm: &'static str,
    /// The identifier of the keys; another one stands for other keys.
    kid: String,
    /// Whether claims about the user are at `userinfo` only.
    at_userinfo: bool,
    /// Claims that replace those of the token.
    forged: Value,
    /// The user whom `userinfo` is about, if it lies.
    userinfo_subject: Option<&'static str>,
    codes: HashMap<String, Granted>,
    issued: u32,
    ecdsa: EcdsaKeyPair,
    /// Paths that were requested.
    paths: Vec<String>,
}

/// What a code is good for, once.
struct Granted {
    challenge: String,
    nonce: String,
    redirect: String,
}

impl Provider {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let state = Arc::new(Mutex::new(State {
            issuer: format!("http://{address}"),
            user: json!({ "sub": "u-1", "email": "ann@example.org", "email_verified": true }),
            algorithm: "RS256",
            kid: "first".to_owned(),
            at_userinfo: false,
            forged: json!({}),
            userinfo_subject: None,
            codes: HashMap::new(),
            issued: 0,
            ecdsa: EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap(),
            paths: Vec::new(),
        }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(&stream, &state));
            }
        });
        Self { address, state }
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    /// The table of a configuration.
    fn table(&self, more: &str) -> String {
        format!(
            "[oidc]\nname = \"Example ID\"\nissuer = \"http://{}\"\nclient_id = \"{CLIENT}\"\nclient_secret = \"{SECRET}\"\nurl = \"https://monitor.test/\"\n{more}\n",
            self.address
        )
    }

    /// What the provider answers a browser that is signed in there: the way back.
    fn authorize(&self, location: &str) -> Result<String, String> {
        let url = Url::parse(location).unwrap();
        assert_eq!(url.path(), "/authorize");
        self.state.lock().unwrap().authorize(&url)
    }
}

fn encoded(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn pairs(text: &str) -> HashMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes())
        .into_owned()
        .collect()
}

fn seconds() -> i64 {
    jiff::Timestamp::now().as_second()
}

impl State {
    fn authorize(&mut self, url: &Url) -> Result<String, String> {
        let query = pairs(url.query().unwrap_or_default());
        let of = |name: &str| query.get(name).cloned().unwrap_or_default();
        if of("response_type") != "code" || of("client_id") != CLIENT {
            return Err("client".to_owned());
        }
        let scopes = of("scope");
        if !scopes.split(' ').any(|scope| scope == "openid") {
            return Err("scope".to_owned());
        }
        let redirect = of("redirect_uri");
        if redirect != "https://monitor.test/admin/oidc/callback" {
            return Err(format!("redirect_uri {redirect}"));
        }
        if of("code_challenge_method") != "S256" || of("code_challenge").len() != 43 {
            return Err("challenge".to_owned());
        }
        self.issued += 1;
        let code = format!("code-{}", self.issued);
        let granted = Granted {
            challenge: of("code_challenge"),
            nonce: of("nonce"),
            redirect: redirect.clone(),
        };
        self.codes.insert(code.clone(), granted);
        let mut back = Url::parse(&redirect).unwrap();
        back.query_pairs_mut()
            .append_pair("code", &code)
            .append_pair("state", &of("state"))
            .append_pair("iss", &self.issuer);
        Ok(back.into())
    }

    fn answer(
        &mut self,
        method: &str,
        path: &str,
        authorization: &str,
        body: &str,
    ) -> (u16, Value) {
        self.paths.push(format!("{method} {path}"));
        let issuer = &self.issuer;
        match (method, path) {
            ("GET", "/.well-known/openid-configuration") => (
                200,
                json!({
                    "issuer": issuer,
                    "authorization_endpoint": format!("{issuer}/authorize"),
                    "token_endpoint": format!("{issuer}/token"),
                    "jwks_uri": format!("{issuer}/jwks"),
                    "userinfo_endpoint": format!("{issuer}/userinfo"),
                }),
            ),
            ("GET", "/jwks") => (200, self.keys()),
            ("POST", "/token") => match self.redeem(authorization, &pairs(body)) {
                Ok(tokens) => (200, tokens),
                Err(error) => (
                    400,
                    json!({ "error": error, "error_description": "refused" }),
                ),
            },
            ("GET", "/userinfo") if authorization == "Bearer opaque" => {
                let mut user = self.user.clone();
                if let Some(subject) = self.userinfo_subject {
                    user["sub"] = subject.into();
                }
                (200, user)
            }
            _ => (404, json!({})),
        }
    }

    fn keys(&self) -> Value {
        let point = self.ecdsa.public_key().as_ref();
        let rsa = RsaKeyPair::from_der(RSA).unwrap();
        let rsa: PublicKeyComponents<Vec<u8>> = PublicKeyComponents::from(rsa.public());
        json!({ "keys": [
            { "kty": "RSA", "use": "sig", "alg": "RS256", "kid": format!("{}-rsa", self.kid), "n": encoded(&rsa.n), "e": encoded(&rsa.e) },
            { "kty": "EC", "crv": "P-256", "use": "sig", "kid": format!("{}-ec", self.kid), "x": encoded(&point[1..33]), "y": encoded(&point[33..]) },
        ] })
    }

    fn redeem(
        &mut self,
        authorization: &str,
        form: &HashMap<String, String>,
    ) -> Result<Value, &'static str> {
        let form_encoded =
            |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let expected = format!("{}:{}", form_encoded(CLIENT), form_encoded(SECRET));
        if authorization != format!("Basic {}", BASE64_STANDARD.encode(expected)) {
            return Err("invalid_client");
        }
        let of = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let granted = self.codes.remove(of("code")).ok_or("invalid_grant")?;
        let challenge = encoded(digest(&SHA256, of("code_verifier").as_bytes()).as_ref());
        let is_fine = of("grant_type") == "authorization_code"
            && of("redirect_uri") == granted.redirect
            && challenge == granted.challenge;
        if !is_fine {
            return Err("invalid_grant");
        }
        let now = seconds();
        let mut claims = json!({ "iss": self.issuer, "aud": CLIENT, "nonce": granted.nonce, "iat": now, "exp": now + 300, "sub": self.user["sub"] });
        let more = [&self.user, &self.forged];
        for source in more.into_iter().skip(usize::from(self.at_userinfo)) {
            for (name, value) in source.as_object().unwrap() {
                claims[name] = value.clone();
            }
        }
        Ok(
            json!({ "token_type": "Bearer", "access_token": "opaque", "id_token": self.signed(&claims) }),
        )
    }

    fn signed(&self, claims: &Value) -> String {
        let kind = if self.algorithm == "RS256" {
            "rsa"
        } else {
            "ec"
        };
        let header =
            json!({ "alg": self.algorithm, "typ": "JWT", "kid": format!("{}-{kind}", self.kid) });
        let part = |value: &Value| encoded(value.to_string().as_bytes());
        let signed = format!("{}.{}", part(&header), part(claims));
        let random = SystemRandom::new();
        let signature = if kind == "rsa" {
            let pair = RsaKeyPair::from_der(RSA).unwrap();
            let mut signature = vec![0; pair.public().modulus_len()];
            pair.sign(
                &RSA_PKCS1_SHA256,
                &random,
                signed.as_bytes(),
                &mut signature,
            )
            .unwrap();
            signature
        } else {
            let signature = self.ecdsa.sign(&random, signed.as_bytes()).unwrap();
            signature.as_ref().to_vec()
        };
        format!("{signed}.{}", encoded(&signature))
    }
}

fn serve(stream: &TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let (mut line, mut length, mut authorization) = (String::new(), 0, String::new());
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut field = String::new();
            if reader.read_line(&mut field).unwrap_or(0) == 0 || field == "\r\n" {
                break;
            }
            let (name, value) = field.split_once(':').unwrap();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap(),
                "authorization" => value.trim().clone_into(&mut authorization),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let mut words = line.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let body = String::from_utf8(body).unwrap();
        let answer = state
            .lock()
            .unwrap()
            .answer(method, path, &authorization, &body);
        let content = answer.1.to_string();
        let head = format!(
            "HTTP/1.1 {} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.0,
            content.len()
        );
        if writer
            .write_all(format!("{head}{content}").as_bytes())
            .is_err()
        {
            return;
        }
    }
}

fn location(response: &http::Response<String>) -> String {
    assert_eq!(
        response.status(),
        StatusCode::SEE_OTHER,
        "{}",
        response.body()
    );
    response.headers()["location"].to_str().unwrap().to_owned()
}

/// The path and query of the way back.
fn path_of(back: &str) -> String {
    let url = Url::parse(back).unwrap();
    format!("{}?{}", url.path(), url.query().unwrap_or_default())
}

/// Goes to the provider and back.
fn through(
    admin: &Admin,
    provider: &Provider,
    browser: &mut Browser,
    start: &str,
) -> http::Response<String> {
    let there = location(&browser.call(admin, Method::GET, start, ""));
    let back = provider.authorize(&there).unwrap();
    browser.call(admin, Method::GET, &path_of(&back), "")
}

fn audit(admin: &Admin) -> String {
    let mut owner = admin.owner();
    owner.get(admin, "/admin/audit")
}

#[test]
fn a_member_signs_in_by_the_provider_with_either_signature() {
    let provider = Provider::new();
    let admin = Admin::new(&provider.table(""));
    let owner = admin.owner();
    let (status, _) = owner.post(
        &admin,
        "/admin/members/add",
        &[("name", "Ann@example.org"), ("role", "editor")],
    );
    assert_eq!(status, StatusCode::OK);
    for algorithm in ["RS256", "ES256"] {
        provider.set(|state| state.algorithm = algorithm);
        let mut browser = Browser::default();
        let page = browser.get(&admin, "/admin/sign-in?next=/admin/monitors");
        assert!(page.contains("Sign in with Example ID"), "{page}");
        assert!(page.contains("/admin/oidc/start?next=%2Fadmin%2Fmonitors"));
        let response = through(
            &admin,
            &provider,
            &mut browser,
            "/admin/oidc/start?next=/admin/monitors",
        );
        assert_eq!(location(&response), "/admin/monitors");
        assert!(browser.oidc.is_none(), "the sign-in is over");
        assert!(
            browser
                .get(&admin, "/admin/account")
                .contains("Ann@example.org")
        );
    }
    // The password that was shown to the admin is not asked for, and is of no use.
    let log = audit(&admin);
    assert!(
        log.contains("member.link") && log.contains("Example ID"),
        "{log}"
    );
}

#[test]
fn a_user_is_known_by_the_subject_once_linked() {
    let provider = Provider::new();
    let admin = Admin::new(&provider.table(""));
    let mut owner = admin.owner();
    let page = owner.get(&admin, "/admin/account");
    let link = crate::admin::between(&page, "/admin/oidc/start?link=", "\"").to_owned();
    // The token of another session links nothing.
    let other = owner
        .clone()
        .call(&admin, Method::GET, "/admin/oidc/start?link=guess", "");
    assert_eq!(location(&other), "/admin/sign-in?next=/admin/account");
    let response = through(
        &admin,
        &provider,
        &mut owner,
        &format!("/admin/oidc/start?link={link}"),
    );
    assert_eq!(location(&response), "/admin/account?done=linked");
    assert!(
        owner
            .get(&admin, "/admin/account")
            .contains("<strong>ann@example.org</strong>")
    );
    // Another address, not even verified: it is the same user.
    provider.set(|state| state.user = json!({ "sub": "u-1", "email": "x@y.z" }));
    let mut browser = Browser::default();
    let response = through(&admin, &provider, &mut browser, "/admin/oidc/start");
    assert_eq!(location(&response), "/admin");
    assert!(browser.get(&admin, "/admin/members").contains("owner"));
    // The same user is not linked to a second member.
    let mut ann = admin.member(&owner, "ann", "viewer");
    let page = ann.get(&admin, "/admin/account");
    let link = crate::admin::between(&page, "/admin/oidc/start?link=", "\"").to_owned();
    let start = format!("/admin/oidc/start?link={link}");
    let response = through(&admin, &provider, &mut ann, &start);
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(
        response
            .body()
            .contains("This user is linked to another member.")
    );
    // A member whose password is reset has no links any more.
    provider.set(|state| state.user = json!({ "sub": "u-2" }));
    let response = through(&admin, &provider, &mut ann, &start);
    assert_eq!(location(&response), "/admin/account?done=linked");
    let response = through(
        &admin,
        &provider,
        &mut Browser::default(),
        "/admin/oidc/start",
    );
    assert_eq!(location(&response), "/admin");
    let members = owner.get(&admin, "/admin/members");
    let (_, row) = members.split_once(">ann").unwrap();
    let id = crate::admin::between(row, "name=\"id\" value=\"", "\"");
    let fields = [("id", id), ("action", "reset")];
    let (status, text) = owner.post(&admin, "/admin/members/change", &fields);
    assert_eq!(status, StatusCode::OK, "{text}");
    let response = through(
        &admin,
        &provider,
        &mut Browser::default(),
        "/admin/oidc/start",
    );
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    provider.set(|state| state.user = json!({ "sub": "u-1" }));
    // And unlinked, it signs in no more.
    let (status, _) = owner.post(&admin, "/admin/account/unlink", &[]);
    assert_eq!(status, StatusCode::SEE_OTHER);
    let response = through(
        &admin,
        &provider,
        &mut Browser::default(),
        "/admin/oidc/start",
    );
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(
        response.body().contains("no verified e-mail address"),
        "{}",
        response.body()
    );
}

#[test]
fn other_users_of_the_provider_are_refused_or_become_members_of_a_domain() {
    let provider = Provider::new();
    let admin = Admin::new(&provider.table(""));
    let mut browser = Browser::default();
    let response = through(&admin, &provider, &mut browser, "/admin/oidc/start");
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(
        response
            .body()
            .contains("No member is named ann@example.org")
    );
    assert!(browser.session.is_none());

    let admin =
        Admin::new(&provider.table("domains = [\"example.org\"]\nnew_members = \"viewer\""));
    provider.set(|state| state.at_userinfo = true);
    let response = through(&admin, &provider, &mut browser, "/admin/oidc/start");
    assert_eq!(location(&response), "/admin", "the address is at userinfo");
    let (status, _) = browser.get_as(&admin, "/admin/new-monitor");
    assert_eq!(status, StatusCode::FORBIDDEN, "a viewer");
    assert!(audit(&admin).contains("member.add"));
    // The response of userinfo about another user does not count.
    provider.set(|state| {
        state.user["sub"] = "u-2".into();
        state.userinfo_subject = Some("u-1");
    });
    let response = through(
        &admin,
        &provider,
        &mut Browser::default(),
        "/admin/oidc/start",
    );
    assert!(
        response.body().contains("no verified e-mail address"),
        "{}",
        response.body()
    );
    for (email, verified, expected) in [
        (
            "eve@example.com",
            true,
            "Addresses of this domain may not sign in",
        ),
        ("eve@example.org", false, "no verified e-mail address"),
        (
            "eve@example.org.example.com",
            true,
            "Addresses of this domain",
        ),
    ] {
        provider.set(|state| {
            state.userinfo_subject = None;
            state.user = json!({ "sub": "u-3", "email": email, "email_verified": verified });
        });
        let response = through(
            &admin,
            &provider,
            &mut Browser::default(),
            "/admin/oidc/start",
        );
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert!(
            response.body().contains(expected),
            "{email}: {}",
            response.body()
        );
    }
}

#[test]
fn forged_and_repeated_responses_open_no_session() {
    let provider = Provider::new();
    let admin = Admin::new(&provider.table(""));
    let owner = admin.owner();
    let (status, _) = owner.post(
        &admin,
        "/admin/members/add",
        &[("name", "ann@example.org"), ("role", "editor")],
    );
    assert_eq!(status, StatusCode::OK);
    let refused = |response: &http::Response<String>, why: &str| {
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert!(response.body().contains(why), "{why}: {}", response.body());
    };
    // Without the cookie, and with that of another sign-in.
    let there = location(&Browser::default().call(&admin, Method::GET, "/admin/oidc/start", ""));
    let back = path_of(&provider.authorize(&there).unwrap());
    refused(
        &Browser::default().call(&admin, Method::GET, &back, ""),
        "The sign-in took too long",
    );
    let mut victim = Browser::default();
    victim.call(&admin, Method::GET, "/admin/oidc/start", "");
    refused(
        &victim.call(&admin, Method::GET, &back, ""),
        "another sign-in",
    );
    assert!(victim.session.is_none() && victim.oidc.is_none());
    // Another issuer in the response, another nonce, another audience, an expired token.
    let mut browser = Browser::default();
    let there = location(&browser.call(&admin, Method::GET, "/admin/oidc/start", ""));
    let back = path_of(&provider.authorize(&there).unwrap());
    let mixed = back.replace("iss=http", "iss=https");
    refused(
        &browser.call(&admin, Method::GET, &mixed, ""),
        "another issuer",
    );
    for (forged, why) in [
        (json!({ "nonce": "x" }), "another sign-in"),
        (json!({ "aud": "other" }), "another client"),
        (json!({ "exp": 1 }), "has expired"),
        (json!({ "iss": "http://127.0.0.1:1" }), "another issuer"),
    ] {
        provider.set(|state| state.forged = forged);
        let response = through(
            &admin,
            &provider,
            &mut Browser::default(),
            "/admin/oidc/start",
        );
        refused(&response, why);
    }
    provider.set(|state| state.forged = json!({}));
    // A code is good for one sign-in.
    let mut browser = Browser::default();
    let there = location(&browser.call(&admin, Method::GET, "/admin/oidc/start", ""));
    let back = path_of(&provider.authorize(&there).unwrap());
    let cookie = browser.oidc.clone();
    assert_eq!(
        location(&browser.call(&admin, Method::GET, &back, "")),
        "/admin"
    );
    let mut again = Browser {
        oidc: cookie,
        ..Browser::default()
    };
    refused(
        &again.call(&admin, Method::GET, &back, ""),
        "invalid_grant (refused)",
    );
    // What the provider refuses is shown.
    let mut browser = Browser::default();
    let there = location(&browser.call(&admin, Method::GET, "/admin/oidc/start", ""));
    let state = pairs(Url::parse(&there).unwrap().query().unwrap())["state"].clone();
    let denied = format!(
        "/admin/oidc/callback?state={state}&error=access_denied&error_description=%3Cb%3Eno"
    );
    let response = browser.call(&admin, Method::GET, &denied, "");
    refused(&response, "access_denied &#60;b&#62;no");
}

#[test]
fn keys_that_the_provider_replaces_are_read_again_and_others_are_kept() {
    let provider = Provider::new();
    let admin = Admin::new(&provider.table("domains = [\"*\"]\nnew_members = \"viewer\""));
    let requests = |path: &str| {
        let state = provider.state.lock().unwrap();
        state.paths.iter().filter(|one| one.ends_with(path)).count()
    };
    for _ in 0..3 {
        let response = through(
            &admin,
            &provider,
            &mut Browser::default(),
            "/admin/oidc/start",
        );
        assert_eq!(location(&response), "/admin");
    }
    assert_eq!((requests("/jwks"), requests("-configuration")), (1, 1));
    // Keys younger than half a minute are not read again: tokens with unknown keys make no requests without end.
    provider.set(|state| state.kid = "second".to_owned());
    let response = through(
        &admin,
        &provider,
        &mut Browser::default(),
        "/admin/oidc/start",
    );
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(response.body().contains("does not publish the key"));
    assert_eq!(requests("/jwks"), 1);
}

#[test]
fn a_provider_that_is_away_or_another_one_is_reported_and_passwords_still_work() {
    let address = plimsoll_testkit::refused_address();
    let table = format!(
        "[oidc]\nissuer = \"http://{address}\"\nclient_id = \"a\"\nurl = \"http://localhost:1\"\n"
    );
    let admin = Admin::new(&table);
    let response = Browser::default().call(&admin, Method::GET, "/admin/oidc/start", "");
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(
        response.body().contains("Cannot reach the provider"),
        "{}",
        response.body()
    );
    admin.signed_in("owner", PASSWORD);

    let provider = Provider::new();
    provider.set(|state| state.issuer = "https://id.example".to_owned());
    let admin = Admin::new(&provider.table(""));
    let response = Browser::default().call(&admin, Method::GET, "/admin/oidc/start", "");
    assert!(
        response.body().contains("it is `https://id.example`"),
        "{}",
        response.body()
    );
    // Without the table there is no such sign-in.
    let admin = Admin::new("");
    let response = Browser::default().call(&admin, Method::GET, "/admin/oidc/start", "");
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}
