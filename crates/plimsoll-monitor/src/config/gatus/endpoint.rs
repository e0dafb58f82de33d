//! `endpoints` and `external-endpoints`.

mod suite;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::{AddressFamily, Proxy};
use plimsoll_formats::yaml::{Content, Node};
use plimsoll_model::{Secret, is_secret_field};
use plimsoll_wire::tls::{IdentityFiles, Trust};

use crate::config::gatus::alerting::{Alerting, Thresholds};
use crate::config::gatus::file::window;
use crate::config::{MonitorPlan, Retries, What, key_of};
use crate::detect::window::Window;
use crate::detect::{DetectPolicy, RegionRule};
use crate::probe::reading::{Expectation, GatusDisplay};
use crate::probe::{
    DnsProbe, DnsRecord, GatusCondition, GrpcProbe, HttpOptions, HttpProbe, IcmpProbe,
    KnownSecrets, MailProtocol, Probe, Reach, ReachOptions, SshProbe, StartTlsProbe, TcpProbe,
    TcpTarget, UdpProbe, WebSocketProbe, WithDomain, content, has_places,
};
use crate::schedule::{CatchUp, Timing};
use crate::yaml::block::Block;

/// Gatus's default `User-Agent`.
const AGENT: &str = "Gatus/1.0";

/// Go's client follows so many.
const REDIRECTS: u32 = 10;

/// The limits of the badge of response times, in milliseconds.
const BADGE_MILLIS: [u64; 5] = [50, 200, 300, 500, 750];

/// Compiles endpoints.
pub(super) struct Endpoints {
    pub(super) alerting: Alerting,
    pub(super) directory: PathBuf,
    /// Ways to reach targets that were compiled already.
    pub(super) reaches: Vec<(Client, Reach)>,
}

/// The connection settings of `client`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Client {
    timeout: Duration,
    insecure: bool,
    ignore_redirect: bool,
    family: AddressFamily,
    name_servers: Vec<SocketAddr>,
    identity: Option<(PathBuf, PathBuf)>,
    alpn: &'static str,
    /// Of requests over HTTP alone, as in Gatus.
    proxy: Option<Proxy>,
}

impl Endpoints {
    /// The files that endpoints name.
    pub(super) fn named(&self) -> Vec<PathBuf> {
        let clients = self.reaches.iter().map(|(client, _)| client);
        let identities = clients.filter_map(|client| client.identity.clone());
        identities
            .flat_map(|(certificate, key)| [certificate, key])
            .collect()
    }

    pub(super) fn compile(&mut self, block: &Block) -> Option<MonitorPlan> {
        let enabled = block.boolean("enabled").unwrap_or(true);
        let (name, group) = names(block);
        let url = block.text("url");
        if url.is_none() {
            block.wrong(
                "url",
                "is missing",
                Some("write what is checked, such as https://example.org"),
            );
        }
        let conditions = conditions(block);
        let interval = block.duration("interval").unwrap_or(Duration::from_mins(1));
        let thresholds = self.alerting.thresholds(block);
        let windows: Vec<_> = block
            .blocks("maintenance-windows")
            .iter()
            .filter_map(window)
            .collect();
        let labels: BTreeMap<_, _> = block.texts("extra-labels").into_iter().collect();
        let (display, badge_millis) = ui(block);
        for key in ["store", "always-run"] {
            if block.node(key).is_some() {
                block.warn(key, "has a meaning in suites only");
            }
        }
        let probe = self.whole_probe(block, &name, &group, url.as_deref()?, &conditions);
        block.finish();
        let (probe, leaves_failures) = probe?;
        if !enabled {
            return None;
        }
        let mut plan = plan(&name, &group, thresholds, windows);
        self.alerting.route(block, &plan.key);
        probe.kind().clone_into(&mut plan.kind);
        plan.what = What::Probe(probe);
        let mut secrets = KnownSecrets::default();
        add_secrets(block, &mut secrets);
        plan.secrets = Arc::new(secrets);
        plan.expectation = Expectation::Gatus {
            conditions,
            leaves_failures,
            shows: display,
        };
        plan.timing = Some(Timing {
            interval,
            jitter: 0.0,
            catch_up: CatchUp::Once,
        });
        plan.policy.silent_after = interval * 3 + Duration::from_mins(1);
        plan.labels = labels;
        plan.badge_millis = badge_millis;
        plan.display = display;
        Some(plan)
    }

