use proptest::prelude::*;

use super::*;

fn shown(table: &Table) -> Vec<Vec<&str>> {
    (0..table.rows())
        .map(|row| {
            (0..table.columns().len())
                .map(|column| table.value(row, column))
                .collect()
        })
        .collect()
}

#[test]
fn csv_and_json_give_the_same_rows() {
    for text in [
        "user,note\nann,\"a, \"\"b\"\"\"\nbob,",
        "\u{feff}user\tnote\r\nann\t\"a, \"\"b\"\"\"\r\nbob\t\r\n",
        "[{\"user\": \"ann\", \"note\": \"a, \\\"b\\\"\"}, {\"note\": null, \"user\": \"bob\"}]",
        "{\"user\": \"ann\", \"note\": \"a, \\\"b\\\"\"}\n\n{\"user\": \"bob\", \"note\": \"\"}\n",
    ] {
        let table = Table::parse(text).unwrap();
        let user = table.column("user").unwrap();
        let note = table.column("note").unwrap();
        assert_eq!(
            table.values(user).collect::<Vec<_>>(),
            ["ann", "bob"],
            "{text}"
        );
        assert_eq!(
            table.values(note).collect::<Vec<_>>(),
            ["a, \"b\"", ""],
            "{text}"
        );
        assert_eq!(table.column("other"), None);
    }
}

#[test]
fn values_of_json_are_texts() {
    let table = Table::parse("[{\"a\": 1, \"b\": true, \"c\": [1, \"x\"], \"d\": 1.50}]").unwrap();
    assert_eq!(shown(&table), [["1", "true", "[1,\"x\"]", "1.50"]]);
}

#[test]
fn mistakes_are_reported_with_their_place() {
    for (text, expected) in [
        ("", "holds no row"),
        ("a,b\n", "holds no row"),
        ("[]", "holds no row"),
        ("a,b\n1,2\n3\n", ":3 has 1 value for 2 columns"),
        ("a,a\n1,2\n", "two columns `a`"),
        ("a b,c\n1,2\n", "column name `a b`"),
        ("[1]", ", entry 1 is not an object"),
        ("[{\"a\": 1}, {}]", ", entry 2 has no `a`"),
        ("[{\"a\": 1}, {\"a\": 1, \"b\": 1}]", ", entry 2 has `b`"),
        ("{\"a\": 1}\n{\"a\" 1}\n", ":2 is not JSON"),
    ] {
        let remarks = Table::parse(text).unwrap_err();
        let message = format!("{} {}", remarks[0].place, remarks[0].message);
        assert!(message.trim_start().contains(expected), "{text}: {message}");
    }
}

proptest! {
    #[test]
    fn a_table_is_whole(text in "[a-c,\"\n{}\\[\\]:;1\t]{0,60}") {
        if let Ok(table) = Table::parse(&text) {
            prop_assert!(table.rows() > 0);
            prop_assert_eq!(shown(&table).len() * table.columns().len(), table.cells.len());
        }
    }
}
