use super::*;
use crate::request::KeptRequest;
use crate::rules::condition::Condition;
use crate::rules::condition::field::FieldTest;

const ORDER: &[u8] = br#"<?xml version="1.0"?>
<o:order xmlns:o="urn:order" id="7"><!-- c --><?p i?>
  <item sku="a" xml:lang="en">1</item><item sku="b">2 &amp; 3</item>
</o:order>"#;

fn values(expression: &str, content: &[u8]) -> Vec<String> {
    let namespaces = [("n".to_owned(), "urn:order".to_owned())];
    let xpath = XPath::new(expression, &namespaces).unwrap();
    let budget = RequestBudget::default();
    xpath.values(&document(content).unwrap(), &budget).unwrap()
}

#[test]
fn expressions_find_what_the_standard_says() {
    for (expression, expected) in [
        ("/n:order/@id", &["7"][..]),
        ("//item", &["1", "2 & 3"]),
        ("//item[@sku='b']", &["2 & 3"]),
        ("//item[last()]/@sku", &["b"]),
        ("//item/@xml:lang | //item/@sku", &["a", "en", "b"]),
        ("count(//item)", &["2"]),
        ("sum(//item[1]) + 1", &["2"]),
        ("string(//item[1])", &["1"]),
        ("//item = '1'", &["true"]),
        ("//item = '9'", &[]),
        ("/order", &[]),
        ("//nothing", &[]),
        ("//comment()", &[" c "]),
        ("//processing-instruction('p')", &["i"]),
        ("local-name(/*)", &["order"]),
        ("namespace-uri(/*)", &["urn:order"]),
        ("//item[2]/preceding-sibling::item", &["1"]),
        ("contains('a:b', ':')", &["true"]),
    ] {
        // `xml` is known to everybody.
        let namespaces = [
            ("n".to_owned(), "urn:order".to_owned()),
            (
                "xml".to_owned(),
                "http://www.w3.org/XML/1998/namespace".to_owned(),
            ),
        ];
        let xpath = XPath::new(expression, &namespaces).unwrap();
        let budget = RequestBudget::default();
        let mut found = xpath.values(&document(ORDER).unwrap(), &budget).unwrap();
        let mut expected = expected.to_vec();
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected, "{expression}");
    }
    assert_eq!(values("name(/*)", b"<a/>"), ["a"]);
}

#[test]
fn what_is_no_expression_is_reported() {
    for wrong in ["", "//", "item[", "$x", "nothing(1)", "count()", "//a:b"] {
        assert!(XPath::new(wrong, &[]).is_err(), "{wrong}");
    }
    let deep = format!("{}1{}", "(".repeat(100), ")".repeat(100));
    assert_eq!(XPath::new(&deep, &[]).unwrap_err(), XPathError::TooLong);
    let long = "a or ".repeat(1000) + "b";
    assert_eq!(XPath::new(&long, &[]).unwrap_err(), XPathError::TooLong);
    let nearly = "a or ".repeat(200) + "b";
    assert!(XPath::new(&nearly, &[]).is_ok());
}

#[test]
fn entities_and_endless_documents_are_none() {
    let bomb =
        br#"<!DOCTYPE a [<!ENTITY x "xx"><!ENTITY y SYSTEM "file:///etc/passwd">]><a>&x;&y;</a>"#;
    assert!(document(bomb).is_err());
    assert!(document(b"<a>").is_err());
    assert!(document(b"{}").is_err());
    assert!(document(&[0xff, 0xfe]).is_err());
    let wide = format!("<a>{}</a>", "<b/>".repeat(150_000));
    assert!(document(wide.as_bytes()).is_err());
    let long = format!("<a>{}</a>", "x".repeat(1 << 20));
    assert!(document(long.as_bytes()).is_err());
}

#[test]
fn deep_documents_are_read_up_to_a_bound() {
    let deep = |depth| format!("{}x{}", "<a>".repeat(depth), "</a>".repeat(depth));
    let within = deep(10_000);
    assert_eq!(values("count(//a)", within.as_bytes()), ["10000"]);
    assert_eq!(values("string(/a)", within.as_bytes()), ["x"]);
    let beyond = deep(10_001);
    assert_eq!(document(beyond.as_bytes()).unwrap_err(), XmlError::Depth);
}

