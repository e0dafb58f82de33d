use super::*;
use crate::request::KeptRequest;

fn request() -> KeptRequest {
    let mut request = KeptRequest::made("POST", "/things/7/x%20y?q=a&q=b&one=1");
    request.authority = "shop.example:8080".to_owned();
    request.fields = vec![
        ("X-Name".to_owned(), b"Ann".to_vec()),
        ("cookie".to_owned(), b"sid=s1".to_vec()),
    ];
    let body = r#"{"user":{"name":"Ann","tags":["x","y"]},"n":1.10,"big":12345678901234567890123}"#;
    request.body = body.into();
    request
}

fn filled(text: &str, dialect: Dialect) -> Result<String, String> {
    let names = [("id".to_owned(), 1)];
    let mut data = DataBuckets::default();
    let users = r#"[{"name": "Ann", "tags": ["x"]}]"#;
    data.push("u1".to_owned(), "All users".to_owned(), users.to_owned());
    data.push("t".to_owned(), String::new(), "plain".to_owned());
    let chance = Chance::new(Some(1));
    let program = Program::new(text, dialect, &chance, &names, &Arc::new(data));
    let program = program.map_err(|error| error.to_string())?;
    let filled = program.fill(&request().view());
    filled.map_err(|error| error.to_string())
}

#[test]
fn templates_of_wiremock_are_filled() {
    for (text, expected) in [
        ("plain", "plain"),
        (
            "{{request.method}} {{request.url}}",
            "POST /things/7/x%20y?q=a&q=b&one=1",
        ),
        (
            "{{request.path}} {{request.path.[0]}} {{request.path.id}}",
            "/things/7/x%20y things 7",
        ),
        ("{{request.pathSegments.[1]}}", "7"),
        (
            "{{request.query.q}} {{request.query.q.[1]}} {{request.query.q.last}}",
            "a b b",
        ),
        (
            "{{request.headers.X-Name}} {{request.headers.[x-name]}}",
            "Ann Ann",
        ),
        ("{{request.cookies.sid}}", "s1"),
        (
            "{{request.host}} {{request.port}} {{request.scheme}} {{request.baseUrl}}",
            "shop.example 8080 http http://shop.example:8080",
        ),
        ("{{{jsonPath request.body '$.user.name'}}}", "Ann"),
        ("{{jsonPath request.body '$.x' default='d'}}", "d"),
        (
            "{{jsonPath request.body '$.n'}} {{jsonPath request.body '$.big'}}",
            "1.10 12345678901234567890123",
        ),
        ("{{jsonPath request.body '$.user.tags'}}", "[\"x\",\"y\"]"),
        (
            "{{#each (jsonPath request.body '$.user.tags') as |tag|}}<{{tag}}>{{/each}}",
            "<x><y>",
        ),
        (
            "{{#each request.query.q}}{{@index}}{{this}}{{/each}}",
            "0a1b",
        ),
        ("{{#if request.query.x}}YES{{else}}NO{{/if}}", "NO"),
        ("{{#if request.query.one}}YES{{else}}NO{{/if}}", "YES"),
        (
            "{{#eq request.query.one '1'}}one{{else}}other{{/eq}}",
            "one",
        ),
        (
            "{{#if (eq request.method 'GET')}}get{{else if (eq request.method 'POST')}}post{{/if}}",
            "post",
        ),
        ("{{#unless request.query.x}}none{{/unless}}", "none"),
        (
            "{{upper 'a'}}{{lower 'B'}}{{capitalizeFirst 'cd'}}{{#trim}} x {{/trim}}",
            "AbCdx",
        ),
        ("{{replace request.headers.X-Name 'n' 'm'}}", "Amm"),
        (
            "{{base64 'hello'}} {{base64 'aGVsbG8=' decode=true}} {{#base64 padding=false}}hello{{/base64}}",
            "aGVsbG8= hello aGVsbG8",
        ),
        (
            "{{urlEncode 'a b&c'}} {{urlEncode 'a+b%26c' decode=true}}",
            "a+b%26c a b&c",
        ),
        ("{{size request.query.q}} {{size 'abc'}}", "2 3"),
        ("{{math 1 '+' 2}} {{math 7 '/' 2}}", "3 3.5"),
        (
            "{{join 'a' 'b' '-'}} {{join request.query.q ','}}",
            "a-b a,b",
        ),
        (
            "{{#assign 'x'}}{{request.method}}!{{/assign}}{{x}}",
            "POST!",
        ),
        ("{{val request.query.none or='z' assign='y'}}{{y}}", "z"),
        (
            "{{regexExtract request.body '[0-9]{5,}'}}",
            "12345678901234567890123",
        ),
        ("{{xPath '<a><b>1</b></a>' '/a/b/text()'}}", "1"),
        (
            "{{xPath '<a xmlns=\"urn:a\"><b>1</b></a>' '/a/b/text()'}}",
            "1",
        ),
        (
            "{{date (parseDate '2026-01-31T23:00:00Z') offset='2 days' format='yyyy-MM-dd' timezone='Europe/Berlin'}}",
            "2026-02-03",
        ),
        (
            "{{date (truncateDate (parseDate '31/01/2026' format='dd/MM/yyyy') 'first day of next month') format='d MMM'}}",
            "1 Feb",
        ),
        (
            "{{regexExtract 'abc-DEF-123' '([a-z]+)-([A-Z]+)-([0-9]+)' 'parts'}}{{parts.0}},{{parts.[2]}}",
            "abc,123",
        ),
        ("{{regexExtract 'abc' '[0-9]+' default='none'}}", "none"),
        (
            "{{formData 'a=1&b=x%20y&a=2' 'form' urlDecode=true}}{{form.a.1}} {{form.b}}",
            "2 x y",
        ),
        (
            "{{#parseJson 'it'}}{\"a\": {\"b\": 1}}{{/parseJson}}{{it.a.b}} {{size it}} {{size (parseJson '{\"a\":1,\"b\":2}')}}",
            "1 1 2",
        ),
        ("{{jsonPath request.body '$.user.tags.[1]'}}", "y"),
        (
            "{{stripes 4 'even' 'odd'}} {{stripes '5' 'even' 'odd'}}",
            "even odd",
        ),
        ("{{#if (contains 'abc' 'b')}}in{{/if}}", "in"),
        ("{{! remark }}{{substring 'abcdef' 1 3}}", "bc"),
    ] {
        assert_eq!(
            filled(text, Dialect::WireMock).as_deref(),
            Ok(expected),
            "{text}"
        );
    }
    for text in [
        "{{now offset='3 days' format='yyyy-MM-dd' timezone='UTC'}}",
        "{{randomValue length=10 type='ALPHANUMERIC'}}",
        "{{randomInt lower=1000000000 upper=2000000000}}",
        "{{pickRandom 'aaaaaaaaaa' 'bbbbbbbbbb'}}",
    ] {
        let made = filled(text, Dialect::WireMock).unwrap();
        assert_eq!(made.len(), 10, "{text}: {made}");
        // A seed makes the same.
        assert_eq!(filled(text, Dialect::WireMock).unwrap(), made);
    }
}

