//! Changes to one rule in the text of its file. Everything else stays as it is: comments, blanks, order.

use toml_edit::{
    ArrayOfTables, DocumentMut, InlineTable, Item, RawString, Table, TableLike, Value,
};

/// A rule of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhichRule {
    /// One that is not there yet, behind all others.
    New,
    /// Counted from 1.
    Number(usize),
    /// By its own name.
    Id(String),
}

/// Changes to a rule. Absent parts stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleChange {
    /// Its own name.
    pub id: Option<String>,
    /// `when.request.url_path`; an operator that is there stays.
    pub path: Option<String>,
    /// `when.request.method`.
    pub method: Option<String>,
    /// `when.request.headers`, by names; an operator that is there stays.
    pub headers: Vec<(String, String)>,
    /// `respond.status`.
    pub status: Option<u16>,
    /// In place of the content that it has.
    pub content: Option<RuleContent>,
    /// `respond.delay`, such as `50ms`.
    pub delay: Option<String>,
}

/// Content of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleContent {
    /// `respond.text`.
    Text(String),
    /// `respond.json`.
    Json(String),
    /// `respond.file_path`.
    File(String),
}

/// Keys of which a `respond` has one.
const CONTENTS: [&str; 4] = ["text", "json", "base64", "file_path"];

/// Why a text cannot be changed so.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// With line and column, as the parser shows them.
    #[error("it is no TOML: {0}")]
    Syntax(String),
    /// A key whose value is something else.
    #[error("`{0}` is no table")]
    NoTable(String),
    /// `rules` is something else than a list of tables.
    #[error("`rules` is no list of tables")]
    NoRules,
    /// No rule has this number or name.
    #[error("there is no rule {which}: {}", listed(.there))]
    NoRule {
        /// The id or number that was requested.
        which: String,
        /// The existing rules, by names or else numbers.
        there: Vec<String>,
    },
}

fn listed(there: &[String]) -> String {
    match there {
        [] => "the file has none".to_owned(),
        [only] => format!("the file has only {only}"),
        many => format!("the file has {}", many.join(", ")),
    }
}

/// The text with the rule changed, and the number of the rule, from 1.
pub fn changed(
    text: &str,
    which: &WhichRule,
    change: &RuleChange,
) -> Result<(String, usize), EditError> {
    let document = text.parse::<DocumentMut>();
    let mut document = document.map_err(|error| EditError::Syntax(error.to_string()))?;
    let rules = document
        .entry("rules")
        .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let number = match which {
        WhichRule::New => add(rules)?,
        WhichRule::Number(_) | WhichRule::Id(_) => find(rules, which)?,
    };
    let rule = rule(rules, number - 1).ok_or(EditError::NoRules)?;
    apply(rule, change)?;
    Ok((document.to_string(), number))
}

/// Puts a rule behind the others; its number.
fn add(rules: &mut Item) -> Result<usize, EditError> {
    if let Some(tables) = rules.as_array_of_tables_mut() {
        let mut table = Table::new();
        table.decor_mut().set_prefix("\n");
        tables.push(table);
        return Ok(tables.len());
    }
    let values = rules.as_array_mut().ok_or(EditError::NoRules)?;
    values.push(InlineTable::new());
    Ok(values.len())
}

fn find(rules: &mut Item, which: &WhichRule) -> Result<usize, EditError> {
    let mut there = Vec::new();
    while let Some(rule) = rule(rules, there.len()) {
        let number = there.len() + 1;
        let id = rule.get("id").and_then(Item::as_str);
        let is_it = match which {
            WhichRule::New => false,
            WhichRule::Number(wanted) => *wanted == number,
            WhichRule::Id(wanted) => id == Some(wanted),
        };
        if is_it {
            return Ok(number);
        }
        there.push(id.map_or_else(|| format!("rules[{number}]"), str::to_owned));
    }
    let which = match which {
        WhichRule::New => String::new(),
        WhichRule::Number(number) => format!("rules[{number}]"),
        WhichRule::Id(id) => format!("`{id}`"),
    };
    Err(EditError::NoRule { which, there })
}

