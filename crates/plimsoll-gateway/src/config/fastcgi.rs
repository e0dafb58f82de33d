//! `fastcgi` in a route's `proxy`.

use plimsoll_server::config::{Mounted, Table, Value, as_text, template};
use plimsoll_server::{Moment, Template};

use crate::forward::FastCgiPlan;

/// A folder, or a table with `root` and what differs from the usual.
pub(super) fn compile(value: Value<'_>, mounted: &Mounted<'_>) -> Option<FastCgiPlan> {
    if !value.is_table() {
        return root(&value).map(FastCgiPlan::new);
    }
    let mut plan = FastCgiPlan::new(String::new());
    let mut table = value.table()?;
    let mut is_whole = true;
    if let Some(value) = table.take_value("root") {
        let root = root(&value);
        is_whole &= root.is_some();
        plan.root = root.unwrap_or_default();
    } else {
        let example = "the folder of the scripts, such as \"/var/www/html\"";
        table.missing("root", example);
        is_whole = false;
    }
    if let Some(index) = table.text("index") {
        plan.index = index;
    }
    if let Some(split) = table.text("split") {
        plan.split = split;
    }
    let is_name = !plan.index.is_empty() && !plan.index.contains('/');
    if !is_name || !plan.index.ends_with(&plan.split) {
        table.wrong(
            "`index` is the name of a script, which ends with `split`",
            Some("index = \"index.php\", split = \".php\"".to_owned()),
        );
        is_whole = false;
    }
    if let Some(value) = table.take_value("script") {
        let script = as_text(&value).and_then(|script| {
            if script.starts_with('/') {
                Some(script.to_owned())
            } else {
                value.wrong("begins with a slash: it is a path below `root`")
            }
        });
        is_whole &= script.is_some();
        plan.script = script;
    }
    plan.must_exist = table.boolean("must_exist").unwrap_or(false);
    plan.has_folders = table.boolean("folders").unwrap_or(false);
    if plan.has_folders && plan.script.is_none() {
        table.wrong(
            "`folders` is for a route with one `script`",
            Some("script = \"/index.php\", folders = true".to_owned()),
        );
        is_whole = false;
    }
    is_whole &= parameters(&mut table, mounted, &mut plan.parameters);
    table.finish();
    is_whole.then_some(plan)
}

/// The table `parameters` of an application; false if something in it is wrong.
pub(super) fn parameters(
    table: &mut Table<'_>,
    mounted: &Mounted<'_>,
    list: &mut Vec<(String, Template)>,
) -> bool {
    let Some(mut parameters) = table.table("parameters") else {
        return true;
    };
    let mut is_whole = true;
    for (name, value) in parameters.rest() {
        let is_name = name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'_');
        let template = if is_name && !name.is_empty() {
            template(&value, mounted.maps, Moment::Request)
        } else {
            value.wrong("is a parameter, whose name has letters, digits and `_`")
        };
        is_whole &= template.is_some();
        list.extend(template.map(|it| (name, it)));
    }
    is_whole
}

fn root(value: &Value<'_>) -> Option<String> {
    let root = as_text(value)?;
    if root.starts_with('/') {
        return Some(root.trim_end_matches('/').to_owned());
    }
    value.wrong(
        "is a folder as the application sees it: an absolute path, such as \"/var/www/html\"",
    )
}
