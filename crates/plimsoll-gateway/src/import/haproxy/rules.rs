//! `http-request`, `http-response`, `redirect`, `use_backend`: what requests pass in their order.

use std::collections::BTreeMap;

use plimsoll_model::document::toml_string;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::rows::actions::{Action, Passed, Response, answer};
use super::super::rows::matcher::Matcher;
use super::super::rows::steps::{Block, Layer, Step, Within};
use super::super::rows::value_maps::ValueMaps;
use super::super::toml::Keys;
use super::conditions::{Acls, Condition, Unknown};
use super::rate_limit::rate_limit;
use super::values::{after, with_places};
use super::{Model, Section, left_out};

/// What rules are translated with.
pub(super) struct Rules<'a, 'm> {
    pub(super) model: &'m Model<'a>,
    pub(super) maps: &'m mut ValueMaps,
    pub(super) notes: &'m mut Notes,
}

/// What becomes of a rule whose condition routes cannot express.
#[derive(Debug, Clone, Copy)]
enum Effect {
    /// It turns clients away: then it does so with all.
    Closes,
    /// It is left out.
    Changes,
}

impl Rules<'_, '_> {
    /// The steps of a section for clients: its rules, then where requests are led.
    pub(super) fn steps(&mut self, section: &Section<'_>) -> Block {
        let acls = Acls::of(&section.lines);
        let mut steps = self.own_rules(section, &acls);
        for line in section.all("use_backend") {
            let (words, condition) = acls.split(&line.arguments);
            let name = words.first().map_or("", String::as_str);
            let Some(backend) = self.model.backend(name) else {
                left_out(
                    line,
                    "sent these requests to a backend of that name, which depends on the request or is not there",
                    self.notes,
                );
                continue;
            };
            self.lead(line, condition, &backend, &mut steps);
        }
        let default = section.last("default_backend");
        let to = match default {
            Some(line) => self.model.backend(line.argument(0)),
            None => (!section.is_frontend()).then(|| section.clone()),
        };
        if let Some(backend) = to {
            let line = default.unwrap_or(section.head);
            self.lead(line, Ok(Condition::always()), &backend, &mut steps);
        } else if !takes_all(&steps) {
            steps.push(Step::Actions {
                matcher: Matcher::default(),
                actions: vec![Action::new(
                    Matcher::default(),
                    Response::Other(answer("503", "no server is available\n")),
                    section.head,
                )],
            });
        }
        Block(steps)
    }

    /// Requests go to a backend, by its rules.
    fn lead(
        &mut self,
        line: &Directive,
        condition: Result<Condition, Unknown>,
        backend: &Section<'_>,
        steps: &mut Vec<Step>,
    ) {
        let matchers = match condition.map_err(|it| it.to_string()) {
            Ok(condition) => condition.matchers(self.maps).map_err(|it| it.to_string()),
            Err(reason) => Err(reason),
        };
        let matchers = match matchers {
            Ok(matchers) => matchers,
            Err(reason) => {
                self.notes.add(
                    line,
                    format!(
                        "left out: {reason}; HAProxy would have sent these requests to `{}`",
                        backend.name()
                    ),
                );
                return;
            }
        };
        for matcher in matchers {
            let is_own = std::ptr::eq(line, backend.head);
            let block = self.backend(backend, is_own);
            steps.push(Step::Within {
                matcher,
                directive: line.clone(),
                block,
                kind: Within::Route,
            });
        }
    }

    /// The steps of a section with servers.
    ///
    /// - `is_own`: its rules have been passed, as those of a `listen`.
    fn backend(&mut self, section: &Section<'_>, is_own: bool) -> Block {
        let mut steps = if is_own {
            Vec::new()
        } else {
            self.own_rules(section, &Acls::of(&section.lines))
        };
        let response = if section.is_reachable() {
            let mut proxy = Keys::default();
            proxy.text("to", section.name());
            if !self.model.forwards_client(section) {
                proxy.text("forwarded", "none");
            }
            if let Some(time) = section.timeout("tunnel") {
                let mut limits = Keys::default();
                limits.text("idle_timeout", &time);
                proxy.set("websocket", limits.inline());
            }
            if let Some(rewrite) = self.rewritten(section) {
                proxy.set("rewrite", rewrite);
            }
            Response::Proxy(proxy)
        } else {
            Response::Other(answer("503", "no server is available\n"))
        };
        steps.push(Step::Actions {
            matcher: Matcher::default(),
            actions: vec![Action::new(Matcher::default(), response, section.head)],
        });
        Block(steps)
    }

