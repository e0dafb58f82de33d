//! `plimsoll lab`: plans, matrices, folders that are gone on with, bounds.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;

use crate::plimsoll::{CommandOutput, command, files_in, plimsoll, run};

/// Two targets that are the same, so that no figure distinguishes them by more than chance.
const PLAN: &str = r#"
name = "twins"
repeats = 2
warm_up = "100ms"
window = "300ms"

[[target]]
name = "one"
command = "{plimsoll} origin --port {port}"
url = "http://127.0.0.1:{port}/"

[[target]]
name = "the other"
command = "{plimsoll} origin --port {port}"
url = "http://127.0.0.1:{port}/"

[[target.upstream]]
name = "backend"
command = "{plimsoll} origin --port {backend.port}"
ready = "http://127.0.0.1:{backend.port}/"

[[load]]
name = "closed"
connections = 2

[[load]]
name = "open"
connections = 4
rate = "200/s"
flags = ["--expect", "status == 200"]
"#;

struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    fn new(plan: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("plan.toml"), plan).unwrap();
        Self { folder }
    }

    fn out(&self) -> std::path::PathBuf {
        self.folder.path().join("out")
    }

    fn run(&self, more: &[&str]) -> CommandOutput {
        let out = self.out();
        let mut arguments = vec!["lab", "plan.toml", "--out", out.to_str().unwrap()];
        arguments.extend(more);
        run(command(&arguments).current_dir(self.folder.path()))
    }
}

fn valid(document: &Value) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/lab.v1.json");
    let schema = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(document)
        .map(|problem| format!("{}: {problem}", problem.instance_path()))
        .collect();
    assert_eq!(problems, Vec::<String>::new());
    let mut broken = document.clone();
    broken["cells"][0]["state"] = Value::from("somehow");
    assert!(!validator.is_valid(&broken), "the schema accepts anything");
}

#[test]
fn every_cell_is_measured_and_a_run_is_gone_on_with() {
    let lab = Lab::new(PLAN);
    let output = lab.run(&["--json"]).exits(0);
    let document = output.json();
    valid(&document);
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells {
        assert_eq!(cell["state"], "measured", "{output}");
        assert_eq!(cell["trials"].as_array().unwrap().len(), 2);
        let medians = &cell["medians"];
        assert!(medians["rps"].as_f64().unwrap() > 0.0, "{cell}");
        assert!(medians["peak_rss_bytes"].as_f64().unwrap() > 1e6, "{cell}");
        assert!(medians["p99_us"].as_f64().unwrap() > 0.0, "{cell}");
        let p99_9 = medians["p99_9_us"].as_f64().unwrap();
        assert!(p99_9 >= medians["p99_us"].as_f64().unwrap(), "{cell}");
        // A server holds its socket, its epoll instance and the standard three at least.
        assert!(medians["peak_fds"].as_f64().unwrap() >= 5.0, "{cell}");
        // The median of two trials is their mean; 1 is one core.
        let cores = |trial: usize| {
            let target = &cell["trials"][trial]["outcome"]["target"];
            target["cores"].as_f64().unwrap()
        };
        let percent = medians["cpu_percent"].as_f64().unwrap();
        let expected = (cores(0) + cores(1)) * 50.0;
        assert!((percent - expected).abs() < 1e-6, "{cell}");
        // The upstream is observed although it gets no requests.
        let upstreams = cell["trials"][0]["outcome"]["upstreams"]
            .as_array()
            .unwrap();
        assert_eq!(upstreams.len(), usize::from(cell["target"] == "the other"));
    }
    assert_eq!(document["trials_of_earlier_runs"], 0);
    assert_eq!(
        files_in(&lab.out()),
        [
            "lab.html",
            "lab.json",
            "lab.txt",
            "plan.json",
            "target-one.html",
            "target-one.json",
            "target-one.txt",
            "target-the-other.html",
            "target-the-other.json",
            "target-the-other.txt",
            "trials"
        ]
    );
    let one: Value =
        serde_json::from_slice(&fs::read(lab.out().join("target-one.json")).unwrap()).unwrap();
    valid(&one);
    assert_eq!(one["cells"].as_array().unwrap().len(), 2);
    let trials = files_in(&lab.out().join("trials"));
    assert_eq!(trials.len(), 8, "{trials:?}");
    assert_eq!(trials[0], "one~closed~unlimited~1");
    let trial = lab.out().join("trials").join(&trials[0]);
    assert_eq!(files_in(&trial), ["load.json", "trial.json"]);
    // Each was reported.
    assert_eq!(output.stderr.matches("/s").count(), 8, "{output}");

    // Only what is missing is made again.
    fs::remove_file(trial.join("trial.json")).unwrap();
    let again = lab.run(&[]).exits(0);
    assert_eq!(again.stderr.matches("trial 1: ").count(), 1, "{again}");
    assert!(
        again
            .stdout
            .contains("7 trials were made by an earlier run"),
        "{again}"
    );
    let mut lines = again.stdout.lines();
    let head = lines.find(|line| line.contains("µs/req")).unwrap().trim();
    assert!(
        head.starts_with("µs/req") && head.ends_with("limit"),
        "{again}"
    );
    assert!(
        again.stdout.lines().all(|line| line.chars().count() <= 80),
        "{again}"
    );

    // Another seed makes another experiment.
    let other = lab.run(&["--seed", "8"]).exits(2);
    assert!(other.stderr.contains("another seed or length"), "{other}");
}

