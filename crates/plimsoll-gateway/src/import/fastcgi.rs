//! `fastcgi_pass` and its parameters.

use plimsoll_model::document::toml_string;
use regex::Regex;

use super::application::{Application, Usual};
use super::nginx::Directive;
use super::responses::middleware;
use super::route::Route;
use super::scope::Scope;
use super::toml::Keys;
use super::upstreams::Upstreams;
use super::{Notes, access};

/// Parameters that every request has, with the values that mean the same.
const USUAL: Usual = &[
    ("SCRIPT_NAME", &["$fastcgi_script_name"]),
    ("PATH_INFO", &["$fastcgi_path_info", "$path_info"]),
    (
        "PATH_TRANSLATED",
        &[
            "$document_root$fastcgi_path_info",
            "$document_root$path_info",
        ],
    ),
    ("DOCUMENT_URI", &["$document_uri", "$uri"]),
    ("DOCUMENT_ROOT", &["$document_root", "$realpath_root"]),
    ("GATEWAY_INTERFACE", &["CGI/1.1"]),
    ("REDIRECT_STATUS", &["200"]),
];

/// Expressions of `fastcgi_split_path_info` that split where the gateway does.
const SPLITS: [&str; 4] = [
    r"^(.+\.php)(/.+)$",
    r"^(.+\.php)(/.*)$",
    r"^(.+?\.php)(/.*)$",
    r"^(.+?\.php)(|/.*)$",
];

/// A script that `try_files` ends with, such as `/index.php?$args`: every path that is no file is for it.
pub(super) struct Fallback<'a> {
    /// Without the query.
    script: &'a str,
    /// Folders are looked for before.
    has_folders: bool,
    /// The location that responds for the script.
    location: &'a Directive,
}

impl<'a> Fallback<'a> {
    /// What a `try_files` ends with, if that is a script of an application; its query has to be that of the request.
    ///
    /// - `server`: the directives of its server.
    pub(super) fn find(server: &'a [Directive], tried: &'a Directive) -> Option<Self> {
        let last = tried.arguments.last()?;
        let (script, query) = last.split_once(['?', '$']).unwrap_or((last, ""));
        let is_own = [
            "",
            "$args",
            "$query_string",
            "is_args$args",
            "$is_args$args",
        ];
        if !script.starts_with('/') || !is_own.contains(&query) {
            return None;
        }
        let location = location_of(server, script)?;
        location.last("fastcgi_pass")?;
        Some(Self {
            script,
            has_folders: tried.arguments.iter().any(|it| it == "$uri/"),
            location,
        })
    }

    /// The name of its route.
    pub(super) fn name(&self) -> String {
        format!(
            "@{} ({}:{})",
            self.script, self.location.file, self.location.line
        )
    }

    /// Its route: the action of the location with that script, whatever the path is.
    pub(super) fn route(
        &self,
        server: &Directive,
        scope: &Scope<'_>,
        upstreams: &mut Upstreams,
    ) -> Route {
        let scope = &scope.within(&self.location.block);
        let mut keys = Keys::default();
        // The location itself has the notes.
        let notes = &mut Notes::default();
        let pass = self.location.last("fastcgi_pass");
        let has_conditions = self.location.last("if").is_some();
        // What only other locations lead to is led to here.
        let mut own = self
            .location
            .block
            .iter()
            .filter(|it| it.name != "internal");
        let is_closing = own.any(access::closes);
        match pass.filter(|_| !has_conditions && !is_closing) {
            // Fields of the request are those of the client again, and another location may ask another service.
            Some(_) if !access::authorized(scope, &mut keys, upstreams, notes) => {}
            Some(pass) => {
                fastcgi(pass, server, scope, Some(self), &mut keys, upstreams, notes);
            }
            None => access::forbid(&mut keys),
        }
        middleware(scope, &mut keys, notes);
        Route::named(&self.name(), &keys, self.location)
    }
}

/// Whether the file of that name in a folder is a script that another location responds by: its text is not for clients.
pub(super) fn is_script(server: &[Directive], name: &str) -> bool {
    let passes = ["fastcgi_pass", "uwsgi_pass", "scgi_pass", "proxy_pass"];
    let is_passed = |it: &Directive| passes.iter().any(|pass| it.last(pass).is_some());
    let mut locations = server.iter().filter(|it| it.name == "location");
    location_of(server, &format!("/{name}")).is_some_and(is_passed)
        || locations.any(|it| is_script(&it.block, name))
}

/// The location that nginx chooses for a script, among exact ones and expressions: prefixes stand behind expressions for scripts.
fn location_of<'a>(server: &'a [Directive], script: &str) -> Option<&'a Directive> {
    let locations = server.iter().filter(|it| it.name == "location");
    let mut exact = locations.clone();
    let exact = exact.find(|it| it.argument(0) == "=" && it.argument(1) == script);
    let expression = || {
        locations.clone().find(|it| {
            let flags = match it.argument(0) {
                "~" => "",
                "~*" => "(?i)",
                _ => return false,
            };
            let expression = Regex::new(&format!("{flags}{}", it.argument(1)));
            expression.is_ok_and(|it| it.is_match(script))
        })
    };
    exact.or_else(expression)
}

