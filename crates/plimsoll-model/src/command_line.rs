//! Command lines as people paste them.

/// Words of a command for a POSIX shell: what it would take apart stands in single quotes.
pub fn shell_line(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_otherwise_is_quoted() {
        let line =
            |words: &[&str]| shell_line(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(
            line(&["plimsoll", "load", "-z", "1s", "http://a/"]),
            "plimsoll load -z 1s http://a/"
        );
        assert_eq!(
            line(&[
                "line",
                "--objective",
                "p99<50ms",
                "--spawn",
                "./server --port 1",
                "http://a/?b&c"
            ]),
            "line --objective 'p99<50ms' --spawn './server --port 1' 'http://a/?b&c'"
        );
        assert_eq!(line(&["", "it's"]), r"'' 'it'\''s'");
    }
}
