//! The nearest rules to a request that no rule matched.
//!
//! Each condition that is not met adds to the distance of its rule, the path most; paths that are alike add less. It is
//! an order for people, nothing that answers.

use crate::config::plan::MockPlan;
use crate::request::RequestView;
use crate::rules::condition::Condition;
use crate::rules::condition::json::JsonTest;
use crate::rules::condition::text::{TextOperator, TextTest};
use crate::rules::{Rule, RuleSet};

/// A rule that did not match.
#[derive(Debug)]
pub(crate) struct NearMiss<'p> {
    pub(crate) set: &'p RuleSet,
    pub(crate) rule: &'p Rule,
    /// From 0, which is a match, to 1.
    pub(crate) distance: f64,
}

/// One condition of a rule, and what a request has to do with it.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) condition: String,
    pub(crate) is_met: bool,
    /// The value in the request that the condition is about.
    pub(crate) found: String,
}

/// Weights, chosen so that a rule for the path is named before one that only has the method; other conditions count 1.
const OF_PATH: f64 = 10.0;
const OF_METHOD: f64 = 3.0;

/// The rules that came nearest, the nearest first; of equals the one that is tried first.
pub(crate) fn near_misses<'p>(
    plan: &'p MockPlan,
    request: &RequestView<'_>,
    most: usize,
) -> Vec<NearMiss<'p>> {
    let mut misses: Vec<_> = plan
        .sets
        .iter()
        .flat_map(|set| set.rules().iter().map(move |rule| (&**set, &**rule)))
        .map(|(set, rule)| NearMiss {
            set,
            rule,
            distance: distance(set, rule, request),
        })
        .filter(|miss| miss.distance > 0.0)
        .collect();
    misses.sort_by(|one, other| one.distance.total_cmp(&other.distance));
    misses.truncate(most);
    misses
}

/// The findings for each condition of a rule.
pub(crate) fn findings(set: &RuleSet, rule: &Rule, request: &RequestView<'_>) -> Vec<Finding> {
    let prefix = set.prefix.as_ref().filter(|_| !set.covers(&request.path));
    let prefix = prefix.map(|prefix| Finding {
        condition: format!("url_path below {prefix:?}"),
        is_met: false,
        found: format!("{:?}", request.path),
    });
    let conditions = rule.conditions.iter().map(|condition| Finding {
        condition: condition.to_string(),
        is_met: condition.is_met_by(request),
        found: condition.found(request),
    });
    prefix.into_iter().chain(conditions).collect()
}

/// Distance of a request from meeting conditions: from 0, met, to 1.
pub(crate) fn distance_of(conditions: &[Condition], request: &RequestView<'_>) -> f64 {
    with_others(conditions, request, (0.0, 0.0))
}

fn distance(set: &RuleSet, rule: &Rule, request: &RequestView<'_>) -> f64 {
    let (mut missed, mut all) = (0.0, 0.0);
    if let Some(prefix) = set.prefix.as_ref().filter(|_| !set.covers(&request.path)) {
        missed += OF_PATH * (1.0 - likeness(&request.path, prefix));
        all += OF_PATH;
    }
    with_others(&rule.conditions, request, (missed, all))
}

/// - `others`: what is missed of conditions that are none of these, and how much they count.
fn with_others(conditions: &[Condition], request: &RequestView<'_>, others: (f64, f64)) -> f64 {
    let (mut missed, mut all) = others;
    for condition in conditions {
        let weight = weight(condition);
        missed += weight * miss(condition, request);
        all += weight;
    }
    if all > 0.0 { missed / all } else { 0.0 }
}

/// Weight.
pub(crate) fn weight(condition: &Condition) -> f64 {
    match condition {
        Condition::Path(_) | Condition::Pattern(_) => OF_PATH,
        Condition::Method(_) => OF_METHOD,
        Condition::All(conditions) => conditions.iter().map(weight).sum(),
        Condition::Any(conditions) => conditions.iter().map(weight).fold(0.0, f64::max),
        Condition::Not(condition) => weight(condition),
        _ => 1.0,
    }
}

