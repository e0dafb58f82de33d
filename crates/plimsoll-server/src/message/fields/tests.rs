use std::fmt::Write;

use proptest::prelude::*;

use super::*;

fn headers<'a>(fields: &[(&'a str, &'a str)]) -> Vec<Header<'a>> {
    let header = |(name, value): &(&'a str, &'a str)| Header {
        name,
        value: value.as_bytes(),
    };
    fields.iter().map(header).collect()
}

fn shown(fields: &EditedFields<'_>) -> String {
    fields.iter().fold(String::new(), |mut all, (name, value)| {
        writeln!(all, "{name}: {}", String::from_utf8_lossy(value)).unwrap();
        all
    })
}

const fn name(name: &'static str) -> HeaderName {
    HeaderName::from_static(name)
}

const fn value(value: &'static str) -> HeaderValue {
    HeaderValue::from_static(value)
}

#[test]
fn order_and_case_stay_through_layers() {
    let headers = headers(&[
        ("Host", "a"),
        ("X-One", "1"),
        ("Accept", "*/*"),
        ("x-one", "2"),
        ("X-Gone", "3"),
    ]);
    let fields = EditedFields::new(Fields::Http1(&headers));
    let first = FieldEdits::new()
        .set(name("x-one"), value("new"))
        .set(name("x-id"), value("7"))
        .remove(name("x-gone"));
    let first = fields.overlay(&first);
    let fields = fields.beneath(&first);
    let second = FieldEdits::new()
        .add(name("x-one"), value("more"))
        .set(name("x-id"), value("8"));
    let second = fields.overlay(&second);
    let fields = fields.beneath(&second);
    assert_eq!(
        shown(&fields),
        "Host: a\nX-One: new\nAccept: */*\nx-id: 8\nx-one: more\n"
    );
    assert_eq!(fields.get("X-ONE"), Some(&b"new"[..]));
    assert_eq!(fields.get("x-gone"), None);
    assert!(fields.as_map().is_none());
    let kept = fields.keep();
    let kept = EditedFields::new(Fields::Kept(&kept));
    assert_eq!(shown(&kept), shown(&fields));
    assert_eq!(kept.get("HOST"), Some(&b"a"[..]));
    assert_eq!(kept.iter().count(), 5);
}

#[test]
fn fields_that_layers_have_set_are_known_also_of_a_request_that_was_kept() {
    let headers = headers(&[("X-Id", "evil"), ("Accept", "*/*"), ("x-id", "more")]);
    let received = EditedFields::new(Fields::Http1(&headers));
    assert_eq!(received.layered().count(), 0);
    let layer = FieldEdits::new()
        .set(name("x-id"), value("7"))
        .add(name("accept"), value("text/html"));
    let layer = received.overlay(&layer);
    let fields = received.beneath(&layer);
    let kept = fields.keep();
    let kept = EditedFields::new(Fields::Kept(&kept));
    for fields in [fields, kept] {
        let marked = fields.marked();
        let marked: Vec<_> = marked
            .map(|field| (field.name.as_str(), field.value, field.is_layered))
            .collect();
        let expected: [(&str, &[u8], bool); 3] = [
            ("X-Id", b"7", true),
            // What a layer adds to goes with it.
            ("Accept", b"*/*", true),
            ("accept", b"text/html", true),
        ];
        assert_eq!(marked, expected);
        assert_eq!(fields.layered().count(), 3);
    }
    // A layer over a kept request marks more.
    let more = FieldEdits::new().set(name("accept"), value("a/b"));
    let more = kept.overlay(&more);
    let marked = kept.beneath(&more).marked();
    let marks: Vec<_> = marked.map(|field| field.is_layered).collect();
    assert_eq!(marks, [true, true]);
}

#[test]
fn what_a_client_nominates_is_not_left_beside_what_a_layer_adds() {
    let headers = headers(&[
        ("Connection", "close, X-Id"),
        ("X-Id", "evil"),
        ("X-Other", "1"),
    ]);
    let received = EditedFields::new(Fields::Http1(&headers));
    let layer = FieldEdits::new()
        .add(name("x-id"), value("7"))
        .add(name("x-other"), value("2"));
    let layer = received.overlay(&layer);
    let fields = received.beneath(&layer);
    let set = fields.layered().filter(|field| field.is_layered);
    let set: Vec<_> = set.map(|field| field.value).collect();
    assert_eq!(set, [&b"1"[..], b"7", b"2"]);
}

proptest! {
    /// Looking a name up finds the field that comes first in the order, whatever the layers do.
    #[test]
    fn looking_up_agrees_with_listing(
        fields in prop::collection::vec((0usize..4, 0usize..9), 0..6),
        layers in prop::collection::vec(prop::collection::vec((0u8..3, 0usize..4, 0usize..9), 0..4), 0..4),
    ) {
        const NAMES: [&str; 4] = ["X-A", "x-a", "X-B", "x-c"];
        const VALUES: [&str; 9] = ["0", "1", "2", "3", "4", "5", "6", "7", "8"];
        let fields: Vec<_> = fields.iter().map(|&(name, value)| (NAMES[name], VALUES[value])).collect();
        let mut map = HeaderMap::new();
        for (name, value) in &fields {
            map.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_static(value));
        }
        let headers = headers(&fields);
        let layers: Vec<FieldEdits> = layers
            .iter()
            .map(|edits| edits.iter().fold(FieldEdits::new(), |edits, &(kind, name, value)| {
                let name = HeaderName::try_from(NAMES[name]).unwrap();
                let value = HeaderValue::from_static(VALUES[value]);
                match kind {
                    0 => edits.remove(name),
                    1 => edits.set(name, value),
                    _ => edits.add(name, value),
                }
            }))
            .collect();
        check(EditedFields::new(Fields::Http1(&headers)), &layers, &mut map)?;
    }
}

/// Lays one edit after the other over `fields` and makes it in `map`, which has to agree.
fn check(
    fields: EditedFields<'_>,
    layers: &[FieldEdits],
    map: &mut HeaderMap,
) -> Result<(), TestCaseError> {
    for name in ["x-a", "x-b", "X-C"] {
        let first = fields
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        prop_assert_eq!(fields.get(name), first.map(|(_, value)| value));
        let all: Vec<_> = fields
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect();
        let in_map: Vec<_> = map
            .get_all(name)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        prop_assert_eq!(all, in_map);
    }
    let Some((edits, rest)) = layers.split_first() else {
        return Ok(());
    };
    edits.apply(map);
    let overlay = fields.overlay(edits);
    check(fields.beneath(&overlay), rest, map)
}