    pub(super) fn compile_external(&mut self, block: &Block) -> Option<MonitorPlan> {
        let enabled = block.boolean("enabled").unwrap_or(true);
        let (name, group) = names(block);
        let token = block.text("token").filter(|token| !token.is_empty());
        if token.is_none() {
            block.wrong(
                "token",
                "is missing",
                Some("write what pushes have to send as a bearer token"),
            );
        }
        let every = block
            .block("heartbeat")
            .and_then(|block| block.duration("interval"));
        if every.is_some_and(|every| every < Duration::from_secs(10)) {
            block.wrong("heartbeat", "`interval` must be at least 10s", None);
        }
        let thresholds = self.alerting.thresholds(block);
        let windows = block
            .blocks("maintenance-windows")
            .iter()
            .filter_map(window)
            .collect();
        block.finish();
        let token = Secret::new(token?);
        if !enabled {
            return None;
        }
        let mut plan = plan(&name, &group, thresholds, windows);
        "external".clone_into(&mut plan.kind);
        let mut secrets = KnownSecrets::default();
        secrets.add(token.expose());
        plan.secrets = Arc::new(secrets);
        plan.what = What::Pushed { token, every };
        plan.policy.silent_after = Duration::from_hours(24 * 365 * 100);
        self.alerting.route(block, &plan.key);
        Some(plan)
    }

    /// The probe of a URL, which looks up the registration of its domain too if a condition is about that, and whether its
    /// failures are left to the conditions.
    fn whole_probe(
        &mut self,
        block: &Block,
        name: &str,
        group: &str,
        url: &str,
        conditions: &[GatusCondition],
    ) -> Option<(Arc<dyn Probe>, bool)> {
        let (probe, leaves) = self.probe(block, name, group, url, conditions)?;
        if conditions.iter().any(GatusCondition::needs_domain) {
            return Some((self.with_domain(block, url, probe)?, leaves));
        }
        Some((probe, leaves))
    }

    /// A probe that also looks up when the registration of the domain ends.
    fn with_domain(
        &mut self,
        block: &Block,
        url: &str,
        probe: Arc<dyn Probe>,
    ) -> Option<Arc<dyn Probe>> {
        let host = url.split_once("://").map_or(url, |(_, rest)| rest);
        let host = host.split(['/', '?', ':']).next().unwrap_or_default();
        let client = self.client(block);
        let reach = self.reach(block, client, "http/1.1")?;
        let found = WithDomain::new(probe, host, &reach);
        if found.is_none() {
            let hint = "[DOMAIN_EXPIRATION] needs a domain such as example.org";
            block.wrong("url", "has no domain that could be registered", Some(hint));
        }
        Some(Arc::new(found?))
    }

