//! What a route responds with by itself, and its layers.

use http::{HeaderName, HeaderValue};
use plimsoll_model::document::toml_string;
use plimsoll_server::{Maps, Moment, Redirect};

use super::Notes;
use super::access;
use super::errors::TRIED;
use super::fastcgi::{Fallback, is_script};
use super::logs;
use super::nginx::Directive;
use super::patterns::as_path;
use super::proxy::prefix_expression;
use super::rate_limit::limits;
use super::redirects::{is_redirecting, redirect_target, variable};
use super::route::Condition;
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

/// Types beside HTML that have one unless `charset_types` has others.
const CHARSET_TYPES: [&str; 5] = [
    "text/xml",
    "text/plain",
    "text/vnd.wap.wml",
    "application/javascript",
    "application/rss+xml",
];

/// How much content is read ahead, if something that holds here names `$request_body`. nginx has its value where it reads the
/// content whole, in memory.
fn content_read(scope: &Scope<'_>) -> Option<String> {
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
        return None;
    }
    let given = scope.last("client_body_buffer_size");
    let most = given
        .and_then(|it| bytes(it.argument(0)))
        .unwrap_or(16 << 10);
    size(&most.clamp(1, 1 << 20).to_string())
}

/// What files are sent as whose type is not known.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// Key under which the rules of `proxy_redirect` wait for those of other fields; no route has it.
pub(super) const REWRITES: &str = "rewrites of fields";

/// The same for the rules of `proxy_cookie_domain`, `_path` and `_flags`.
pub(super) const COOKIES: &str = "rules for cookies";

/// The files of `root` or `alias`.
pub(super) fn files(
    condition: &Condition<'_>,
    scope: &Scope<'_>,
    keys: &mut Keys,
    notes: &mut Notes,
) {
    let folder = scope.own("alias").or_else(|| scope.last("root"));
    if let Some(file) = folder.and_then(|folder| rewritten_file(folder, scope)) {
        let mut respond = Keys::default();
        respond.text("file", &file);
        respond.text("type", media_type(&file));
        // nginx starts without it.
        respond.set("optional", "true");
        keys.set("respond", respond.inline());
        return;
    }
    let Some(folder) = folder else {
        keys.set("respond", NOT_FOUND);
        return;
    };
    let rest = rest_of_path(condition, folder);
    if rest.is_none() && folder.argument(0).contains('$') {
        notes.add(
            folder,
            "responds with 404: a folder cannot depend on the request",
        );
        keys.set("respond", NOT_FOUND);
        return;
    }
    // The path below the prefix is what files are looked up by.
    let below = match condition {
        Condition::Prefix(prefix) => prefix.trim_end_matches('/'),
        Condition::Exact(_) | Condition::Regex(_) => "",
    };
    let root = if let Some((_, root)) = &rest {
        root.clone()
    } else if folder.name == "alias" {
        if let Some((path, file)) = aliased(condition, folder.argument(0)) {
            one_file(path, file, keys);
            return;
        }
        folder.argument(0).to_owned()
    } else {
        format!("{}{below}", folder.argument(0).trim_end_matches('/'))
    };
    let other = scope
        .last("default_type")
        .filter(|it| it.argument(0) != UNKNOWN_TYPE);
    if let Some(other) = other {
        let message = format!(
            "files of unknown extensions are `{UNKNOWN_TYPE}`; nginx would send them as `{}`",
            other.argument(0)
        );
        notes.add(other, message);
    }
    let mut files = Keys::default();
    files.text("root", &root);
    // As an expression the location is no prefix that files are looked up without.
    if let Some((prefix, _)) = &rest {
        files.text("strip", prefix);
    } else if let (Condition::Regex(regex), "alias") = (condition, folder.name.as_str())
        && let Some(prefix) = prefix_of(regex)
    {
        files.text("strip", &prefix);
    }
    // nginx starts without the folder of a location.
    if !below.is_empty() {
        files.set("optional", "true");
    }
    if let Some(rewrite) = scope
        .own("rewrite")
        .filter(|it| !is_redirecting(std::slice::from_ref(it)))
    {
        notes.add(
            rewrite,
            "left out: paths are changed where requests are forwarded, and where a path is redirected",
        );
    }
    if let Some(index) = scope.last("index") {
        let names = index.arguments.iter().filter(|it| is_file_name(it));
        let (scripts, names): (Vec<_>, Vec<_>) =
            names.partition(|it| is_script(scope.server(), it));
        if names.len() + scripts.len() < index.arguments.len() {
            notes.add(index, "names of files without a folder are what is kept");
        }
        let is_tried = scope.own("try_files");
        let is_tried = is_tried.and_then(|it| Fallback::find(scope.server(), it));
        if !scripts.is_empty() && is_tried.is_none() {
            notes.add(
                index,
                "folders do not respond by a script, `/` neither, and get a 404: a route with `path = \"/\"` and `fastcgi` leads to it",
            );
        }
        let names: Vec<_> = names.into_iter().map(|it| toml_string(it)).collect();
        if !names.is_empty() && names != ["\"index.html\""] {
            files.set("index", format!("[{}]", names.join(", ")));
        }
    }
    if scope.is("autoindex", "on") {
        files.set("listing", "true");
    }
    if let Some(directive) = scope.own("try_files") {
        tried_files(directive, scope, &mut files, keys, notes);
    }
    keys.set("files", files.inline());
}

