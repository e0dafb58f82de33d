use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
struct Plain {
    method: &'static str,
    host: String,
    path: String,
    query: Option<String>,
    field: Option<&'static str>,
}

impl RouteInput for Plain {
    fn method(&self) -> &str {
        self.method
    }

    fn host(&self) -> &str {
        &self.host
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    fn any_field(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        name == "x" && self.field.is_some_and(|value| test(value.as_bytes()))
    }
}

fn get(host: &str, path: &str) -> Plain {
    let (path, query) = path
        .split_once('?')
        .map_or((path, None), |(path, query)| (path, Some(query.to_owned())));
    Plain {
        method: "GET",
        host: host.to_owned(),
        path: path.to_owned(),
        query,
        field: None,
    }
}

fn to(host: Option<&str>, path: PathCondition) -> RouteConditions {
    RouteConditions {
        host: host.map(str::to_owned),
        ..RouteConditions::of_path(path)
    }
}

fn exact(path: &str) -> PathCondition {
    PathCondition::exact(path).unwrap()
}

fn prefix(path: &str) -> PathCondition {
    PathCondition::prefix(path).unwrap()
}

#[test]
fn the_most_exact_route_answers() {
    let index = RouteIndex::new(vec![
        (to(None, prefix("/")), "any"),
        (
            to(None, PathCondition::pattern("/users/{id}").unwrap()),
            "pattern",
        ),
        (
            to(None, PathCondition::regex("/v[0-9]+/.*").unwrap()),
            "regex",
        ),
        (to(None, prefix("/api")), "api"),
        (to(None, prefix("/api/deep/")), "deep"),
        (to(None, exact("/api/deep/one")), "one"),
        (to(Some("a.example"), prefix("/api")), "a"),
        (to(Some("*.example"), prefix("/api")), "star"),
        (to(Some("*.b.example"), prefix("/")), "star b"),
    ]);
    for (host, path, expected) in [
        ("", "/", "any"),
        ("", "/apis", "any"),
        ("", "/api", "api"),
        ("", "/api/", "api"),
        ("", "/%61pi/x", "api"),
        ("", "/api/deep", "deep"),
        ("", "/api/deep/x", "deep"),
        ("", "/api/deep/one", "one"),
        ("A.Example", "/api/deep/one", "a"),
        ("a.example", "/else", "any"),
        ("c.example", "/api", "star"),
        ("c.b.example", "/api", "star b"),
        ("example", "/api", "api"),
    ] {
        let request = get(host, path);
        assert_eq!(index.find(&request), Ok(Some(&expected)), "{host}{path}");
        assert_eq!(index.scan(&request), Ok(Some(&expected)), "{host}{path}");
    }
}

#[test]
fn patterns_and_expressions_come_last_in_the_order_of_the_file() {
    let index = RouteIndex::new(vec![
        (
            to(None, PathCondition::pattern("/users/{id}").unwrap()),
            "user",
        ),
        (
            to(None, PathCondition::regex("/users/[0-9]+").unwrap()),
            "number",
        ),
        (
            to(None, PathCondition::pattern("/files/{path...}").unwrap()),
            "files",
        ),
    ]);
    let find = |path| index.find(&get("", path)).unwrap().copied();
    assert_eq!(find("/users/7"), Some("user"));
    assert_eq!(find("/users/"), None);
    assert_eq!(find("/users/7/x"), None);
    assert_eq!(find("/files"), None);
    assert_eq!(find("/files/"), Some("files"));
    assert_eq!(find("/files/a/b"), Some("files"));
}

#[test]
fn methods_queries_and_fields_choose_too() {
    let mut post = to(None, exact("/"));
    post.methods = vec!["POST".to_owned()];
    let mut query = to(None, exact("/"));
    query.query = vec![FieldCondition {
        name: "a".to_owned(),
        value: Some("b".to_owned()),
    }];
    let mut field = to(None, exact("/"));
    field.headers = vec![FieldCondition {
        name: "x".to_owned(),
        value: None,
    }];
    let mut read = to(None, exact("/"));
    read.methods = vec!["GET".to_owned()];
    let index = RouteIndex::new(vec![(post, 0), (query, 1), (field, 2), (read, 3)]);
    let find = |request: &Plain| index.find(request).unwrap().copied();
    assert_eq!(find(&get("", "/?x=y&a=b")), Some(1));
    assert_eq!(find(&get("", "/?a=bb")), Some(3));
    let with_field = Plain {
        field: Some("1"),
        ..get("", "/")
    };
    assert_eq!(find(&with_field), Some(2));
    let of = |method| Plain {
        method,
        ..get("", "/")
    };
    assert_eq!(find(&of("POST")), Some(0));
    assert_eq!(find(&of("HEAD")), Some(3));
    assert_eq!(find(&of("DELETE")), None);
}

#[test]
fn mistakes_have_names() {
    let pattern = |text| PathCondition::pattern(text).unwrap_err();
    assert_eq!(pattern("a"), PathError::Slash);
    assert_eq!(pattern("/a?b"), PathError::Character('?'));
    for wrong in ["/{}", "/{a", "/a{b}", "/{a...}/b", "/{...}"] {
        assert!(matches!(pattern(wrong), PathError::Place(_)), "{wrong}");
    }
    assert!(PathCondition::regex("(").is_err());
    assert!(PathCondition::regex("a)|(b").is_err());
}

fn path_text() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec!["a", "b", "A", "%61", "ab", "a%2Fb", ""]);
    prop::collection::vec(segment, 1..4).prop_map(|segments| format!("/{}", segments.join("/")))
}

