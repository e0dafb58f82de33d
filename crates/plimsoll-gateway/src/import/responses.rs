//! What a route responds with by itself, and its layers.

use http::{HeaderName, HeaderValue};
use plimsoll_model::document::toml_string;
use plimsoll_server::{Maps, Moment, Redirect};

use super::Notes;
use super::access;
use super::logs;
use super::nginx::Directive;
use super::rate_limit::limits;
use super::redirects::{redirect_target, variable};
use super::scope::Scope;
use super::toml::Keys;
use super::upstreams::{bytes, duration, size};
use super::variables::with_places;

/// The rule by which responses of servers that say none get the character set of `charset`. Files have theirs.
fn charset(scope: &Scope<'_>) -> Option<String> {
    let charset = scope.last("charset")?.argument(0);
    let is_name = |it: &str| {
        !it.is_empty()
            && it
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
    };
    if charset.eq_ignore_ascii_case("off") || !is_name(charset) {
        return None;
    }
    let mut types = vec!["text/html".to_owned()];
    match scope.last("charset_types") {
        Some(given) => types.extend(given.arguments.iter().cloned()),
        None => types.extend(CHARSET_TYPES.map(str::to_owned)),
    }
    let types = if types.iter().any(|it| it == "*") {
        "[^;]+".to_owned()
    } else {
        let types: Vec<_> = types.iter().map(|it| regex::escape(it)).collect();
        types.join("|")
    };
    let from = toml_string(&format!("^({types})$"));
    // The value of a rewrite has no blanks.
    let to = toml_string(&format!("{{1}};charset={charset}"));
    Some(format!(
        "{{ name = \"content-type\", from = {from}, to = {to} }}"
    ))
}

/// Media types other than HTML that get a charset unless `charset_types` lists others.
const CHARSET_TYPES: [&str; 5] = [
    "text/xml",
    "text/plain",
    "text/vnd.wap.wml",
    "application/javascript",
    "application/rss+xml",
];

/// How much content is read ahead, if something that holds here names `$request_body`. nginx has its value where it reads the
/// content whole, in memory.
fn content_read(scope: &Scope<'_>, notes: &mut Notes) -> Option<String> {
    fn is_named(directive: &Directive) -> bool {
        let name = "request_body";
        let mut arguments = directive.arguments.iter();
        arguments.any(|it| {
            it.split('$')
                .skip(1)
                .any(|it| variable(it).is_some_and(|(it, _)| it == name))
        }) || directive.block.iter().any(is_named)
    }
    scope.find(|it| it.name != "server" && is_named(it))?;
    let is_streamed = ["proxy", "fastcgi", "uwsgi"].iter().any(|it| {
        let is_it = scope.own(&format!("{it}_pass")).is_some();
        is_it && scope.is(&format!("{it}_request_buffering"), "off")
    });
    if is_streamed {
        // Formats and maps have no effect until a directive uses them.
        let others = ["server", "location", "log_format", "map"];
        let naming = scope.find(|it| !others.contains(&it.name.as_str()) && is_named(it));
        if let Some(naming) = naming {
            notes.add(
                naming,
                "`$request_body` is empty where content is forwarded as it comes; nginx would have what fits one buffer",
            );
        }
        return None;
    }
    let given = scope.last("client_body_buffer_size");
    let most = given
        .and_then(|it| bytes(it.argument(0)))
        .unwrap_or(16 << 10);
    size(&most.clamp(1, 1 << 20).to_string())
}

/// Key under which the rules of `proxy_redirect` wait for those of other fields; no route has it.
pub(super) const REWRITES: &str = "rewrites of fields";

/// The same for the rules of `proxy_cookie_domain`, `_path` and `_flags`.
pub(super) const COOKIES: &str = "rules for cookies";

