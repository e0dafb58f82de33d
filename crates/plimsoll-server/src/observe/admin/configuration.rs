//! `/config` of the admin port: what is served as TOML and JSON, secrets masked, and changes of upstreams and routes.
//!
//! A body has to be of a type that a form in a page cannot send, so no page elsewhere can change anything without its browser
//! asking first. The token is checked before ([`super::Admin`]).

use std::future::poll_fn;
use std::pin::Pin;
use std::str::FromStr as _;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue};
use http_body::Body as _;
use plimsoll_model::masked_urls;
use serde_json::{Value, json};

use super::api::AnswerApi;
use super::changing::{ChangeQueue, ChangeReply, WantedChange};
use crate::action::Answer;
use crate::content::ConfigContent;
use crate::content::changes::{ChangesPlan, Edit, EditError, RoutePlace};
use crate::message::body::RequestBody;
use crate::message::request::Request;
use crate::message::response::{Response, ResponseBody};
use crate::observe::audit::{AuditClient, AuditLine, AuditLog, AuditOutcome, AuditSource};

/// Content that a request may have.
const MOST_CONTENT: usize = 1 << 20;

/// The configuration that is served.
pub(crate) struct ServedConfig {
    content: ConfigContent,
    masked: ConfigContent,
    toml: Bytes,
    version: Option<HeaderValue>,
    queue: Option<ChangeQueue>,
    /// The file says that it may be changed.
    is_changeable: bool,
    has_token: bool,
    audit: AuditLog,
}

impl ServedConfig {
    /// - `queue`: takes changes, if the code that runs the plan makes any.
    /// - `is_changeable`: whether the file permits them.
    /// - `has_token`: whether clients have to have one.
    pub(crate) fn new(
        content: ConfigContent,
        queue: Option<ChangeQueue>,
        is_changeable: bool,
        has_token: bool,
        audit: AuditLog,
    ) -> Self {
        let masked = content.masked();
        let version = queue.as_ref().map(|queue| queue.version(&content));
        Self {
            toml: masked.to_toml().into(),
            masked,
            version: version.and_then(|it| HeaderValue::from_str(&it).ok()),
            content,
            queue,
            is_changeable,
            has_token,
            audit,
        }
    }

    /// Answers the API.
    pub(crate) fn into_answer(self) -> Arc<AnswerApi> {
        let served = Arc::new(self);
        Arc::new(move |request, rest| served.answer(request, rest))
    }

    fn answer(self: &Arc<Self>, request: &Request<'_>, rest: &str) -> Answer {
        let target = match Target::parse(request, rest) {
            Ok(target) => target,
            Err(rejection) => return self.rejected(request, &rejection),
        };
        let (wanted, is_dry_run) = match target {
            Target::Read(read) => return Answer::now(self.read(&read)),
            Target::Change(change, is_dry_run) => {
                if !self.is_changeable && matches!(change, Wanted::List) {
                    let document = json!({ "kept": "off", "changes": [] });
                    return Answer::now(json_response(StatusCode::OK, &document));
                }
                let needs_permission = !matches!(change, Wanted::List | Wanted::Compare);
                if needs_permission && !self.is_changeable {
                    let message = "changes are off: set `changes = \"memory\"`, or a file to keep them in, and a `token` in [admin]";
                    return self
                        .rejected(request, &Rejection(StatusCode::FORBIDDEN, message.into()));
                }
                (change, is_dry_run)
            }
        };
        let kind = request.header("content-type").unwrap_or_default();
        let kind = String::from_utf8_lossy(kind).into_owned();
        let if_match = request.header("if-match");
        let if_match = if_match.map(|it| String::from_utf8_lossy(it).into_owned());
        let client = AuditClient::from_request(request);
        let content = request.take_body();
        let served = Arc::clone(self);
        let is_change = !is_dry_run && !matches!(wanted, Wanted::List | Wanted::Compare);
        Answer::later(async move {
            let wanted = wanted.read(content, &kind, served.has_token).await;
            let replied = match (wanted, &served.queue) {
                (Err(rejection), _) => Err(rejection),
                (Ok(wanted), Some(queue)) => {
                    let waiting = queue.request(wanted, is_dry_run, if_match, client.clone());
                    waiting.await.ok_or_else(Rejection::busy)
                }
                (Ok(_), None) => Err(Rejection::busy()),
            };
            match replied {
                // The code that replied has written the line.
                Ok(reply) => response(&reply, is_dry_run),
                Err(rejection) => {
                    if is_change {
                        served.audit.record(&AuditLine {
                            source: AuditSource::Client(&client),
                            changes: &[],
                            outcome: AuditOutcome::Responded(rejection.0),
                        });
                    }
                    rejection.response()
                }
            }
        })
    }

