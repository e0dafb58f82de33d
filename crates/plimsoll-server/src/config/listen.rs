//! `[[listen]]`.

use std::rc::Rc;
use std::sync::Arc;

use http::header::HeaderName;
use plimsoll_model::with_causes;
use plimsoll_wire::tls::{
    AwaitedCertificate, CertificateFiles, ClientCertificates, OnDemandCertificates, SelfSigned,
    ServerCertificate, server_config,
};

use crate::acme::{AcmePlan, ChallengeKind, HttpChallenges, OnDemandPlan, WithChallenges};
use crate::action::{Action, MakeAction};
use crate::actions::Redirect;
use crate::config::acme::Acme;
use crate::config::action::Listened;
use crate::config::address::{address, check_http, check_udp, mode, networks};
use crate::config::document::{Table, Value, as_text};
use crate::config::log::LogPlan;
use crate::config::paths::{NamedPaths, OutsideSandbox, PathUse};
use crate::config::retry_key::retry_key;
use crate::config::{Context, Routing, acme, middleware, ocsp, udp};
use crate::counters::Counters;
use crate::engine::address::Address;
use crate::engine::{Http3Plan, ListenerPlan, Serves};
use crate::middleware::{
    BehindProxies, Middleware, OwnFields, Spelling, TrustedProxies, Underscores,
};
use crate::observe::access_log::AccessLog;
use crate::observe::notice::{Notice, Severity};
use crate::worker::context::WorkerContext;

/// Names of a certificate that is made for none in particular.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The names of listeners, by which routes are theirs alone; each is taken once.
pub(super) fn names(tables: &mut [Table<'_>]) -> Vec<Option<String>> {
    let mut names: Vec<Option<String>> = Vec::new();
    for table in tables {
        let name = table.take_value("name").and_then(|value| {
            let name = as_text(&value)?.to_owned();
            if names.iter().flatten().any(|known| *known == name) {
                return value.wrong(format!("another listener is called `{name}`"));
            }
            Some(name)
        });
        names.push(name);
    }
    names
}

/// The listeners of the file.
///
/// - `names`: their names, in the same order.
pub(super) fn compile(
    tables: Vec<Table<'_>>,
    names: &[Option<String>],
    context: &Context<'_>,
    routing: &Routing,
    logs: &[LogPlan],
) -> Vec<ListenerPlan> {
    let mut tables = tables;
    let secured: Vec<_> = tables
        .iter_mut()
        .map(|table| Secured::compile(table, context))
        .collect();
    let asks_in_clear = secured.iter().any(|secured| secured.asks_in_clear);
    let has_clear = secured.iter().any(|secured| secured.is_clear);
    let mut listeners: Vec<ListenerPlan> = Vec::new();
    for ((mut table, secured), name) in tables.into_iter().zip(secured).zip(names) {
        let address = address(&mut table);
        if let Some(Address::Unix(path)) = &address
            && let Err(outside) = context.paths.note(path, PathUse::WriteFile)
        {
            table.wrong(outside, Some(OutsideSandbox::HINT.to_owned()));
        }
        let mode = mode(&mut table, address.as_ref());
        let shares_port = table.boolean("share_port").unwrap_or(false);
        let raw = raw_key(&table, context);
        if let Some(key) = raw
            && let Some(value) = table.take_value(key)
        {
            let shown = address.as_ref().map(ToString::to_string);
            let listened = Listened {
                paths: context.paths,
                identity: &shown.unwrap_or_default(),
                states: &context.compiler.states,
                counters: &context.compiler.counters,
                log: LogPlan::main(logs),
                notices: &context.compiler.notices,
                sections: &context.sections,
                maps: &context.maps,
                tls: secured.tls,
            };
            let serves = compile_raw(key, value, context, &listened);
            let is_udp = matches!(key, "udp" | "quic");
            let proxied_by = if is_udp {
                None
            } else {
                table.take_value("proxied_by").and_then(networks)
            };
            if let Some(address) = &address {
                if is_udp {
                    check_udp(&mut table, key, address, &listeners);
                } else {
                    check_http(&mut table, address, false, &listeners);
                }
            }
            table.finish();
            if let (Some(address), Some(serves)) = (address, serves) {
                listeners.push(ListenerPlan {
                    mode,
                    shares_port,
                    proxied_by: proxied_by.unwrap_or_default(),
                    ..ListenerPlan::new(address, serves)
                });
            }
            continue;
        }
        let proxied_by = table.take_value("proxied_by").and_then(networks);
        let proxies = table
            .take_value("trusted_proxies")
            .and_then(trusted_proxies);
        let underscores = table
            .take_value("underscores")
            .and_then(|it| underscores(&it));
        if secured.asks_in_clear && !has_clear {
            table.wrong(
                "http-01 is answered in the clear, and every listener is encrypted",
                Some("add [[listen]] with address = \"[::]:80\"".to_owned()),
            );
        }
        let challenges =
            (asks_in_clear && secured.is_clear).then_some(&context.compiler.challenges);
        let Secured {
            http2,
            tls,
            on_demand,
            ..
        } = secured;
        let http3 = http3(&mut table, tls.is_some(), context.paths);
        let to_tls = to_tls(&mut table);
        let shown = address.as_ref().map(ToString::to_string);
        let identity = context.identity(&format!("listener {}", shown.unwrap_or_default()));
        let of_listener = middleware::Placement {
            name: "listener",
            called: name.as_deref().unwrap_or(&identity),
            identity: &identity,
            prefix: "/",
        };
        let middleware = middleware::compile(&mut table, context, &of_listener);
        let mut own_fields = routing.own_fields(name.as_deref());
        own_fields.extend(&middleware.own_fields());
        if let Some(proxies) = &proxies {
            own_fields.push(&proxies.header);
        }
        let spelling = (underscores.unwrap_or_default(), Arc::new(own_fields));
        if let Some(address) = &address {
            check_http(&mut table, address, http3.is_some(), &listeners);
        }
        table.finish();
        if let Some(address) = address {
            listeners.push(ListenerPlan {
                address,
                mode,
                shares_port,
                proxied_by: proxied_by.unwrap_or_default(),
                is_last: false,
                on_demand,
                serves: Serves::Http {
                    action: layered(
                        to_tls.unwrap_or_else(|| routing.of_listener(name.as_deref())),
                        (spelling, middleware),
                        challenges
                            .map(|it| (it.http.clone(), Arc::clone(&context.compiler.counters))),
                        logs.iter().map(|plan| plan.log.clone()).collect(),
                        proxies.map(Arc::new),
                    ),
                    tls,
                    http2,
                    http3,
                },
            });
        }
    }
    listeners
}

/// The key of what a listener serves instead of HTTP, if it has one.
fn raw_key(table: &Table<'_>, context: &Context<'_>) -> Option<&'static str> {
    let others = context.compiler.listens.iter().map(|kind| kind.key);
    others.chain(["udp"]).find(|key| table.has(key))
}

