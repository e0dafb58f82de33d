use proptest::prelude::{any, prop_assert_eq, proptest};
use proptest::strategy::Strategy as Generate;

use super::*;
use crate::request::KeptRequest;
use crate::rules::condition::field::FieldTest;
use crate::rules::condition::text::{TextOperator, TextTest};

fn path(operator: TextOperator, value: &str) -> Condition {
    Condition::Path(TextTest::new(operator, value).unwrap())
}

fn rule(conditions: Vec<Condition>, priority: i32, weight: u32) -> Rule {
    Rule {
        priority,
        weight,
        ..Rule::new(conditions, Reply::default())
    }
}

fn set(strategy: Strategy, rules: Vec<Rule>) -> RuleSet {
    RuleSet::new(PathBuf::from("rules.toml"), None, strategy, rules)
}

fn find(set: &RuleSet, target: &str) -> Option<usize> {
    set.find(&KeptRequest::made("GET", target).view())
}

#[test]
fn strategies_choose() {
    let rules = || {
        vec![
            rule(vec![path(TextOperator::StartsWith, "/a")], 1, 0),
            rule(vec![path(TextOperator::Equal, "/a")], 5, 1),
            rule(vec![path(TextOperator::Contains, "a")], 5, 0),
            rule(vec![path(TextOperator::Equal, "/b")], 9, 9),
        ]
    };
    let found = |strategy| {
        let set = set(strategy, rules());
        (0..4).filter_map(|_| find(&set, "/a")).collect::<Vec<_>>()
    };
    assert_eq!(found(Strategy::FirstMatch), [0, 0, 0, 0]);
    assert_eq!(
        found(Strategy::Priority(Tiebreaker::FirstMatch)),
        [1, 1, 1, 1]
    );
    assert_eq!(found(Strategy::WeightedRandom(None)), [1, 1, 1, 1]);
    assert_eq!(found(Strategy::RoundRobin), [0, 1, 2, 0]);
    let seeded = found(Strategy::UniformRandom(Some(3)));
    assert!(
        seeded.iter().all(|it| *it == seeded[0] && *it < 3),
        "{seeded:?}"
    );
    let random = found(Strategy::Priority(Tiebreaker::UniformRandom));
    assert!(random.iter().all(|it| [1, 2].contains(it)), "{random:?}");
    let none = set(
        Strategy::WeightedRandom(None),
        vec![rule(vec![path(TextOperator::Equal, "/a")], 0, 0)],
    );
    assert_eq!(find(&none, "/a"), None);
}

#[test]
fn a_prefix_is_that_of_whole_segments() {
    let rules = vec![rule(vec![], 0, 1)];
    let set = RuleSet::new(
        PathBuf::new(),
        Some("/api".to_owned()),
        Strategy::FirstMatch,
        rules,
    );
    for (target, expected) in [
        ("/api", Some(0)),
        ("/api/x", Some(0)),
        ("/apix", None),
        ("/", None),
    ] {
        assert_eq!(find(&set, target), expected, "{target}");
    }
}

/// The condition of the path, another one, and the priority.
type Parts = (Option<Condition>, Option<Condition>, i32);

/// How many rules are tried for a path, if none is enough.
fn tried(tests: &[TextTest], path: &str) -> usize {
    let index = RuleIndex::new(tests.iter().map(Lookup::from_test));
    let mut tried = 0;
    index.visit(path, |_| {
        tried += 1;
        false
    });
    tried
}

#[test]
fn as_few_rules_are_tried_however_many_there_are() {
    let test = |operator, value: String| TextTest::new(operator, value).unwrap();
    let fallback = || test(TextOperator::WildCard, "/api/*".to_owned());
    let exact = |count: usize| {
        let paths = (0..count).map(|number| test(TextOperator::Equal, format!("/api/{number}")));
        paths.chain([fallback()]).collect::<Vec<_>>()
    };
    for count in [1, 10_000] {
        let rules = exact(count);
        assert_eq!(tried(&rules, &format!("/api/{}", count - 1)), 2, "{count}");
        assert_eq!(tried(&rules, "/api/unknown"), 1, "{count}");
    }
    let mixed = (0..100).map(|number| match number % 3 {
        0 => test(TextOperator::Equal, format!("/api/resource/{number}")),
        1 => test(TextOperator::StartsWith, format!("/api/resource/{number}/")),
        _ => test(TextOperator::Contains, format!("/resource/{number}/")),
    });
    let mixed: Vec<_> = mixed.chain([fallback()]).collect();
    for (path, expected) in [
        ("/api/resource/0", 2),
        ("/api/resource/97/x", 2),
        ("/api/resource/98/x", 2),
        ("/api/unknown/1", 1),
    ] {
        assert_eq!(tried(&mixed, path), expected, "{path}");
    }
}

fn any_rule() -> impl Generate<Value = Parts> {
    let operators = proptest::sample::select(TextOperator::ALL.to_vec());
    let path_of = (operators, "[/ab*?]{0,4}")
        .prop_map(|(operator, value)| TextTest::new(operator, value).ok().map(Condition::Path));
    let path_of = proptest::option::of(path_of).prop_map(Option::flatten);
    let query = any::<bool>().prop_map(|is_there| {
        let test = if is_there {
            FieldTest::Exists
        } else {
            FieldTest::Absent
        };
        Condition::Query("q".to_owned(), test)
    });
    (path_of, proptest::option::of(query), -2..3_i32)
}

proptest! {
    #[test]
    fn the_index_finds_what_looking_at_each_rule_finds(
        parts in proptest::collection::vec(any_rule(), 0..24),
        by_priority: bool,
        targets in proptest::collection::vec("/[/ab]{0,5}(\\?q)?", 1..8),
    ) {
        let strategy = if by_priority {
            Strategy::Priority(Tiebreaker::FirstMatch)
        } else {
            Strategy::FirstMatch
        };
        let rules = parts.into_iter().map(|(path, more, priority)| {
            rule(path.into_iter().chain(more).collect(), priority, 1)
        });
        let set = set(strategy, rules.collect());
        for target in targets {
            let kept = KeptRequest::made("GET", &target);
            let request = kept.view();
            prop_assert_eq!(set.find(&request), set.scan(&request), "{}", target);
        }
    }
}
