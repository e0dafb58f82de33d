//! A provider of `OpenID` Connect on loopback that checks what a provider has to check, with real keys.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::UNIX_EPOCH;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};
use url::Url;

/// An RSA key in DER for tests: nothing else is signed by it.
pub const RSA_TEST_KEY: &[u8] = include_bytes!("identity_provider_rsa.der");

/// The provider, whose thread ends with the process.
#[derive(Debug)]
pub struct IdentityProvider {
    address: SocketAddr,
    state: Arc<Mutex<ProviderState>>,
}

/// What a provider knows and does.
#[derive(Debug)]
pub struct ProviderState {
    /// Its name.
    pub issuer: String,
    /// The URL that users may be sent back to.
    pub redirect: String,
    /// The claims of the user who is signed in at the provider.
    pub user: Value,
    /// `RS256` or `ES256`.
    pub algorithm: &'static str,
    /// The identifier of the keys; another one stands for other keys.
    pub kid: String,
    /// Whether claims about the user are at `userinfo` only.
    pub at_userinfo: bool,
    /// Claims that replace those of the token.
    pub forged: Value,
    /// The user whom `userinfo` is about, if it lies.
    pub userinfo_subject: Option<&'static str>,
    /// Whether every request gets a 503.
    pub is_away: bool,
    /// The form of the last request for a token.
    pub last_form: HashMap<String, String>,
    /// Method and path of each request.
    pub paths: Vec<String>,
    codes: HashMap<String, Granted>,
    issued: u32,
    ecdsa: EcdsaKeyPair,
    /// Keys of before that are still published.
    retired: Vec<Value>,
}

/// What a code is good for, once.
#[derive(Debug)]
struct Granted {
    challenge: String,
    nonce: String,
    redirect: String,
}

fn pair() -> EcdsaKeyPair {
    let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("there is randomness");
    EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).expect("it was made just now")
}

impl IdentityProvider {
    /// The name of the one client that it knows.
    pub const CLIENT: &str = "plimsoll";

    /// Its secret, with letters that have to be encoded in basic authentication.
    pub const SECRET: &str = "s3cret:/+%";

