//! Files of a route: `root`, `alias` and `try_files`.

use plimsoll_model::document::toml_string;

use super::Notes;
use super::errors::{TRIED, name_of, tried_error};
use super::fastcgi::{Fallback, is_script};
use super::nginx::Directive;
use super::patterns::as_path;
use super::proxy::prefix_expression;
use super::redirects::{is_leading, is_redirecting};
use super::route::Condition;
use super::scope::Scope;
use super::toml::Keys;

/// The media type of files with an unknown extension.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// The files of `root` or `alias`.
pub(super) fn files(
    condition: &Condition<'_>,
    scope: &Scope<'_>,
    keys: &mut Keys,
    notes: &mut Notes,
) {
    let folder = scope.own("alias").or_else(|| scope.last("root"));
    if let Some(file) = folder.and_then(|folder| rewritten_file(folder, scope)) {
        respond_file(&file, keys);
        return;
    }
    let Some(folder) = folder else {
        keys.set("respond", NOT_FOUND);
        return;
    };
    if let Some(file) = file_of_expression(condition, folder) {
        respond_file(file, keys);
        return;
    }
    let rest = rest_of_path(condition, folder);
    let is_whole = root_of_alias(condition, folder).is_some();
    if rest.is_none() && !is_whole && folder.argument(0).contains('$') {
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
    let taken = taken_prefix(condition, folder, scope);
    let root = if let Some((_, root)) = rest.as_ref().or(taken.as_ref()) {
        root.clone()
    } else if let Some(root) = root_of_alias(condition, folder) {
        root
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
    if let Some((prefix, _)) = rest.as_ref().or(taken.as_ref()) {
        // Files below the prefix of a route are looked up without it.
        if matches!(condition, Condition::Regex(_)) {
            files.text("strip", prefix);
        }
    } else if let (Condition::Regex(regex), "alias") = (condition, folder.name.as_str())
        && let Some(prefix) = prefix_of(regex)
    {
        files.text("strip", &prefix);
    }
    // nginx starts without the folder of a location.
    if !below.is_empty() {
        files.set("optional", "true");
    }
    if let Some(rewrite) = scope.own("rewrite").filter(|it| {
        let is_route =
            is_redirecting(std::slice::from_ref(it)) || is_leading(it, scope.innermost());
        !is_route && taken.is_none()
    }) {
        notes.add(
            rewrite,
            "left out: paths are changed where requests are forwarded or redirected, and where a location leads to another",
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

/// The file that an `alias` names for every path that an expression matches.
fn file_of_expression<'a>(condition: &Condition<'_>, folder: &'a Directive) -> Option<&'a str> {
    let Condition::Regex(regex) = condition else {
        return None;
    };
    let alias = folder.argument(0);
    let name = alias.rsplit('/').next()?;
    let is_file = folder.name == "alias" && name.contains('.') && !alias.contains('$');
    (is_file && prefix_of(regex).is_none()).then_some(alias)
}

/// One file for every path, without which nginx starts.
fn respond_file(file: &str, keys: &mut Keys) {
    let mut respond = Keys::default();
    respond.text("file", file);
    respond.text("type", media_type(file));
    respond.set("optional", "true");
    keys.set("respond", respond.inline());
}

/// The file of a `rewrite` of every path to one, as pages for maintenance have it.
fn rewritten_file(folder: &Directive, scope: &Scope<'_>) -> Option<String> {
    let rewrite = scope.own("rewrite")?;
    let [from, to, flag] = rewrite.arguments.as_slice() else {
        return None;
    };
    let is_all = ["^", "^/", ".*", "^.*$", "^(.*)$", "^/.*", "^/(.*)$"].contains(&from.as_str());
    // Of a folder it is the index.
    let index = scope
        .last("index")
        .map_or("index.html", |it| it.argument(0));
    let to = match to.strip_suffix('/') {
        Some(folder) => format!("{folder}/{index}"),
        None => to.clone(),
    };
    let is_file = to.starts_with('/') && to.split('/').skip(1).all(is_file_name);
    let is_known = folder.name == "root" && !folder.argument(0).contains('$');
    let root = folder.argument(0).trim_end_matches('/');
    (is_all && is_file && is_known && flag == "break").then(|| format!("{root}{to}"))
}

/// The beginning of paths that a `rewrite … break` takes off before files are looked up, and the folder that they lie below
/// then.
fn taken_prefix(
    condition: &Condition<'_>,
    folder: &Directive,
    scope: &Scope<'_>,
) -> Option<(String, String)> {
    let mut rewrites = scope.innermost().iter().filter(|it| it.name == "rewrite");
    let rewrite = rewrites.next().filter(|_| rewrites.next().is_none())?;
    let [from, to, flag] = rewrite.arguments.as_slice() else {
        return None;
    };
    let from = from.strip_prefix('^')?;
    let from = from
        .strip_suffix("(.*)$")
        .or_else(|| from.strip_suffix("(.*)"))?;
    let prefix = plain(from)?;
    let below = to.strip_suffix("/$1").filter(|it| !it.contains('$'))?;
    let is_folder = prefix.starts_with('/') && prefix.ends_with('/') && prefix != "/";
    let is_of_route = match condition {
        Condition::Regex(_) => true,
        Condition::Prefix(own) => *own == prefix,
        Condition::Exact(_) => false,
    };
    let root = folder.argument(0).trim_end_matches('/');
    let is_known = folder.name == "root" && !root.contains('$');
    let is_taken = flag == "break" && is_folder && is_of_route && is_known;
    is_taken.then(|| (prefix, format!("{root}{below}")))
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

/// The folder of an `alias` that ends with the whole path again, such as `/srv/$1/$2` for `^/(css|js)/(.*)$`.
fn root_of_alias(condition: &Condition<'_>, folder: &Directive) -> Option<String> {
    let Condition::Regex(regex) = condition else {
        return None;
    };
    if folder.name != "alias" {
        return None;
    }
    let expression = regex.strip_prefix("(?-i:")?.strip_suffix(')')?;
    let root = folder
        .argument(0)
        .strip_suffix(&path_by_groups(expression)?)?;
    (root.starts_with('/') && !root.contains('$')).then(|| root.to_owned())
}

/// The path that an expression matches, with its groups in it: `/$1/$2` of `/(css|js)/(.*)`. None where it matches anything
/// outside of its groups that is no literal character.
fn path_by_groups(expression: &str) -> Option<String> {
    let mut path = String::new();
    let (mut rest, mut number) = (expression, 0);
    while let Some((before, group)) = rest.split_once('(') {
        path.push_str(&plain(before)?);
        let (inner, after) = group.split_at_checked(end_of_group(group)?)?;
        if inner.starts_with('?') {
            return None;
        }
        number += 1;
        path.extend(["$", &number.to_string()]);
        // Groups within it count, too.
        number += inner.matches('(').count() - inner.matches("(?:").count();
        rest = after;
    }
    path.push_str(&plain(rest)?);
    (number > 0 && path.starts_with('/')).then_some(path)
}

/// Whether what follows an opening parenthesis is one group to its end.
fn is_one_group(rest: &str) -> bool {
    end_of_group(rest) == Some(rest.len())
}

/// Where the group ends whose opening parenthesis is before this, behind its closing one.
fn end_of_group(rest: &str) -> Option<usize> {
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
            return Some(at + 1);
        }
    }
    None
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

/// Whether a text of `try_files` is a path that is known before a request comes.
fn is_path(text: &str) -> bool {
    text.starts_with('/') && !text.contains(['$', '#', ' '])
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
    // A file for what has none of its own, before the error where that is not there either.
    let (default, tried) = match tried.split_last() {
        Some((default, tried)) if last == "=404" && is_path(default) && !tried.is_empty() => {
            (Some(default), tried)
        }
        _ => (None, tried),
    };
    let known = ["$uri", "$uri/", "$uri.html", "$uri/index.html"];
    for other in tried.iter().filter(|it| !known.contains(&it.as_str())) {
        notes.add(
            directive,
            if is_path(other) {
                format!("`{other}` is not looked for; nginx would send it for every path that gets to it, as long as it is there")
            } else {
                format!("`{other}` is not looked for: names are that of the path, with `.html` or as a folder; nginx would send the file of that name")
            },
        );
    }
    let last = default.unwrap_or(last);
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
    if tried_error(last).is_some() {
        route.text(TRIED, &name_of(directive));
    } else if last.starts_with('=') {
        notes.add(
            directive,
            format!("what is not there gets a 404; nginx would respond with `{last}`"),
        );
    } else if is_path(last) {
        // The location of the path responds, with its own rules.
        route.text(TRIED, last);
    } else {
        notes.add(
            directive,
            format!("`{last}` is left out: what is not there gets a 404"),
        );
    }
}
