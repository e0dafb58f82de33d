use std::fmt::Write;

use super::*;

fn check(text: &str) -> Result<MatrixPlan, String> {
    compile(text, Path::new("plans"), "/bin/plimsoll").map_err(|problems| {
        problems.iter().fold(String::new(), |mut all, problem| {
            write!(all, "{}:{}: {problem}", problem.line, problem.column).unwrap();
            if let Some(hint) = &problem.hint {
                write!(all, " ({hint})").unwrap();
            }
            all + "\n"
        })
    })
}

const WHOLE: &str = r#"
name = "gateways"
seed = 7
repeats = 2
warm_up = "1s"
window = "2s"
target_cores = "0"
upstream_cores = "0"
generator_cores = "0"

[[target]]
name = "ours"
command = "{plimsoll} up '{dir}/a b.toml' --port {port}"
url = "http://127.0.0.1:{port}/"
ready = "http://127.0.0.1:{backend.port}/healthz"

[[target.upstream]]
name = "backend"
command = "./backend {port}"
ready = "http://127.0.0.1:{backend.port}/"

[[load]]
name = "c8"
connections = 8

[[load]]
name = "steady"
rate = "500/s"
flags = ["-H", "a: b"]

[[load]]
name = "wrk"
command = "wrk -c{connections} -d{seconds}s {url}"

[[size]]
name = "small"
cpus = 1
memory = "256MiB"
limits = "both"
connections = 1
"#;

#[test]
fn everything_that_can_be_written_is_understood() {
    let plan = check(WHOLE).unwrap();
    assert_eq!((plan.seed, plan.repeats), (7, 2));
    assert_eq!(plan.window, Duration::from_secs(2));
    let target = &plan.targets[0];
    assert_eq!(
        target.process.words,
        ["/bin/plimsoll", "up", "plans/a b.toml", "--port", "{port}"]
    );
    assert_eq!(target.upstreams[0].name, "backend");
    assert_eq!(
        target.process.ready,
        "http://127.0.0.1:{backend.port}/healthz"
    );
    assert_eq!(plan.loads[1].connections, 50);
    assert_eq!(plan.loads[1].rate.unwrap().to_string(), "500/s");
    assert!(matches!(&plan.loads[2].loader, Loader::Command(words) if words[0] == "wrk"));
    let size = &plan.sizes[0];
    assert_eq!(size.memory_bytes, Some(256 << 20));
    assert_eq!((size.limited, size.connections), (Limited::Both, Some(1)));
}

#[test]
fn little_has_to_be_written() {
    let plan = check(
        "[[target]]\nname = \"a\"\ncommand = \"a\"\nurl = \"http://[::1]:{port}/\"\n\
         [[load]]\nname = \"b\"\n",
    )
    .unwrap();
    assert_eq!(plan.warm_up, Duration::from_secs(5));
    assert_eq!(plan.window, Duration::from_secs(15));
    assert_eq!(plan.repeats, 3);
    assert_eq!(plan.targets[0].process.ready, "http://[::1]:{port}/");
    assert!(!plan.sizes[0].is_limited());
}

#[test]
fn all_mistakes_are_reported_with_their_places() {
    let problems = check(
        r#"repeat = 3
window = "1ms"
target_cores = "999"

[[target]]
name = "a"
url = "http://127.0.0.1:{prot}/"

[[target]]
name = "a"
command = "it's"
url = "ftp://x"

[[load]]
name = "c/8"
conections = 8
rate = "0"

[[load]]
name = "both"
command = "wrk"
flags = ["-c"]

[[size]]
name = "s"
memory = 256
cpus = 0
limits = "client"
"#,
    )
    .unwrap_err();
    assert_eq!(
        problems,
        "1:1: repeat: unknown key (did you mean `repeats`?)\n\
         2:10: window: must be 100ms or longer\n\
         3:16: target_cores: core 999 is not one that may be used here\n\
         5:1: target[1]: `command` is missing (such as command = \"./server --port {port}\")\n\
         7:7: target[1].url: `http://127.0.0.1:{prot}/` has a placeholder that is not known; there are {port}, {admin.port}\n\
         10:8: target[2].name: `a` is taken already\n\
         11:11: target[2].command: is empty, or has a quote that is not closed\n\
         12:7: target[2].url: `ftp://x` is not an http or https URL\n\
         15:8: load[1].name: must be 1 to 40 letters, digits, blanks or any of . _ = + -\n\
         16:1: load[1].conections: unknown key (did you mean `connections`?)\n\
         17:8: load[1].rate: must be more than zero\n\
         19:1: load[2]: both `command` and `flags` are given (flags are those of plimsoll load)\n\
         26:10: size[1].memory: must be a size in quotes, such as \"64KiB\"\n\
         27:8: size[1].cpus: must be a number above zero\n\
         28:10: size[1].limits: `client` is none of \"target\", \"generator\" and \"both\"\n"
    );
}

#[test]
fn without_targets_and_loads_there_is_nothing_to_do() {
    let problems = check("").unwrap_err();
    assert!(problems.contains("`target` is missing"), "{problems}");
    assert!(problems.contains("`load` is missing"), "{problems}");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\]a-z_=\"{}\\n0-9 .]{0,200}") {
        // Whatever it comes to, it comes to something.
        let _plan_or_problems = check(&text);
    }
}
