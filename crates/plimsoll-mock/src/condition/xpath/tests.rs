use super::*;

const ORDER: &[u8] = br#"<?xml version="1.0"?>
<o:order xmlns:o="urn:order" id="7"><!-- c --><?p i?>
  <item sku="a" xml:lang="en">1</item><item sku="b">2 &amp; 3</item>
</o:order>"#;

fn values(expression: &str, content: &[u8]) -> Vec<String> {
    let namespaces = [("n".to_owned(), "urn:order".to_owned())];
    let xpath = XPath::new(expression, &namespaces).unwrap();
    xpath.values(&document(content).unwrap())
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
        let mut found = xpath.values(&document(ORDER).unwrap());
        let mut expected = expected.to_vec();
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected, "{expression}");
    }
    assert_eq!(values("name(/*)", b"<a/>"), ["a"]);
}

#[test]
fn what_is_no_expression_is_told() {
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
    assert!(document(bomb).is_none());
    assert!(document(b"<a>").is_none());
    assert!(document(b"{}").is_none());
    assert!(document(&[0xff, 0xfe]).is_none());
    let wide = format!("<a>{}</a>", "<b/>".repeat(150_000));
    assert!(document(wide.as_bytes()).is_none());
    let long = format!("<a>{}</a>", "x".repeat(LONGEST));
    assert!(document(long.as_bytes()).is_none());
}

#[test]
fn depth_does_not_matter() {
    let depth = 40_000;
    let deep = format!("{}x{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert_eq!(values("count(//a)", deep.as_bytes()), [depth.to_string()]);
    assert_eq!(values("string(/a)", deep.as_bytes()), ["x"]);
}
