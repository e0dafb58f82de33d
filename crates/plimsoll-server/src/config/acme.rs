//! `acme` of a `tls`: a certificate that is ordered by ACME.

use std::net::IpAddr;
use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::Uri;
use http::uri::InvalidUri;
use plimsoll_model::{Secret, with_causes};
use plimsoll_wire::tls::{TlsSettings, Trust};

use crate::acme::{
    AcmeAccount, AcmePlan, ChallengeKind, ExternalAccount, OnDemandPlan, mistake_in_name,
};
use crate::config::Context;
use crate::config::document::{Table, Value, as_text};
use crate::config::paths::{OutsideSandbox, PathUse};

/// The default directory.
const DIRECTORY: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// The default folder of accounts and certificates.
const FOLDER: &str = "acme";

/// As many as any authority puts into one.
const MOST_NAMES: usize = 100;

/// First orders of names within an hour by default. Let's Encrypt accepts 300 orders of an account within three hours,
/// and half of them are left for renewals and other servers of the account.
const MOST_PER_HOUR: usize = 50;

/// What an `acme` table asks for.
#[derive(Debug)]
pub(super) enum Acme {
    /// One certificate.
    Names(AcmePlan),
    /// A certificate for each name that a client requests and a service permits.
    OnDemand(OnDemandPlan),
}

impl Acme {
    pub(super) fn challenge(&self) -> ChallengeKind {
        match self {
            Self::Names(plan) => plan.challenge,
            Self::OnDemand(plan) => plan.challenge,
        }
    }
}

/// Compiles an order for certificates; `None` if there was an error.
pub(super) fn compile(value: Value<'_>, context: &Context<'_>) -> Option<Acme> {
    let mut table = value.table()?;
    let is_on_demand = table.boolean("on_demand").unwrap_or(false);
    let names = if is_on_demand {
        if let Some(value) = table.take_value("names") {
            value.wrong_with::<()>(
                "is not for `on_demand`, which takes the names that clients request",
                Some("write another `acme` for these names".to_owned()),
            );
        }
        Some(Vec::new())
    } else {
        names(&mut table)
    };
    let most_per_hour = table.count("most_per_hour", 1..=10_000);
    if most_per_hour.is_some() && !is_on_demand {
        table.wrong("`most_per_hour` is for `on_demand = true`", None);
    }
    let directory = match table.take_value("directory") {
        None => Some(DIRECTORY.to_owned()),
        Some(value) => as_text(&value).and_then(|text| value.check(directory(text))),
    };
    let challenge = match table.take_value("challenge") {
        None => Some(ChallengeKind::TlsAlpn),
        Some(value) => as_text(&value).and_then(|text| value.check(challenge(text))),
    };
    let contacts = match table.take_value("contact") {
        None => Some(Vec::new()),
        Some(value) => value.texts_with(|text| {
            (!text.contains('@')).then(|| format!("`{text}` is no address of mail"))
        }),
    };
    let folder = folder(&mut table, context);
    let trust = match table.take_value("ca") {
        None => Some(Trust::PublicRoots),
        Some(value) => context.paths.read(&value).and_then(|file| {
            let settings = TlsSettings {
                trust: Trust::Only(file),
                ..TlsSettings::default()
            };
            let compiled = settings.compile().map_err(|error| with_causes(&error));
            value.check(compiled).map(|_| settings.trust)
        }),
    };
    let external = match table.table("external_account") {
        None => (!table.was_given("external_account")).then_some(None),
        Some(external) => external_account(external).map(Some),
    };
    let terms = table.boolean("accept_terms");
    if terms != Some(true) && (terms.is_some() || !table.was_given("accept_terms")) {
        table.wrong(
            "the terms of the authority are not accepted",
            Some("read them, and write accept_terms = true".to_owned()),
        );
    }
    let names = names.filter(|names| {
        let mut addresses = names.iter().filter(|name| name.parse::<IpAddr>().is_ok());
        let address = addresses.next();
        let Some(address) = address.filter(|_| challenge == Some(ChallengeKind::TlsAlpn)) else {
            return true;
        };
        let hint = "challenge = \"http-01\"".to_owned();
        let message = format!("tls-alpn-01 is for hosts, and {address} is an address");
        table.wrong(message, Some(hint));
        false
    });
    let plan = || {
        let (names, directory, folder) = (names?, directory?, folder?);
        let first = names.first().map_or("", String::as_str);
        let (file, account) = AcmePlan::files(&folder, &directory, first);
        let account = AcmeAccount {
            directory,
            trust: trust?,
            contacts: contacts?.iter().map(|it| mail(it)).collect(),
            external: external?,
            file: account,
        };
        if is_on_demand {
            return Some(Acme::OnDemand(OnDemandPlan {
                challenge: challenge?,
                account,
                folder,
                most_per_hour: most_per_hour.unwrap_or(MOST_PER_HOUR),
            }));
        }
        Some(Acme::Names(AcmePlan {
            names,
            challenge: challenge?,
            account,
            file,
        }))
    };
    let plan = plan();
    match &plan {
        Some(Acme::Names(plan)) => note(plan, &mut table, context),
        Some(Acme::OnDemand(plan)) => note_on_demand(plan, &mut table, context),
        None => {}
    }
    table.finish();
    plan
}

