use super::*;
use crate::fixture;

fn exporters() -> Vec<Box<dyn Exporter>> {
    vec![
        Box::new(PlainText),
        Box::new(Html),
        Box::new(Markdown),
        Box::new(Junit),
        Box::new(Prometheus),
    ]
}

fn record(name: &str, run: &plimsoll_model::RunSummary) -> RunRecord {
    RunRecord::from_summary(name, run)
}

/// The contract of every exporter.
#[test]
fn every_exporter_keeps_the_contract() {
    let mut records: Vec<_> = fixture::all()
        .iter()
        .map(|(name, run)| record(name, run))
        .collect();
    for exporter in exporters() {
        let name = exporter.name();
        assert!(exporter.media_type().contains('/'), "{name}");
        for record in &records {
            let one = exporter.export(std::slice::from_ref(record));
            assert!(!one.is_empty(), "{name} of {}", record.name);
            let again = exporter.export(std::slice::from_ref(record));
            assert_eq!(one, again, "{name}: the same bytes");
        }
        let all = exporter.export(&records);
        assert!(all.len() > exporter.export(&records[..1]).len(), "{name}");
        exporter.export(&[]);
    }
    // Text from outside is text in every format.
    let hostile = "<script>alert(\"1\")</script>&|\u{1}";
    records[0].name = hostile.to_owned();
    records[0].summary.load.url = format!("http://127.0.0.1/{hostile}");
    for exporter in exporters() {
        let text = String::from_utf8(exporter.export(&records)).unwrap();
        let is_markup = !matches!(exporter.name(), "text" | "prometheus");
        assert!(
            !(is_markup && text.contains("<script>")),
            "{}",
            exporter.name()
        );
        assert!(!text.contains('\u{1}'), "{}", exporter.name());
    }
}

#[test]
fn exchanges_are_called_what_they_are() {
    let shown = |runs: &[RunRecord]| {
        let markdown = String::from_utf8(Markdown.export(runs)).unwrap();
        let html = String::from_utf8(Html.export(runs)).unwrap();
        (markdown, html)
    };
    for (run, rate, title) in [
        (fixture::closed(), "requests/s", "Requests per second"),
        (
            fixture::round_trips(),
            "round trips/s",
            "Round trips per second",
        ),
        (fixture::streams(), "streams/s", "Events per second"),
    ] {
        let (markdown, html) = shown(&[record("run", &run)]);
        assert!(markdown.contains(&format!("| {rate} |")), "{markdown}");
        assert!(html.contains(rate), "{rate}");
        assert!(html.contains(title), "{title}");
    }
    let mixed = [
        record("one", &fixture::closed()),
        record("other", &fixture::round_trips()),
    ];
    assert!(shown(&mixed).0.contains("| exchanges/s |"));
}

#[test]
fn servers_that_were_observed_have_a_table_and_lines() {
    let run = record("run", &fixture::tiers());
    let markdown = String::from_utf8(Markdown.export(std::slice::from_ref(&run))).unwrap();
    assert!(
        markdown.contains("| Server | CPU per request |"),
        "{markdown}"
    );
    assert!(
        markdown.contains("| db | 27.7 µs ± 1.33 µs of a part |"),
        "{markdown}"
    );
    let metrics = String::from_utf8(Prometheus.export(std::slice::from_ref(&run))).unwrap();
    let of = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.rsplit_once("} "))
            .map(|(_, value)| value.to_owned())
    };
    let labels = "{run=\"run\",url=\"http://127.0.0.1:8080/\",server=";
    let cpu = format!("plimsoll_observed_cpu_seconds_per_request{labels}");
    assert_eq!(of(&format!("{cpu}\"web\"")).unwrap(), "0.000009832");
    assert_eq!(
        of(&format!("{cpu}\"db\"")),
        None,
        "it was not observed throughout"
    );
    let gap = format!("plimsoll_observed_gap_seconds{labels}\"db\"");
    let error = format!("plimsoll_observed_cpu_error_seconds_per_request{labels}");
    assert_eq!(of(&error), None, "samples of web spread by nothing");
    assert_eq!(of(&gap).unwrap(), "4");
    let page = String::from_utf8(Html.export(&[run])).unwrap();
    for part in [
        "Cost of each server",
        "27.7 µs ± 1.33 µs of a part",
        "−3.00 s ± 240 µs",
        "CPU of each server, percent of a core",
        "Memory of each server",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let mut alone = fixture::tiers();
    alone.observed.truncate(1);
    let page = Html.export(&[record("run", &alone)]);
    let page = String::from_utf8(page).unwrap();
    assert!(
        !page.contains("CPU of each server"),
        "it is the target, which has a plot"
    );
}

