//! One route of the file for `plimsoll up`, with what it keeps clients out by.

use std::rc::Rc;

use plimsoll_server::PathCondition;

use super::access;
use super::nginx::Directive;
use super::toml::Keys;

/// Path condition of a route.
pub(super) enum Condition<'a> {
    Exact(&'a str),
    Prefix(&'a str),
    Regex(String),
}

/// One route as text, and the directive that it comes from.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) file: Rc<str>,
    pub(super) line: usize,
    pub(super) directive: String,
    pub(super) text: String,
    /// Its name, by which alone other routes lead there.
    pub(super) name: Option<String>,
    /// Its condition on the path.
    pub(super) path: Option<PathCondition>,
    /// It has other conditions.
    pub(super) is_conditional: bool,
    effect: Effect,
    /// What keeps somebody out of its location, as [`selection::rules`](super::selection::rules) has it.
    pub(super) rules: Vec<String>,
    /// The same of what `try_files` of the location leads to, which the route does not send to clients that it keeps out.
    pub(super) led_rules: Vec<String>,
}

/// What a route lets clients see, as far as it matters for who is kept out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// An error or a redirect.
    Refuses,
    /// Files, but for those whose names begin with a dot.
    Files,
    Serves,
}

impl Route {
    pub(super) fn new(keys: &Keys, directive: &Directive) -> Self {
        let mut text = String::new();
        keys.lines(&mut text);
        Self {
            file: Rc::clone(&directive.file),
            line: directive.line,
            directive: directive.name.clone(),
            text,
            name: None,
            path: path_condition(keys),
            is_conditional: ["method", "query", "header", "places"]
                .iter()
                .any(|it| keys.get(it).is_some()),
            effect: effect(keys),
            rules: Vec::new(),
            led_rules: Vec::new(),
        }
    }

    /// One that clients do not reach, under a name.
    pub(super) fn named(name: &str, keys: &Keys, directive: &Directive) -> Self {
        let mut own = Keys::default();
        own.text("name", name);
        own.set("internal", "true");
        own.inherit(keys);
        for condition in ["path", "prefix", "regex"] {
            own.remove(condition);
        }
        Self {
            name: Some(name.to_owned()),
            path: None,
            ..Self::new(&own, directive)
        }
    }

    /// The same for paths that clients do not reach, but other routes lead to.
    pub(super) fn internal(keys: &Keys, directive: &Directive) -> Self {
        let mut own = Keys::default();
        own.set("internal", "true");
        own.inherit(keys);
        Self {
            path: None,
            ..Self::new(&own, directive)
        }
    }

    /// A 403 for what a condition, which is a line, is for.
    pub(super) fn closing(condition: &str, directive: &Directive) -> Self {
        let mut keys = Keys::default();
        if let Some((key, value)) = condition.trim_end().split_once(" = ") {
            keys.set(key, value);
        }
        access::forbid(&mut keys);
        Self::new(&keys, directive)
    }

    /// Responds with a 403 instead, to the same requests.
    pub(super) fn forbid(&mut self) {
        let conditions = [
            "path", "prefix", "regex", "method", "query", "header", "places",
        ];
        let is_condition = |line: &&str| {
            let key = line.split(' ').next().unwrap_or_default();
            conditions.contains(&key)
        };
        let mut keys = Keys::default();
        access::forbid(&mut keys);
        let mut text: String = self
            .text
            .lines()
            .filter(is_condition)
            .flat_map(|it| [it, "\n"])
            .collect();
        keys.lines(&mut text);
        self.text = text;
        self.effect = Effect::Refuses;
    }

    /// The path of the file that is sent for a path in the spelling of nginx, which is that of the prefix.
    pub(super) fn file_of(&self, path: &str) -> Option<String> {
        let (Effect::Files, Some(PathCondition::Prefix(prefix))) = (self.effect, &self.path) else {
            return None;
        };
        let (head, rest) = path.split_at_checked(prefix.len())?;
        head.eq_ignore_ascii_case(prefix)
            .then(|| format!("{prefix}{rest}"))
    }

    /// Whether clients that these rules keep out do not get in by this route either.
    ///
    /// - `is_led`: the rules are those of a path that nginx itself leads to.
    pub(super) fn keeps(&self, rules: &[String], is_led: bool, path: &str) -> bool {
        let is_hidden = path
            .split("/.")
            .skip(1)
            .any(|it| !it.starts_with("well-known"));
        match self.effect {
            Effect::Refuses => true,
            Effect::Files if is_hidden => true,
            Effect::Files | Effect::Serves => {
                let is_led = |it| is_led && self.led_rules.contains(it);
                let mut rules = rules.iter();
                rules.all(|it| self.rules.contains(it) || is_led(it))
            }
        }
    }
}

/// The condition on the path among keys.
fn path_condition(keys: &Keys) -> Option<PathCondition> {
    // Texts of TOML are written as those of JSON.
    let text = |key: &str| -> Option<String> { serde_json::from_str(keys.get(key)?).ok() };
    let exact = || PathCondition::exact(&text("path")?).ok();
    let prefix = || PathCondition::prefix(&text("prefix")?).ok();
    let regex = || PathCondition::regex(&text("regex")?).ok();
    exact().or_else(prefix).or_else(regex)
}

fn effect(keys: &Keys) -> Effect {
    let is_error = |it: &str| {
        ["3", "4", "5"]
            .iter()
            .any(|digit| it.starts_with(&format!("{{ status = {digit}")))
    };
    if keys.get("redirect").is_some() || keys.get("respond").is_some_and(is_error) {
        Effect::Refuses
    } else if keys.get("files").is_some() {
        Effect::Files
    } else {
        Effect::Serves
    }
}
