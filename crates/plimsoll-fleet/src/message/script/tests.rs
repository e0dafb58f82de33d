use plimsoll_load::scenario::{Registry, Sinks};
use proptest::prelude::*;

use super::*;
use crate::message::Checksum;

/// A run's metrics with some samples of each kind.
fn sinks(samples: &[f64]) -> Sinks {
    let registry = Registry::default();
    let mut ids = Vec::new();
    for kind in KINDS {
        let name = format!("of_{}", kind.name());
        let id = registry.register(&name, kind, Contains::Time).unwrap();
        let written = format!("{name}{{a:b}}");
        registry.sub_metric(id, &written, vec![("a".to_owned(), "b".to_owned())]);
        ids.push(id);
    }
    let mut sinks = Sinks::new(registry);
    for (position, sample) in samples.iter().enumerate() {
        let tags = [("a".into(), "b".into())];
        let tags = if position % 2 == 0 { &tags[..] } else { &[] };
        for id in &ids {
            sinks.add(*id, *sample, tags, Duration::from_micros(position as u64));
        }
    }
    sinks
}

fn figures(samples: &[f64]) -> ScriptFigures {
    let checks = vec![CheckFigures {
        group: "::a".to_owned(),
        name: "b".to_owned(),
        passes: 1,
        fails: 2,
    }];
    let counts = ScenarioCounts {
        active: 1,
        aborted: 2,
        ..ScenarioCounts::default()
    };
    let scenarios = [("default".to_owned(), counts)];
    let series = sinks(samples).figures();
    let groups = vec!["::a".to_owned()];
    ScriptFigures::new(&series, checks, groups, &scenarios, None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    /// Aggregates that were carried as JSON and added are those of all samples.
    #[test]
    fn merged_series_are_the_union(
        one in prop::collection::vec(-1e6..1e6, 0..20), other in prop::collection::vec(0.0..1e9, 0..20),
    ) {
        let mut merged = sinks(&[]);
        for samples in [&one, &other] {
            let text = serde_json::to_string(&figures(samples)).unwrap();
            let read: ScriptFigures = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&read, &figures(samples));
            for series in read.series().unwrap() {
                merged.add_figures(&series).unwrap();
            }
        }
        let mut union = sinks(&one);
        union.merge(&sinks(&other));
        let shown = |sinks: &Sinks| {
            let figures = sinks.figures();
            figures.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>()
        };
        prop_assert_eq!(shown(&merged), shown(&union));
        let mut sum = Checksum::of_script(&figures(&one));
        sum.add(&Checksum::of_script(&figures(&other)));
        if !other.is_empty() {
            prop_assert_ne!(sum, Checksum::of_script(&figures(&one)));
        }
    }
}

#[test]
fn figures_that_contradict_themselves_are_refused() {
    let text = serde_json::to_string(&figures(&[1.0, 2.5])).unwrap();
    for (from, to) in [
        (r#""kind":"trend""#, r#""kind":"rate""#),
        (r#""kind":"trend""#, r#""kind":"other""#),
        (r#""contains":"time""#, r#""contains":"other""#),
        (r#""count":2"#, r#""count":3"#),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        let read: ScriptFigures = serde_json::from_str(&text.replace(from, to)).unwrap();
        assert!(read.series().is_err(), "{to}");
    }
}

#[test]
fn how_far_scenarios_are_is_carried() {
    let text = serde_json::to_string(&figures(&[])).unwrap();
    let read: ScriptFigures = serde_json::from_str(&text).unwrap();
    let expected = ScenarioCounts {
        active: 1,
        aborted: 2,
        ..ScenarioCounts::default()
    };
    assert_eq!(read.scenarios(), [("default".to_owned(), expected)]);
}