#[test]
fn costs_have_their_error_in_every_format() {
    let mut run = fixture::tiers();
    let spread = run.observed[1].cost.clone().unwrap().samples;
    let web = run.observed[0].cost.as_mut().unwrap();
    web.samples.clone_from(&spread);
    run.target.as_mut().unwrap().samples = spread;
    let error = run.cpu_error_us().unwrap();
    let record = record("run", &run);
    let of_server = record.summary.observed[0].cost.as_ref().unwrap();
    let of_target = record.summary.target.as_ref().unwrap();
    for cost in [of_server, of_target] {
        assert!((cost.cpu_us_per_request_error.unwrap() - error).abs() < 1e-3);
    }
    for exporter in exporters() {
        let text = String::from_utf8(exporter.export(std::slice::from_ref(&record))).unwrap();
        let expected: &[&str] = match exporter.name() {
            "text" => &["9.83 µs ± 1.33 µs"],
            "html" | "markdown" => &["9.83 µs ± 1.33 µs", "27.7 µs ± 1.33 µs of a part"],
            "prometheus" => &[
                "plimsoll_server_cpu_error_seconds_per_request{",
                "plimsoll_observed_cpu_error_seconds_per_request{",
            ],
            _ => &[],
        };
        for part in expected {
            assert!(text.contains(part), "{} of {part}: {text}", exporter.name());
        }
        // Not every digit of the target's cost is known, and it is in the first table of these.
        if exporter.name() == "markdown" {
            assert!(
                text.contains("| server CPU per request | 9.83 µs ± "),
                "{text}"
            );
        }
    }
    let metrics = String::from_utf8(Prometheus.export(&[record])).unwrap();
    let of_db = "plimsoll_observed_cpu_error_seconds_per_request{run=\"run\",url=\"http://127.0.0.1:8080/\",server=\"db\"";
    assert!(!metrics.contains(of_db), "it has no cost of the whole run");
}

