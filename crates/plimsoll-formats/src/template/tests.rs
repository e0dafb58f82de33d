use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> Template {
    Template::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn places_are_found() {
    for (text, shown) in [
        ("", ""),
        ("no place", "no place"),
        ("/users/{{ id }}?a={{b.c}}", "/users/{{id}}?a={{b.c}}"),
        ("{{{a}}}", "{{{a}}}"),
        ("{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}"),
        ("{{$guid}}", "{{$uuid}}"),
        ("{{$randomInt 1 10}}", "{{$random.integer(1, 10)}}"),
        ("{{$random.integer(-5,5)}}", "{{$random.integer(-5, 5)}}"),
        (
            "{{$random.float(-0.5,2)}}",
            "{{$random.float(-0.500000, 2.000000)}}",
        ),
        (
            "{{$random.float}}",
            "{{$random.float(0.000000, 1000.000000)}}",
        ),
        ("a{{\n  b\n}}c", "a{{b}}c"),
        (
            "{{$random.choice(\n  red,\n  green\n)}}",
            "{{$random.choice(red, green)}}",
        ),
        ("{{$counter}}", "{{$counter(1, 1)}}"),
        ("{{$counter 100 10}}", "{{$counter(100, 10)}}"),
        ("{{$random.hex(4)}}", "{{$random.hexadecimal(4)}}"),
        ("{{$random.choice(a, b c)}}", "{{$random.choice(a, b c)}}"),
        ("{{$random.choice a,b c}}", "{{$random.choice(a, b, c)}}"),
        ("{{$isoTimestamp}}", "{{$isoTimestamp}}"),
        ("{{$datetime  iso8601 -1 d}}", "{{$datetime iso8601 -1 d}}"),
        (
            "{{$datetime 'YYYY-MM-DD[T]HH:mm'}}",
            "{{$datetime \"YYYY-MM-DD[T]HH:mm\"}}",
        ),
        (
            "{{$localDatetime rfc1123 2 h}}",
            "{{$localDatetime rfc1123 2 h}}",
        ),
        ("{{$timestamp -5 m}}", "{{$timestamp -5 m}}"),
    ] {
        assert_eq!(parsed(text).to_string(), shown, "{text}");
    }
    assert_eq!(
        parsed("a{{b}}{{c}}").variables().collect::<Vec<_>>(),
        ["b", "c"]
    );
}

#[test]
fn mistakes_are_reported() {
    for (text, expected) in [
        ("{{a", "not closed"),
        ("{{a\nb", "not closed by `}}`: {{a"),
        ("{{$input Your name?}}", "--var name=value"),
        ("{{$processEnv TOKEN}}", "--var NAME"),
        ("{{$random.float(2, 1)}}", "greater than the first"),
        ("{{$random.float(1)}}", "two numbers"),
        ("{{$random.float(0, NaN)}}", "two numbers"),
        ("{{}}", "not the name"),
        ("{{a b}}", "not the name"),
        ("{{$guild}}", "did you mean `$guid`?"),
        ("{{$randomInt 5 5}}", "greater than the first"),
        ("{{$randomInt a}}", "two whole numbers"),
        ("{{$random.hex(0)}}", "from 1 to 4096"),
        ("{{$random.hex(1}}", "not closed"),
        ("{{$random.choice}}", "to choose from"),
        ("{{$counter(1, 0)}}", "the step"),
        ("{{$timestamp 1}}", "an offset such as `-1 d`"),
        ("{{$datetime}}", "takes `iso8601`"),
        ("{{$datetime iso8601 1 q}}", "an offset such as"),
    ] {
        let error = Template::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn what_is_shown_is_understood_again(text in "[a-z{}$. (),0-9\n]{0,60}") {
        if let Ok(template) = Template::parse(&text) {
            let shown = template.to_string();
            prop_assert_eq!(Template::parse(&shown), Ok(template), "{}", shown);
        }
    }

    #[test]
    fn what_is_shown_of_a_choice_is_understood_again(arguments in "[ab{}(), ]{0,20}") {
        let text = format!("{{{{$random.choice{arguments}}}}}");
        if let Ok(template) = Template::parse(&text) {
            let shown = template.to_string();
            prop_assert_eq!(Template::parse(&shown), Ok(template), "{}", shown);
        }
    }

    #[test]
    fn text_without_places_stays_as_it_is(text in "[^{]{0,60}") {
        let template = Template::parse(&text).unwrap();
        prop_assert_eq!(template.as_text(), Some(text.as_bytes()));
    }
}