    fn rejected(&self, request: &Request<'_>, rejection: &Rejection) -> Answer {
        if !["GET", "HEAD"].contains(&request.method) {
            self.audit.handled(request, &[], rejection.0);
        }
        Answer::now(rejection.response())
    }

    fn read(&self, read: &Read) -> Response {
        let found = match read {
            Read::All => {
                let kind = HeaderValue::from_static("application/toml");
                return self.with_version(text(StatusCode::OK, kind, self.toml.clone()));
            }
            Read::Upstreams => self
                .masked
                .get("upstream")
                .cloned()
                .or_else(|| Some(json!({}))),
            Read::Upstream(name) => self.masked.upstream(name).cloned(),
            Read::Servers(name) => {
                let upstream = self.masked.upstream(name);
                upstream.map(|it| it.get("servers").cloned().unwrap_or_else(|| json!([])))
            }
            Read::Routes => Some(self.masked.routes().to_vec().into()),
            Read::Route(route) => {
                let index = self.content.route_index(route);
                index.and_then(|index| self.masked.routes().get(index).cloned())
            }
        };
        match found {
            Some(found) => self.with_version(json_response(StatusCode::OK, &found)),
            None => {
                Rejection(StatusCode::NOT_FOUND, "there is none of that name".into()).response()
            }
        }
    }

    fn with_version(&self, response: Response) -> Response {
        match &self.version {
            Some(version) => response.with_field(ETAG, version.clone()),
            None => response,
        }
    }
}

/// What a request is for.
enum Target {
    Read(Read),
    /// Whether it is a dry run.
    Change(Wanted, bool),
}

/// A part of what is served.
enum Read {
    All,
    Upstreams,
    Upstream(String),
    Servers(String),
    Routes,
    Route(String),
}

/// What is to be done, before the content of the request is read.
enum Wanted {
    /// A change with the value in the content.
    Value(ValuePlace),
    /// One without a value.
    Edit(Edit),
    Reload,
    Compare,
    List,
}

/// What a value is for.
enum ValuePlace {
    Upstream(String),
    Servers(String),
    /// The upstream, and the URL of the server that is there.
    Server(String, String),
    NewServer(String),
    Route(String),
    NewRoute(RoutePlace),
}

impl ValuePlace {
    fn edit(self, value: Value) -> Edit {
        match self {
            Self::Upstream(name) => Edit::PutUpstream { name, value },
            Self::Servers(upstream) => Edit::PutServers { upstream, value },
            Self::Server(upstream, url) => Edit::PutServer {
                upstream,
                url,
                value,
            },
            Self::NewServer(upstream) => Edit::AddServer { upstream, value },
            Self::Route(route) => Edit::PutRoute { route, value },
            Self::NewRoute(place) => Edit::AddRoute { place, value },
        }
    }
}

/// A response that says why nothing is done.
struct Rejection(StatusCode, String);

/// The parameters of a query.
#[derive(Default)]
struct Parameters {
    is_dry_run: bool,
    server: Option<String>,
    place: Option<RoutePlace>,
}

const THERE_ARE: &str = "there are GET /config, GET /config/upstreams[/NAME[/servers]], GET /config/routes[/ROUTE], GET and DELETE /config/changes, \
     PUT and DELETE /config/upstreams/NAME, POST, PUT and DELETE /config/upstreams/NAME/servers?server=URL, POST /config/routes?before=ROUTE, \
     PUT and DELETE /config/routes/ROUTE, POST /config/reload, POST /config/difference; ?dry_run only says what would be different";

