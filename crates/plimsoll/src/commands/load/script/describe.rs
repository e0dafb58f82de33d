//! What is run, in the lines of standard output by which programs find the script and the outputs of k6.

use std::fmt::Write as _;

use plimsoll_k6::{RunNeeds, go_duration};

/// Writing to a `String` cannot fail.
const IN_MEMORY: &str = "a string grows";

/// - `outputs`: as the command line names them.
pub(super) fn text(script: &str, outputs: &[String], plan: &RunNeeds) -> String {
    let mut text = String::new();
    let output = if outputs.is_empty() {
        "-".to_owned()
    } else {
        outputs.join(", ")
    };
    for (name, value) in [
        ("execution", "local"),
        ("script", script),
        ("output", &output),
    ] {
        writeln!(text, "{name:>14}: {value}").expect(IN_MEMORY);
    }
    writeln!(
        text,
        "{:>14}: {}, {} virtual users at most, {} at most",
        "scenarios",
        plan.scenarios.len(),
        plan.most_vus,
        go_duration(plan.duration)
    )
    .expect(IN_MEMORY);
    for scenario in &plan.scenarios {
        write!(
            text,
            "{:>16} {}: {}, {} virtual users, {}",
            "*",
            scenario.name,
            scenario.executor,
            scenario.vus,
            go_duration(scenario.length)
        )
        .expect(IN_MEMORY);
        if !scenario.start.is_zero() {
            write!(text, " from {}", go_duration(scenario.start)).expect(IN_MEMORY);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_k6::ScenarioNeeds;

    use super::*;

    #[test]
    fn programs_find_the_script_and_the_output() {
        let plan = RunNeeds {
            scenarios: vec![ScenarioNeeds {
                name: "default".to_owned(),
                executor: "constant-vus",
                vus: 3,
                start: Duration::from_secs(5),
                length: Duration::from_secs(10),
                graceful_stop: Duration::from_secs(30),
            }],
            most_vus: 3,
            duration: Duration::from_secs(45),
        };
        let expected = "     execution: local\n        script: a.js\n        output: json=x\n     scenarios: 1, 3 virtual users at most, \
                        45s at most\n               * default: constant-vus, 3 virtual users, 10s from 5s\n";
        assert_eq!(text("a.js", &["json=x".to_owned()], &plan), expected);
    }
}
