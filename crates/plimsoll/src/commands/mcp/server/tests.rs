use std::collections::BTreeSet;

use super::super::arguments::Passed;
use super::super::bounds::tests::bounds;
use super::*;

fn listed() -> Vec<Listed> {
    let folder = tempfile::tempdir().unwrap();
    let url = "http://127.0.0.1:8080".parse().unwrap();
    let server = Server::new(bounds(folder.path()), url, None);
    TOOLS.iter().map(|tool| server.listed(tool)).collect()
}

#[test]
fn tools_have_names_of_their_own_and_arguments_that_they_require() {
    let names: BTreeSet<_> = TOOLS.iter().map(|tool| tool.name).collect();
    assert_eq!(names.len(), TOOLS.len());
    for tool in TOOLS {
        let arguments: BTreeSet<_> = tool.arguments.iter().map(|it| it.name).collect();
        assert_eq!(arguments.len(), tool.arguments.len(), "{}", tool.name);
        for name in tool.required {
            assert!(arguments.contains(name), "{} {name}", tool.name);
        }
        for argument in tool.arguments {
            let doc = argument.doc;
            assert!(
                !doc.is_empty() && !doc.ends_with('.'),
                "{}: {doc}",
                tool.name
            );
        }
    }
}

/// A model reads all of it, so it stays short.
#[test]
fn the_list_of_tools_is_small_and_its_schemas_stand_by_themselves() {
    let listed = listed();
    for tool in &listed {
        let Some(schema) = &tool.output_schema else {
            continue;
        };
        assert!(!schema.contains_key("$id"), "{}", tool.name);
        assert_eq!(schema["type"], "object", "{}", tool.name);
        let validator = jsonschema::validator_for(&Value::Object((**schema).clone()));
        assert!(validator.is_ok(), "{}", tool.name);
    }
    let inputs = listed.iter().map(|tool| {
        let description = tool.description.as_deref().unwrap_or_default();
        description.len()
            + Value::Object((*tool.input_schema).clone())
                .to_string()
                .len()
    });
    let bytes: usize = inputs.sum();
    assert!(bytes < 24_000, "{bytes} bytes");
}

/// Every flag that a tool passes exists in the command that it starts.
#[test]
fn every_flag_of_a_tool_is_one_of_its_command() {
    use clap::CommandFactory as _;

    let program = crate::cli::Cli::command();
    let find = |path: &[&str]| {
        path.iter().fold(&program, |command, name| {
            command.find_subcommand(name).unwrap()
        })
    };
    let script = crate::cli::ScriptCli::command();
    for tool in TOOLS {
        let (command, but) = match tool.name {
            "load_script" => (&script, ""),
            // With a script it is another command.
            "load_validate" => (find(&["load"]), "env"),
            "mock_match" => (find(&["mock", "match-test"]), ""),
            "mock_check" => (find(&["mock", "validate"]), ""),
            "check" | "load" | "compare" | "line" | "report" => (find(&[tool.name]), ""),
            _ => {
                let passes = |it: &arguments::Argument| matches!(it.passed, Passed::Flag(_));
                assert!(!tool.arguments.iter().any(passes), "{}", tool.name);
                continue;
            }
        };
        for argument in tool.arguments.iter().filter(|it| it.name != but) {
            let (Passed::Flag(flag) | Passed::Stdin(flag)) = argument.passed else {
                continue;
            };
            let long = flag.trim_start_matches("--");
            let known = command.get_arguments().any(|it| {
                let names = it.get_long_and_visible_aliases();
                names.is_some_and(|names| names.contains(&long))
            });
            assert!(known, "{} {flag}", tool.name);
        }
    }
}
