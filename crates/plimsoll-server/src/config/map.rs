//! `[map.NAME]`: values by other values, and texts with places in general.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ipnet::IpNet;
use regex::bytes::Regex;

use crate::config::address::network;
use crate::config::document::{Table, Value, as_text};
use crate::place::{Affixes, Map, Maps, Moment, Template, UnknownPlace};

/// Maps whose values name maps, one below the other.
const DEEPEST: usize = 5;

/// The text of `value` as a template, whether it has places or not.
pub fn template(value: &Value<'_>, maps: &Maps, moment: Moment) -> Option<Template> {
    let text = as_text(value)?;
    checked(value, Template::with_groups(text, maps, moment, None))
}

/// Notes a place that is not known, with what was probably meant.
pub(super) fn checked<T>(value: &Value<'_>, parsed: Result<T, UnknownPlace>) -> Option<T> {
    match parsed {
        Ok(parsed) => Some(parsed),
        Err(error) => {
            let hint = error.suggestion();
            let hint = hint.map(|it| format!("did you mean `{{{it}}}`?"));
            value.wrong_with(error, hint)
        }
    }
}

/// The maps of the file. One may name another one, wherever that stands.
pub(super) fn compile(table: Option<Table<'_>>) -> Maps {
    let Some(mut table) = table else {
        return Maps::default();
    };
    let mut waiting: Vec<_> = table
        .rest()
        .into_iter()
        .filter_map(|(name, value)| {
            let source = MapSource::read(value)?;
            Some((name, source))
        })
        .collect();
    let mut depths: BTreeMap<String, usize> = BTreeMap::new();
    let mut maps = BTreeMap::new();
    // Those whose maps are there already come first.
    loop {
        let waiting_names: Vec<_> = waiting.iter().map(|(name, _)| name.clone()).collect();
        let is_ready = |source: &MapSource<'_>| {
            let mut mentioned = source.maps();
            mentioned.all(|map| !waiting_names.iter().any(|it| it == map))
        };
        let first = waiting.iter().position(|(_, source)| is_ready(source));
        let Some((name, source)) = first.map(|at| waiting.remove(at)) else {
            break;
        };
        let depth = source.maps().filter_map(|map| depths.get(map)).max();
        let depth = depth.map_or(1, |depth| depth + 1);
        if depth > DEEPEST {
            let message = format!("maps name each other more than {DEEPEST} deep");
            source.key.wrong::<()>(message);
            continue;
        }
        let known = Maps(Arc::new(maps.clone()));
        depths.insert(name.clone(), depth);
        if let Some(map) = source.compile(&known) {
            maps.insert(name, Arc::new(map));
        }
    }
    for (name, source) in waiting {
        source
            .key
            .wrong::<()>(format!("the map `{name}` names itself, or maps that do"));
    }
    Maps(Arc::new(maps))
}