#[test]
fn attributes_and_namespaces_are_counted_before_they_are_parsed() {
    let attributes = |count: usize| {
        let all = (0..count)
            .map(|it| format!(" a{it}='>'"))
            .collect::<Vec<_>>()
            .concat();
        format!("<r><!-- b=\"c\" --><a{all}/><b x=\"1\"/></r>")
    };
    assert!(document(attributes(256).as_bytes()).is_ok());
    let many = attributes(257);
    assert_eq!(document(many.as_bytes()).unwrap_err(), XmlError::Attributes);
    let namespaces = |count: usize| {
        let open = (0..count)
            .map(|it| format!("<a xmlns:n{it}='u{it}'>"))
            .collect::<Vec<_>>()
            .concat();
        open + &"</a>".repeat(count)
    };
    assert!(document(namespaces(256).as_bytes()).is_ok());
    let many = namespaces(257);
    assert_eq!(document(many.as_bytes()).unwrap_err(), XmlError::Namespaces);
    // Text that only looks like attributes.
    let text = "a='b' ".repeat(1000);
    let plain = format!("<r>{text}<![CDATA[<a {text}]]><?p <a {text}?><!-- <a {text}--></r>");
    assert!(document(plain.as_bytes()).is_ok());
}

#[test]
fn expressions_that_cost_too_much_are_given_up() {
    let nested = |depth: usize, text: usize| {
        let open = "<a>".repeat(depth);
        let close = "</a>".repeat(depth);
        format!("{open}{}{close}", "x".repeat(text))
    };
    let wide = |count: usize| format!("<r>{}</r>", "<a>1</a><b>2</b>".repeat(count));
    let strings = nested(4_000, 250_000);
    let deep = nested(2_000, 1);
    let siblings = wide(20_000);
    for (expression, content) in [
        ("//a", &strings),
        ("//a//a//b", &deep),
        ("//a/following-sibling::b", &siblings),
        ("//a = //b", &siblings),
        ("//a[. = //b]", &siblings),
        ("//a[//b > //a]", &siblings),
        ("translate(/r, /r, 'x')", &siblings),
    ] {
        let xpath = XPath::new(expression, &[]).unwrap();
        let document = document(content.as_bytes()).unwrap();
        let found = xpath.values(&document, &RequestBudget::default());
        assert_eq!(found, Err(TooCostly), "{expression}");
    }
    // The same on content of a usual size.
    let small = wide(20);
    for expression in ["//a = //b", "//a[. = //b]", "//a/following-sibling::b"] {
        let xpath = XPath::new(expression, &[]).unwrap();
        let document = document(small.as_bytes()).unwrap();
        assert!(xpath.values(&document, &RequestBudget::default()).is_ok());
    }
}

#[test]
fn one_request_has_one_budget_for_all_conditions() {
    let content = format!("<r>{}</r>", "<a/>".repeat(40_000));
    let document = document(content.as_bytes()).unwrap();
    let xpath = XPath::new("count(//a)", &[]).unwrap();
    let budget = RequestBudget::default();
    let met = (0..1_000).take_while(|_| xpath.values(&document, &budget).is_ok());
    assert!((10..100).contains(&met.count()));
}

#[test]
fn what_costs_too_much_is_not_met_under_a_negation_either() {
    let deep = format!("{}{}", "<a>".repeat(2_000), "</a>".repeat(2_000));
    let mut request = KeptRequest::made("POST", "/");
    let test = |expression: &str| {
        let path = XPath::new(expression, &[]).unwrap();
        Condition::XPath(Box::new(path), FieldTest::Exists)
    };
    let not = |condition| Condition::Not(Box::new(condition));
    let is_met = |condition: Condition, request: &KeptRequest| condition.is_met_by(&request.view());
    request.body = deep.into();
    assert!(!is_met(test("//a//a//b"), &request));
    assert!(!is_met(not(test("//a//a//b")), &request));
    assert!(!is_met(not(not(test("//a//a//b"))), &request));
    // Known values decide where they can.
    let any = Condition::Any(vec![test("//a//a//b"), test("/a")]);
    assert!(is_met(any, &request));
    let all = Condition::All(vec![test("//a//a//b"), test("/b")]);
    assert!(is_met(not(all), &request));
    request.body = "<a/>".into();
    assert!(is_met(not(test("//a//a//b")), &request));
    // So is content beyond the limits of XML; what is no XML at all meets no condition.
    request.body = format!("<a>{}</a>", "x".repeat(1 << 20)).into();
    assert!(!is_met(not(test("/b")), &request));
    request.body = "{}".into();
    assert!(is_met(not(test("/b")), &request));
}