#[test]
fn latency_of_ok_and_of_errors_is_apart_where_there_are_both() {
    let lines = |run: &plimsoll_model::RunSummary| -> Vec<String> {
        let metrics = String::from_utf8(Prometheus.export(&[record("run", run)])).unwrap();
        let family = "plimsoll_latency_of_responses_seconds{";
        let lines = metrics.lines().filter(|line| line.starts_with(family));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(lines(&fixture::closed()), [""; 0]);
    let run = fixture::mixed();
    let found = lines(&run);
    assert_eq!(found.len(), 2 * 6, "{found:?}");
    let kinds = run.latency.by_status().unwrap();
    for (kind, times) in [("ok", &kinds.ok), ("error", kinds.errors)] {
        let labels = format!("responses=\"{kind}\",quantile=\"0.5\"}} ");
        let median = found.iter().find_map(|line| line.split_once(&labels));
        let median: f64 = median.unwrap().1.parse().unwrap();
        let expected = times.quantile(0.5).unwrap().as_secs_f64();
        assert!((median - expected).abs() < 1e-9, "{median} of {kind}");
    }
}

#[test]
fn agents_of_a_fleet_have_a_table_that_says_which_was_the_limit() {
    let run = record("run", &fixture::fleet());
    let markdown = String::from_utf8(Markdown.export(std::slice::from_ref(&run))).unwrap();
    for row in [
        "| Agent | State | Rate/s | Errors | p99 | Busiest | Late | Started | Workers |",
        "| web1 | – | 2,498 | 20 | 913 µs | 61 % | 40.0 µs | 25,000 | 8 |",
        "| web3 | incomplete | 0.00 | – | – | – | – | 0 | 8 |",
    ] {
        assert!(markdown.contains(row), "{row}\n{markdown}");
    }
    let page = String::from_utf8(Html.export(&[run])).unwrap();
    for part in ["<h2>Agents</h2>", ">web3</th>", "<td>limit</td>"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn text() {
    let records = [
        record("before", &fixture::closed()),
        record("after", &fixture::failing()),
    ];
    insta::assert_snapshot!(String::from_utf8(PlainText.export(&records)).unwrap());
}

#[test]
fn markdown() {
    let records = [
        record("before", &fixture::closed()),
        record("after", &fixture::failing()),
    ];
    insta::assert_snapshot!(String::from_utf8(Markdown.export(&records)).unwrap());
}

#[test]
fn prometheus() {
    let records = [
        record("before", &fixture::closed()),
        record("a \"b\"\\", &fixture::failing()),
    ];
    insta::assert_snapshot!(String::from_utf8(Prometheus.export(&records)).unwrap());
}

#[test]
fn junit() {
    let records = [
        record("a", &fixture::closed()),
        record("b", &fixture::failing()),
    ];
    insta::assert_snapshot!(String::from_utf8(Junit.export(&records)).unwrap());
}

#[test]
fn a_page_needs_nothing_from_elsewhere() {
    let page = Html.export(&[record("closed", &fixture::closed())]);
    let page = String::from_utf8(page).unwrap();
    for word in ["<script", "src=", "@import", "url(", "<link"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("prefers-color-scheme: dark"));
    assert!(page.contains("482,130"));
    let saturated = Html.export(&[record("s", &fixture::saturated())]);
    let saturated = String::from_utf8(saturated).unwrap();
    assert!(saturated.contains("the generator was the limit"));
    assert!(!page.contains("the generator was the limit"));
}

#[test]
fn a_page_names_the_number_of_its_urls_and_breaks_no_figure() {
    let mut run = record("closed", &fixture::closed());
    run.summary.load.urls = 3;
    run.summary.counts.error_statuses = run.summary.counts.ok / 3;
    let page = String::from_utf8(Html.export(&[run])).unwrap();
    assert!(page.contains(" and 2 other URLs</h1>"), "{page}");
    // The share may go to the next line, the unit stays with its number.
    assert!(page.contains(" (33.3\u{a0}%)</strong>"), "{page}");
}

#[test]
fn no_format_shows_a_lower_bound_as_a_figure() {
    let run = fixture::censored();
    let record = RunRecord::from_summary("censored", &run);
    let shown = |exporter: &dyn Exporter| {
        String::from_utf8(exporter.export(std::slice::from_ref(&record))).unwrap()
    };
    for exporter in [&PlainText as &dyn Exporter, &Markdown, &Html] {
        let text = shown(exporter);
        assert!(text.contains("≥ 5.0"), "{}: {text}", exporter.name());
    }
    let prometheus = shown(&Prometheus);
    let p99 = prometheus
        .lines()
        .find(|line| line.starts_with("plimsoll_latency_seconds") && line.contains("\"0.99\""));
    assert!(
        p99.is_some_and(|line| line.contains("bound=\"lower\"")),
        "{prometheus}"
    );
    let p50 = prometheus
        .lines()
        .find(|line| line.starts_with("plimsoll_latency_seconds") && line.contains("\"0.5\""));
    assert!(
        p50.is_some_and(|line| !line.contains("bound")),
        "{prometheus}"
    );
    let junit = shown(&Junit);
    assert!(junit.contains("breached: ≥ 5.0"), "{junit}");
    assert!(junit.contains("no complete response to"), "{junit}");
    assert!(junit.contains("are missed or aborted"), "{junit}");
    let json = record.summary.to_json();
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let latency = &document["latency"]["from_intended"];
    let censored = latency["censored"].as_array().unwrap();
    assert!(censored.contains(&"p99_us".into()) && censored.contains(&"max_us".into()));
    assert!(!censored.contains(&"p50_us".into()), "{latency}");
    assert_eq!(document["thresholds"][0]["censored"], true);
    assert_eq!(document["thresholds"][0]["verdict"], "breached");
}