/// A map as it is written.
struct MapSource<'v> {
    key: Value<'v>,
    ignores_case: bool,
    exact: Vec<(String, Value<'v>)>,
    networks: Vec<(String, Value<'v>)>,
    prefixes: Vec<(String, Value<'v>)>,
    suffixes: Vec<(String, Value<'v>)>,
    expressions: Vec<(Value<'v>, Value<'v>)>,
    /// Percentages of all texts.
    shares: Vec<(f64, Value<'v>)>,
    default: Option<Value<'v>>,
}

impl<'v> MapSource<'v> {
    fn read(value: Value<'v>) -> Option<Self> {
        let mut table = value.table()?;
        let key = table.take_value("key");
        if key.is_none() {
            table.missing("key", "what is looked up, such as key = \"{host}\"");
        }
        let ignores_case = table.boolean("ignore_case").unwrap_or(false);
        let mut pairs = |key| -> Vec<_> {
            let inner = table.table(key);
            inner.map(|mut inner| inner.rest()).unwrap_or_default()
        };
        let exact = pairs("exact");
        let networks = pairs("networks");
        let prefixes = pairs("prefix");
        let suffixes = pairs("suffix");
        let expressions = table.tables("regex").into_iter().filter_map(|mut inner| {
            let (expression, value) = (inner.take_value("match"), inner.take_value("value"));
            if expression.is_none() {
                inner.missing("match", "such as match = \"^v(\\\\d+)$\"");
            }
            if value.is_none() {
                inner.missing("value", "such as value = \"version {1}\"");
            }
            inner.finish();
            expression.zip(value)
        });
        let expressions = expressions.collect();
        let shares = shares(&mut table);
        let default = table.take_value("default");
        table.finish();
        Some(Self {
            key: key?,
            ignores_case,
            exact,
            networks,
            prefixes,
            suffixes,
            expressions,
            shares,
            default,
        })
    }

    /// The names of the maps that stand in its texts.
    fn maps(&self) -> impl Iterator<Item = &str> {
        let lists = [&self.exact, &self.networks, &self.prefixes, &self.suffixes];
        let values = lists.into_iter().flatten().map(|(_, value)| value);
        let of_expressions = self.expressions.iter().map(|(_, value)| value);
        let of_shares = self.shares.iter().map(|(_, value)| value);
        let all = std::iter::once(&self.key)
            .chain(values)
            .chain(of_expressions)
            .chain(of_shares)
            .chain(&self.default);
        all.filter_map(|value| value.as_str()).flat_map(|text| {
            let named = text.split("{map:").skip(1);
            named.filter_map(|rest| rest.split('}').next())
        })
    }

    fn compile(self, maps: &Maps) -> Option<Map> {
        let ignores_case = self.ignores_case;
        let text = |value: &Value<'_>| template(value, maps, Moment::End);
        let by_text = |pairs: Vec<(String, Value<'_>)>| -> Option<HashMap<Box<[u8]>, Template>> {
            let pairs = pairs.into_iter().map(|(name, value)| {
                let name = if ignores_case {
                    name.to_ascii_lowercase()
                } else {
                    name
                };
                Some((name.into_bytes().into(), text(&value)?))
            });
            pairs.collect::<Vec<_>>().into_iter().collect()
        };
        let key = text(&self.key);
        let exact = by_text(self.exact);
        let networks = networks(self.networks, &text);
        let prefixes = by_text(self.prefixes);
        let suffixes = by_text(self.suffixes);
        let expressions = self.expressions.into_iter().map(|(expression, value)| {
            let regex = regex(&expression)?;
            let parsed = Template::with_groups(as_text(&value)?, maps, Moment::End, Some(&regex));
            Some((regex, checked(&value, parsed)?))
        });
        let expressions: Vec<_> = expressions.collect();
        let mut end = 0.0;
        let shares = self.shares.into_iter().map(|(percent, value)| {
            end += percent;
            Some((share_end(end), text(&value)?))
        });
        let shares: Vec<_> = shares.collect();
        let default = match &self.default {
            None => Template::with_groups("", maps, Moment::End, None).ok(),
            Some(value) => text(value),
        };
        Some(Map {
            key: key?,
            ignores_case,
            exact: exact?,
            networks: networks?,
            prefixes: Affixes::new(prefixes?),
            suffixes: Affixes::new(suffixes?),
            expressions: expressions.into_iter().collect::<Option<_>>()?,
            shares: shares.into_iter().collect::<Option<_>>()?,
            default: default?,
        })
    }
}

/// The smallest first, which counts.
fn networks(
    pairs: Vec<(String, Value<'_>)>,
    text: &dyn Fn(&Value<'_>) -> Option<Template>,
) -> Option<Vec<(IpNet, Template)>> {
    let pairs = pairs.into_iter().map(|(name, value)| {
        let Some(network) = network(&name) else {
            return value.wrong(format!("`{name}` is not a network, such as 10.0.0.0/8"));
        };
        Some((network, text(&value)?))
    });
    let pairs: Vec<_> = pairs.collect();
    let mut networks: Vec<_> = pairs.into_iter().collect::<Option<_>>()?;
    networks.sort_by_key(|(network, _)| std::cmp::Reverse(network.prefix_len()));
    Some(networks)
}

/// The end of a share among hashes of 32 bits.
///
/// - `percent`: of all texts, with those of the shares before.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of 2³²"
)]
fn share_end(percent: f64) -> u64 {
    // The hash that is the greatest belongs to a share that ends at 100.
    let whole = f64::from(u32::MAX) + 1.0;
    (percent.clamp(0.0, 100.0) / 100.0 * whole) as u64
}

/// Percentages, in all at most 100, and their values.
fn shares<'v>(table: &mut Table<'v>) -> Vec<(f64, Value<'v>)> {
    let mut sum = 0.0;
    let mut shares = Vec::new();
    for mut inner in table.tables("shares") {
        let percent = inner.positive("percent");
        let value = inner.take_value("value");
        if percent.is_none() && !inner.was_given("percent") {
            inner.missing("percent", "such as percent = 10");
        }
        if value.is_none() {
            inner.missing("value", "such as value = \"canary\"");
        }
        sum += percent.unwrap_or_default();
        inner.finish();
        shares.extend(percent.zip(value));
    }
    if sum > 100.0 {
        table.wrong(
            format!("the percentages of `shares` are {sum} in all"),
            None,
        );
    }
    shares
}

fn regex(value: &Value<'_>) -> Option<Regex> {
    let text = as_text(value)?;
    let regex = Regex::new(text);
    value.check(regex.map_err(|_| format!("`{text}` is not a regular expression")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document::Document;

    fn problems(text: &str) -> Vec<String> {
        let mut document = Document::parse(text);
        let mut root = document.root();
        compile(root.table("map"));
        let problems = document.into_problems().into_iter();
        problems.map(|it| it.to_string()).collect()
    }

    #[test]
    fn maps_name_each_other_in_any_order() {
        let text = "
            [map.a]
            key = \"{map:b}\"
            exact = { x = \"1\" }
            [map.b]
            key = \"{host}\"
            prefix = { a = \"{map:c}\" }
            [map.c]
            key = \"{status}\"
            networks = { \"10.0.0.0/8\" = \"lan\" }
            regex = [{ match = \"^(?P<x>.)(.)\", value = \"{x}{2}{host}\" }]
            default = \"none\"
        ";
        assert_eq!(problems(text), Vec::<String>::new());
    }

    #[test]
    fn mistakes_are_found_all_at_once() {
        let text = "
            [map.a]
            key = \"{map:b}\"
            [map.b]
            key = \"{map:a}\"
            [map.c]
            key = \"{hots}\"
            networks = { lan = \"x\" }
            regex = [{ match = \"(\", value = \"{1}\" }, { value = \"x\" }]
            exact = { x = \"{map:zz}\" }
            [map.d]
            exat = {}
        ";
        let found = problems(text);
        for expected in [
            "the map `a` names itself",
            "the map `b` names itself",
            "`{hots}` is no place",
            "`lan` is not a network",
            "`(` is not a regular expression",
            "`match` is missing",
            "no map of that name",
            "`key` is missing",
            "exat: unknown key",
        ] {
            let is_found = found.iter().any(|it| it.contains(expected));
            assert!(is_found, "{expected}: {found:#?}");
        }
    }
}