/// The folder of accounts and certificates.
fn folder(table: &mut Table<'_>, context: &Context<'_>) -> Option<PathBuf> {
    if let Some(value) = table.take_value("folder") {
        return context.paths.path(&value, PathUse::WriteFolder);
    }
    let folder = context.paths.directory().join(FOLDER);
    let noted = context.paths.note(&folder, PathUse::WriteFolder);
    if let Err(outside) = noted {
        table.wrong(outside, Some(OutsideSandbox::HINT.to_owned()));
        return None;
    }
    Some(folder)
}

/// Has names ordered on demand by one account.
fn note_on_demand(plan: &OnDemandPlan, table: &mut Table<'_>, context: &Context<'_>) {
    let mut known = context.on_demand.borrow_mut();
    match &*known {
        Some(other) if other != plan => table.wrong(
            "another `acme` orders certificates on demand in another way",
            Some("say the same in both".to_owned()),
        ),
        Some(_) => {}
        None => *known = Some(plan.clone()),
    }
}

/// Has it ordered, once.
fn note(plan: &AcmePlan, table: &mut Table<'_>, context: &Context<'_>) {
    let mut plans = context.acme.borrow_mut();
    match plans.iter().find(|other| other.file == plan.file) {
        Some(other) if other != plan => {
            let message = format!(
                "another `acme` asks for a certificate of {} in another way",
                plan.name()
            );
            table.wrong(message, Some("say the same in both".to_owned()));
        }
        Some(_) => {}
        None => plans.push(plan.clone()),
    }
}

fn names(table: &mut Table<'_>) -> Option<Vec<String>> {
    let Some(value) = table.take_value("names") else {
        table.missing("names", "such as names = [\"example.org\"]");
        return None;
    };
    let names = value.texts_with(mistake_in_name)?;
    if !(1..=MOST_NAMES).contains(&names.len()) {
        table.wrong(format!("`names` must be from 1 to {MOST_NAMES}"), None);
        return None;
    }
    Some(names.iter().map(|name| name.to_ascii_lowercase()).collect())
}

/// Why a text is not the directory of an authority.
#[derive(Debug, thiserror::Error)]
enum DirectoryProblem {
    #[error("`{text}` is no URL: {cause}")]
    Url { text: String, cause: InvalidUri },
    #[error("`{0}` must begin with https:// (RFC 8555)")]
    NotProtected(String),
}

/// A challenge that is not known.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is neither \"http-01\" nor \"tls-alpn-01\"")]
struct UnknownChallenge(String);

/// A key in another form than that of authorities.
#[derive(Debug, thiserror::Error)]
#[error("must be in base64url")]
struct NotBase64;