fn host_text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "A", "x.a", "y.x.a", "b", ""]).prop_map(str::to_owned)
}

fn conditions() -> impl Strategy<Value = RouteConditions> {
    let host = prop::option::of(prop::sample::select(vec!["a", "*.a", "*.x.a", "x.a"]));
    let path = prop_oneof![
        path_text().prop_map(|path| exact(&path)),
        path_text().prop_map(|path| prefix(&path)),
        prop::sample::select(vec!["/{x}", "/a/{x}", "/{x}/b", "/a/{x...}"])
            .prop_map(|text| PathCondition::pattern(text).unwrap()),
        prop::sample::select(vec!["/a.*", "/[ab]"])
            .prop_map(|text| PathCondition::regex(text).unwrap()),
    ];
    let methods = prop::collection::vec(prop::sample::select(vec!["GET", "POST"]), 0..2);
    let query = prop::option::of(prop::option::of(Just("1".to_owned())));
    let field = prop::option::of(prop::option::of(Just("1".to_owned())));
    (host, path, methods, query, field).prop_map(|(host, path, methods, query, field)| {
        let condition = |name: &str, value| FieldCondition {
            name: name.to_owned(),
            value,
        };
        RouteConditions {
            host: host.map(str::to_owned),
            methods: methods.into_iter().map(str::to_owned).collect(),
            path,
            query: query
                .into_iter()
                .map(|value| condition("q", value))
                .collect(),
            headers: field
                .into_iter()
                .map(|value| condition("x", value))
                .collect(),
            places: Vec::new(),
        }
    })
}

fn request() -> impl Strategy<Value = Plain> {
    (
        prop::sample::select(vec!["GET", "HEAD", "POST"]),
        host_text(),
        path_text(),
        prop::option::of(prop::sample::select(vec!["q", "q=1", "q=2&q=1"])),
        prop::option::of(prop::sample::select(vec!["1", "2"])),
    )
        .prop_map(|(method, host, path, query, field)| Plain {
            method,
            host,
            path,
            query: query.map(str::to_owned),
            field,
        })
}

proptest! {
    #[test]
    fn the_index_is_a_linear_scan(
        routes in prop::collection::vec(conditions(), 0..12),
        requests in prop::collection::vec(request(), 1..12),
    ) {
        let index = RouteIndex::new(routes.into_iter().zip(0..).collect());
        for request in requests {
            prop_assert_eq!(index.find(&request), index.scan(&request), "{:?}", request);
        }
    }

    /// The reading of a route, of a file system that ignores case and of an upstream that decodes slashes all lead to
    /// the same route.
    #[test]
    fn no_spelling_of_a_path_reaches_another_route(
        routes in prop::collection::vec(guards(), 1..6),
        path in spelled_path(),
    ) {
        let index = RouteIndex::new(routes.into_iter().zip(0..).collect());
        let Ok(found) = index.find(&get("", &path)) else {
            return Ok(());
        };
        let read = as_a_file_system_reads(&path);
        let other = index.find(&get("", &read));
        // Where the other reading has no route, there is no guard to pass.
        prop_assert!(other == Ok(found) || other == Ok(None), "{} is read as {}", path, read);
    }
}

fn guards() -> impl Strategy<Value = RouteConditions> {
    let text = prop::sample::select(vec!["/", "/m", "/m/p", "/M/P/", "/m/p/x", "/p", "/%6d/p"]);
    let path = (text, 0..4).prop_map(|(text, kind)| match kind {
        0 => exact(text),
        1 => PathCondition::regex(&format!("{text}.*")).unwrap(),
        2 => {
            PathCondition::pattern(&format!("{}/{{rest...}}", text.trim_end_matches('/'))).unwrap()
        }
        _ => prefix(text),
    });
    path.prop_map(RouteConditions::of_path)
}

