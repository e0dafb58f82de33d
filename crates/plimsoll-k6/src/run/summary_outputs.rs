//! What a run writes at its end: the outputs of `handleSummary()`, or the text.

use std::path::PathBuf;

use plimsoll_script::Level;
use plimsoll_script::js::{self, Exception};
use serde_json::Value;

use super::invocation::Output;
use super::preparation::Preparation;
use crate::line_source::LineSource;
use crate::options::SummaryMode;
use crate::run::exit_code::ExitCode;
use crate::summary;
use crate::user::Stage;

/// What a run writes at its end.
pub(super) struct WrittenSummary {
    pub(super) outputs: Vec<Output>,
    /// The argument of `handleSummary()` as the function has left it.
    pub(super) data: Option<Value>,
}

impl Preparation<'_> {
    /// The outputs of `handleSummary()`, or the text.
    ///
    /// - `parts`: the summary by groups and scenarios, if it is shown.
    /// - `argument`: of `handleSummary()`.
    pub(super) fn outputs(
        &self,
        argument: &Value,
        summary: &Value,
        parts: &Value,
    ) -> Result<WrittenSummary, ExitCode> {
        let unchanged = |outputs| WrittenSummary {
            outputs,
            data: None,
        };
        if !self.calls.has.summary {
            // Its module code runs all the same.
            self.calls.initialised(Stage::Summary);
            return Ok(unchanged(vec![self.default_summary(summary, parts)]));
        }
        let timeout = self.calls.shared.options.summary_timeout;
        let arguments = vec![argument.to_string()];
        let outputs = self.calls.call(
            Stage::Summary,
            "handleSummary",
            arguments,
            timeout,
            |ctx, value, arguments| {
                if value.is_undefined() || value.is_null() {
                    return Ok(None);
                }
                let data = ctx.json_stringify(arguments[0].clone())?;
                let data = data.map(|data| data.to_string()).transpose()?;
                let Some(object) = value.as_object() else {
                    let message =
                        "handleSummary() must return an object of file names and contents";
                    return Err(Exception::throw_type(ctx, message));
                };
                let mut outputs = Vec::new();
                for entry in object.props::<String, js::Value<'_>>() {
                    let (name, content) = entry?;
                    let Some(content) = crate::protocol::http::bytes_of(&content) else {
                        let message = format!(
                            "handleSummary() must return a string or an ArrayBuffer for {name}"
                        );
                        return Err(Exception::throw_type(ctx, &message));
                    };
                    let content = content.to_vec();
                    outputs.push(match name.as_str() {
                        "stdout" => Output::Stdout(content),
                        "stderr" => Output::Stderr(content),
                        path => Output::File(PathBuf::from(path), content),
                    });
                }
                Ok(Some((outputs, data.unwrap_or_default())))
            },
        );
        match outputs {
            Ok(Some((outputs, data))) => Ok(WrittenSummary {
                outputs,
                data: serde_json::from_str(&data).ok(),
            }),
            // k6 goes on with nothing then.
            Err(Some(error)) if error.is_rejection => Ok(unchanged(Vec::new())),
            // k6 logs an exception and goes on with its own text.
            Ok(None) | Err(Some(_)) => Ok(unchanged(vec![self.default_summary(summary, parts)])),
            Err(None) => {
                let text = format!("handleSummary() took longer than {timeout:?}");
                (self.calls.shared.log)(Level::Error, &text, LineSource::Run);
                Err(ExitCode::GenericTimeout)
            }
        }
    }

    pub(super) fn default_summary(&self, summary: &Value, parts: &Value) -> Output {
        let judged = summary::judged(&self.thresholds);
        let names = self.calls.shared.checks.names();
        let has_colors = self.calls.invocation.has_colors;
        let text = match self.calls.invocation.summary_mode {
            SummaryMode::Disabled => None,
            SummaryMode::Compact => {
                Some(summary::text_of(summary, &judged, &names, has_colors, "  "))
            }
            SummaryMode::Full => {
                let text = summary::full_text_of(summary, &judged, parts, &names, has_colors, "  ");
                Some(text)
            }
            SummaryMode::Legacy => {
                let look = summary::LegacyLook::of_data(summary, has_colors);
                Some(summary::legacy_text_of(summary, &look))
            }
        };
        let text = text.map_or_else(String::new, |text| format!("\n\n{text}\n\n"));
        Output::Stdout(text.into_bytes())
    }
}