#[test]
fn templates_of_mockoon_are_filled() {
    for (text, expected) in [
        (
            "{{method}} {{urlParam 'id'}} {{queryParam 'one'}}",
            "POST 7 1",
        ),
        (
            "{{queryParam 'p' 'dflt'}} {{header 'x-none' 'h'}} {{cookie 'sid'}}",
            "dflt h s1",
        ),
        (
            "{{body 'user.name'}} {{body 'user.tags.1'}} {{body 'none' 'd'}} {{body '$.n'}}",
            "Ann y d 1.10",
        ),
        (
            "{{#switch (queryParam 'one')}}{{#case '1'}}one{{/case}}{{#default}}other{{/default}}{{/switch}}",
            "one",
        ),
        (
            "{{#switch (queryParam 'none')}}{{#case '1'}}one{{/case}}{{#default}}other{{/default}}{{/switch}}",
            "other",
        ),
        (
            "{{#repeat 3}}{{@index}}, {{/repeat}} {{#repeat 2 comma=false}}x{{@last}}{{/repeat}}",
            "0,\n1,\n2\n xfalsextrue",
        ),
        ("{{setVar 'v' (add 1 2)}}{{getVar 'v'}} {{@v}}", "3 3"),
        (
            "{{len (dateFormat (faker 'date.past') 'yyyy')}}{{#if (gt true 50)}}gt{{else}}lt{{/if}}{{newline}}{{#if (faker 'hacker.noun')}}word{{/if}}",
            "4lt\nword",
        ),
        (
            "{{#if (eq (header 'X-Name') 'Ann')}}hi{{else}}who{{/if}}",
            "hi",
        ),
        (
            "{{concat 'a' 'b' 1}} {{uppercase 'x'}} {{toFixed 1.234 2}} {{len (array 1 2)}}",
            "ab1 X 1.23 2",
        ),
        (
            "{{oneOf (array 'x' 'x')}} {{join (split 'a-b' '-') '+'}} {{int 5 5}}",
            "x a+b 5",
        ),
        (
            "{{len (split (email) '@')}} {{#if (includes (ipv4) '192.0.2.')}}ip{{/if}}",
            "2 ip",
        ),
        (
            "{{date '2026' '2026' 'yyyy-MM-dd'}} {{date '2026-01-31' '2026-01-31' 'd'}}",
            "2026-01-01 31",
        ),
        (
            "{{data 'users' '0.name'}} {{dataRaw 'USER' '$[0].tags'}} {{data 't'}} {{data 'none'}}",
            "Ann [\"x\"] plain ",
        ),
        (
            "{{faker 'string.numeric' length=0}}{{faker 'number.float' min=2 max=2}} {{faker 'helpers.arrayElement' (array 'x' 'x')}} {{len (split (faker 'lorem.words' 4) ' ')}} {{len (faker 'string.alpha' 7)}}",
            "2 x 4 7",
        ),
        (
            "{{faker 'number.int' min=3 max=3}} {{dateFormat '2026-01-31' 'dd.MM.yyyy'}}",
            "3 31.01.2026",
        ),
    ] {
        assert_eq!(
            filled(text, Dialect::Mockoon).as_deref(),
            Ok(expected),
            "{text}"
        );
    }
}