/// The file of a `rewrite` of every path to one, as pages for maintenance have it.
fn rewritten_file(folder: &Directive, scope: &Scope<'_>) -> Option<String> {
    let rewrite = scope.own("rewrite")?;
    let [from, to, flag] = rewrite.arguments.as_slice() else {
        return None;
    };
    let is_all = ["^", "^/", ".*", "^.*$", "^(.*)$", "^/.*", "^/(.*)$"].contains(&from.as_str());
    let is_file = to.starts_with('/') && to.split('/').skip(1).all(is_file_name);
    let is_known = folder.name == "root" && !folder.argument(0).contains('$');
    let root = folder.argument(0).trim_end_matches('/');
    (is_all && is_file && is_known && flag == "break").then(|| format!("{root}{to}"))
}

/// The prefix that an expression was written for, if it was.
fn prefix_of(regex: &str) -> Option<String> {
    let escaped = regex.strip_prefix("(?-i:")?.strip_suffix(')')?;
    let escaped = escaped.strip_suffix(".*")?;
    let prefix = escaped.replace('\\', "");
    (prefix_expression(&prefix) == regex).then_some(prefix)
}

/// The beginning of paths and the folder of an `alias` such as `/srv/media/$1` for `^/media/(.*)$`: what the group has is all
/// that follows the beginning, so files are looked up by it.
fn rest_of_path(condition: &Condition<'_>, folder: &Directive) -> Option<(String, String)> {
    let Condition::Regex(regex) = condition else {
        return None;
    };
    if folder.name != "alias" {
        return None;
    }
    let (root, group) = folder.argument(0).split_once('$')?;
    if !root.starts_with('/') || !root.ends_with('/') {
        return None;
    }
    let expression = regex.strip_prefix("(?-i:")?.strip_suffix(')')?;
    let (prefix, groups) = expression.split_once('(')?;
    let prefix = plain(prefix)?;
    let is_one = prefix.starts_with('/') && prefix.ends_with('/') && is_one_group(groups);
    let named = groups
        .strip_prefix("?P<")
        .or_else(|| groups.strip_prefix("?<"));
    let name = named.and_then(|rest| Some(rest.split_once('>')?.0));
    let group = group
        .strip_prefix('{')
        .and_then(|it| it.strip_suffix('}'))
        .unwrap_or(group);
    let is_it = match name {
        Some(name) => group == name || group == "1",
        None => group == "1" && !groups.starts_with('?'),
    };
    (is_one && is_it).then(|| (prefix, root.to_owned()))
}

/// Whether what follows an opening parenthesis is one group to its end.
fn is_one_group(rest: &str) -> bool {
    let (mut depth, mut is_escaped, mut is_in_class) = (1, false, false);
    for (at, char) in rest.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '(' if !is_in_class => depth += 1,
            ')' if !is_in_class => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1 == rest.len();
        }
    }
    false
}

/// The text that an expression without anything but literal characters is for.
fn plain(expression: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = expression.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => text.push(chars.next().filter(|it| !it.is_ascii_alphanumeric())?),
            '.' | '+' | '*' | '?' | '^' | '$' | '|' | '{' | '}' | '[' | ']' => return None,
            other => text.push(other),
        }
    }
    Some(text)
}

const NOT_FOUND: &str = "{ status = 404, body = \"not found\\n\" }";

/// Whether a name is that of a file in a folder, whatever is requested.
fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '$', '?', '\\', '\0'])
}