/// Distance of a request from meeting the condition: 0 if it does, 1 if nothing matches.
pub(crate) fn miss(condition: &Condition, request: &RequestView<'_>) -> f64 {
    if condition.is_met_by(request) {
        return 0.0;
    }
    match condition {
        Condition::Path(test) => of_text(test, &request.path),
        Condition::Pattern(pattern) => 1.0 - segments(&pattern.to_string(), &request.path),
        Condition::Json(path, JsonTest::Text(test, _)) => match request.json() {
            Some(json) => match path.find(json).and_then(|value| value.as_str()) {
                Some(found) => of_text(test, found),
                None => 1.0,
            },
            None => 1.0,
        },
        Condition::All(conditions) => {
            let all: f64 = conditions.iter().map(weight).sum();
            let missed = conditions.iter().map(|it| weight(it) * miss(it, request));
            if all > 0.0 {
                missed.sum::<f64>() / all
            } else {
                1.0
            }
        }
        Condition::Any(conditions) => {
            let misses = conditions.iter().map(|it| miss(it, request));
            misses.fold(1.0, f64::min)
        }
        _ => 1.0,
    }
}

/// Less than 1 if the text is similar to the expected one.
fn of_text(test: &TextTest, found: &str) -> f64 {
    match test.operator() {
        TextOperator::Equal | TextOperator::WildCard => 1.0 - likeness(found, test.value()),
        TextOperator::StartsWith => {
            let beginning = found.get(..test.value().len()).unwrap_or(found);
            1.0 - likeness(beginning, test.value())
        }
        _ => 1.0,
    }
}

/// Distance of two texts by their common beginnings and ends: below 1 unless they are equal.
fn likeness(one: &str, other: &str) -> f64 {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let pairs = one.iter().zip(other);
    let beginning = pairs.take_while(|(one, other)| one == other).count();
    let (one_left, other_left) = (&one[beginning..], &other[beginning..]);
    let pairs = one_left.iter().rev().zip(other_left.iter().rev());
    let end = pairs.take_while(|(one, other)| one == other).count();
    let longest = one.len().max(other.len());
    if longest == 0 {
        return 1.0;
    }
    (beginning + end) as f64 / longest as f64
}

/// The share of segments that are as a pattern has them.
fn segments(pattern: &str, path: &str) -> f64 {
    let wanted: Vec<_> = pattern.split('/').skip(1).collect();
    let given: Vec<_> = path.split('/').skip(1).collect();
    let alike = wanted.iter().zip(&given).filter(|(wanted, given)| {
        wanted.starts_with('{') && wanted.ends_with('}') || wanted == given
    });
    // One more, since they do not match.
    alike.count() as f64 / (wanted.len().max(given.len()) + 1) as f64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config;
    use crate::request::KeptRequest;

    const RULES: &str = r#"
[[rules]]
id = "far"
when.request.url_path = "/customers"
respond.text = "1"
[[rules]]
id = "post"
when.request = { url_path = "/orders", method = "POST" }
respond.text = "2"
[[rules]]
id = "header"
when.request = { url_path = "/orders", headers.x-key = "k" }
respond.text = "3"
[[rules]]
id = "pattern"
when.request.url_path = { op = "pattern", value = "/orders/{id}/lines" }
respond.text = "4"
"#;

    fn nearest(method: &str, path: &str) -> Vec<String> {
        let plan = MockPlan::of_sets(vec![config::parse(RULES, Path::new(".")).unwrap()]);
        let request = KeptRequest::made(method, path);
        let misses = near_misses(&plan, &request.view(), 2);
        let ids = misses.iter().filter_map(|miss| miss.rule.id.clone());
        ids.collect()
    }

    #[test]
    fn the_path_counts_most_and_then_the_method() {
        assert_eq!(nearest("GET", "/orders"), ["header", "post"]);
        assert_eq!(nearest("POST", "/ordres"), ["post", "header"]);
        assert_eq!(nearest("GET", "/orders/7/line")[0], "pattern");
        assert_eq!(nearest("GET", "/custom")[0], "far");
    }

    #[test]
    fn what_failed_is_reported() {
        let plan = MockPlan::of_sets(vec![config::parse(RULES, Path::new(".")).unwrap()]);
        let request = KeptRequest::made("GET", "/orders");
        let misses = near_misses(&plan, &request.view(), 1);
        let findings = findings(misses[0].set, misses[0].rule, &request.view());
        let reported: Vec<_> = findings
            .iter()
            .map(|it| (it.condition.as_str(), it.is_met, it.found.as_str()))
            .collect();
        assert!(reported[0].1);
        assert_eq!((reported[1].1, reported[1].2), (false, "nothing"));
    }

    #[test]
    fn texts_are_alike_by_their_ends() {
        assert!((likeness("", "") - 1.0).abs() < 1e-9);
        assert!((likeness("/orders", "/orders") - 1.0).abs() < 1e-9);
        assert!((likeness("/ab", "/b") - 2.0 / 3.0).abs() < 1e-9);
        assert!(likeness("aa", "a") < 1.0);
    }
}