#[test]
fn what_is_not_known_is_an_error_before_any_request() {
    for (text, dialect) in [
        ("{{nothing request.body}}", Dialect::WireMock),
        ("{{#nothing}}x{{/nothing}}", Dialect::WireMock),
        ("{{nothing}}", Dialect::WireMock),
        ("{{upper (nothing 'a')}}", Dialect::WireMock),
        ("{{request.bod}}", Dialect::WireMock),
        ("{{> partial}}", Dialect::WireMock),
        ("{{#if request.query.x}}x", Dialect::WireMock),
        ("{{queryParam 'a'}}", Dialect::WireMock),
        ("{{jsonPath request.body '$.a'}}", Dialect::Mockoon),
        ("{{faker 'nothing.cat'}}", Dialect::Mockoon),
        ("{{setData 'set' 'users' '0' 1}}", Dialect::Mockoon),
        ("{{len request.body}}{{log 'x'}}", Dialect::Mockoon),
    ] {
        let made = Program::new(text, dialect, &Chance::Free, &[], &Arc::default());
        assert!(made.is_err(), "{text}");
    }
}

#[test]
fn names_alone_that_are_not_known_are_left_out() {
    for (text, dialect, expected, names) in [
        (
            "a{{x}}b\nc{{{ request.y }}}{{x}}{{~x~}}d",
            Dialect::Mockoon,
            "ab\ncd",
            &["x", "request.y"][..],
        ),
        (
            r"{{concat 'it\'s' 'a'}}{{x}} \{{y}}",
            Dialect::Mockoon,
            r"{{concat 'it\'s' 'a'}} \{{y}}",
            &["x"],
        ),
        (
            "{{#each (array 1)}}{{x}}{{/each}}{{method}}{{@index}}",
            Dialect::Mockoon,
            "{{#each (array 1)}}{{x}}{{/each}}{{method}}{{@index}}",
            &[],
        ),
        (
            "{{#if (eq 1 1)}}{{x}}{{/if}}{{none x}}",
            Dialect::Mockoon,
            "{{#if (eq 1 1)}}{{/if}}{{none x}}",
            &["x"],
        ),
        (
            "{{#assign 'x'}}1{{/assign}}{{x}}{{y}}{{request.path}}",
            Dialect::WireMock,
            "{{#assign 'x'}}1{{/assign}}{{x}}{{request.path}}",
            &["y"],
        ),
        ("{{#if", Dialect::WireMock, "{{#if", &[]),
    ] {
        let (without, found) = without_unknown_names(text, dialect);
        assert_eq!(
            (without.as_str(), found.as_slice()),
            (
                expected,
                &*names.iter().map(ToString::to_string).collect::<Vec<_>>()
            ),
            "{text}"
        );
    }
}

#[test]
fn loops_within_loops_end() {
    let ten_thousand = "{{#repeat 10000}}{{#repeat 10000}}BLOCK{{/repeat}}{{/repeat}}";
    let ranges = "{{#each (range 0 100000)}}{{#each (range 0 100000)}}BLOCK{{/each}}{{/each}}";
    let value = "{{#assign 'v'}}{{#each (range 0 100000)}}{{#each (range 0 100000)}}{{/each}}{{/each}}{{/assign}}";
    for (text, dialect) in [
        (ten_thousand, Dialect::Mockoon),
        (ranges, Dialect::WireMock),
        (value, Dialect::WireMock),
    ] {
        for block in ["", "a text of some length"] {
            let error = filled(&text.replace("BLOCK", block), dialect).unwrap_err();
            assert!(error.contains("the template "), "{error}");
        }
    }
}