/// The path of a location and the file that is its `alias`, if it is no folder.
fn aliased<'a>(condition: &Condition<'a>, alias: &'a str) -> Option<(&'a str, &'a str)> {
    let name = alias.rsplit('/').next().filter(|it| !it.is_empty())?;
    match condition {
        Condition::Exact(path) => Some((path, alias)),
        // A name with an extension for a path that does not end with a slash.
        Condition::Prefix(path) if name.contains('.') && !path.ends_with('/') => {
            Some((path, alias))
        }
        Condition::Prefix(_) | Condition::Regex(_) => None,
    }
}

/// One file for one path, which nginx looks for with each request.
///
/// Where file and path do not end alike, the path is the root of a folder whose index the file is.
fn one_file(path: &str, file: &str, keys: &mut Keys) {
    keys.remove("prefix");
    keys.text("path", &as_path(path));
    let mut files = Keys::default();
    let named = |it: &str| it.rsplit('/').next().is_some_and(|it| it.contains('.'));
    match (file.strip_suffix(path), file.rsplit_once('/')) {
        (Some(root), _) if !root.is_empty() && named(path) => files.text("root", root),
        (_, Some((folder, name))) if is_file_name(name) && !name.starts_with('.') => {
            files.text("root", if folder.is_empty() { "/" } else { folder });
            files.text("strip", path);
            files.set("index", format!("[{}]", toml_string(name)));
            files.text("trailing_slash", "ignore");
        }
        _ => {
            let mut respond = Keys::default();
            respond.text("file", file);
            respond.text("type", media_type(file));
            keys.set("respond", respond.inline());
            return;
        }
    }
    files.set("optional", "true");
    keys.set("files", files.inline());
}

/// The media type of a file by the end of its name, for those that are aliases of paths.
pub(super) fn media_type(file: &str) -> &'static str {
    match file.rsplit('.').next().unwrap_or_default() {
        "html" | "htm" => "text/html; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "xml" => "application/xml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "gif" => "image/gif",
        "jpg" | "jpeg" => "image/jpeg",
        _ => "application/octet-stream",
    }
}

/// `try_files` of files: the name of a file, the folder, and what responds where there is neither.
fn tried_files(
    directive: &Directive,
    scope: &Scope<'_>,
    files: &mut Keys,
    route: &mut Keys,
    notes: &mut Notes,
) {
    let Some((last, tried)) = directive.arguments.split_last() else {
        return;
    };
    let known = ["$uri", "$uri/", "$uri.html", "$uri/index.html"];
    if !tried.iter().all(|it| known.contains(&it.as_str())) {
        notes.add(
            directive,
            "names other than that of the path, with `.html` or as a folder, are not looked for",
        );
    }
    if !last.starts_with('=') {
        // Others respond for what names no file, with slashes as they came.
        let has = |name: &str| tried.iter().any(|it| it == name);
        if has("$uri/") {
            files.text("trailing_slash", "folders");
        } else if !has("$uri/index.html") {
            files.set("index", "[]");
            files.text("trailing_slash", "exact");
        }
    }
    // A named location and a script of an application take over by themselves.
    if last.starts_with('@')
        || last == "=404"
        || Fallback::find(scope.server(), directive).is_some()
    {
        return;
    }
    if last.starts_with('=') {
        notes.add(directive, "what is not there gets a 404");
    } else if last.starts_with('/') && !last.contains(['$', '#', ' ']) {
        // The location of the path responds, with its own rules.
        route.text(TRIED, last);
    } else {
        notes.add(
            directive,
            format!("`{last}` is left out: what is not there gets a 404"),
        );
    }
}

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
    if let Some(most) = content_read(scope).filter(|_| keys.get("proxy").is_some()) {
        keys.text("read_content", &most);
    }
    let mut added: Vec<(String, Vec<String>)> = Vec::new();
    let mut always: Vec<(String, Vec<String>)> = Vec::new();
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
    if !directives.is_empty() {
        let value = toml_string(&directives.join(", "));
        rules.set("set", format!("{{ Cache-Control = {value} }}"));
    }
    let others = added.iter().filter(|(name, _)| !is_in_place(name));
    for (key, fields) in [("add", fields_of(others)), ("always", fields_of(&always))] {
        if !fields.is_empty() {
            rules.set(key, fields.inline());
        }
    }
    let is_any_given = !added.is_empty() || !directives.is_empty();
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
            let html = std::iter::once("text/html").chain(given.iter().map(|it| it.as_str()));
            let html: Vec<_> = html.map(toml_string).collect();
            compress.set("types", format!("[{}]", html.join(", ")));
        }
    }
    compress.inline()
}