/// `return CODE [TEXT]`, `return CODE URL` or `return URL`.
///
/// - `groups`: the expression of the location, whose groups the URL may contain.
pub(super) fn returned(
    directive: &Directive,
    groups: Option<&str>,
    scope: &Scope<'_>,
    keys: &mut Keys,
    notes: &mut Notes,
) {
    let (status, text) = match directive.arguments.as_slice() {
        [only] if only.parse::<u16>().is_err() => (302, only.as_str()),
        [status] => (status.parse().unwrap_or(200), ""),
        [status, text, ..] => (status.parse().unwrap_or(200), text.as_str()),
        [] => (200, ""),
    };
    if [301, 302, 303, 307, 308].contains(&status) {
        let expression = groups.and_then(|it| regex::Regex::new(it).ok());
        let target = redirect_target(text, groups).filter(|it| {
            Redirect::by_groups(status, it, expression.clone(), &Maps::default()).is_ok()
        });
        if let Some(target) = target {
            let target = toml_string(&target);
            keys.set(
                "redirect",
                format!("{{ to = {target}, status = {status} }}"),
            );
        } else {
            notes.add(
                directive,
                format!(
                    "responds with 500: `{text}` is no URL, or has a variable without a counterpart"
                ),
            );
            keys.set("respond", "{ status = 500 }");
        }
        return;
    }
    // 444 closes the connection; a client learns as little from a 400.
    let status = if (200..=599).contains(&status) && status != 444 {
        status
    } else {
        400
    };
    if text.contains('$') {
        if let Some(template) = with_places(text, scope, Moment::Request, None) {
            set_text(status, "template", &template, scope, keys);
            return;
        }
        notes.add(
            directive,
            "the text is sent as it stands, with its variables",
        );
    }
    set_text(status, "body", text, scope, keys);
}

/// `respond` with a text, which has the type of texts unless `default_type` has another.
fn set_text(status: u16, key: &str, text: &str, scope: &Scope<'_>, keys: &mut Keys) {
    let mut respond = Keys::default();
    respond.set("status", status.to_string());
    respond.text(key, text);
    let other = scope.last("default_type").map(|it| it.argument(0));
    let other = other.filter(|it| HeaderValue::from_str(it).is_ok() && !it.contains(['$', '{']));
    if let Some(other) = other.filter(|it| !text.is_empty() && *it != "text/plain") {
        let charset = scope.last("charset").map_or("off", |it| it.argument(0));
        let is_named = charset != "off" && other.starts_with("text/");
        let charset = if is_named {
            format!("; charset={charset}")
        } else {
            String::new()
        };
        respond.text("type", &format!("{other}{charset}"));
    }
    keys.set("respond", respond.inline());
}

/// Whether a field of responses may be set by a route.
fn is_field(name: &str, value: &str) -> bool {
    let of_server = ["content-length", "transfer-encoding", "connection", "date"];
    HeaderName::from_bytes(name.as_bytes()).is_ok()
        && HeaderValue::from_str(value).is_ok()
        && !of_server.iter().any(|it| it.eq_ignore_ascii_case(name))
}

fn lifetime_of(scope: &Scope<'_>) -> Option<String> {
    lifetime(scope.last("expires")?.argument(0))
}

/// `expires` as a directive of `Cache-Control`.
fn lifetime(text: &str) -> Option<String> {
    match text {
        "off" => None,
        "epoch" => Some("no-cache".to_owned()),
        "max" => Some("max-age=315360000".to_owned()),
        text if text.starts_with('-') => Some("no-cache".to_owned()),
        text => {
            let time = duration(text)?;
            let seconds = plimsoll_model::parse_duration(&time).ok()?.as_secs();
            Some(format!("max-age={seconds}"))
        }
    }
}

