use std::time::Duration;

use super::*;

fn reading() -> Reading {
    let body =
        br#"{"name":"Ann","age":41.5,"tags":["a","b"],"list":[{"id":1},{"id":2}],"big":12345678901,
        "nested":{"deep":[[1,2],[3]]},"empty":[],"null":null,"version":"1.9"}"#;
    Reading {
        connected: true,
        code: Some(200),
        took: Duration::from_millis(120),
        peer: Some([127, 0, 0, 1].into()),
        body: body.to_vec(),
        domain_expires: Some(Timestamp(86_400_000 * 30)),
        dns_rcode: Some("NOERROR".to_owned()),
        ..Reading::default()
    }
}

/// The condition with its values where it fails.
fn judged(text: &str) -> (bool, String) {
    let condition = GatusCondition::parse(text).unwrap();
    let all = condition.judge(
        &reading(),
        Timestamp(0),
        GatusDisplay::default(),
        &mut Vec::new(),
    );
    let shown: Vec<_> = all.iter().map(|one| one.condition.as_str()).collect();
    (all.iter().all(|one| one.met), shown.join("; "))
}

#[test]
fn conditions_hold_as_in_gatus() {
    for text in [
        "[STATUS] == 200",
        "[STATUS] == 0xC8",
        "[STATUS] == any(200, 204)",
        "[STATUS] != 500",
        "[STATUS] < 300",
        "[RESPONSE_TIME] < 500",
        "[RESPONSE_TIME] < 1s",
        "[IP] == 127.0.0.1",
        "[IP] == pat(127.*)",
        "[CONNECTED] == true",
        "[DNS_RCODE] == NOERROR",
        "[DOMAIN_EXPIRATION] > 720h",
        "[DOMAIN_EXPIRATION] >= 720h",
        "[BODY].name == Ann",
        "[BODY].age == 41.5",
        "[BODY].big == 12345678901",
        "[BODY].big == 1.2345678901e+10",
        "[BODY].tags[1] == b",
        "[BODY].list[0].id == 1",
        "[BODY].nested.deep[0][1] == 2",
        "[BODY].tags == [a b]",
        "[BODY].list == [map[id:1] map[id:2]]",
        "[BODY].nested == {\"deep\":[[1,2],[3]]}",
        "[BODY] == pat(*Ann*)",
        "len([BODY].tags) == 2",
        "len([BODY].name) == 3",
        "has([BODY].name) == true",
        "has([BODY].nothing) == false",
        "has([STATUS]) == true",
        "has([NOTHING]) == false",
        "[BODY].list[*].id > 0",
        "pat(*n*) == [BODY].name",
        "[BODY].version == pat([0-9].?)",
    ] {
        // The expiry is exactly 720 h away.
        let expected = text != "[DOMAIN_EXPIRATION] > 720h" && text != "[BODY].big == 12345678901";
        assert_eq!(judged(text).0, expected, "{text}");
    }
}

#[test]
fn what_passes_by_accident_in_gatus_passes_here_with_a_warning() {
    for (text, met) in [
        ("[BODY].x != 1", true),
        ("[BODY].x < 5", true),
        ("[BODY].x == 1", false),
        ("[RESPONSE_TIME] > abc", true),
        ("[BODY].age > 41", false),
        ("[STATUS] == 200 == 500", true),
        ("[BODY].big == 12345678901", false),
        ("12345678901 == [BODY].big", false),
        ("[body].name == Ann", true),
    ] {
        assert_eq!(judged(text).0, met, "{text}");
        assert!(
            GatusCondition::parse(text).unwrap().hazard().is_some() || text == "[BODY].x == 1",
            "{text}"
        );
    }
    assert!(!judged("[STATUS] == any(0xC8, 404)").0);
    assert!(!judged("[BODY].tags[-1] == b").0, "and the program goes on");
    for text in [
        "[STATUS] == 200",
        "[RESPONSE_TIME] < 300",
        "[CERTIFICATE_EXPIRATION] > 48h",
    ] {
        assert_eq!(
            GatusCondition::parse(text).unwrap().hazard(),
            None,
            "{text}"
        );
    }
}

#[test]
fn failed_conditions_are_shown_with_their_values() {
    for (text, shown) in [
        ("[STATUS] == 500", "[STATUS] (200) == 500"),
        ("500 == [STATUS]", "500 == [STATUS] (200)"),
        ("[BODY].x == 1", "[BODY].x (INVALID) == 1"),
        ("[RESPONSE_TIME] < 100", "[RESPONSE_TIME] (120) < 100"),
        (
            "[DOMAIN_EXPIRATION] > 1000h",
            "[DOMAIN_EXPIRATION] (720h) > 1000h",
        ),
        (
            "[BODY] == pat(*Bob*)",
            "[BODY] ({\"name\":\"Ann\",\"age\":41.5,...(truncated)) == pat(*Bob*)",
        ),
        ("[BODY].list[*].id == 1", "[BODY].list[1].id (2) == 1"),
        (
            "[BODY].empty[*].id == 1",
            "[BODY].empty[*].id == 1 (no elements matched)",
        ),
        ("len([BODY].tags) == 3", "len([BODY].tags) (2) == 3"),
    ] {
        assert_eq!(judged(text), (false, shown.to_owned()));
    }
}

#[test]
fn what_has_no_operator_with_spaces_is_refused() {
    for text in ["[STATUS]==200", "", "[STATUS]", "[STATUS] = 200"] {
        assert!(GatusCondition::parse(text).is_err(), "{text}");
    }
}