    /// The rules of a section for requests and responses.
    fn own_rules(&mut self, section: &Section<'_>, acls: &Acls<'_>) -> Vec<Step> {
        let mut steps = self.requests(section, acls);
        for line in section.all("redirect") {
            let (words, condition) = acls.split(&line.arguments);
            let response = self.redirect(line, words);
            self.act(line, condition, response, Effect::Changes, &mut steps);
        }
        self.responses(section, &mut steps);
        steps
    }

    /// Whether a line is about a field of a name that no field may have, which is noted.
    fn has_wrong_name(&mut self, line: &Directive) -> bool {
        let name = line.argument(1);
        let is_wrong = line.argument(0).ends_with("-header")
            && http::HeaderName::from_bytes(name.as_bytes()).is_err();
        if is_wrong {
            let message = format!("left out: `{name}` is no name of a field");
            self.notes.add(line, message);
        }
        is_wrong
    }

    /// `rate_limit` of a section, for all requests.
    fn limits(&self, section: &Section<'_>) -> Option<String> {
        let lines = section.all("http-request");
        let limits = lines.filter_map(|line| rate_limit(line, section, self.model));
        let limits: Vec<_> = limits.map(|it| it.inline()).collect();
        match limits.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("[{}]", several.join(", "))),
        }
    }

    /// `http-request` in its order.
    fn requests(&mut self, section: &Section<'_>, acls: &Acls<'_>) -> Vec<Step> {
        let mut steps = Vec::new();
        // They hold together, where the first of them stands.
        let mut limits = self.limits(section);
        let has_limits = limits.is_some();
        for line in section.all("http-request") {
            let rest = line.arguments.get(1..).unwrap_or_default();
            let (words, condition) = acls.split(rest);
            let word = |at: usize| words.get(at).map_or("", String::as_str);
            let mut passed = Passed::default();
            if self.has_wrong_name(line) {
                continue;
            }
            match line.argument(0) {
                "set-header" | "add-header" => {
                    let Some(value) = with_places(word(1)) else {
                        let value = word(1);
                        left_out(
                            line,
                            &format!("sent servers `{value}`, for which there are no places"),
                            self.notes,
                        );
                        continue;
                    };
                    if line.argument(0) == "set-header" {
                        passed.request.set_text(word(0), &value);
                    } else {
                        passed.request.add.text(word(0), &value);
                    }
                    self.pass(line, condition, &passed, &mut steps);
                }
                "del-header" => {
                    passed.request.removed.push(word(0).to_ascii_lowercase());
                    self.pass(line, condition, &passed, &mut steps);
                }
                "deny" if rate_limit(line, section, self.model).is_some() => {
                    if let Some(limits) = limits.take() {
                        passed.keys.set("rate_limit", limits);
                        self.pass(line, Ok(Condition::always()), &passed, &mut steps);
                    }
                }
                "deny" if largest(rest).is_some() => {
                    passed.max_request = largest(rest);
                    self.pass(line, Ok(Condition::always()), &passed, &mut steps);
                }
                "deny" | "tarpit" | "reject" | "silent-drop" => {
                    let status =
                        after(line, "deny_status").unwrap_or(if line.argument(0) == "tarpit" {
                            "500"
                        } else {
                            "403"
                        });
                    let response = Response::Other(answer(status, "forbidden\n"));
                    self.act(line, condition, Some(response), Effect::Closes, &mut steps);
                }
                "return" => {
                    let response = self.returned(line, words);
                    let status = after(line, "status").and_then(|it| it.parse::<u16>().ok());
                    let effect = if status.is_some_and(|it| it >= 400) {
                        Effect::Closes
                    } else {
                        Effect::Changes
                    };
                    self.act(line, condition, response, effect, &mut steps);
                }
                "redirect" => {
                    let response = self.redirect(line, words);
                    self.act(line, condition, response, Effect::Changes, &mut steps);
                }
                "auth" => self.password(line, condition, &mut steps),
                "allow" => left_out(line, "let these requests past the rules behind", self.notes),
                // They are read where requests are forwarded.
                "replace-path" | "replace-pathq" | "set-path" if !section.is_frontend() => {
                    if !condition.is_ok_and(|it| it.is_always()) {
                        left_out(line, "changed the path of some requests", self.notes);
                    }
                }
                "replace-path" | "replace-pathq" | "set-path" | "set-query" | "set-uri"
                | "replace-uri" | "set-method" => {
                    left_out(
                        line,
                        "changed the request, also for the conditions behind",
                        self.notes,
                    );
                }
                "track-sc0" | "track-sc1" | "track-sc2" if has_limits => {}
                "track-sc0" | "track-sc1" | "track-sc2" => {
                    left_out(
                        line,
                        "counted in a stick-table: `rate_limit` and `in_flight_limit` count by themselves",
                        self.notes,
                    );
                }
                // Its own logs and variables.
                "set-log-level" | "set-nice" | "capture" | "set-tos" | "set-mark" => {}
                _ => left_out(line, "done this with requests", self.notes),
            }
        }
        steps
    }

    /// `http-response` for all that servers respond with.
    fn responses(&mut self, section: &Section<'_>, steps: &mut Vec<Step>) {
        let mut passed = Passed::default();
        let lines = section.lines.iter();
        for line in
            lines.filter(|it| it.name == "http-response" || it.name == "http-after-response")
        {
            if self.has_wrong_name(line) {
                continue;
            }
            let word = |at: usize| line.argument(at);
            let is_conditional = line.arguments.iter().any(|it| it == "if" || it == "unless");
            let value = with_places(word(2));
            match (word(0), value) {
                _ if is_conditional => left_out(line, "changed some responses", self.notes),
                ("set-header", Some(value)) => passed.response.set_text(word(1), &value),
                ("add-header", Some(value)) => passed.response.add.text(word(1), &value),
                ("del-header", _) => passed.response.removed.push(word(1).to_ascii_lowercase()),
                _ => left_out(line, "done this with responses", self.notes),
            }
        }
        if section.last("compression").is_some() {
            let of = |word: &str| -> Vec<String> {
                let lines = section
                    .all("compression")
                    .filter(|it| it.argument(0) == word);
                lines
                    .flat_map(|it| it.arguments.iter().skip(1))
                    .map(|it| toml_string(it))
                    .collect()
            };
            let types = of("type");
            let compress = if types.is_empty() {
                "true".to_owned()
            } else {
                format!("{{ types = [{}] }}", types.join(", "))
            };
            passed.keys.set("compress", compress);
        }
        steps.push(Step::Layer(Layer {
            matcher: Matcher::default(),
            passed,
            directive: section.head.clone(),
            is_guard: false,
        }));
    }

    /// Something that requests pass.
    fn pass(
        &mut self,
        line: &Directive,
        condition: Result<Condition, Unknown>,
        passed: &Passed,
        steps: &mut Vec<Step>,
    ) {
        for matcher in self.matchers(line, condition, Effect::Changes) {
            steps.push(Step::Layer(Layer {
                matcher,
                passed: passed.clone(),
                directive: line.clone(),
                is_guard: false,
            }));
        }
    }

    /// Something that responds.
    fn act(
        &mut self,
        line: &Directive,
        condition: Result<Condition, Unknown>,
        response: Option<Response>,
        effect: Effect,
        steps: &mut Vec<Step>,
    ) {
        let Some(response) = response else {
            return;
        };
        for matcher in self.matchers(line, condition, effect) {
            steps.push(Step::Actions {
                matcher: matcher.clone(),
                actions: vec![Action::new(matcher, response.clone(), line)],
            });
        }
    }

    fn matchers(
        &mut self,
        line: &Directive,
        condition: Result<Condition, Unknown>,
        effect: Effect,
    ) -> Vec<Matcher> {
        let found = match condition {
            Ok(condition) => condition.matchers(self.maps).map_err(|it| it.to_string()),
            Err(reason) => Err(reason.to_string()),
        };
        match (found, effect) {
            (Ok(matchers), _) => matchers,
            (Err(reason), Effect::Changes) => {
                let message =
                    format!("left out: {reason}; HAProxy would have done it for some requests");
                self.notes.add(line, message);
                Vec::new()
            }
            (Err(reason), Effect::Closes) => {
                let message = format!(
                    "is for all requests: {reason}; HAProxy would have responded so to some of them"
                );
                self.notes.add(line, message);
                vec![Matcher::default()]
            }
        }
    }

    /// `http-request auth unless { http_auth(LIST) }`.
    fn password(
        &mut self,
        line: &Directive,
        condition: Result<Condition, Unknown>,
        steps: &mut Vec<Step>,
    ) {
        let list = condition.ok();
        let list = list.as_ref().and_then(Condition::unless_password);
        let users = list.and_then(|it| self.model.users(it, self.notes));
        let mut passed = Passed::default();
        if let Some(users) = users {
            let mut auth = Keys::default();
            if let Some(realm) = after(line, "realm") {
                auth.text("realm", realm);
            }
            auth.set("users", users.inline());
            passed.keys.set("basic_auth", auth.inline());
        } else {
            passed.is_closed = true;
            self.notes.add(
                line,
                "responds with 501: HAProxy would have asked for a password by a condition other than `unless { http_auth(LIST) }`",
            );
        }
        steps.push(Step::Layer(Layer {
            matcher: Matcher::default(),
            passed,
            directive: line.clone(),
            is_guard: true,
        }));
    }

    fn returned(&mut self, line: &Directive, words: &[String]) -> Option<Response> {
        let value = |word: &str| {
            let at = words.iter().position(|it| it == word)?;
            words.get(at + 1).map(String::as_str)
        };
        let status = value("status").unwrap_or("200");
        let mut respond = Keys::default();
        respond.set("status", status.parse::<u16>().ok()?.to_string());
        if let Some(media_type) = value("content-type") {
            respond.text("type", media_type);
        }
        if let Some(text) = value("string") {
            respond.text("body", text);
        } else if let Some(text) = value("lf-string") {
            let Some(template) = with_places(text) else {
                let message = format!("responded with `{text}`, for which there are no places");
                left_out(line, &message, self.notes);
                return None;
            };
            respond.text("template", &template);
        } else if let Some(file) = value("file") {
            respond.text("file", file);
        }
        let mut keys = Keys::default();
        keys.set("respond", respond.inline());
        Some(Response::Other(keys))
    }

    fn redirect(&mut self, line: &Directive, words: &[String]) -> Option<Response> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let value = |word: &str| {
            let at = words.iter().position(|it| *it == word)?;
            words.get(at + 1).copied()
        };
        let status = value("code").unwrap_or("302");
        let to = if let Some(scheme) = value("scheme") {
            Some(format!("{scheme}://{{host}}{{path}}{{query}}"))
        } else if let Some(location) = value("location") {
            with_places(location)
        } else {
            let prefix = value("prefix").and_then(with_places);
            let query = if words.contains(&"drop-query") {
                ""
            } else {
                "{query}"
            };
            prefix.map(|it| format!("{}{{path}}{query}", it.trim_end_matches('/')))
        };
        let Some(to) = to else {
            left_out(
                line,
                "redirected by samples for which there are no places",
                self.notes,
            );
            return None;
        };
        let mut keys = Keys::default();
        let to = toml_string(&to);
        keys.set("redirect", format!("{{ to = {to}, status = {status} }}"));
        Some(Response::Other(keys))
    }

    /// `rewrite` of a proxy: the first rule for all requests.
    fn rewritten(&mut self, section: &Section<'_>) -> Option<String> {
        let lines = section.all("http-request");
        let mut rules = lines.filter(|it| {
            let is_it = ["replace-path", "replace-pathq", "set-path"].contains(&it.argument(0));
            is_it && !it.arguments.iter().any(|it| it == "if" || it == "unless")
        });
        let rule = rules.next()?;
        for other in rules {
            left_out(other, "changed the path once more", self.notes);
        }
        let (from, to) = if rule.argument(0) == "set-path" {
            ("^.*$".to_owned(), rule.argument(1).to_owned())
        } else {
            (
                format!("^.*?(?:{}).*$", rule.argument(1)),
                rule.argument(2).to_owned(),
            )
        };
        let is_plain = !to.contains(['%', '$', '{']) && regex::Regex::new(&from).is_ok();
        if !is_plain {
            left_out(rule, "changed the path", self.notes);
            return None;
        }
        let groups = regex::Regex::new(r"\\([0-9])").ok()?;
        let to = groups.replace_all(&to, "$${$1}").into_owned();
        Some(format!(
            "{{ from = {}, to = {} }}",
            toml_string(&from),
            toml_string(&to)
        ))
    }
}

/// Whether one of the steps responds to every request.
fn takes_all(steps: &[Step]) -> bool {
    let all = Matcher::default();
    let is_all = |it: &Step| matches!(it, Step::Actions { matcher, .. } if *matcher == all);
    steps.iter().any(is_all)
}

/// The most content that a request may have, where longer ones are denied.
fn largest(words: &[String]) -> Option<String> {
    let at = words.iter().position(|it| it == "if")?;
    match words.get(at + 1..)? {
        [open, sample, operator, most, close]
            if open == "{" && sample == "req.body_size" && operator == "gt" && close == "}" =>
        {
            most.parse::<u64>()
                .ok()
                .map(|it| toml_string(&format!("{it}B")))
        }
        _ => None,
    }
}

/// Lists of users with the hashes of their passwords.
pub(super) type Lists<'a> = BTreeMap<&'a str, &'a Directive>;
