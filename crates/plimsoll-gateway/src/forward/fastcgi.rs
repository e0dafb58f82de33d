//! What an application behind FastCGI gets beside the parameters that every application has: the script that a path names, and what PHP needs.

use std::path::Path;

use plimsoll_server::Template;
use plimsoll_wire::http::NormalPath;

/// How a route names the scripts of an application.
#[derive(Debug, Clone)]
pub(crate) struct FastCgiPlan {
    /// The folder of the scripts, as the application sees it; without a slash at its end.
    pub(crate) root: String,
    /// The script of a path that ends with a slash.
    pub(crate) index: String,
    /// The script of every path; begins with a slash.
    pub(crate) script: Option<String>,
    /// Folders with an index below the root respond by it, and not by the only script. They are looked for where the gateway runs.
    pub(crate) has_folders: bool,
    /// A path whose script is no file below the root gets a 404. They are looked for where the gateway runs.
    pub(crate) must_exist: bool,
    /// Names of scripts end with this text: what follows in a path is the path within the script. A path without it names no script, so
    /// that other files below the root are not run. If it is empty, every path names one.
    pub(crate) split: String,
    /// In place of the parameters of their names, and beside them.
    pub(crate) parameters: Vec<(String, Template)>,
}

impl FastCgiPlan {
    /// The scripts of PHP below a folder.
    pub(crate) fn new(root: String) -> Self {
        Self {
            root,
            index: "index.php".to_owned(),
            script: None,
            has_folders: false,
            must_exist: false,
            split: ".php".to_owned(),
            parameters: Vec::new(),
        }
    }

    /// Whether path and query, as the route has changed them, name a script.
    pub(super) fn has_script(&self, target: &str) -> bool {
        if self.script.is_some() && !self.must_exist {
            return true;
        }
        let (script, _) = script_and_info(self, target);
        let is_script = self.script.is_some() || script.ends_with(&self.split);
        is_script && (!self.must_exist || self.is_file(&script))
    }

    /// Visits the parameters of a script.
    ///
    /// - `target`: path and query as the route has changed them.
    /// - `text`: memory for values.
    pub(super) fn each_own(
        &self,
        target: &str,
        text: &mut String,
        put: &mut dyn FnMut(&str, &str),
    ) {
        let root = &self.root;
        let (script, info) = script_and_info(self, target);
        let mut joined = |name: &str, first: &str, second: &str| {
            text.clear();
            text.push_str(first);
            text.push_str(second);
            put(name, text);
        };
        joined("SCRIPT_FILENAME", root, &script);
        joined("DOCUMENT_URI", &script, &info);
        if !info.is_empty() {
            joined("PATH_TRANSLATED", root, &info);
        }
        for (name, value) in [
            ("GATEWAY_INTERFACE", "CGI/1.1"),
            ("SERVER_SOFTWARE", "plimsoll"),
            ("DOCUMENT_ROOT", root),
            // A PHP that was built for it runs no script without (`cgi.force_redirect`).
            ("REDIRECT_STATUS", "200"),
            ("SCRIPT_NAME", &script),
            ("PATH_INFO", &info),
        ] {
            put(name, value);
        }
    }

    fn is_file(&self, script: &str) -> bool {
        // A look at a file that the system has in memory, as nginx does it.
        Path::new(&format!("{}{script}", self.root)).is_file()
    }
}

/// The script of path and query, and the path within it.
fn script_and_info(plan: &FastCgiPlan, target: &str) -> (String, String) {
    let path = target.split('?').next().unwrap_or_default();
    let path = NormalPath::cleaned(path);
    let path = path.text();
    match &plan.script {
        Some(script) => {
            let own = of_folder(plan, path);
            (own.unwrap_or_else(|| script.clone()), String::new())
        }
        None => split(plan, path),
    }
}

/// The index of the folder that a path names, if there is one.
fn of_folder(plan: &FastCgiPlan, path: &str) -> Option<String> {
    if !plan.has_folders || !path.ends_with('/') {
        return None;
    }
    let script = format!("{path}{}", plan.index);
    plan.is_file(&script).then_some(script)
}

/// The script that a path names, and the path within it.
fn split(plan: &FastCgiPlan, path: &str) -> (String, String) {
    let mut from = 0;
    while !plan.split.is_empty()
        && let Some(at) = path.get(from..).and_then(|rest| rest.find(&plan.split))
    {
        let end = from + at + plan.split.len();
        let (script, info) = path.split_at(end);
        if info.is_empty() || info.starts_with('/') {
            return (script.to_owned(), info.to_owned());
        }
        from = end;
    }
    let index = if path.ends_with('/') {
        plan.index.as_str()
    } else {
        ""
    };
    (format!("{path}{index}"), String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_a_script_and_what_is_within_it() {
        let plan = FastCgiPlan::new("/srv".to_owned());
        for (path, script, info) in [
            ("/", "/index.php", ""),
            ("/a/", "/a/index.php", ""),
            ("/a.php", "/a.php", ""),
            ("/a.php/", "/a.php", "/"),
            ("/a.php/b/c", "/a.php", "/b/c"),
            ("/a.php/b.php", "/a.php", "/b.php"),
            ("/a.phpx/b.php/c", "/a.phpx/b.php", "/c"),
            ("/a.phpx", "/a.phpx", ""),
            ("/plain", "/plain", ""),
        ] {
            assert_eq!(
                split(&plan, path),
                (script.to_owned(), info.to_owned()),
                "{path}"
            );
        }
        for (path, is_script) in [
            ("/", true),
            ("/a.php/b?c", true),
            ("/.env", false),
            ("/a.phpx", false),
            ("/plain", false),
        ] {
            assert_eq!(plan.has_script(path), is_script, "{path}");
        }
        let any = FastCgiPlan {
            split: String::new(),
            ..plan
        };
        assert_eq!(
            split(&any, "/a.php/b"),
            ("/a.php/b".to_owned(), String::new())
        );
        assert!(any.has_script("/plain"));
    }
}
