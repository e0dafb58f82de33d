use proptest::prelude::*;

use super::*;

/// Differences as lines.
fn lines(older: &str, newer: &str) -> Vec<String> {
    let differences = ConfigContent::parse(older).differences(&ConfigContent::parse(newer));
    differences.iter().map(ToString::to_string).collect()
}

#[test]
fn secrets_are_masked_wherever_they_stand() {
    let text = r#"
            # hunter2
            [[listen]]
            address = "127.0.0.1:80"
            tls = { acme = { names = ["a.example"], external_account = { id = "hunter2", key = "hunter2" } } }
            [[route]]
            basic_auth = { realm = "a", users = { alice = "hunter2" } }
            proxy = { to = "http://alice:hunter2@127.0.0.1:1/x", headers = { authorization = "hunter2", x-a = "b" } }
            jwt = { issuer = "https://id.example", audience = "api", jwks = { keys = [{ kty = "RSA", d = "hunter2" }] } }
            [[route]]
            jwt = [{ issuer = "https://other.example" }]
            oidc = { issuer = "https://op.example", client_secret = "hunter2", secret = ["hunter2"] }
            [admin]
            token = """
hunter2"""
        "#;
    let shown = ConfigContent::parse(text).masked().to_toml();
    assert!(!shown.contains("hunter2"), "{shown}");
    for kept in [
        "127.0.0.1:80",
        "a.example",
        "realm = \"a\"",
        "x-a = \"b\"",
        "127.0.0.1:1/x",
        "https://id.example",
        "audience = \"api\"",
        "https://op.example",
        "https://other.example",
    ] {
        assert!(shown.contains(kept), "{kept}: {shown}");
    }
    assert!(shown.parse::<toml::Table>().is_ok());
}

#[test]
fn the_order_of_the_file_is_kept() {
    let text = "threads = 1\n[[route]]\nprefix = \"/b\"\nheaders = { z = \"1\", a = \"2\" }\nproxy = \"api\"\n\
                [upstream.web]\nservers = \"http://a\"\n[upstream.api]\nservers = [\"http://b\", { url = \"http://c\", weight = 2 }]\n\
                [limits]\nconnections = 10\n";
    let content = ConfigContent::parse(text);
    assert_eq!(
        content.to_toml(),
        "threads = 1\n\n[[route]]\nprefix = \"/b\"\nheaders = { z = \"1\", a = \"2\" }\nproxy = \"api\"\n\n\
         [upstream.web]\nservers = \"http://a\"\n\n[upstream.api]\nservers = [\"http://b\", { url = \"http://c\", weight = 2 }]\n\n\
         [limits]\nconnections = 10\n"
    );
    assert_eq!(ConfigContent::parse(&content.to_toml()), content);
    assert!(ConfigContent::try_parse("a = ").is_err());
}

#[test]
fn differences_name_what_was_added_removed_changed_and_moved() {
    for (older, newer, expected) in [
        ("a = 1", "a = 1", vec![]),
        ("a = 1", "a = 2\nb = true", vec!["~ a: 1 -> 2", "+ b: true"]),
        (
            "[upstream.api]\nservers = [\"http://a\", \"http://b\"]",
            "[upstream.api]\nservers = [\"http://b\", { url = \"http://c\", weight = 2 }, \"http://d\"]",
            vec![
                "- upstream.api.servers[1]: \"http://a\"",
                "+ upstream.api.servers[2]: { url = \"http://c\", weight = 2 }",
                "+ upstream.api.servers[3]: \"http://d\"",
            ],
        ),
        (
            "[[route]]\nname = \"x\"\nprefix = \"/x\"\n[[route]]\nname = \"y\"\nprefix = \"/y\"",
            "[[route]]\nname = \"y\"\nprefix = \"/z\"\n[[route]]\nname = \"x\"\nprefix = \"/x\"",
            vec![
                "~ route[1].prefix: \"/y\" -> \"/z\"",
                "~ route: in the order 1, 2 -> in the order 2, 1",
            ],
        ),
        (
            "[map.pool.values]\na = \"1\"\nb = \"2\"",
            "[map.pool.values]\nb = \"2\"\na = \"1\"",
            vec!["~ map.pool.values: in the order a, b -> in the order b, a"],
        ),
        ("a = 1\nb = 2", "b = 2\na = 1", vec![]),
        (
            "[[route]]\nbasic_auth = { users = { me = \"hunter2\" } }\njwt = { issuer = \"a\" }",
            "[[route]]\nbasic_auth = { users = { me = \"hunter3\" } }\njwt = { issuer = \"b\" }",
            vec![
                "~ route[1].basic_auth.users.me: \"…\" -> \"…\"",
                "~ route[1].jwt.issuer: \"a\" -> \"b\"",
            ],
        ),
    ] {
        assert_eq!(lines(older, newer), expected, "{older} {newer}");
    }
}

/// Values as configurations have them.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,4}", inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(entries in prop::collection::vec((".{0,4}", any_value()), 0..4), other in any_value()) {
        let content = ConfigContent(entries.into_iter().collect());
        let text = content.to_toml();
        let read = ConfigContent::try_parse(&text).unwrap();
        prop_assert_eq!(&read, &content, "{}", text);
        prop_assert_eq!(content.differences(&read), vec![]);
        let mut changed = content.clone();
        changed.0.insert("x".to_owned(), other);
        prop_assert_eq!(content.differences(&changed).is_empty(), changed == content);
    }
}