#[test]
fn helpers_of_wiremock_change_json() {
    for (text, expected) in [
        (
            "{{request.requestLine.path}} {{request.requestLine.query.one}}",
            "/things/7/x%20y 1",
        ),
        (
            r#"{{jsonMerge '{"a":{"b":1},"l":[1]}' '{"a":{"c":2},"l":[2]}'}}"#,
            r#"{"a":{"b":1,"c":2},"l":[2]}"#,
        ),
        (
            r#"{{#jsonMerge '{"a":1}'}}{"b":"{{request.method}}"}{{/jsonMerge}}"#,
            r#"{"a":1,"b":"POST"}"#,
        ),
        (
            r#"{{jsonMerge '{"a":1,"b":2}' '{"a":null}' removeNulls=true}}"#,
            r#"{"b":2}"#,
        ),
        ("{{jsonArrayAdd '[1,2]' '3'}}", "[1,2,3]"),
        (
            r#"{{#jsonArrayAdd '{"l":[1,2]}' jsonPath='$.l' maxItems=2}}{"n":3}{{/jsonArrayAdd}}"#,
            r#"{"l":[2,{"n":3}]}"#,
        ),
        ("{{jsonArrayAdd '[1]' '[2,3]' flatten=true}}", "[1,2,3]"),
        (
            r#"{{jsonRemove '{"a":1,"b":[1,2,3]}' '$.b[0,2]'}}"#,
            r#"{"a":1,"b":[2]}"#,
        ),
        (
            "{{jsonRemove (jsonPath request.body '$.user') '$.tags'}}",
            r#"{"name":"Ann"}"#,
        ),
        (
            r#"{{jsonSort '[{"n":10},{"n":9},{}]' '$[*].n'}}"#,
            r#"[{"n":9},{"n":10},{}]"#,
        ),
        (
            r#"{{jsonSort '{"l":[{"n":"a"},{"n":"b"}]}' '$.l[*].n' order='desc'}}"#,
            r#"{"l":[{"n":"b"},{"n":"a"}]}"#,
        ),
        (
            r#"{{formatJson '{ "a" : 1 }' format='compact'}}"#,
            r#"{"a":1}"#,
        ),
        (
            r#"{{#formatJson}}{"a":1}{{/formatJson}}"#,
            "{\n  \"a\": 1\n}",
        ),
        (
            "{{arrayAdd (array 1 'three') 2 position=1}}",
            r#"[1,2,"three"]"#,
        ),
        (
            "{{arrayAdd (array 1) 2}} {{arrayAdd (array 1) 0 position='start'}}",
            "[1,2] [0,1]",
        ),
        (
            "{{arrayRemove (array 1 2 3) position=1}} {{arrayRemove (array 1 2)}}",
            "[1,3] [1]",
        ),
        (r"{{cut 'it\'s' 'x'}}", "it's"),
        (
            "{{systemValue key='WIREMOCK_UNSET_VARIABLE' default='d'}}",
            "d",
        ),
        ("{{matches 'a-b.c' '[\\w-.]+'}}", "true"),
    ] {
        assert_eq!(
            filled(text, Dialect::WireMock).as_deref(),
            Ok(expected),
            "{text}"
        );
    }
    for text in [
        "{{jsonMerge '[1]' '{}'}}",
        "{{jsonSort '[]' '$.a'}}",
        "{{systemValue key='PATH'}}",
        "{{random 'X.y'}}",
    ] {
        assert!(filled(text, Dialect::WireMock).is_err(), "{text}");
    }
    assert!(
        !filled("{{random 'Name.first_name'}}", Dialect::WireMock)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn tokens_have_their_claims_and_a_signature() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    let token = filled(
        "{{jwt maxAge='1 hours' sub='ann' admin=true}}",
        Dialect::WireMock,
    )
    .unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let json = |part: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    assert_eq!(
        json(parts[0]),
        serde_json::json!({ "alg": "HS256", "typ": "JWT" })
    );
    let claims = json(parts[1]);
    assert_eq!(
        (&claims["sub"], &claims["admin"]),
        (&"ann".into(), &true.into())
    );
    assert_eq!(
        claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(),
        3600
    );
    assert_eq!(URL_SAFE_NO_PAD.decode(parts[2]).unwrap().len(), 32);
    assert!(filled("{{jwt alg='RS256'}}", Dialect::WireMock).is_err());
}

#[test]
fn mockoon_has_variables_of_all_requests_and_of_the_environment() {
    for (text, expected) in [
        ("{{setGlobalVar 'a' 'x'}}{{getGlobalVar 'a'}}", "x"),
        ("{{getGlobalVar 'none' '' 'd'}}", "d"),
        (
            "{{setGlobalVar 'o' (dataRaw 'u1')}}{{getGlobalVar 'o' '0.name'}}",
            "Ann",
        ),
        ("{{getEnvVar 'UNSET_VARIABLE' 'd'}}", "d"),
        ("{{someOf (array 'a' 'a') 2 2}}", "a,a"),
        ("{{someOf (array 'a') 1 1 true}}", r#"["a"]"#),
    ] {
        assert_eq!(
            filled(text, Dialect::Mockoon).as_deref(),
            Ok(expected),
            "{text}"
        );
    }
}
