use super::*;
use crate::fixture::checks;

fn plain(checked: &Checked) -> String {
    check(checked, Style::Plain)
}

#[test]
fn in_the_clear() {
    insta::assert_snapshot!(plain(&checks::plain()));
}

#[test]
fn met() {
    insta::assert_snapshot!(plain(&checks::met()));
}

#[test]
fn unmet() {
    insta::assert_snapshot!(plain(&checks::unmet()));
}

#[test]
fn refused() {
    insta::assert_snapshot!(plain(&checks::refused()));
}

#[test]
fn cut_short() {
    insta::assert_snapshot!(plain(&checks::cut_short()));
}

#[test]
fn called() {
    insta::assert_snapshot!(plain(&checks::called()));
}

#[test]
fn over_a_unix_socket() {
    insta::assert_snapshot!(plain(&checks::unix()));
}

#[test]
fn no_line_is_too_wide_or_steers_the_terminal() {
    for (name, mut checked) in checks::all() {
        checked.url = format!("http://127.0.0.1/{}", "very-long/".repeat(40));
        for judgement in &mut checked.judgements {
            judgement.condition = "condition\x1b ".repeat(30);
            judgement.observed = Some("observed\r\n ".repeat(30));
        }
        if let Some(certificate) = checked
            .tls
            .as_mut()
            .and_then(|tls| tls.certificate.as_mut())
        {
            certificate.names = vec!["name\x1b[2J.example.org".repeat(9); 9];
            certificate.subject = "CN=\x07a subject ".repeat(20);
        }
        for line in plain(&checked).lines() {
            assert!(line.chars().count() <= WIDTH, "{name}: {line}");
            assert_eq!(line, line.trim_end(), "{name}");
            assert!(!line.contains(char::is_control), "{name}: {line:?}");
        }
    }
}

#[test]
fn colour_adds_nothing_but_escapes() {
    for (name, checked) in checks::all() {
        let coloured = check(&checked, Style::Ansi);
        assert!(coloured.contains("\x1b[1m"), "{name}");
        let mut parts = coloured.split('\x1b');
        let mut bare = parts.next().unwrap().to_owned();
        for part in parts {
            bare.push_str(part.split_once('m').unwrap().1);
        }
        assert_eq!(bare, plain(&checked), "{name}");
    }
}

#[test]
fn bars_lie_end_to_end_and_can_all_be_seen() {
    let micros = Duration::from_micros;
    let whole = micros(1_000).as_secs_f64();
    let first = bar(Duration::ZERO, micros(500), whole, "█");
    let tiny = bar(micros(500), micros(1), whole, "█");
    let last = bar(micros(999), micros(1), whole, "█");
    assert_eq!(first, "█".repeat(BAR / 2));
    assert_eq!(tiny, format!("{}█", " ".repeat(BAR / 2)));
    assert_eq!(width(&last), BAR);
    assert_eq!(bar(Duration::ZERO, Duration::ZERO, 0.0, "█"), "█");
}