/// - `index`: from 0.
fn rule(rules: &mut Item, index: usize) -> Option<&mut dyn TableLike> {
    match rules {
        Item::ArrayOfTables(tables) => {
            let table = tables.get_mut(index)?;
            Some(table)
        }
        Item::Value(Value::Array(values)) => {
            let table = values.get_mut(index)?.as_inline_table_mut()?;
            Some(table)
        }
        _ => None,
    }
}

fn apply(rule: &mut dyn TableLike, change: &RuleChange) -> Result<(), EditError> {
    if let Some(id) = &change.id {
        put(rule, "id", id.as_str().into());
    }
    let asks = change.path.is_some() || change.method.is_some() || !change.headers.is_empty();
    if asks {
        let when = table(rule, "when")?;
        let request = table(when, "request")?;
        if let Some(path) = &change.path {
            put_condition(request, "url_path", path);
        }
        if let Some(method) = &change.method {
            put(request, "method", method.as_str().into());
        }
        for (name, value) in &change.headers {
            let headers = table(request, "headers")?;
            let known = headers.iter().map(|(known, _)| known);
            let known = known.filter(|known| known.eq_ignore_ascii_case(name));
            let known = known.map(str::to_owned).next();
            put_condition(headers, known.as_deref().unwrap_or(name), value);
        }
    }
    let answers = change.status.is_some() || change.content.is_some() || change.delay.is_some();
    if answers {
        let respond = table(rule, "respond")?;
        if let Some(status) = change.status {
            put(respond, "status", i64::from(status).into());
        }
        if let Some(content) = &change.content {
            let (key, value) = match content {
                RuleContent::Text(text) => ("text", text),
                RuleContent::Json(json) => ("json", json),
                RuleContent::File(path) => ("file_path", path),
            };
            // The removed key may be the last one, whose blanks are needed.
            put(respond, key, value.as_str().into());
            for other in CONTENTS.iter().filter(|other| **other != key) {
                respond.remove(other);
            }
        }
        if let Some(delay) = &change.delay {
            put(respond, "delay", delay.as_str().into());
            respond.remove("delay_response_milliseconds");
        }
    }
    Ok(())
}

/// The table below a key, which is made if it is not there.
fn table<'t>(parent: &'t mut dyn TableLike, key: &str) -> Result<&'t mut dyn TableLike, EditError> {
    if !parent.contains_key(key) {
        let mut table = Table::new();
        // As `when.request.url_path = …`, without a separate table header.
        table.set_dotted(true);
        parent.insert(key, Item::Table(table));
    }
    let item = parent.get_mut(key);
    let item = item.and_then(Item::as_table_like_mut);
    item.ok_or_else(|| EditError::NoTable(key.to_owned()))
}

/// A value in place of another, between the same blanks and comments.
fn put(table: &mut dyn TableLike, key: &str, mut value: Value) {
    if let Some(old) = table.get_mut(key).and_then(Item::as_value_mut) {
        *value.decor_mut() = old.decor().clone();
        *old = value;
        return;
    }
    if let Some(last) = last(table) {
        let blanks = last.decor().suffix().and_then(RawString::as_str);
        let blanks = blanks.filter(|blanks| blanks.trim().is_empty());
        if let Some(blanks) = blanks.map(str::to_owned) {
            last.decor_mut().set_suffix("");
            value.decor_mut().set_suffix(blanks);
        }
    }
    table.insert(key, Item::Value(value));
}

/// The last value of a table, behind which another one comes.
fn last(table: &mut dyn TableLike) -> Option<&mut Value> {
    let (_, item) = table.iter_mut().last()?;
    item.as_value_mut()
}

