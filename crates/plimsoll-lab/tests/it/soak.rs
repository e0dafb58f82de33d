//! Soaks of real processes: a planted leak, a cache that fills, a target that ends.

use std::path::Path;
use std::time::Duration;

use plimsoll_lab::TextFormat;
use plimsoll_lab::soak::{
    Event, Folder, Kind, RunOptions, ScenarioResult, Shape, Soak, SoakError, SoakPlan, Verdict,
    compile, run, to_html, to_json, to_text,
};
use plimsoll_load::Interrupt;

use crate::compare::example;

/// A plan with one scenario whose server is started with `how`.
fn plan(how: &str, load: &str) -> (String, SoakPlan) {
    let text = format!(
        r#"
duration = "5s"
sample = "100ms"
[[scenario]]
name = "planted"
command = "{server} {{port}} {how}"
url = "http://127.0.0.1:{{port}}/"
metrics = "http://127.0.0.1:{{port}}/metrics"
[[scenario.load]]
name = "requests"
command = '{load}'
"#,
        server = example("leaking_server"),
    );
    let plan = compile(&text, Path::new(""), "plimsoll").unwrap();
    (text, plan)
}

fn small_load() -> String {
    format!("{} {{url}} 50", example("small_load"))
}

fn options() -> RunOptions {
    RunOptions {
        version: "0".to_owned(),
        command: Vec::new(),
    }
}

fn soak(folder: &Path, (text, plan): &(String, SoakPlan)) -> (Result<Soak, SoakError>, usize) {
    let folder = Folder::open(folder, text, plan).unwrap();
    let mut samples = 0;
    let soak = run(
        plan,
        &options(),
        &folder,
        &Interrupt::default(),
        &mut |event| {
            samples += usize::from(matches!(event, Event::Sampled { .. }));
        },
    );
    (soak, samples)
}

#[track_caller]
fn series<'a>(scenario: &'a ScenarioResult, name: &str) -> &'a plimsoll_lab::soak::JudgedSeries {
    let found = scenario.series.iter().find(|it| it.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {:?}", scenario.series))
}

#[test]
fn a_planted_leak_drifts_and_is_found_in_memory_and_in_the_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("4000000/s", &small_load());
    let (soaked, samples) = soak(folder.path(), &plan);
    let soaked = soaked.unwrap();
    let scenario = &soaked.scenarios[0];
    assert_eq!(scenario.failure, None);
    assert!(samples > 12, "{samples}");
    for name in ["anonymous_bytes", "held_bytes"] {
        let found = series(scenario, name);
        assert_eq!(found.assessment.verdict, Verdict::Drift, "{found:?}");
        assert_eq!(found.kind, Kind::Memory);
        assert_eq!(found.by_thirds, Verdict::Drift);
    }
    let panics = series(scenario, "panics_total");
    assert_eq!(
        (panics.kind, panics.assessment.verdict),
        (Kind::Zero, Verdict::Bounded)
    );
    assert_ne!(
        series(scenario, "descriptors").assessment.verdict,
        Verdict::Drift
    );
    assert!(scenario.loads[0].ok > 0, "{:?}", scenario.loads);
    assert_eq!(soaked.verdict(), Verdict::Drift);
    let text = to_text(&soaked, TextFormat::default());
    assert!(text.contains("anonymous_bytes: DRIFT, climb"), "{text}");
    assert!(text.contains(" per response"), "{text}");
    assert!(text.contains("next: a heap profile"), "{text}");
    assert!(text.trim_end().ends_with("DRIFT"), "{text}");
    let heading = "<h2>planted: <span class=\"bad\">DRIFT</span></h2>";
    assert!(to_html(&soaked).contains(heading));
    valid(&to_json(&soaked));

    // A finished scenario is not run again, and its samples are unchanged.
    let (again, samples) = soak(folder.path(), &plan);
    let again = again.unwrap();
    assert_eq!((samples, again.kept), (0, 1));
    assert_eq!(again.scenarios[0].series, scenario.series);
    assert_eq!(again.scenarios[0].samples, scenario.samples);
}

fn valid(json: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/soak.v1.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(json).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(&document)
        .map(|problem| format!("{}: {problem}", problem.instance_path()))
        .collect();
    assert_eq!(problems, Vec::<String>::new());
    document["scenarios"][0]["verdict"] = "FINE".into();
    assert!(
        !validator.is_valid(&document),
        "the schema accepts anything"
    );
}

#[test]
fn a_cache_that_fills_to_its_cap_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("16000000/s 24000000", &small_load());
    let soaked = soak(folder.path(), &plan).0.unwrap();
    let held = series(&soaked.scenarios[0], "held_bytes");
    assert_eq!(held.assessment.verdict, Verdict::Bounded, "{held:?}");
    assert_eq!(held.assessment.shape, Shape::RampToCap, "{held:?}");
    assert_eq!(
        soaked.scenarios[0].series[0].assessment.verdict,
        Verdict::Bounded
    );
}

#[test]
fn a_load_that_cannot_run_is_reported_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("0/s", "sh -c \"echo unknown flag; exit 2\"");
    let soaked = soak(folder.path(), &plan).0.unwrap();
    let failure = soaked.scenarios[0].failure.as_deref().unwrap_or_default();
    assert!(
        failure.starts_with("the load `requests` ended at once 5 times")
            && failure.contains("unknown flag"),
        "{failure}"
    );
    assert_eq!(soaked.verdict(), Verdict::Inconclusive);
    // It is tried again, since what stood in its way may be gone.
    assert!(soak(folder.path(), &plan).1 > 0);
    // The samples of the first run are still there.
    assert!(folder.path().join("planted/samples.1.csv").exists());
}

#[test]
fn a_target_that_ends_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("20/exit", &small_load());
    let soaked = soak(folder.path(), &plan).0.unwrap();
    let failure = soaked.scenarios[0].failure.as_deref().unwrap_or_default();
    assert!(failure.starts_with("the target ended"), "{failure}");
}

#[test]
fn a_folder_of_another_soak_is_refused_and_an_interrupt_ends_everything() {
    let folder = tempfile::tempdir().unwrap();
    let (text, mut plan) = plan("0/s", &small_load());
    let open = |plan: &SoakPlan| Folder::open(folder.path(), &text, plan);
    let opened = open(&plan).unwrap();
    let interrupt = Interrupt::default();
    let ended = run(&plan, &options(), &opened, &interrupt, &mut |_| {
        interrupt.ask();
    });
    assert!(matches!(ended, Err(SoakError::Interrupted)), "{ended:?}");
    plan.duration = Duration::from_secs(9);
    assert!(open(&plan).is_err());
}