impl Target {
    fn parse(request: &Request<'_>, rest: &str) -> Result<Self, Rejection> {
        let Parameters {
            is_dry_run,
            server,
            place,
        } = Parameters::parse(request.query.unwrap_or_default())?;
        let parts = rest.split('/').filter(|part| !part.is_empty());
        let parts: Vec<_> = parts.map(decoded).collect::<Result<_, _>>()?;
        let parts: Vec<_> = parts.iter().map(String::as_str).collect();
        let owned = |text: &str| text.to_owned();
        let wanted = match (request.method, parts.as_slice()) {
            ("GET" | "HEAD", parts) => {
                return Ok(match parts {
                    [] => Self::Read(Read::All),
                    ["upstreams"] => Self::Read(Read::Upstreams),
                    ["upstreams", name] => Self::Read(Read::Upstream(owned(name))),
                    ["upstreams", name, "servers"] => Self::Read(Read::Servers(owned(name))),
                    ["routes"] => Self::Read(Read::Routes),
                    ["routes", route] => Self::Read(Read::Route(owned(route))),
                    ["changes"] => Self::Change(Wanted::List, true),
                    _ => return Err(Rejection(StatusCode::NOT_FOUND, THERE_ARE.into())),
                });
            }
            ("PUT", ["upstreams", name]) => Wanted::Value(ValuePlace::Upstream(owned(name))),
            ("DELETE", ["upstreams", name]) => {
                Wanted::Edit(Edit::RemoveUpstream { name: owned(name) })
            }
            ("POST", ["upstreams", name, "servers"]) => {
                Wanted::Value(ValuePlace::NewServer(owned(name)))
            }
            ("PUT", ["upstreams", name, "servers"]) => Wanted::Value(match server {
                Some(url) => ValuePlace::Server(owned(name), url),
                None => ValuePlace::Servers(owned(name)),
            }),
            ("DELETE", ["upstreams", name, "servers"]) => {
                // Not all of them because a parameter was forgotten.
                let needed = || Rejection(StatusCode::BAD_REQUEST, "give ?server=URL".into());
                Wanted::Edit(Edit::RemoveServer {
                    upstream: owned(name),
                    url: server.ok_or_else(needed)?,
                })
            }
            ("POST", ["routes"]) => {
                Wanted::Value(ValuePlace::NewRoute(place.unwrap_or(RoutePlace::End)))
            }
            ("PUT", ["routes", route]) => Wanted::Value(ValuePlace::Route(owned(route))),
            ("DELETE", ["routes", route]) => Wanted::Edit(Edit::RemoveRoute {
                route: owned(route),
            }),
            ("DELETE", ["changes"]) => Wanted::Edit(Edit::Undo),
            ("POST", ["reload"]) => Wanted::Reload,
            ("POST", ["difference"]) => return Ok(Self::Change(Wanted::Compare, true)),
            _ => return Err(Rejection(StatusCode::NOT_FOUND, THERE_ARE.into())),
        };
        Ok(Self::Change(wanted, is_dry_run))
    }
}

impl Parameters {
    fn parse(query: &str) -> Result<Self, Rejection> {
        let mut parameters = Self::default();
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match (&*key, &*value) {
                ("dry_run", "" | "1" | "true") => parameters.is_dry_run = true,
                ("dry_run", "0" | "false") => parameters.is_dry_run = false,
                ("server", url) => parameters.server = Some(url.to_owned()),
                ("before", route) => parameters.place = Some(RoutePlace::Before(route.to_owned())),
                ("after", route) => parameters.place = Some(RoutePlace::After(route.to_owned())),
                (other, _) => {
                    let message = format!(
                        "unknown parameter `{other}`, or a value that it does not take; there are dry_run, server, before and after"
                    );
                    return Err(Rejection(StatusCode::BAD_REQUEST, message));
                }
            }
        }
        Ok(parameters)
    }
}

impl Wanted {
    /// Reads the value that it needs.
    ///
    /// - `kind`: the type of the content.
    /// - `has_token`: clients have to have one, so they may know whether two secrets are the same.
    async fn read(
        self,
        body: RequestBody,
        kind: &str,
        has_token: bool,
    ) -> Result<WantedChange, Rejection> {
        let place = match self {
            Self::Edit(edit) => return Ok(WantedChange::Edit(edit)),
            Self::Reload => return Ok(WantedChange::Reload),
            Self::List => return Ok(WantedChange::List),
            Self::Value(place) => Some(place),
            Self::Compare => None,
        };
        let content = content(body).await?;
        let content = std::str::from_utf8(&content)
            .map_err(|_| Rejection(StatusCode::BAD_REQUEST, "the content is not UTF-8".into()))?;
        let kind = kind.split(';').next().unwrap_or_default().trim();
        Ok(match place {
            Some(place) => WantedChange::Edit(place.edit(value(content, kind)?)),
            None => WantedChange::Compare {
                content: toml(content, kind)?,
                with_secrets: has_token,
            },
        })
    }
}

impl Rejection {
    fn busy() -> Self {
        let message = "no changes are made now: the server ends, or too many of them wait";
        Self(StatusCode::SERVICE_UNAVAILABLE, message.into())
    }

    fn response(&self) -> Response {
        errors(self.0, &[json!({ "message": self.1 })])
    }
}

/// The text of a part of a path.
fn decoded(part: &str) -> Result<String, Rejection> {
    let pair = format!("a={}", part.replace('+', "%2B"));
    let value = url::form_urlencoded::parse(pair.as_bytes()).next();
    let value = value
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default();
    if value.contains(char::REPLACEMENT_CHARACTER) || value.contains(char::is_control) {
        let message = "the path has characters that no name has";
        return Err(Rejection(StatusCode::BAD_REQUEST, message.into()));
    }
    Ok(value)
}