fn spelled_path() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/", "/", "//", "%2F", "%2f", "%5C", "\\", "m", "M", "%6D", "p", "P", "x", ".", "..",
        "%2e", ";", "%00",
    ]);
    prop::collection::vec(piece, 0..9).prop_map(|pieces| format!("/{}", pieces.concat()))
}

/// A path as the least strict reader takes it: everything decoded, backslashes as slashes, parameters cut off, dot
/// segments resolved, in lower case.
fn as_a_file_system_reads(path: &str) -> String {
    let decoded = path
        .replace("%2F", "/")
        .replace("%2f", "/")
        .replace("%5C", "/")
        .replace('\\', "/")
        .replace("%6D", "m")
        .replace("%2e", ".")
        .to_lowercase();
    let mut names: Vec<&str> = Vec::new();
    for name in decoded.split('/').filter(|name| !name.is_empty()) {
        match name.split(';').next().unwrap_or_default() {
            "." => {}
            ".." => {
                names.pop();
            }
            _ => names.push(name),
        }
    }
    let slash = if decoded.ends_with('/') && !names.is_empty() {
        "/"
    } else {
        ""
    };
    format!("/{}{slash}", names.join("/"))
}

#[test]
fn no_spelling_passes_a_guard() {
    let index = RouteIndex::new(vec![
        (to(None, prefix("/m")), "open"),
        (to(None, prefix("/m/private")), "guarded"),
        (to(None, prefix("/public")), "public"),
        (to(None, prefix("/admin")), "guarded"),
        (
            to(None, PathCondition::regex("/keys/.*").unwrap()),
            "guarded",
        ),
        (
            to(None, PathCondition::pattern("/users/{id}").unwrap()),
            "user",
        ),
    ]);
    for path in [
        "/m/PRIVATE/secret.json",
        "/m//private/secret.json",
        "/m/%70rivate/secret.json",
        "/m/%50rivate",
        "//admin",
        "/KEYS/one",
    ] {
        assert_eq!(index.find(&get("", path)), Ok(Some(&"guarded")), "{path}");
    }
    for path in ["/m/private%2Fsecret.json", "/m/%70rivate%2fsecret.json"] {
        assert_eq!(
            index.find(&get("", path)),
            Err(RouteRefusal::EncodedSlash),
            "{path}"
        );
    }
    for path in [
        "/m/private%5Csecret.json",
        "/m/x;a%2F..;b",
        "/m%2Fprivate;x/secret.json",
    ] {
        assert!(index.find(&get("", path)).is_err(), "{path}");
    }
    // Servers such as Tomcat take parameters off before they look at the path.
    for path in [
        "/KEYS;x/one",
        "/m/private;v=1/secret.json",
        "/m/private%3Bx/secret.json",
        "/;x/admin",
        "/admin;jsessionid=1",
    ] {
        let refused = Err(RouteRefusal::Parameters);
        assert_eq!(index.find(&get("", path)), refused, "{path}");
    }
    for path in [
        "/public/../admin",
        "/public/%2e%2e/admin",
        "/public/..;/admin",
        "/public/..%2Fadmin",
        "/public/./x",
    ] {
        let refused = Err(RouteRefusal::Path(PathRefusal::Dots));
        assert_eq!(index.find(&get("", path)), refused, "{path}");
    }
    // An encoded slash that leads nowhere else belongs to its segment.
    for path in ["/users/a%2Fb", "/users/a%5Cb", "/users/a;b=c"] {
        assert_eq!(index.find(&get("", path)), Ok(Some(&"user")), "{path}");
    }
}

#[test]
fn a_query_is_compared_as_applications_read_it() {
    let condition = |value: Option<&str>| RouteConditions {
        query: vec![FieldCondition {
            name: "a b".to_owned(),
            value: value.map(str::to_owned),
        }],
        ..to(None, prefix("/"))
    };
    let index = RouteIndex::new(vec![
        (condition(Some("1")), "one"),
        (condition(None), "any"),
    ]);
    for (query, expected) in [
        ("a+b=1", Some("one")),
        ("x=2&a%20b=%31", Some("one")),
        ("a b=1", Some("one")),
        ("%61+b=2", Some("any")),
        ("a%2Bb=1", None),
        ("ab=1", None),
    ] {
        let found = index.find(&get("", &format!("/?{query}"))).unwrap();
        assert_eq!(found.copied(), expected, "{query}");
    }
}