fn compile_raw(
    key: &'static str,
    value: Value<'_>,
    context: &Context<'_>,
    listened: &Listened<'_>,
) -> Option<Serves> {
    let mut kinds = context.compiler.listens.iter();
    let kind = kinds.find(|kind| kind.key == key);
    match kind {
        Some(kind) if !(key == "udp" && udp::is_echo(&value)) => (kind.compile)(value, listened),
        _ => udp::compile(value.table()?).map(Serves::Datagram),
    }
}

/// TLS settings of a listener, if it has TLS.
struct Secured {
    http2: bool,
    tls: Option<Arc<rustls::ServerConfig>>,
    /// Certificates that clients wait for.
    on_demand: Option<OnDemandCertificates>,
    /// It speaks HTTP in the clear.
    is_clear: bool,
    /// One of its certificates is proven by answers in the clear.
    asks_in_clear: bool,
}

impl Secured {
    fn compile(table: &mut Table<'_>, context: &Context<'_>) -> Self {
        let mut secured = Self {
            http2: true,
            tls: None,
            on_demand: None,
            is_clear: false,
            asks_in_clear: false,
        };
        let raw = raw_key(table, context);
        if raw.is_some_and(|key| !matches!(key, "tcp" | "quic")) {
            return secured;
        }
        secured.http2 = raw.is_none() && table.boolean("http2").unwrap_or(true);
        let asked_before = asked_in_clear(context);
        if let Some((config, on_demand)) = tls(table, context, secured.http2) {
            (secured.tls, secured.on_demand) = (Some(config), on_demand);
        }
        secured.asks_in_clear = asked_in_clear(context) > asked_before;
        secured.is_clear = raw.is_none() && !table.was_given("tls");
        secured
    }
}

/// Certificates that are proven by answers in the clear.
fn asked_in_clear(context: &Context<'_>) -> usize {
    let plans = context.acme.borrow();
    let is_in_clear = |plan: &&AcmePlan| plan.challenge == ChallengeKind::Http;
    let on_demand = context.on_demand.borrow();
    let is_on_demand = |plan: &OnDemandPlan| plan.challenge == ChallengeKind::Http;
    plans.iter().filter(is_in_clear).count()
        + usize::from(on_demand.as_ref().is_some_and(is_on_demand))
}