    /// - `redirect`: the URL that users may be sent back to.
    pub fn new(redirect: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let state = Arc::new(Mutex::new(ProviderState {
            issuer: format!("http://{address}"),
            redirect: redirect.to_owned(),
            user: json!({ "sub": "u-1", "email": "ann@example.org", "email_verified": true }),
            algorithm: "RS256",
            kid: "first".to_owned(),
            at_userinfo: false,
            forged: json!({}),
            userinfo_subject: None,
            is_away: false,
            last_form: HashMap::new(),
            paths: Vec::new(),
            codes: HashMap::new(),
            issued: 0,
            ecdsa: pair(),
            retired: Vec::new(),
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

    /// Its URL, which is its name as issuer, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn state(&self) -> MutexGuard<'_, ProviderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it.
    pub fn set(&self, change: impl FnOnce(&mut ProviderState)) {
        change(&mut self.state());
    }

    /// How often a path was requested, such as `GET /jwks`.
    pub fn requests(&self, path: &str) -> usize {
        self.state().paths.iter().filter(|it| *it == path).count()
    }

    /// Replaces the ECDSA key by another one with this identifier before `-ec`; the one of before stays published.
    pub fn rotate(&self, kid: &str) {
        self.set(|state| {
            let own = state.own_keys();
            state.retired.extend(own);
            state.ecdsa = pair();
            kid.clone_into(&mut state.kid);
        });
    }

    /// Publishes the present keys alone.
    pub fn retire(&self) {
        self.set(|state| state.retired.clear());
    }

    /// What the provider answers a browser that is signed in there: the way back. The error names what is wrong with the request.
    pub fn authorize(&self, location: &str) -> Result<String, String> {
        let url = Url::parse(location).map_err(|error| format!("{location}: {error}"))?;
        if url.path() != "/authorize" {
            return Err(format!("path {}", url.path()));
        }
        self.state().authorize(&url)
    }

    /// A token with these claims, beside `iss`, `aud`, `iat` and `exp`, which they may replace; `null` removes one.
    pub fn token(&self, claims: &Value) -> String {
        let state = self.state();
        let now = seconds();
        let mut whole = json!({ "iss": state.issuer, "aud": "api", "iat": now, "exp": now + 300, "sub": "u-1" });
        join(&mut whole, claims);
        state.signed(&whole)
    }
}

/// Seconds since 1970.
fn seconds() -> u64 {
    let since = SystemClock.wall().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

fn join(claims: &mut Value, others: &Value) {
    for (name, value) in others.as_object().into_iter().flatten() {
        claims[name] = value.clone();
    }
    if let Some(claims) = claims.as_object_mut() {
        claims.retain(|_, value| !value.is_null());
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

fn rsa() -> RsaKeyPair {
    RsaKeyPair::from_der(RSA_TEST_KEY).expect("the file is a key")
}

impl ProviderState {
    fn authorize(&mut self, url: &Url) -> Result<String, String> {
        let query = pairs(url.query().unwrap_or_default());
        let of = |name: &str| query.get(name).cloned().unwrap_or_default();
        if of("response_type") != "code" || of("client_id") != IdentityProvider::CLIENT {
            return Err("client".to_owned());
        }
        let scopes = of("scope");
        if !scopes.split(' ').any(|scope| scope == "openid") {
            return Err("scope".to_owned());
        }
        let redirect = of("redirect_uri");
        if redirect != self.redirect {
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
        let mut back = Url::parse(&redirect).map_err(|error| error.to_string())?;
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
            _ if self.is_away => (503, json!({})),
            ("GET", "/.well-known/openid-configuration") => (
                200,
                json!({
                    "issuer": issuer,
                    "authorization_endpoint": format!("{issuer}/authorize"),
                    "token_endpoint": format!("{issuer}/token"),
                    "jwks_uri": format!("{issuer}/jwks"),
                    "userinfo_endpoint": format!("{issuer}/userinfo"),
                    "end_session_endpoint": format!("{issuer}/end-session"),
                }),
            ),
            ("GET", "/jwks") => (200, self.keys()),
            ("POST", "/token") => match self.redeem(authorization, pairs(body)) {
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

    /// The keys as it publishes them.
    pub fn keys(&self) -> Value {
        let keys = self.own_keys().into_iter().chain(self.retired.clone());
        json!({ "keys": keys.collect::<Vec<_>>() })
    }

    fn own_keys(&self) -> [Value; 2] {
        let point = self.ecdsa.public_key().as_ref();
        let rsa: PublicKeyComponents<Vec<u8>> = PublicKeyComponents::from(rsa().public());
        [
            json!({ "kty": "RSA", "use": "sig", "alg": "RS256", "kid": format!("{}-rsa", self.kid), "n": encoded(&rsa.n), "e": encoded(&rsa.e) }),
            json!({ "kty": "EC", "crv": "P-256", "use": "sig", "kid": format!("{}-ec", self.kid), "x": encoded(&point[1..33]), "y": encoded(&point[33..]) }),
        ]
    }

    fn redeem(
        &mut self,
        authorization: &str,
        form: HashMap<String, String>,
    ) -> Result<Value, &'static str> {
        let form_encoded =
            |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let expected = format!(
            "{}:{}",
            form_encoded(IdentityProvider::CLIENT),
            form_encoded(IdentityProvider::SECRET)
        );
        if authorization != format!("Basic {}", BASE64_STANDARD.encode(expected)) {
            return Err("invalid_client");
        }
        self.last_form = form;
        let form = &self.last_form;
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
        let mut claims = json!({ "iss": self.issuer, "aud": IdentityProvider::CLIENT, "nonce": granted.nonce, "iat": now, "exp": now + 300, "sub": self.user["sub"] });
        let more = [&self.user, &self.forged];
        for source in more.into_iter().skip(usize::from(self.at_userinfo)) {
            for (name, value) in source.as_object().into_iter().flatten() {
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
            let pair = rsa();
            let mut signature = vec![0; pair.public().modulus_len()];
            pair.sign(
                &RSA_PKCS1_SHA256,
                &random,
                signed.as_bytes(),
                &mut signature,
            )
            .expect("the key is long enough");
            signature
        } else {
            let signature = self.ecdsa.sign(&random, signed.as_bytes());
            signature.expect("there is randomness").as_ref().to_vec()
        };
        format!("{signed}.{}", encoded(&signature))
    }
}

/// Answers the requests of a connection until it ends.
fn serve(stream: &TcpStream, state: &Mutex<ProviderState>) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some((line, authorization, body)) = request(&mut reader) {
        let mut words = line.split(' ');
        let (method, path) = (words.next(), words.next());
        let (status, content) = state.lock().unwrap_or_else(PoisonError::into_inner).answer(
            method.unwrap_or_default(),
            path.unwrap_or_default(),
            &authorization,
            &body,
        );
        let content = content.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
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

/// Line, credentials and content of the next request.
fn request(reader: &mut impl BufRead) -> Option<(String, String, String)> {
    let (mut line, mut length, mut authorization) = (String::new(), 0, String::new());
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return None;
    }
    loop {
        let mut field = String::new();
        if reader.read_line(&mut field).unwrap_or(0) == 0 || field == "\r\n" {
            break;
        }
        let (name, value) = field.split_once(':')?;
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" => value.trim().clone_into(&mut authorization),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((line, authorization, String::from_utf8(body).ok()?))
}