fn directory(text: &str) -> Result<String, DirectoryProblem> {
    let url: Result<Uri, _> = text.parse();
    let url = url.map_err(|cause| DirectoryProblem::Url {
        text: text.to_owned(),
        cause,
    })?;
    if url.scheme_str() != Some("https") || url.authority().is_none() {
        return Err(DirectoryProblem::NotProtected(text.to_owned()));
    }
    Ok(text.to_owned())
}

fn challenge(text: &str) -> Result<ChallengeKind, UnknownChallenge> {
    let found = ChallengeKind::ALL
        .into_iter()
        .find(|kind| kind.name() == text);
    found.ok_or_else(|| UnknownChallenge(text.to_owned()))
}

fn mail(text: &str) -> String {
    if text.starts_with("mailto:") {
        return text.to_owned();
    }
    format!("mailto:{text}")
}

fn external_account(mut table: Table<'_>) -> Option<ExternalAccount> {
    let id = table.text("id");
    if id.is_none() && !table.was_given("id") {
        table.missing("id", "what the authority calls it");
    }
    let key = match table.take_value("key") {
        None => {
            table.missing("key", "as the authority gives it, in base64url");
            None
        }
        Some(value) => as_text(&value).and_then(|text| {
            let text = text.trim_end_matches('=');
            let decoded = BASE64_URL_SAFE_NO_PAD.decode(text);
            let decoded = decoded.map_err(|_| NotBase64);
            value.check(decoded).map(|_| Secret::new(text))
        }),
    };
    table.finish();
    Some(ExternalAccount { id: id?, key: key? })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::config::{Compiler, SCHEMA, ServerPlan};

    fn check(text: &str) -> Result<ServerPlan, String> {
        let compiler = Compiler::new(Path::new("/nonexistent"), &Arc::default());
        compiler.compile(text).map_err(|problems| {
            problems.iter().fold(String::new(), |mut all, problem| {
                writeln!(all, "{}:{}: {problem}", problem.line, problem.column).unwrap();
                all
            })
        })
    }

    fn listen(tls: &str) -> String {
        format!("[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {tls}\n")
    }

    #[test]
    fn what_is_not_given_is_what_most_want() {
        let text = listen("{ acme = { names = \"A.example\", accept_terms = true } }");
        let plan = check(&text).unwrap();
        let [acme] = &plan.acme[..] else {
            panic!("{:?}", plan.acme)
        };
        assert_eq!(acme.names, ["a.example"]);
        assert_eq!(acme.challenge, ChallengeKind::TlsAlpn);
        assert_eq!(acme.account.directory, DIRECTORY);
        assert_eq!(plan.certificates, std::slice::from_ref(&acme.file));
        let folder = "/nonexistent/acme/acme-v02.api.letsencrypt.org_directory/";
        assert_eq!(acme.file, PathBuf::from(format!("{folder}a.example.pem")));
    }

    #[test]
    fn one_certificate_of_two_listeners_is_ordered_once_and_everything_is_in_the_schema() {
        let tls = r#"[{ acme = { names = ["a.example", "127.0.0.1"], challenge = "http-01", accept_terms = true,
            contact = ["a@b.example", "mailto:b@b.example"], directory = "https://ca.example/dir", folder = "kept",
            external_account = { id = "kid", key = "c2VjcmV0" } } }]"#;
        let text = listen(tls) + &listen(tls) + "[[listen]]\naddress = \"127.0.0.1:80\"\n";
        let plan = check(&text).unwrap();
        assert_eq!(plan.acme.len(), 1);
        let account = &plan.acme[0].account;
        assert_eq!(
            account.contacts,
            ["mailto:a@b.example", "mailto:b@b.example"]
        );
        assert_eq!(
            account.file,
            Path::new("/nonexistent/kept/ca.example_dir/account.json")
        );
        let document = toml::from_str::<toml::Table>(&text).unwrap();
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        jsonschema::validate(&schema, &serde_json::to_value(document).unwrap()).unwrap();
    }

    #[test]
    fn names_may_be_those_that_clients_request() {
        let tls = "{ acme = { on_demand = true, accept_terms = true, most_per_hour = 7 } }";
        let text = listen(tls);
        let plan = check(&(listen(tls) + &text)).unwrap();
        assert!(plan.acme.is_empty());
        let on_demand = plan.on_demand.unwrap();
        assert_eq!(on_demand.most_per_hour, 7);
        let plan = on_demand.certificate("a.example");
        let folder = Path::new("/nonexistent/acme/acme-v02.api.letsencrypt.org_directory");
        assert_eq!(plan.file, folder.join("a.example.pem"));
        assert_eq!(plan.account.file, folder.join("account.json"));
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        let is_valid = |text: &str| {
            let document = toml::from_str::<toml::Table>(text).unwrap();
            jsonschema::is_valid(&schema, &serde_json::to_value(document).unwrap())
        };
        assert!(is_valid(&text));
        let acme = |keys: &str| listen(&format!("{{ acme = {{ accept_terms = true, {keys} }} }}"));
        for (text, expected) in [
            (
                acme("on_demand = true, names = \"a.example\""),
                "names: is not for `on_demand`",
            ),
            (
                acme("names = \"a.example\", most_per_hour = 7"),
                "`most_per_hour` is for `on_demand = true`",
            ),
        ] {
            assert!(!is_valid(&text), "{text}");
            let problems = check(&text).unwrap_err();
            assert!(problems.contains(expected), "{expected}: {problems}");
        }
        let problems = check(&(acme("on_demand = true") + &text)).unwrap_err();
        assert!(
            problems.contains("another `acme` orders certificates on demand in another way"),
            "{problems}"
        );
        let problems = check(&acme("on_demand = true, challenge = \"http-01\"")).unwrap_err();
        assert!(
            problems.contains("every listener is encrypted"),
            "{problems}"
        );
    }

    #[test]
    fn every_mistake_is_reported() {
        let text = listen(
            r#"{ acme = { names = ["*.a.example", "b c"], directory = "http://a", challenge = "dns-01", contact = "nobody",
  ca = "none.pem", accept_terms = false, external_account = { key = "?" }, email = "a@b" } }"#,
        );
        assert_eq!(
            check(&text).unwrap_err(),
            "3:16: listen[1].tls.acme: the terms of the authority are not accepted\n\
             3:27: listen[1].tls.acme.names: `*.a.example`: authorities give certificates with a star for records of DNS (dns-01) alone\n\
             3:42: listen[1].tls.acme.names: `b c` is neither a host nor an address\n\
             3:62: listen[1].tls.acme.directory: `http://a` must begin with https:// (RFC 8555)\n\
             3:86: listen[1].tls.acme.challenge: `dns-01` is neither \"http-01\" nor \"tls-alpn-01\"\n\
             3:106: listen[1].tls.acme.contact: `nobody` is no address of mail\n\
             4:8: listen[1].tls.acme.ca: cannot read `/nonexistent/none.pem`: No such file or directory (os error 2)\n\
             4:61: listen[1].tls.acme.external_account: `id` is missing\n\
             4:69: listen[1].tls.acme.external_account.key: must be in base64url\n\
             4:76: listen[1].tls.acme.email: unknown key\n"
        );
        let acme = |more: &str| {
            let table =
                format!("{{ acme = {{ names = \"a.example\", accept_terms = true{more} }} }}");
            listen(&table)
        };
        for (text, expected) in [
            (
                acme(", challenge = \"http-01\""),
                "every listener is encrypted",
            ),
            (
                acme("") + &acme(", contact = \"a@b\""),
                "another `acme` asks for a certificate of a.example in another way",
            ),
            (
                listen("{ acme = { names = \"::1\", accept_terms = true } }"),
                "tls-alpn-01 is for hosts, and ::1 is an address",
            ),
            (
                listen("{ acme = { names = [], accept_terms = true } }"),
                "must be from 1 to 100",
            ),
            (
                listen("{ acme = { accept_terms = true }, cert = \"a\" }"),
                "cert: unknown key",
            ),
        ] {
            let problems = check(&text).unwrap_err();
            assert!(problems.contains(expected), "{expected}: {problems}");
        }
    }
}