/// The action `proxy` of a route to an application.
///
/// - `only`: has the script of every path, in place of the one that `SCRIPT_FILENAME` names.
pub(super) fn fastcgi(
    directive: &Directive,
    server: &Directive,
    scope: &Scope<'_>,
    only: Option<&Fallback<'_>>,
    route: &mut Keys,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) {
    let application = Application {
        protocol: "fastcgi",
        directive,
        target: directive.argument(0),
        server,
        scope,
    };
    if !application.is_known(upstreams, route, notes) {
        return;
    }
    let is_of_php = only.is_some() || is_for_php(server, directive);
    let Some(mut scripts) = scripts(&application, is_of_php, notes) else {
        route.set("respond", "{ status = 501, body = \"not translated\\n\" }");
        return;
    };
    if let Some(only) = only {
        scripts.text("script", only.script);
        if only.has_folders {
            scripts.set("folders", "true");
        }
    }
    application.forward(&scripts, route, upstreams, notes);
}

/// Whether the location of a `fastcgi_pass` is an expression for names of PHP's scripts.
fn is_for_php(within: &Directive, pass: &Directive) -> bool {
    within.all("location").any(|it| {
        let is_here = it
            .last("fastcgi_pass")
            .is_some_and(|own| own.line == pass.line && own.file == pass.file);
        let is_expression = it.argument(0).starts_with('~') && it.argument(1).contains("php");
        (is_here && is_expression) || is_for_php(it, pass)
    })
}

/// The table `fastcgi`; `None` if the folder of the scripts depends on the request.
///
/// - `is_of_php`: nothing but scripts of PHP is led there.
fn scripts(application: &Application<'_>, is_of_php: bool, notes: &mut Notes) -> Option<Keys> {
    let scope = application.scope;
    let mut keys = Keys::default();
    let root = scope
        .last("root")
        .map_or("/etc/nginx/html", |it| it.argument(0));
    if root.contains('$') {
        notes.add(
            application.directive,
            "responds with 501: `fastcgi` needs a folder of scripts that is known before a request comes",
        );
        return None;
    }
    let mut root = root.trim_end_matches('/').to_owned();
    let parameters = application.parameters(USUAL, notes, |given, notes| {
        let is_script = given.argument(0) == "SCRIPT_FILENAME";
        if is_script {
            script(given, &mut root, &mut keys, notes);
        }
        is_script
    });
    // `try_files $uri =404`, as a guard against paths such as /picture.jpg/x.php.
    let guard = scope.own("try_files");
    let asks = |it: &Directive| it.arguments.iter().any(|word| word.contains("!-f"));
    if guard.is_some_and(|it| it.arguments.last().is_some_and(|last| last == "=404"))
        || scope
            .innermost()
            .iter()
            .any(|it| it.name == "if" && asks(it))
    {
        keys.set("must_exist", "true");
    }
    if let Some(index) = scope.last("fastcgi_index") {
        keys.text("index", index.argument(0));
    }
    // A prefix leads every path to the application, and its scripts may have other names.
    let index = scope.last("fastcgi_index");
    let is_php = index.is_none_or(|it| it.argument(0).rsplit('.').next() == Some("php"));
    if !is_php || !is_of_php {
        keys.text("split", "");
    }
    if let Some(split) = scope.last("fastcgi_split_path_info")
        && !SPLITS.contains(&split.argument(0))
    {
        notes.add(
            split,
            "left out: paths are split behind `.php`; `split` names another end of scripts",
        );
    }
    keys.text("root", &root);
    if !parameters.is_empty() {
        keys.set("parameters", parameters.inline());
    }
    Some(keys)
}

/// `SCRIPT_FILENAME`: the folder before the name that the path gives, or one script for all paths.
fn script(given: &Directive, root: &mut String, keys: &mut Keys, notes: &mut Notes) {
    let value = given.argument(1);
    let file = value
        .strip_prefix("$document_root")
        .or_else(|| value.strip_prefix("$realpath_root"))
        .map_or_else(|| value.to_owned(), |rest| format!("{root}{rest}"));
    let named = ["$fastcgi_script_name", "/$fastcgi_script_name"];
    let folder = named.iter().find_map(|name| file.strip_suffix(name));
    if let Some(folder) = folder.filter(|folder| !folder.contains('$')) {
        folder.clone_into(root);
        return;
    }
    if value == "$request_filename" {
        return;
    }
    if file.contains('$') || !file.starts_with('/') {
        notes.add(
            given,
            format!("left out: `{value}` has no counterpart; scripts lie below `root`"),
        );
        return;
    }
    let within = file
        .strip_prefix(root.as_str())
        .filter(|rest| rest.starts_with('/'));
    let script = if let Some(script) = within {
        script.to_owned()
    } else {
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", &file));
        let script = format!("/{name}");
        folder.clone_into(root);
        script
    };
    keys.set("script", toml_string(&script));
}
