//! `k6 new`: a script to start from.

use std::fs;
use std::path::Path;

use clap::ValueEnum as _;

use super::super::load::script::template::Template;
use crate::problem::Problem;
use crate::terminal;

/// Write a script to start from
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub(crate) struct Args {
    /// File to write
    #[arg(value_name = "SCRIPT", default_value = "script.js")]
    script: String,

    /// Replace a file that exists
    #[arg(short, long)]
    force: bool,

    /// Script to start from: `minimal`, `protocol` or the path of a file
    #[arg(long, value_name = "NAME", default_value = "minimal")]
    template: String,

    /// Value of `{{ .ProjectID }}` in a template of your own
    #[arg(long, value_name = "ID", default_value = "")]
    project_id: String,
}

pub(super) fn run(args: &Args) -> Result<(), Problem> {
    let script = &args.script;
    if Path::new(script).exists() && !args.force {
        let problem = Problem::new(format!("{script} exists already"));
        return Err(problem.hint("replace it: --force"));
    }
    let text = text(args)?;
    fs::write(script, text)
        .map_err(|error| Problem::new(format!("cannot write {script}: {error}")))?;
    terminal::print(&format!("wrote {script} ({})", args.template))
        .map_err(|error| Problem::new(error.to_string()))
}

fn text(args: &Args) -> Result<String, Problem> {
    let wrong = |message: String| Problem::with("--template", message);
    if args.template == "browser" {
        let message = "browser automation is not supported by plimsoll; use minimal or protocol";
        return Err(wrong(message.to_owned()));
    }
    if let Ok(template) = Template::from_str(&args.template, false) {
        return Ok(template.script(&args.script));
    }
    let path = &args.template;
    let text =
        fs::read_to_string(path).map_err(|error| wrong(format!("cannot read {path}: {error}")))?;
    filled(&text, &args.script, &args.project_id).map_err(wrong)
}

/// A template of a user; the two fields that k6 has are all that are known.
fn filled(text: &str, script: &str, project: &str) -> Result<String, String> {
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        let (field, behind) = behind
            .split_once("}}")
            .ok_or("has `{{` without `}}`".to_owned())?;
        made.push_str(before);
        made.push_str(match field.trim() {
            ".ScriptName" => script,
            ".ProjectID" => project,
            other => {
                return Err(format!(
                    "has `{{{{ {other} }}}}`; known are .ScriptName and .ProjectID"
                ));
            }
        });
        rest = behind;
    }
    made.push_str(rest);
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_templates_are_filled_in() {
        let made = filled("// {{ .ScriptName }}\n{{.ProjectID}}", "a.js", "7");
        assert_eq!(made.as_deref(), Ok("// a.js\n7"));
        assert!(filled("{{ if .ProjectID }}", "a.js", "").is_err());
        assert!(filled("{{", "a.js", "").is_err());
    }
}
