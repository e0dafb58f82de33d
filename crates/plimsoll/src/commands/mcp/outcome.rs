//! Results of tools: what a command printed, as structured content with a short text, or its errors as people see them.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use super::program::Finished;
use super::tools::Form;
use crate::problem::Problem;
use crate::terminal;

/// Text of a result that a model reads.
const LONGEST_TEXT: usize = 64 << 10;

/// Arguments that are not accepted, or a call that cannot be made.
pub(super) fn refused(problems: &[Problem]) -> CallToolResult {
    let lines = problems
        .iter()
        .map(|problem| terminal::plain("error", problem));
    error(&lines.collect::<Vec<_>>().join("\n"))
}

/// What a command came to. A measurement that missed its objective is a result; a command that could not run is an error.
pub(super) fn of_command(finished: &Finished, form: Form) -> CallToolResult {
    let notes = notes(finished);
    let with_notes = |text: String| match notes.as_str() {
        "" => text,
        notes => format!("{text}\n{notes}"),
    };
    match form {
        Form::Json(summary) => match object(&finished.stdout) {
            Some(value) => structured(&with_notes(summary(&value)), value),
            None => error(&explanation(finished)),
        },
        Form::JsonFile => match finished.result.as_deref().and_then(object) {
            // Lines of the script's console are on standard error.
            Some(value) => structured(
                &texts(finished, [&finished.stdout, &finished.stderr]),
                value,
            ),
            None => error(&explanation(finished)),
        },
        Form::Text if finished.code == Some(0) => {
            let text = with_notes(finished.stdout.trim_end().to_owned());
            CallToolResult::success(vec![ContentBlock::text(cut(&text))])
        }
        Form::Text => error(&explanation(finished)),
    }
}

/// A response of an API, which is its own text.
#[cfg(feature = "monitor")]
pub(super) fn of_answer(answer: Value) -> CallToolResult {
    let text = answer.to_string();
    if answer.is_object() {
        structured(&text, answer)
    } else {
        error("the monitor's response is not a JSON object; is it `plimsoll monitor`?")
    }
}

fn structured(text: &str, value: Value) -> CallToolResult {
    let mut result = CallToolResult::structured(value);
    result.content = vec![ContentBlock::text(cut(text))];
    result
}

fn error(text: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(cut(text))])
}

fn object(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    value.is_object().then_some(value)
}

/// Errors, warnings and notes of a command that has a result, without its lines of progress.
fn notes(finished: &Finished) -> String {
    let mut notes: Vec<_> = finished
        .stderr
        .lines()
        .filter(|line| {
            let kinds = ["error: ", "warning: ", "note: ", "  hint: "];
            kinds.iter().any(|kind| line.starts_with(kind))
        })
        .map(str::to_owned)
        .collect();
    if finished.was_late {
        notes.push(LATE.to_owned());
    }
    notes.join("\n")
}

const LATE: &str = "note: the bound on its duration ended the run (`plimsoll mcp --max-duration`)";

/// Why a command has no result.
fn explanation(finished: &Finished) -> String {
    let text = texts(finished, [&finished.stderr, &finished.stdout]);
    if !text.is_empty() {
        return text;
    }
    match finished.code {
        Some(code) => format!("the command ended with exit code {code} and no message"),
        None => "the command was ended by a signal".to_owned(),
    }
}

/// What a command printed, in this order.
fn texts(finished: &Finished, printed: [&str; 2]) -> String {
    let late = if finished.was_late { LATE } else { "" };
    let texts = printed.into_iter().chain([late]).map(str::trim_end);
    let texts: Vec<_> = texts.filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// At most so much that it fits beside other results.
fn cut(text: &str) -> String {
    if text.len() <= LONGEST_TEXT {
        return text.to_owned();
    }
    let kept = text.char_indices().take_while(|(at, _)| *at < LONGEST_TEXT);
    let mut cut: String = kept.map(|(_, character)| character).collect();
    cut.push_str("\n… (cut)");
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(code: i32, stdout: &str, stderr: &str) -> Finished {
        Finished {
            code: Some(code),
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            result: None,
            was_late: false,
        }
    }

    fn text(result: &CallToolResult) -> &str {
        &result.content[0].as_text().unwrap().text
    }

    #[test]
    fn an_unmet_objective_is_a_result_and_an_error_is_the_text_that_people_see() {
        let summary = |_: &Value| "summary".to_owned();
        let unmet = of_command(
            &finished(
                1,
                "{\"a\": 1}\n",
                "12 s, 100/s\nwarning: few samples\n  hint: wait\n",
            ),
            Form::Json(summary),
        );
        assert_eq!(unmet.is_error, Some(false));
        assert_eq!(
            unmet.structured_content,
            Some(serde_json::json!({ "a": 1 }))
        );
        assert_eq!(text(&unmet), "summary\nwarning: few samples\n  hint: wait");
        let wrong = of_command(
            &finished(2, "", "error: a.toml:1:2: unknown key\n  hint: x\n"),
            Form::Json(summary),
        );
        assert_eq!(wrong.is_error, Some(true));
        assert_eq!(wrong.structured_content, None);
        assert_eq!(text(&wrong), "error: a.toml:1:2: unknown key\n  hint: x");
    }

    #[test]
    fn a_result_that_is_cut_or_no_json_is_an_error() {
        let summary = |_: &Value| String::new();
        for stdout in ["", "\"text\"", "{\"a\":", "tail\": 1}"] {
            let result = of_command(&finished(0, stdout, ""), Form::Json(summary));
            assert_eq!(result.is_error, Some(true), "{stdout}");
            assert!(!text(&result).is_empty(), "{stdout}");
        }
        let long = of_command(&finished(0, &"ü".repeat(LONGEST_TEXT), ""), Form::Text);
        assert!(text(&long).len() < LONGEST_TEXT + 20);
        let late = Finished {
            was_late: true,
            ..finished(130, "", "")
        };
        assert!(text(&of_command(&late, Form::Text)).contains("--max-duration"));
    }
}