/// Layers of the route.
pub(super) fn middleware(scope: &Scope<'_>, keys: &mut Keys, notes: &mut Notes) {
    logs::choose(scope, keys);
    if keys.get("proxy").is_some()
        && let Some(most) = content_read(scope, notes)
    {
        keys.text("read_content", &most);
    }
    let mut added: Vec<(String, Vec<String>)> = Vec::new();
    let mut always: Vec<(String, Vec<String>)> = Vec::new();
    let mut replaced = Replaced::default();
    // nginx adds fields to errors by `always` alone, and never by `expires`.
    let lifetime = lifetime_of(scope);
    let mut given = scope.all("add_header").into_iter();
    let is_for_errors = lifetime.is_none() && given.all(|it| it.argument(2) == "always");
    for directive in scope.all("add_header") {
        let (name, value) = (directive.argument(0), directive.argument(1));
        // A variable of the service that authorizes: its fields go to the client by themselves.
        let is_of_service = access::copied(scope)
            .iter()
            .any(|(variable, field)| variable == value && field.eq_ignore_ascii_case(name));
        if is_of_service && access::requested(scope).is_some() {
            continue;
        }
        let Some(value) = access::filled(value, scope, Moment::Response) else {
            notes.add(
                directive,
                format!("`{name}` is left out: `{value}` has a variable without a counterpart"),
            );
            continue;
        };
        // Clients take blanks at the end of a value for none.
        let value = value.trim_end();
        if REPLACED.iter().any(|it| it.eq_ignore_ascii_case(name)) {
            replaced.put(name, value);
            continue;
        }
        if value.is_empty() {
            continue;
        }
        if !is_field(name, value) {
            notes.add(
                directive,
                format!("`{name}` is left out: the server sets it by itself, or it is no field"),
            );
            continue;
        }
        let is_always = directive.argument(2) == "always" && !is_for_errors;
        let fields = if is_always { &mut always } else { &mut added };
        let known = fields
            .iter_mut()
            .find(|(it, _)| it.eq_ignore_ascii_case(name));
        match known {
            Some((_, values)) => values.push(toml_string(value)),
            None => fields.push((name.to_owned(), vec![toml_string(value)])),
        }
    }
    let hidden = scope.all("proxy_hide_header");
    let hidden = hidden.iter().map(|it| it.argument(0));
    let hidden: Vec<_> = hidden
        .filter(|it| is_field(it, ""))
        .chain(replaced.removed.iter().map(String::as_str))
        .map(toml_string)
        .collect();
    // `proxy_redirect` has come before.
    let mut rules = Keys::default();
    let rewrites = keys.get(REWRITES).map(str::to_owned);
    keys.remove(REWRITES);
    let charset = charset(scope).filter(|_| keys.get("proxy").is_some());
    match (rewrites, charset) {
        (Some(rewrites), Some(rule)) => {
            let before = rewrites.strip_suffix(']').unwrap_or(&rewrites);
            rules.set("rewrite", format!("{before}, {rule}]"));
        }
        (Some(rewrites), None) => rules.set("rewrite", rewrites),
        (None, Some(rule)) => rules.set("rewrite", format!("[{rule}]")),
        (None, None) => {}
    }
    if let Some(cookies) = keys.get(COOKIES).map(str::to_owned) {
        keys.remove(COOKIES);
        rules.set("cookies", cookies);
    }
    if !hidden.is_empty() {
        rules.set("remove", format!("[{}]", hidden.join(", ")));
    }
    // Files have one by themselves, which nginx does not send.
    let is_in_place =
        |name: &str| keys.get("files").is_some() && name.eq_ignore_ascii_case("cache-control");
    let in_place = added.iter().filter(|(name, _)| is_in_place(name));
    let in_place =
        in_place.flat_map(|(_, values)| values.iter().map(|it| it.trim_matches('"').to_owned()));
    let directives: Vec<_> = lifetime.clone().into_iter().chain(in_place).collect();
    let mut set = replaced.set;
    if !directives.is_empty() {
        set.text("Cache-Control", &directives.join(", "));
    }
    let is_any_set = !set.is_empty();
    if is_any_set {
        rules.set("set", set.inline());
    }
    let others = added.iter().filter(|(name, _)| !is_in_place(name));
    for (key, fields) in [("add", fields_of(others)), ("always", fields_of(&always))] {
        if !fields.is_empty() {
            rules.set(key, fields.inline());
        }
    }
    let is_any_given = !added.is_empty() || is_any_set;
    if is_any_given && !is_for_errors {
        rules.set("errors", "false");
    }
    if !rules.is_empty() {
        keys.set("response_headers", rules.inline());
    }
    limits(scope, keys, notes);
    let realm = scope
        .last("auth_basic")
        .filter(|it| it.argument(0) != "off");
    let file = scope.last("auth_basic_user_file");
    let file = file.filter(|it| !access::depends_on_request(it) && !access::is_open(scope));
    if let (Some(realm), Some(file)) = (realm, file) {
        let mut auth = Keys::default();
        auth.text("realm", realm.argument(0));
        auth.text("file", file.argument(0));
        keys.set("basic_auth", auth.inline());
    }
    if scope.is("gzip", "on") {
        keys.set("compress", compressed(scope, notes));
    }
}