    /// The probe of a URL, and whether its failures are left to the conditions.
    fn probe(
        &mut self,
        block: &Block,
        name: &str,
        group: &str,
        url: &str,
        conditions: &[GatusCondition],
    ) -> Option<(Arc<dyn Probe>, bool)> {
        let client = self.client(block);
        let body = body(block, name, group, url);
        let is_graphql = block.boolean("graphql").unwrap_or(false);
        let headers = block.texts("headers");
        let method = block.text("method").unwrap_or_else(|| "GET".to_owned());
        let ssh = block.block("ssh");
        if let Some(dns) = block.block("dns") {
            let reach = self.reach(block, client, "")?;
            let kind = dns.text("query-type");
            let query = dns.text("query-name");
            let (Some(kind), Some(query)) = (kind, query) else {
                dns.wrong("", "needs `query-type` and `query-name`", None);
                return None;
            };
            let record = checked(&dns, "query-name", DnsRecord::parse(&query, &kind))?;
            let server = checked(block, "url", TcpTarget::parse(url, false, 53))?;
            let probe = DnsProbe {
                server: Some(server),
                record,
                requires_validation: false,
                requires_answer: false,
                last_only: true,
                reach,
            };
            return Some((Arc::new(probe), false));
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            let hint = "write one such as https://example.org, or a `dns` block";
            block.wrong("url", &format!("`{url}` has no scheme"), Some(hint));
            return None;
        };
        let send = body.clone().map(String::into_bytes);
        let (is_tls, port) = (
            scheme == "tls",
            rest.split(['/', '?']).next().unwrap_or(rest),
        );
        let probe: (Arc<dyn Probe>, bool) = match scheme {
            "http" | "https" => {
                let keeps_body = conditions.iter().any(GatusCondition::needs_body)
                    || block.node("store").is_some();
                let mut options = http_options(block, url, &client, (method, headers), keeps_body);
                options.body = body.map(|body| content(body, is_graphql).into_bytes());
                let reach = self.reach(block, client, "http/1.1")?;
                (
                    Arc::new(checked(block, "url", HttpProbe::new(options, reach))?),
                    false,
                )
            }
            "tcp" | "tls" => {
                let reach = self.reach(block, client, "")?;
                let target = checked(block, "url", TcpTarget::parse(port, is_tls, 0))?;
                (
                    Arc::new(TcpProbe {
                        target,
                        send,
                        reach,
                    }),
                    !is_tls,
                )
            }
            "udp" => {
                let reach = self.reach(block, client, "")?;
                let target = checked(block, "url", TcpTarget::parse(port, false, 0))?;
                (
                    Arc::new(UdpProbe {
                        target,
                        send,
                        reach,
                    }),
                    true,
                )
            }
            "icmp" => {
                let reach = self.reach(block, client, "")?;
                let target = checked(block, "url", TcpTarget::parse(port, false, 1))?;
                (Arc::new(IcmpProbe { target, reach }), true)
            }
            "starttls" => {
                let reach = self.reach(block, client, "")?;
                let target = checked(block, "url", TcpTarget::parse(port, false, 25))?;
                let probe = StartTlsProbe {
                    target,
                    protocol: MailProtocol::Smtp,
                    warn_within: None,
                    critical_within: None,
                    reach,
                };
                (Arc::new(probe), false)
            }
            "ssh" => {
                let has_user = ssh.as_ref().is_some_and(|ssh| {
                    ["username", "password", "private-key"].iter().any(|key| {
                        ssh.entries()
                            .iter()
                            .any(|(name, node)| name == key && node.to_json() != "")
                    })
                });
                if has_user {
                    block.wrong(
                        "ssh",
                        "commands are not supported",
                        Some("remove the credentials to check the banner"),
                    );
                }
                let reach = self.reach(block, client, "")?;
                let target = checked(block, "url", TcpTarget::parse(port, false, 22))?;
                (Arc::new(SshProbe { target, reach }), false)
            }
            "ws" | "wss" => {
                let client = Client {
                    proxy: None,
                    ..client
                };
                let reach = self.reach(block, client, "http/1.1")?;
                let mut fields = headers;
                if !fields
                    .iter()
                    .any(|(name, _)| name.eq_ignore_ascii_case("origin"))
                {
                    fields.push(("origin".to_owned(), "http://localhost/".to_owned()));
                }
                (
                    Arc::new(checked(
                        block,
                        "url",
                        WebSocketProbe::new(url, &fields, send, reach),
                    )?),
                    false,
                )
            }
            "grpc" | "grpcs" => {
                let reach = self.reach(block, client, "h2")?;
                (
                    Arc::new(checked(
                        block,
                        "url",
                        GrpcProbe::new(url, "", &headers, false, reach),
                    )?),
                    false,
                )
            }
            other => {
                let known = "http, https, tcp, tls, udp, icmp, starttls, ssh, ws, wss, grpc, grpcs";
                block.wrong(
                    "url",
                    &format!("`{other}://` is not supported"),
                    Some(&format!("known are {known}")),
                );
                return None;
            }
        };
        Some(probe)
    }