/// A text, or the value beside the operator that is there.
fn put_condition(table: &mut dyn TableLike, key: &str, text: &str) {
    let condition = table.get_mut(key).and_then(Item::as_table_like_mut);
    match condition {
        Some(condition) => put(condition, "value", text.into()),
        None => put(table, key, text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# Orders of a shop.
strategy = "first_match"

[[rules]] # the first
id = "orders"
when.request.url_path = { op = "starts_with", value = "/orders" }   # all of them
respond = { status = 200, text = "old" } # an answer
scenario = { name = "a" }

# Behind it.
[[rules]]
[rules.when.request]
url_path = "/slow"
method = "GET"
headers.X-Kind = { op = "contains", value = "a" }
[rules.respond]
# Nothing yet.
delay_response_milliseconds = 20
file_path = "a.json"
"#;

    fn text(which: &WhichRule, change: &RuleChange) -> String {
        changed(TEXT, which, change).unwrap().0
    }

    #[test]
    fn only_what_is_changed_changes() {
        assert_eq!(text(&WhichRule::Number(1), &RuleChange::default()), TEXT);
        let change = RuleChange {
            path: Some("/v2/orders".to_owned()),
            status: Some(503),
            content: Some(RuleContent::Json("{\"a\": 1}".to_owned())),
            ..RuleChange::default()
        };
        let expected = TEXT
            .replace("value = \"/orders\"", "value = \"/v2/orders\"")
            .replace(
                "{ status = 200, text = \"old\" }",
                "{ status = 503, json = '{\"a\": 1}' }",
            );
        let id = WhichRule::Id("orders".to_owned());
        assert_eq!(text(&id, &change), expected);
        assert_eq!(text(&WhichRule::Number(1), &change), expected);
    }

    #[test]
    fn blanks_of_a_line_stay_at_its_end() {
        let change = RuleChange {
            delay: Some("1s".to_owned()),
            ..RuleChange::default()
        };
        let expected = TEXT.replace("text = \"old\" }", "text = \"old\", delay = \"1s\" }");
        assert_eq!(text(&WhichRule::Number(1), &change), expected);
    }

    #[test]
    fn tables_with_heads_of_their_own_keep_them() {
        let change = RuleChange {
            method: Some("PUT".to_owned()),
            headers: vec![("x-kind".to_owned(), "b".to_owned())],
            content: Some(RuleContent::Text("now".to_owned())),
            delay: Some("1s".to_owned()),
            ..RuleChange::default()
        };
        let expected = TEXT
            .replace("method = \"GET\"", "method = \"PUT\"")
            .replace("value = \"a\"", "value = \"b\"")
            .replace("# Nothing yet.\ndelay_response_milliseconds = 20\n", "")
            .replace(
                "file_path = \"a.json\"\n",
                "text = \"now\"\ndelay = \"1s\"\n",
            );
        assert_eq!(text(&WhichRule::Number(2), &change), expected);
    }

    #[test]
    fn a_new_rule_comes_behind_the_others() {
        let change = RuleChange {
            id: Some("new".to_owned()),
            path: Some("/new".to_owned()),
            content: Some(RuleContent::Text("hello".to_owned())),
            ..RuleChange::default()
        };
        let new =
            "[[rules]]\nid = \"new\"\nwhen.request.url_path = \"/new\"\nrespond.text = \"hello\"\n";
        assert_eq!(text(&WhichRule::New, &change), format!("{TEXT}\n{new}"));
        let (text, number) = changed("", &WhichRule::New, &change).unwrap();
        assert_eq!((text.trim_start(), number), (new, 1));
        let inline = "rules = [\n  { when.request.url_path = \"/a\", respond.text = \"a\" },\n]\n";
        let (text, number) = changed(inline, &WhichRule::New, &change).unwrap();
        assert_eq!(number, 2);
        assert!(
            crate::config::parse(&text, std::path::Path::new(".")).is_ok(),
            "{text}"
        );
    }

    #[test]
    fn what_is_not_there_is_reported_with_what_is() {
        let message = |text, which| {
            let changed = changed(text, &which, &RuleChange::default());
            changed.unwrap_err().to_string()
        };
        assert_eq!(
            message(TEXT, WhichRule::Number(3)),
            "there is no rule rules[3]: the file has orders, rules[2]"
        );
        assert_eq!(
            message("", WhichRule::Id("a".to_owned())),
            "there is no rule `a`: the file has none"
        );
        assert_eq!(
            message("rules = 1", WhichRule::New),
            "`rules` is no list of tables"
        );
        assert!(message("rules = ", WhichRule::New).starts_with("it is no TOML"));
        let change = RuleChange {
            path: Some("/".to_owned()),
            ..RuleChange::default()
        };
        let odd = changed("[[rules]]\nwhen = 1", &WhichRule::Number(1), &change);
        assert_eq!(odd.unwrap_err().to_string(), "`when` is no table");
    }
}