async fn content(mut body: RequestBody) -> Result<Vec<u8>, Rejection> {
    let mut content = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let broken = |_| {
            Rejection(
                StatusCode::BAD_REQUEST,
                "the content is not complete".into(),
            )
        };
        // Trailers say nothing here.
        let Ok(piece) = frame.map_err(broken)?.into_data() else {
            continue;
        };
        if content.len() + piece.len() > MOST_CONTENT {
            let message = "the content is larger than 1 MiB";
            return Err(Rejection(StatusCode::PAYLOAD_TOO_LARGE, message.into()));
        }
        content.extend_from_slice(&piece);
    }
    Ok(content)
}

fn toml(content: &str, kind: &str) -> Result<ConfigContent, Rejection> {
    if kind != "application/toml" {
        let message = "send the file with content-type: application/toml";
        return Err(Rejection(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            message.into(),
        ));
    }
    let parsed = ConfigContent::try_parse(content);
    parsed.map_err(|error| Rejection(StatusCode::BAD_REQUEST, error.to_string()))
}

/// A value in JSON, or a table in TOML.
fn value(content: &str, kind: &str) -> Result<Value, Rejection> {
    match kind {
        "application/json" => Value::from_str(content).map_err(|error| {
            let message = format!("this is not JSON: {error}");
            Rejection(StatusCode::BAD_REQUEST, message)
        }),
        "application/toml" => Ok(toml(content, kind)?.into_value()),
        _ => {
            let message = "send the value with content-type: application/json, or a table with application/toml";
            Err(Rejection(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                message.into(),
            ))
        }
    }
}

/// The response to what became of a change.
fn response(reply: &ChangeReply, is_dry_run: bool) -> Response {
    let status = reply.status();
    match reply {
        ChangeReply::Changed { changes, version } => {
            let changes = changes.iter().map(|change| {
                let mut shown = json!({ "path": change.path });
                for (key, value) in [("before", &change.before), ("after", &change.after)] {
                    if let Some(value) = value {
                        shown[key] = Value::from(value.as_str());
                    }
                }
                shown
            });
            let document = json!({ "dry_run": is_dry_run, "changes": changes.collect::<Vec<_>>() });
            with_etag(json_response(status, &document), version)
        }
        ChangeReply::Listed { changes, kept } => {
            let changes = changes.iter().map(|(change, value)| match value {
                Some(value) => json!({ "change": change, "value": value }),
                None => json!({ "change": change }),
            });
            let kept = match kept {
                ChangesPlan::Memory => "memory",
                ChangesPlan::File(_) => "file",
            };
            let document = json!({ "kept": kept, "changes": changes.collect::<Vec<_>>() });
            json_response(status, &document)
        }
        ChangeReply::Rejected(EditError::Invalid { path, message }) => {
            errors(status, &[json!({ "path": path, "message": message })])
        }
        ChangeReply::Rejected(error) => errors(status, &[json!({ "message": error.to_string() })]),
        ChangeReply::Invalid(problems) => {
            let problems = problems.iter().map(|problem| {
                let message = masked_urls(&problem.message);
                let mut shown = json!({ "message": message });
                if !problem.key.is_empty() {
                    shown = json!({ "path": problem.key, "message": message });
                }
                if let Some(hint) = &problem.hint {
                    shown["hint"] = Value::from(masked_urls(hint));
                }
                shown
            });
            errors(status, &problems.collect::<Vec<_>>())
        }
        ChangeReply::Outdated(version) => {
            let message = "another configuration is served than `If-Match` says: read it again";
            with_etag(errors(status, &[json!({ "message": message })]), version)
        }
        ChangeReply::Failed(messages) => {
            let messages = messages.iter().map(|message| json!({ "message": message }));
            errors(status, &messages.collect::<Vec<_>>())
        }
    }
}

fn with_etag(response: Response, version: &str) -> Response {
    match HeaderValue::from_str(version) {
        Ok(version) => response.with_field(ETAG, version),
        Err(_) => response,
    }
}

fn errors(status: StatusCode, errors: &[Value]) -> Response {
    json_response(status, &json!({ "errors": errors }))
}

fn json_response(status: StatusCode, document: &Value) -> Response {
    let mut bytes = serde_json::to_vec_pretty(document).unwrap_or_default();
    bytes.push(b'\n');
    let kind = HeaderValue::from_static("application/json");
    text(status, kind, bytes.into())
}

fn text(status: StatusCode, kind: HeaderValue, content: Bytes) -> Response {
    Response::new(status)
        .with_field(CONTENT_TYPE, kind)
        .with_field(CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .with_body(ResponseBody::Bytes(content))
}