/// Fields that `add_header` replaces: a response has one of each.
const REPLACED: [&str; 2] = ["last-modified", "etag"];

/// What becomes of such fields.
#[derive(Default)]
struct Replaced {
    set: Keys,
    /// Those with an empty value.
    removed: Vec<String>,
}

impl Replaced {
    fn put(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            self.removed.push(name.to_owned());
        } else {
            self.set.text(name, value);
        }
    }
}

/// Fields with one value or several.
fn fields_of<'f>(fields: impl IntoIterator<Item = &'f (String, Vec<String>)>) -> Keys {
    let mut keys = Keys::default();
    for (name, values) in fields {
        match values.as_slice() {
            [one] => keys.set(name, one.as_str()),
            several => keys.set(name, format!("[{}]", several.join(", "))),
        }
    }
    keys
}

/// Media types of files, and what nginx or older files for it call them.
const NAMES_OF_FILES: [(&str, &[&str]); 3] = [
    (
        "text/javascript",
        &["application/javascript", "application/x-javascript"],
    ),
    ("application/xml", &["text/xml"]),
    (
        "font/ttf",
        &[
            "application/x-font-ttf",
            "application/font-ttf",
            "font/truetype",
        ],
    ),
];

/// `gzip` with its least length, which is 20 bytes in nginx, and its types.
fn compressed(scope: &Scope<'_>, notes: &mut Notes) -> String {
    let mut compress = Keys::default();
    let least = scope.last("gzip_min_length");
    let least = least.map_or(Some(20), |it| bytes(it.argument(0)));
    compress.text("least", &format!("{}B", least.unwrap_or(20)));
    if let Some(types) = scope.last("gzip_types") {
        let is_type = |it: &&String| {
            let is_part = |it: u8| it.is_ascii_alphanumeric() || b"/.+-".contains(&it);
            it.contains('/') && it.bytes().all(is_part)
        };
        if types.arguments.iter().any(|it| it == "*") {
            compress.set("types", "[\"*/*\"]");
        } else {
            let given: Vec<_> = types.arguments.iter().filter(is_type).collect();
            if given.len() < types.arguments.len() {
                notes.add(types, "what is no media type is left out");
            }
            // Files have these in place of the names that nginx has for them.
            let of_files = NAMES_OF_FILES.iter().filter(|(here, of_nginx)| {
                let has = |name: &str| given.iter().any(|it| *it == name);
                of_nginx.iter().any(|it| has(it)) && !has(here)
            });
            let html = std::iter::once("text/html").chain(given.iter().map(|it| it.as_str()));
            let html = html.chain(of_files.map(|(here, _)| *here));
            let html: Vec<_> = html.map(toml_string).collect();
            compress.set("types", format!("[{}]", html.join(", ")));
        }
    }
    compress.inline()
}
