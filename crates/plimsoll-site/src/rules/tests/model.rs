//! The index against a walk over all rules in their order, by the expressions that define what they match.

use proptest::prelude::*;
use regex::RegexBuilder;

use super::*;
use crate::rules::pattern::place_name;

/// The expression of a rule's path.
fn expression(path: &str, dialect: Dialect, purpose: For) -> regex::Regex {
    let mut text = String::from("^");
    match dialect {
        Dialect::Netlify => {
            let segments: Vec<&str> = path.trim_end_matches('/').split('/').skip(1).collect();
            for (at, segment) in segments.iter().enumerate() {
                let is_last = at + 1 == segments.len();
                if *segment == "*" && (is_last || purpose == For::Headers) {
                    text.push_str("(?:/(.*))?");
                } else if segment.len() > 1 && segment.starts_with(':') {
                    text.push_str("/([^/]+)");
                } else {
                    let literals = segment.split('*').map(regex::escape);
                    text.push('/');
                    text.push_str(&literals.collect::<Vec<_>>().join("(.*)"));
                }
            }
            text.push_str("/?");
        }
        Dialect::Cloudflare => {
            let mut rest = path;
            while let Some(at) = rest.find(['*', ':']) {
                let (before, from) = rest.split_at(at);
                text.push_str(&regex::escape(before));
                let name = place_name(from);
                text.push_str(match (from.starts_with('*'), name.is_empty()) {
                    (true, _) => "(.*)",
                    (false, true) => ":",
                    (false, false) => "([^/]+)",
                });
                rest = from.get(1 + name.len()..).unwrap_or_default();
            }
            text.push_str(&regex::escape(rest));
        }
    }
    text.push('$');
    RegexBuilder::new(&text)
        .case_insensitive(dialect == Dialect::Netlify && purpose == For::Headers)
        .dot_matches_new_line(true)
        .build()
        .unwrap()
}

/// Whether the places of a pattern stand for what the groups of its expression do.
fn agrees(path: &str, dialect: Dialect, purpose: For, asked: &str) {
    let pattern = Pattern::new(path, dialect, purpose).unwrap();
    let by_pattern = pattern.captures(asked).map(|captured| {
        let texts = captured.into_iter().map(|(_, text)| text);
        texts.collect::<Vec<_>>()
    });
    let expression = expression(path, dialect, purpose);
    let by_expression = expression.captures(asked).map(|found| {
        let groups = found.iter().skip(1);
        let texts = groups.map(|group| group.map_or("", |it| it.as_str()).to_owned());
        texts.collect::<Vec<_>>()
    });
    assert_eq!(by_pattern, by_expression, "{path} {asked}");
}

/// The first redirect that holds, by looking at all of them.
///
/// - `expressions`: of the rules.
fn walk(
    rules: &Rules,
    expressions: &[regex::Regex],
    input: RuleInput<'_>,
    is_there: bool,
) -> Option<usize> {
    let parameter = |name: &str| {
        let mut pairs = input.query.unwrap_or_default().split('&');
        pairs.find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key == name).then(|| value.to_owned())
        })
    };
    let mut numbered = rules.redirects.iter().zip(expressions);
    numbered.position(|(Redirect { rule, .. }, expression)| {
        let is_host = rule.host.as_ref().is_none_or(|host| host == input.host);
        let mut query = rule.query.iter();
        let is_query = query.all(|(name, wanted)| {
            let value = input.query.and_then(|_| parameter(name));
            value.is_some_and(|value| wanted.starts_with(':') || value == *wanted)
        });
        let is_path = expression.is_match(input.path);
        (!is_there || rule.is_forced) && is_host && is_query && is_path
    })
}

fn dialects() -> impl Strategy<Value = Dialect> {
    prop_oneof![Just(Dialect::Netlify), Just(Dialect::Cloudflare)]
}

/// Paths of rules, few enough to meet the paths of requests and one another.
fn rule_paths() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec!["a", "b", "ab", "a", "b", ":x", ":y", ":", "a:z", "ü"]);
    let last = prop::sample::select(vec![
        "", "", "*", "a*", "*b", "a*b", "a", ":x", "/", "a:x", "a*:x", ":x*", "A",
    ]);
    (prop::collection::vec(segment, 0..3), last)
        .prop_map(|(segments, last)| format!("/{}", [&segments[..], &[last]].concat().join("/")))
        .prop_map(|path| path.replace("//", "/"))
}

fn asked_paths() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec![
        "a", "b", "ab", "aab", "c", ":", "a:z", "ü", "A", "a\n",
    ]);
    (prop::collection::vec(segment, 0..4), any::<bool>()).prop_map(|(segments, has_slash)| {
        let slash = if has_slash && !segments.is_empty() {
            "/"
        } else {
            ""
        };
        format!("/{}{slash}", segments.join("/"))
    })
}