/// Redirects every client to the same URL with TLS, if the listener is for that.
fn to_tls(table: &mut Table<'_>) -> Option<Arc<MakeAction>> {
    let value = table.take_value("redirect_https")?;
    if value.is_false() {
        return None;
    }
    let mut settings = value.table_or_true()?;
    let port = settings.count("port", 1..=65_535).unwrap_or(HTTPS);
    let status = settings.count("status", 300..=399).unwrap_or(308);
    if table.was_given("tls") {
        table.wrong(
            "`redirect_https` is for a listener in the clear, and there is `tls`",
            None,
        );
    }
    let port = if port == HTTPS {
        String::new()
    } else {
        format!(":{port}")
    };
    let to = format!("https://{{host}}{port}{{path}}{{query}}");
    let status = u16::try_from(status).unwrap_or_default();
    let redirect = Redirect::new(status, &to);
    let redirect = redirect.map_err(|error| settings.wrong(error, None)).ok();
    settings.finish();
    let redirect = redirect?;
    Some(Arc::new(move |_: &WorkerContext| {
        Rc::new(redirect.clone()) as Rc<dyn Action>
    }))
}

/// The port that a URL need not name.
const HTTPS: usize = 443;

/// Compiles the value of `trusted_proxies`: networks, or a table with `networks`, `header` and `recursive`.
pub fn trusted_proxies(value: Value<'_>) -> Option<TrustedProxies> {
    let default = HeaderName::from_static("x-forwarded-for");
    if !value.is_table() {
        return networks(value).map(|networks| TrustedProxies {
            networks,
            header: default,
            recursive: true,
        });
    }
    let mut table = value.table()?;
    let list = table.take_value("networks");
    if list.is_none() {
        table.missing("networks", "such as networks = [\"10.0.0.0/8\"]");
    }
    let header = match table.take_value("header") {
        None => Some(default),
        Some(value) => as_text(&value).and_then(|text| {
            let name = HeaderName::from_bytes(text.as_bytes());
            value.check(name.map_err(|_| format!("`{text}` is not the name of a header field")))
        }),
    };
    let recursive = table.boolean("recursive").unwrap_or(true);
    table.finish();
    Some(TrustedProxies {
        networks: list.and_then(networks)?,
        header: header?,
        recursive,
    })
}

/// `"collisions"`, `"drop"` or `"allow"`.
fn underscores(value: &Value<'_>) -> Option<Underscores> {
    let parsed = Underscores::parse(as_text(value)?);
    value.check(parsed.ok_or("is \"collisions\", \"drop\" or \"allow\""))
}

/// The routes of a listener with their layers; the logs are outside of them, and behind the proxies.
fn layered(
    routes: Arc<MakeAction>,
    (spelling, middleware): ((Underscores, Arc<OwnFields>), Middleware),
    challenges: Option<(HttpChallenges, Arc<Counters>)>,
    logs: Vec<AccessLog>,
    proxies: Option<Arc<TrustedProxies>>,
) -> Arc<MakeAction> {
    Arc::new(move |context: &WorkerContext| {
        let (underscores, own_fields) = &spelling;
        let action = middleware.over_of(context, routes(context));
        let mut action = Spelling::over(*underscores, own_fields, context.counters(), action);
        if let Some((challenges, counters)) = &challenges {
            action = Rc::new(WithChallenges {
                challenges: challenges.clone(),
                tag: Rc::new(counters.route("acme")),
                inner: action,
            });
        }
        for log in &logs {
            action = log.over(action);
        }
        match &proxies {
            Some(proxies) => Rc::new(BehindProxies::new(Arc::clone(proxies), action)),
            None => action,
        }
    })
}

/// `true`, or a table with the port that is advertised to clients.
fn http3(table: &mut Table<'_>, has_tls: bool, paths: &NamedPaths<'_>) -> Option<Http3Plan> {
    let value = table.take_value("http3")?;
    if value.is_false() {
        return None;
    }
    let mut settings = value.table_or_true()?;
    let advertised = settings.count("advertise", 1..=65_535);
    let retry_key = retry_key(&mut settings, paths);
    settings.finish();
    let plan = Http3Plan {
        advertised: advertised.and_then(|port| u16::try_from(port).ok()),
        retry_key,
    };
    if !has_tls && !table.was_given("tls") {
        table.wrong(
            "`http3` needs a certificate: QUIC is always encrypted",
            Some("tls = { cert = \"cert.pem\", key = \"key.pem\" }".to_owned()),
        );
    }
    Some(plan)
}