    fn client(&self, block: &Block) -> Client {
        let mut client = Client {
            timeout: Duration::from_secs(10),
            insecure: false,
            ignore_redirect: false,
            family: AddressFamily::Any,
            name_servers: Vec::new(),
            identity: None,
            alpn: "",
            proxy: None,
        };
        let Some(given) = block.block("client") else {
            return client;
        };
        client.insecure = given.boolean("insecure").unwrap_or(false);
        client.ignore_redirect = given.boolean("ignore-redirect").unwrap_or(false);
        if let Some(timeout) = given
            .duration("timeout")
            .filter(|it| *it >= Duration::from_millis(1))
        {
            client.timeout = timeout;
        }
        match given.text("network").as_deref() {
            None | Some("ip") => {}
            Some("ip4") => client.family = AddressFamily::Ipv4,
            Some("ip6") => client.family = AddressFamily::Ipv6,
            Some(other) => given.wrong(
                "network",
                &format!("`{other}` is not a network"),
                Some("write ip, ip4 or ip6"),
            ),
        }
        if let Some(resolver) = given.text("dns-resolver") {
            let address = resolver
                .split_once("://")
                .map_or(resolver.as_str(), |(_, rest)| rest);
            match address.parse() {
                Ok(address) => client.name_servers.push(address),
                Err(_) => given.wrong(
                    "dns-resolver",
                    &format!("`{resolver}` is not a name server"),
                    Some("write one such as tcp://8.8.8.8:53"),
                ),
            }
        }
        if let Some(tls) = given.block("tls") {
            let file = |key| tls.text(key).map(|path| self.directory.join(path));
            client.identity = file("certificate-file").zip(file("private-key-file"));
            tls.text("renegotiation");
        }
        if let Some(text) = given.text("proxy-url").filter(|text| !text.is_empty()) {
            match text.parse() {
                Ok(proxy) if text.contains("://") => client.proxy = Some(proxy),
                _ => given.wrong(
                    "proxy-url",
                    "is not the URL of a proxy",
                    Some("write one such as http://proxy.example.org:3128"),
                ),
            }
        }
        for key in ["oauth2", "identity-aware-proxy", "tunnel"] {
            // Without a value, as of a variable that is not set, it is not there for Gatus either.
            let is_empty =
                |node: &Node| matches!(&node.content, Content::Text(text) if text.is_empty());
            if given.node(key).is_some_and(|node| !is_empty(node)) {
                given.wrong(
                    key,
                    "is not supported",
                    Some("leave it out, or keep Gatus for this endpoint"),
                );
            }
        }
        given.finish();
        client
    }

    fn reach(&mut self, block: &Block, client: Client, alpn: &'static str) -> Option<Reach> {
        let proxy = client.proxy.clone().filter(|_| alpn == "http/1.1");
        let client = Client {
            alpn,
            proxy,
            ..client
        };
        if let Some((_, known)) = self.reaches.iter().find(|(known, _)| *known == client) {
            return Some(known.clone());
        }
        let identity = client.identity.clone();
        let options = ReachOptions {
            timeout: client.timeout,
            trust: if client.insecure {
                Trust::Anyone
            } else {
                Trust::PublicRoots
            },
            identity: identity.map(|(certificate, key)| IdentityFiles {
                certificate,
                key: Some(key),
            }),
            server_name: None,
            family: client.family,
            name_servers: client.name_servers.clone(),
            filter: None,
            alpn: if alpn.is_empty() {
                Vec::new()
            } else {
                vec![alpn.as_bytes().to_vec()]
            },
            proxy: client.proxy.clone(),
        };
        let reach = checked(block, "client", Reach::new(options))?;
        self.reaches.push((client, reach.clone()));
        Some(reach)
    }
}

/// The content of a request, with the facts of its endpoint.
fn body(block: &Block, name: &str, group: &str, url: &str) -> Option<String> {
    let fill = |text: String| {
        text.replace("[ENDPOINT_NAME]", name)
            .replace("[ENDPOINT_GROUP]", group)
            .replace("[ENDPOINT_URL]", url)
    };
    let body = block.text("body").map(fill).filter(|body| !body.is_empty());
    if body
        .as_ref()
        .is_some_and(|body| body.contains("[RANDOM_STRING_") || body.contains("[LOCAL_ADDRESS]"))
    {
        block.wrong(
            "body",
            "[RANDOM_STRING_N] and [LOCAL_ADDRESS] are not supported",
            None,
        );
    }
    body
}

/// A request without its content.
fn http_options(
    block: &Block,
    url: &str,
    client: &Client,
    (method, mut fields): (String, Vec<(String, String)>),
    keeps_body: bool,
) -> HttpOptions {
    if block.boolean("graphql").unwrap_or(false) && block.text("body").is_some() {
        fields.push(("content-type".to_owned(), "application/json".to_owned()));
    }
    HttpOptions {
        url: url.to_owned(),
        method,
        fields,
        body: None,
        basic_auth: None,
        redirects: if client.ignore_redirect { 0 } else { REDIRECTS },
        keeps_body,
        http2: false,
        agent: AGENT.to_owned(),
    }
}