fn conditions() -> impl Strategy<Value = (Option<&'static str>, Vec<(String, String)>, bool)> {
    let pair = (
        prop::sample::select(vec!["id", "q"]),
        prop::sample::select(vec![":v", "1", "2"]),
    );
    let query = prop::collection::vec(pair, 0..3).prop_map(|pairs| {
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        pairs.into_iter().map(own).collect()
    });
    let host = prop::sample::select(vec![None, None, Some("one.example"), Some("two.example")]);
    let query = prop_oneof![3 => Just(Vec::new()), 1 => query];
    (host, query, any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn patterns_match_as_their_expressions(
        path in rule_paths(),
        asked in asked_paths(),
        dialect in dialects(),
        is_headers in any::<bool>(),
    ) {
        let purpose = if is_headers { For::Headers } else { For::Redirects };
        agrees(&path, dialect, purpose, &asked);
        if dialect == Dialect::Netlify && is_headers {
            agrees(&format!("/*{path}"), dialect, purpose, &asked);
        }
    }

    #[test]
    fn the_index_finds_the_rule_that_a_walk_finds(
        rules in prop::collection::vec((rule_paths(), conditions()), 1..40),
        asked in prop::collection::vec(asked_paths(), 20),
        host in prop::sample::select(vec!["one.example", "two.example", "other"]),
        query in prop::sample::select(vec![None, Some(""), Some("id=1"), Some("q=2&id=2"), Some("id=1&id=2&q")]),
        is_there in any::<bool>(),
        dialect in dialects(),
    ) {
        let entries = rules.into_iter().zip(1..).map(|((from, (host, query, is_forced)), line)| RedirectRule {
            line,
            from,
            host: host.map(str::to_owned),
            query,
            to: "/to".to_owned(),
            status: 301,
            is_forced,
        });
        let redirects = Lenient { entries: entries.collect(), remarks: Vec::new() };
        let (rules, remarks, _) = Rules::compile(redirects, Lenient::default(), dialect);
        prop_assert_eq!(remarks, Vec::new());
        let redirects = rules.redirects.iter();
        let expressions = redirects.map(|it| expression(&it.rule.from, dialect, For::Redirects));
        let expressions: Vec<_> = expressions.collect();
        for path in &asked {
            let input = RuleInput { host, path, query };
            let found = rules.first(input, is_there);
            prop_assert_eq!(found, walk(&rules, &expressions, input, is_there), "{} {:?}", path, rules);
            if let Some(found) = found {
                prop_assert!(rules.redirects[found].outcome(input).is_some());
            }
        }
    }

    #[test]
    fn fields_are_those_of_every_rule_that_matches(
        paths in prop::collection::vec(rule_paths(), 1..20),
        asked in asked_paths(),
        dialect in dialects(),
    ) {
        let blocks = paths.iter().map(|path| format!("{path}\n  x-a: {path}\n"));
        let text = blocks.collect::<Vec<_>>().concat();
        let (rules, ..) = Rules::compile(Lenient::default(), parse_header_rules(&text, dialect), dialect);
        let input = RuleInput { host: "a", path: &asked, query: None };
        let found: Vec<usize> = rules.headers_of(input).into_iter().map(|(at, _)| at).collect();
        let all = 0..rules.headers.len();
        let expected = all.filter(|at| rules.headers[*at].pattern.captures(&asked).is_some());
        prop_assert_eq!(found, expected.collect::<Vec<_>>());
    }
}

/// What a lookup looks at does not grow with the number of rules, whatever their kind.
#[test]
fn a_lookup_among_many_rules_looks_at_few() {
    // `N` is the number of the rule.
    for (line, path, query) in [
        ("/old-N /new-N", "/old-N", None),
        ("/old-N/:slug /new-N/:slug", "/old-N/x", None),
        ("/a/:b/old-N-* /new", "/a/b/old-N-x", None),
        ("/*-N.php /new", "/x-N.php", None),
        ("/page id=N /new-N", "/page", Some("id=N")),
        ("https://hN.example/* /new", "/x", None),
    ] {
        for count in [1_000, 8_000] {
            let lines = (0..count).map(|number: usize| line.replace('N', &number.to_string()));
            let text = lines.collect::<Vec<_>>().join("\n");
            let redirects = parse_redirects(&text, Dialect::Netlify);
            let (rules, ..) = Rules::compile(redirects, Lenient::default(), Dialect::Netlify);
            assert_eq!(rules.redirects(), count);
            let last = (count - 1).to_string();
            let [host, path] = ["hN.example", path].map(|text| text.replace('N', &last));
            let query = query.map(|query| query.replace('N', &last));
            let input = RuleInput {
                host: &host,
                path: &path,
                query: query.as_deref(),
            };
            assert_eq!(rules.first(input, false), Some(count - 1), "{path}");
            let (mut visits, mut bound) = (0, usize::MAX);
            let visit = &mut |_: usize, _: &mut usize| visits += 1;
            rules.redirect_index.search(&path, &mut bound, visit);
            assert!(visits <= 6, "{path}: {visits}");
        }
    }
}