/// One table, or one for each certificate.
fn tls(
    table: &mut Table<'_>,
    context: &Context<'_>,
    http2: bool,
) -> Option<(Arc<rustls::ServerConfig>, Option<OnDemandCertificates>)> {
    let values = table
        .take_value("tls")
        .map(Value::elements)
        .unwrap_or_default();
    let clients = match table.take_value("client_certificates") {
        None => Some(None),
        Some(value) => {
            context.asks_for_certificates.set(true);
            let table = value.table();
            table.and_then(|table| clients(table, context)).map(Some)
        }
    };
    if values.is_empty() {
        if !matches!(clients, Some(None)) {
            table.wrong("`client_certificates` are given, but no `tls`", None);
        }
        return None;
    }
    let mut certificates = Vec::new();
    let (mut is_whole, mut proves) = (true, false);
    let mut on_demand = None;
    for value in values {
        let Some(mut table) = value.table() else {
            is_whole = false;
            continue;
        };
        let certificate = match table.take_value("acme") {
            None => certificate(table, context),
            Some(value) => {
                let acme = acme::compile(value, context);
                proves |= acme
                    .as_ref()
                    .is_some_and(|it| it.challenge() == ChallengeKind::TlsAlpn);
                let plan = match acme {
                    Some(Acme::OnDemand(_)) => {
                        table.finish();
                        on_demand = Some(&context.compiler.challenges.on_demand);
                        continue;
                    }
                    Some(Acme::Names(plan)) => Some(plan),
                    None => None,
                };
                let chain = plan.as_ref().map(|plan| plan.file.as_path());
                let ocsp = ocsp::compile(&mut table, chain, context);
                table.finish();
                plan.map(|plan| {
                    context.certificates.borrow_mut().push(plan.file.clone());
                    ServerCertificate::Awaited(AwaitedCertificate {
                        ocsp,
                        ..plan.awaited()
                    })
                })
            }
        };
        match certificate {
            Some(certificate) => certificates.push(certificate),
            None => is_whole = false,
        }
    }
    let challenges = proves.then_some(&context.compiler.challenges.tls);
    if !is_whole {
        return None;
    }
    let clients = clients?;
    match server_config(
        &certificates,
        clients.as_ref(),
        http2,
        challenges,
        on_demand,
    ) {
        Ok(config) => Some((Arc::new(config), on_demand.cloned())),
        Err(error) => {
            table.wrong(with_causes(&error), None);
            None
        }
    }
}

/// Files, or one that is made here.
fn certificate(mut table: Table<'_>, context: &Context<'_>) -> Option<ServerCertificate> {
    if let Some(value) = table.take_value("self_signed") {
        let names = if value.is_true() {
            Some(LOCAL_NAMES.map(str::to_owned).to_vec())
        } else {
            value.texts_with(|name| {
                let is_wrong = SelfSigned::new(&[name.to_owned()]).is_err();
                is_wrong.then(|| format!("`{name}` is neither a host nor an address"))
            })
        };
        if table.has("cert") || table.has("key") {
            table.wrong("both `self_signed` and files are given", None);
            return None;
        }
        let made = names.map(|names| context.self_signed(names));
        if let Some(Err(error)) = &made {
            table.wrong(with_causes(error), None);
        }
        table.finish();
        return made?.ok().map(ServerCertificate::SelfSigned);
    }
    let mut file = |key: &'static str| {
        let path = table.take_value(key);
        if path.is_none() {
            table.missing(key, "a file in PEM");
        }
        path.and_then(|path| context.certificate(&path))
    };
    let (certificates, key) = (file("cert"), file("key"));
    let ocsp = ocsp::compile(&mut table, certificates.as_deref(), context);
    let files = certificates
        .zip(key)
        .map(|(certificates, key)| CertificateFiles {
            certificates,
            key,
            ocsp,
        });
    if let Some(files) = &files
        && let Some(version) = files.old_version()
    {
        let message = format!(
            "the certificate is of X.509 version {version}, which browsers refuse: make one of version 3, with `subjectAltName`"
        );
        let about = files.certificates.display().to_string();
        let notice = Notice::new(Severity::Warning, message).about(about);
        context.compiler.notices.report(&notice);
    }
    table.finish();
    files.map(ServerCertificate::Files)
}

fn clients(mut table: Table<'_>, context: &Context<'_>) -> Option<ClientCertificates> {
    let authorities = table.take_value("ca");
    if authorities.is_none() {
        table.missing("ca", "a file in PEM with those that vouch for clients");
    }
    let required = table.boolean("required").unwrap_or(true);
    table.finish();
    Some(ClientCertificates {
        authorities: context.certificate(&authorities?)?,
        required,
    })
}