fn checked<T, E: ToString>(block: &Block, key: &str, result: Result<T, E>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            block.wrong(key, &error.to_string(), None);
            None
        }
    }
}

fn names(block: &Block) -> (String, String) {
    let name = block.text("name").unwrap_or_default();
    let group = block.text("group").unwrap_or_default();
    if name.is_empty() {
        block.wrong("name", "is missing", None);
    }
    for (key, text) in [("name", &name), ("group", &group)] {
        if text.contains(['"', '\\']) {
            block.wrong(key, "must not contain quotes or backslashes", None);
        }
        if text.contains(char::is_control) {
            block.wrong(key, "must be one line, without control characters", None);
        }
    }
    (name, group)
}

/// Adds the credentials that an endpoint sends.
fn add_secrets(block: &Block, secrets: &mut KnownSecrets) {
    for key in ["url", "body"] {
        secrets.add_text(&block.text(key).unwrap_or_default());
    }
    for (name, value) in block.texts("headers") {
        // What fills a place is known when it is sent.
        if has_places(&value) {
            continue;
        }
        if is_secret_field(&name) {
            secrets.add_field(&value);
        } else {
            secrets.add_text(&value);
        }
    }
}

fn conditions(block: &Block) -> Vec<GatusCondition> {
    let nodes = block.list("conditions");
    if nodes.is_empty() {
        block.wrong(
            "conditions",
            "there must be at least one",
            Some("write for example `[STATUS] == 200`"),
        );
    }
    let mut all = Vec::new();
    for (number, node) in nodes.iter().enumerate() {
        let key = format!("conditions[{number}]");
        let value = node.to_json();
        let Some(text) = value.as_str() else {
            block.wrong_at(node, &key, "must be a text", Some("put it into quotes"));
            continue;
        };
        match GatusCondition::parse(text) {
            Ok(condition) => {
                if let Some(hazard) = condition.hazard() {
                    block.warn(&key, format!("`{text}` {hazard}"));
                }
                all.push(condition);
            }
            Err(error) => block.wrong_at(node, &key, &error.to_string(), None),
        }
    }
    all
}

fn ui(block: &Block) -> (GatusDisplay, [u64; 5]) {
    let Some(ui) = block.block("ui") else {
        return (GatusDisplay::default(), BADGE_MILLIS);
    };
    let is_on = |key| ui.boolean(key).unwrap_or(false);
    let display = GatusDisplay {
        keep_failed: is_on("dont-resolve-failed-conditions"),
        resolve_successful: is_on("resolve-successful-conditions"),
        hide_conditions: is_on("hide-conditions"),
        hide_hostname: is_on("hide-hostname"),
        hide_errors: is_on("hide-errors"),
    };
    is_on("hide-url");
    is_on("hide-port");
    let mut millis = BADGE_MILLIS;
    let response = ui
        .block("badge")
        .and_then(|badge| badge.block("response-time"));
    if let Some(response) = response {
        let given: Vec<u64> = response
            .list("thresholds")
            .iter()
            .filter_map(|node| node.to_json().as_u64())
            .collect();
        match <[u64; 5]>::try_from(given) {
            Ok(given) if given.is_sorted() => millis = given,
            _ => response.wrong(
                "thresholds",
                "must be five ascending numbers of milliseconds",
                None,
            ),
        }
    }
    ui.finish();
    (display, millis)
}

fn plan(name: &str, group: &str, thresholds: Thresholds, windows: Vec<Window>) -> MonitorPlan {
    MonitorPlan {
        key: key_of(group, name),
        name: name.to_owned(),
        group: group.to_owned(),
        kind: String::new(),
        what: What::Manual,
        expectation: Expectation::default(),
        secrets: Arc::default(),
        timing: None,
        retries: Retries::default(),
        from: Vec::new(),
        work: None,
        slo: None,
        policy: DetectPolicy {
            confirm: thresholds.failures,
            recover: thresholds.successes,
            regions: RegionRule::Any,
            hold: Duration::ZERO,
            flap: None,
            reports_no_data: false,
            ..DetectPolicy::default()
        },
        windows: windows.into_iter().map(Arc::new).collect(),
        parents: Vec::new(),
        labels: BTreeMap::new(),
        tags: Vec::new(),
        badge_millis: BADGE_MILLIS,
        display: GatusDisplay::default(),
    }
}