#[test]
fn mistakes_in_a_plan_are_reported_at_once() {
    let lab =
        Lab::new("repeat = 3\n[[target]]\nname = \"a\"\nurl = \"b\"\n[[load]]\nname = \"c\"\n");
    let output = lab.run(&["--check"]);
    assert_snapshot!(output, @r#"
    error: plan.toml:1:1: repeat: unknown key
      hint: did you mean `repeats`?
    error: plan.toml:2:1: target[1]: `command` is missing
      hint: such as command = "./server --port {port}"
    error: plan.toml:4:7: target[1].url: `b` is not an http or https URL
    exit 2
    "#);
    assert!(!lab.out().exists(), "nothing was begun");
    let lab = Lab::new(PLAN);
    assert_snapshot!(lab.run(&["--check"]), @"
    plan.toml: no mistakes; 4 cells, 2 trials each, at least 3 s in all
    exit 0
    ");
    assert_snapshot!(plimsoll(&["lab", "/nonexistent/plan.toml"]), @"
    error: cannot read /nonexistent/plan.toml: No such file or directory (os error 2)
    exit 2
    ");
}

#[test]
fn a_target_that_cannot_serve_is_reported_and_the_others_are_measured() {
    let plan = PLAN.replacen(
        "{plimsoll} origin --port {port}",
        "sh -c 'echo no licence >&2; exit 7'",
        1,
    );
    let lab = Lab::new(&plan);
    let output = lab.run(&["--repeats", "1"]).exits(3);
    assert!(output.stderr.contains("no licence"), "{output}");
    assert!(output.stdout.contains("failed: the server"), "{output}");
    let document: Value =
        serde_json::from_slice(&fs::read(lab.out().join("lab.json")).unwrap()).unwrap();
    valid(&document);
    let states: Vec<&str> = document["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["failed", "measured", "failed", "measured"]);
}

#[test]
fn what_the_machine_cannot_hold_is_not_run() {
    let plan = format!("{PLAN}\n[[size]]\nname = \"huge\"\ncpus = 100000\n");
    let lab = Lab::new(&plan);
    let document = lab.run(&["--json"]).exits(0).json();
    valid(&document);
    for cell in document["cells"].as_array().unwrap() {
        assert_eq!(cell["state"], "not-run");
        let because = cell["not_run_because"].as_str().unwrap();
        assert!(because.starts_with("100000 cores wanted"), "{because}");
    }
}

/// A size of 1 CPU and little memory: the target that grows is killed, the other one is measured.
#[test]
fn an_end_for_lack_of_memory_is_a_result() {
    let grows = "sh -c \"{plimsoll} origin --port {port} & a=x; while :; do a=$a$a; done\"";
    let plan = PLAN.replacen(
        "\"{plimsoll} origin --port {port}\"",
        &format!("'''{grows}'''"),
        1,
    );
    let plan = format!("{plan}\n[[size]]\nname = \"small\"\ncpus = 1\nmemory = \"64MiB\"\n");
    let lab = Lab::new(&plan);
    let output = lab
        .run(&[
            "--json",
            "--repeats",
            "1",
            "--window",
            "1s",
            "--cgroup",
            "/",
        ])
        .exits(0);
    let document = output.json();
    valid(&document);
    for cell in document["cells"].as_array().unwrap() {
        if cell["state"] == "not-run" {
            // No right to make groups here; lab's trees of files stand for them.
            let because = cell["not_run_because"].as_str().unwrap();
            assert!(because.contains("control group") || because.contains("cgroup"));
            continue;
        }
        if cell["target"] == "one" {
            assert_eq!(cell["state"], "killed", "{output}");
            assert_eq!(cell["trials"][0]["outcome"]["who"], "target");
        } else {
            assert_eq!(cell["state"], "measured", "{output}");
            let target = &cell["trials"][0]["outcome"]["target"];
            assert_eq!(target["allowed_cores"], 1.0);
        }
    }
    let text = fs::read_to_string(lab.out().join("lab.txt")).unwrap();
    if !text.contains("not run") {
        assert!(text.contains("target killed for memory"), "{text}");
    }
    // What was started and the groups that it was in are gone.
    for tree in [
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/memory",
        "/sys/fs/cgroup/cpu",
    ] {
        let left = Path::new(tree).read_dir().into_iter().flatten().flatten();
        let ours = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("plimsoll-lab-");
        assert_eq!(left.filter(|entry| ours(&entry.file_name())).count(), 0);
    }
}
