use std::collections::BTreeMap;
use std::error::Error as _;

use proptest::prelude::*;
use prost::Message as _;

use super::reflection::{Imports, Refusal, Response, Set};
use super::*;

/// `plimsoll.test.Echo`, and `duration.proto`, which it imports.
const SET: &[u8] = include_bytes!("../../../plimsoll/tests/data/echo.binpb");

fn method(name: &str) -> Result<Method, UnknownMethod> {
    let descriptors = Descriptors::decode(SET).unwrap();
    descriptors.method(&name.parse().unwrap())
}

/// Says why `json` is no message of a method, with the cause.
fn refusal(name: &str, json: &str) -> String {
    let error = method(name).unwrap().messages(json.as_bytes()).unwrap_err();
    let cause = error.source().map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

#[test]
fn names_have_a_service_and_a_method() {
    for text in ["a.b.C/D", "/a.b.C/D"] {
        let name: MethodName = text.parse().unwrap();
        assert_eq!((name.service(), name.method()), ("a.b.C", "D"));
        assert_eq!(name.to_string(), "a.b.C/D");
    }
    for wrong in ["", "a.b.C", "a/b/C", "/", "a./B", "a b/C", "a/B?c"] {
        assert!(wrong.parse::<MethodName>().is_err(), "{wrong}");
    }
}

#[test]
fn json_becomes_messages() {
    let say = method("plimsoll.test.Echo/Say").unwrap();
    assert!(!say.is_client_streaming() && !say.is_server_streaming());
    let messages = say.messages(br#"{"text": "hi", "took": "1.5s"}"#).unwrap();
    // Field 1 is text, field 2 a message of seconds and nanoseconds.
    let expected = b"\x0a\x02hi\x12\x08\x08\x01\x10\x80\xca\xb5\xee\x01";
    assert_eq!(messages, [expected]);
    assert_eq!(say.messages(b"{}").unwrap(), [b""]);
}

#[test]
fn answers_become_json() {
    let say = method("plimsoll.test.Echo/Say").unwrap();
    let message = b"\x0a\x02hi\x12\x08\x08\x01\x10\x80\xca\xb5\xee\x01";
    let json = say.answer_to_json(message).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value, serde_json::json!({"text": "hi", "took": "1.500s"}));
    assert_eq!(say.answer_to_json(b"").unwrap(), "{}");
    let error = say.answer_to_json(b"\x0a\x09hi").unwrap_err().to_string();
    assert!(
        error.starts_with("the answer is not a plimsoll.test.Line: "),
        "{error}"
    );
}

#[test]
fn a_list_is_several_messages_where_the_method_takes_them() {
    let gather = method("plimsoll.test.Echo/Gather").unwrap();
    assert!(gather.is_client_streaming());
    let messages = gather.messages(br#" [{"text": "a"}, {}]"#).unwrap();
    assert_eq!(messages, [b"\x0a\x01a".as_slice(), b""]);
    assert_eq!(gather.messages(b"[]").unwrap().len(), 0);
    assert_eq!(gather.messages(b"{}").unwrap().len(), 1);
    assert!(
        method("plimsoll.test.Echo/Repeat")
            .unwrap()
            .is_server_streaming()
    );
}

#[test]
fn what_is_no_message_is_reported_with_its_place() {
    assert_eq!(
        refusal("plimsoll.test.Echo/Say", r#"{"txt": 1}"#),
        "is not a plimsoll.test.Line: unrecognized field name 'txt' at line 1 column 6"
    );
    assert_eq!(
        refusal("plimsoll.test.Echo/Say", "[{}]"),
        "is a list of messages, but the method takes one plimsoll.test.Line"
    );
    let second = refusal("plimsoll.test.Echo/Gather", r#"[{}, {"text": 1}]"#);
    assert!(
        second.starts_with("message 2 is not a plimsoll.test.Line: "),
        "{second}"
    );
    for wrong in ["", "{", "{} {}", "1"] {
        let message = refusal("plimsoll.test.Echo/Say", wrong);
        assert!(
            message.starts_with("is not a plimsoll.test.Line: "),
            "{message}"
        );
    }
}

#[test]
fn what_there_is_instead_is_hinted_at() {
    let hint = |name| method(name).unwrap_err().hint();
    assert_eq!(hint("Echo/Say"), "did you mean plimsoll.test.Echo?");
    assert_eq!(hint("plimsoll.test.Echo/Sai"), "did you mean Say?");
    assert_eq!(
        hint("plimsoll.test.Echo/Zzz"),
        "there are Say, Repeat, Gather, Chat, Fail"
    );
}

#[test]
fn what_is_no_set_and_what_is_half_of_one_are_distinguished() {
    assert!(matches!(
        Descriptors::decode(b"syntax = \"proto3\";"),
        Err(DescriptorsError::NotASet)
    ));
    let mut set = Set::decode(SET).unwrap();
    set.files
        .retain(|file| Imports::decode(file.as_slice()).unwrap().name == "echo.proto");
    let error = Descriptors::decode(&set.encode_to_vec()).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("google/protobuf/duration.proto"),
        "{message}"
    );
}

fn answer(files: Vec<Vec<u8>>) -> Vec<u8> {
    let files = Some(Set { files });
    let response = Response { files, error: None };
    response.encode_to_vec()
}

#[test]
fn files_that_the_server_left_out_are_requested() {
    let set = Set::decode(SET).unwrap();
    let named = |file: Vec<u8>| (Imports::decode(file.as_slice()).unwrap().name, file);
    let files: BTreeMap<String, Vec<u8>> = set.files.into_iter().map(named).collect();
    let mut reflection = Reflection::new("plimsoll.test.Echo");
    // Field 4 is the symbol, field 3 a file.
    assert_eq!(
        reflection.next_request().unwrap(),
        b"\x22\x12plimsoll.test.Echo"
    );
    reflection
        .answer(&answer(vec![files["echo.proto"].clone()]))
        .unwrap();
    let duration = "google/protobuf/duration.proto";
    let request = reflection.next_request().unwrap();
    assert_eq!(request, [b"\x1a\x1e", duration.as_bytes()].concat());
    reflection
        .answer(&answer(vec![files[duration].clone()]))
        .unwrap();
    assert_eq!(reflection.next_request(), None);
    let descriptors = reflection.finish().unwrap();
    let name = "plimsoll.test.Echo/Say".parse().unwrap();
    assert!(descriptors.method(&name).is_ok());
}

#[test]
fn a_server_that_answers_with_something_else_is_not_requested_ever() {
    let set = Set::decode(SET).unwrap();
    let echo = set.files.into_iter().max_by_key(Vec::len).unwrap();
    let mut reflection = Reflection::new("plimsoll.test.Echo");
    let mut questions = 0;
    while reflection.next_request().is_some() {
        reflection.answer(&answer(vec![echo.clone()])).unwrap();
        questions += 1;
    }
    assert_eq!(questions, 2);
    assert!(matches!(
        reflection.finish(),
        Err(ReflectionError::Descriptors(_))
    ));
}

#[test]
fn refusals_are_passed_on() {
    let mut reflection = Reflection::new("a.B");
    let error = Some(Refusal {
        code: 5,
        message: "symbol not found".to_owned(),
    });
    let response = Response { files: None, error };
    let refused = reflection.answer(&response.encode_to_vec()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the server has no description of a.B: symbol not found (code 5)"
    );
    for wrong in [b"".as_slice(), b"\xff\xff"] {
        assert!(matches!(
            Reflection::new("a.B").answer(wrong),
            Err(ReflectionError::NotAnAnswer(_))
        ));
    }
}

#[test]
fn another_syntax_is_reported() {
    let position = SET
        .windows(6)
        .rposition(|window| window == b"proto3")
        .unwrap();
    let mut set = SET.to_vec();
    set[position..position + 6].copy_from_slice(b"protoX");
    let error = Descriptors::decode(&set).unwrap_err().to_string();
    assert_eq!(
        error,
        "echo.proto has the syntax `protoX`, and proto2 and proto3 are understood"
    );
}

#[test]
fn an_empty_syntax_is_reported_too() {
    // A file whose only field is that, as the fuzz target found it.
    let refused = Descriptors::decode(b"\x0a\x02\x62\x00").unwrap_err();
    assert!(
        matches!(&refused, DescriptorsError::Syntax { syntax, .. } if syntax.is_empty()),
        "{refused}"
    );
}

/// A set of files, each by its name and what it imports, publicly.
fn importing(files: &[(String, Vec<String>)]) -> Vec<u8> {
    // Lengths of less than 128 are one byte.
    let field =
        |tag: u8, content: &[u8]| [&[tag, u8::try_from(content.len()).unwrap()], content].concat();
    let file = |(name, imports): &(String, Vec<String>)| {
        let mut file = field(0x0a, name.as_bytes());
        for (position, import) in (0_u8..).zip(imports) {
            file.extend(field(0x1a, import.as_bytes()));
            file.extend([0x50, position]);
        }
        field(0x0a, &file)
    };
    files.iter().flat_map(file).collect()
}

#[test]
fn files_that_import_themselves_or_too_deep_are_reported() {
    let name = |number: usize| format!("{number}.proto");
    let row = |length: usize| -> Vec<_> {
        let imports = |number| (0..number).last().map(name).into_iter().collect();
        (0..length)
            .map(|number| (name(number), imports(number)))
            .collect()
    };
    Descriptors::decode(&importing(&row(100))).unwrap();
    for circle in [
        vec![(name(1), vec![name(1)])],
        vec![(name(1), vec![name(2)]), (name(2), vec![name(1)])],
        row(101),
        row(10_000),
    ] {
        let refused = Descriptors::decode(&importing(&circle)).unwrap_err();
        assert!(
            matches!(refused, DescriptorsError::Imports { .. }),
            "{refused}"
        );
    }
    let missing = [(name(1), vec![name(2)])];
    let refused = Descriptors::decode(&importing(&missing)).unwrap_err();
    assert!(
        matches!(refused, DescriptorsError::Incomplete(_)),
        "{refused}"
    );
}

proptest! {
    /// Whatever is changed in a descriptor set, it is refused or can be used.
    #[test]
    fn a_damaged_set_is_refused_or_used(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        length in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        let mut set = SET.to_vec();
        for (at, byte) in changes {
            set[at.index(SET.len())] = byte;
        }
        if is_cut {
            set.truncate(length.index(SET.len()));
        }
        match Descriptors::decode(&set) {
            Ok(descriptors) => match descriptors.method(&"plimsoll.test.Echo/Say".parse().unwrap()) {
                Ok(method) => drop(method.messages(br#"{"text": "hi"}"#)),
                Err(unknown) => prop_assert!(!unknown.hint().is_empty()),
            },
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
