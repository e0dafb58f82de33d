use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::check::Expectations;
use plimsoll_client::{ConnectOptions, ConnectPlan, ContentCoding, Endpoint};
use plimsoll_formats::{Table, Template};
use plimsoll_wire::h1::Limits;
use proptest::prelude::*;

use super::*;
use crate::part::RunPart;
use crate::plan::{HttpPlan, Pacing, PlannedRequest, StatusSet, StopRule, WorkloadPlan};
use crate::worker::{connections_of, user_index};

fn feeder(text: &str, order: FeederOrder) -> Feeder {
    Feeder {
        name: "users.csv".to_owned(),
        table: Arc::new(Table::parse(text).unwrap()),
        order,
    }
}

fn compile(
    target: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
    feeders: &[Feeder],
) -> Result<(RequestTemplate, Request), TemplateProblem> {
    compile_for(HTTP1, target, headers, body, feeders)
}

fn compile_for(
    form: TemplateForm<'_>,
    target: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
    feeders: &[Feeder],
) -> Result<(RequestTemplate, Request), TemplateProblem> {
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Template::parse(value).unwrap()))
        .collect();
    let body = body.map(|body| Template::parse(body).unwrap());
    let target = Template::parse(target).unwrap();
    RequestTemplate::compile(
        "POST",
        &target,
        "h",
        &headers,
        body.as_ref(),
        sources(feeders),
        form,
    )
}

const HTTP1: TemplateForm<'_> = TemplateForm {
    protocol: Protocol::Http1,
    scheme: "http",
    coding: None,
};

const HTTP2: TemplateForm<'_> = TemplateForm {
    protocol: Protocol::Http2,
    ..HTTP1
};

fn entropy(random: &mut fastrand::Rng) -> Entropy<'_> {
    Entropy {
        number: 0,
        now: None,
        random,
    }
}

fn planned(target: &str, feeders: &[Feeder]) -> PlannedRequest {
    let (template, request) = compile(target, &[], None, feeders).unwrap();
    PlannedRequest {
        endpoint: 0,
        request,
        template: Some(Arc::new(template)),
        weight: 1,
        kept: Vec::new(),
    }
}

fn sources(feeders: &[Feeder]) -> ValueSources<'_> {
    ValueSources { feeders, kept: &[] }
}

fn plan(requests: Vec<PlannedRequest>, pick: Pick, feeders: Vec<Feeder>) -> RunPlan {
    RunPlan {
        endpoints: vec![Endpoint::parse("http://h/").unwrap()],
        requests,
        names: Arc::default(),
        pick,
        feeders,
        kept: Vec::new(),
        session: plimsoll_client::SessionPlan::default(),
        connect: Arc::new(ConnectPlan::new(ConnectOptions::default()).unwrap()),
        pacing: Pacing::Closed {
            ramp: None,
            think: None,
        },
        connections: 1,
        workers: 1,
        cores: Vec::new(),
        stop: StopRule {
            requests: Some(1),
            duration: None,
        },
        warm_up: Duration::ZERO,
        grace: Duration::ZERO,
        timeout: Duration::from_secs(1),
        keep_alive: true,
        limits: Limits::default(),
        workload: WorkloadPlan::requests(HttpPlan::Http1),
        expectations: Arc::new(Expectations::default()),
        fail_statuses: StatusSet::default(),
        seed: 7,
        sample_every: Duration::from_millis(100),
    }
}

/// The targets that a user asks for, one after the other.
fn targets(plan: &RunPlan, share: Share, index: usize, count: usize) -> Vec<String> {
    let shared = Rc::new(SharedSource::new(plan, share));
    let mut source = RequestSource::new(shared, plan, index);
    (0..count).map(|_| target(plan, &mut source)).collect()
}

fn target(plan: &RunPlan, source: &mut RequestSource) -> String {
    source.advance(plan, None);
    let bytes = String::from_utf8_lossy(source.current(plan).bytes()).into_owned();
    bytes.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn a_made_request_is_written_as_an_encoded_one() {
    let feeders = [feeder("user,note\nann,\"a b\"\n", FeederOrder::Cyclic)];
    let (template, example) = compile(
        "/{{user}}?q={{note}}&r=ü x",
        &[("x-user", "<{{user}}>"), ("cookie", "a=b")],
        Some("{\"note\":\"{{note}}\"}"),
        &feeders,
    )
    .unwrap();
    let mut out = Vec::new();
    let mut random = fastrand::Rng::with_seed(0);
    let values = Values {
        feeders: &feeders,
        rows: &[0],
        kept: &[],
        entropy: entropy(&mut random),
        compressor: None,
    };
    template.write(values, &mut Scratch::default(), &mut out);
    assert_eq!(
        String::from_utf8(out.clone()).unwrap(),
        "POST /ann?q=a%20b&r=%C3%BC%20x HTTP/1.1\r\nhost: h\r\nx-user: <ann>\r\ncookie: a=b\r\n\
         content-length: 14\r\n\r\n{\"note\":\"a b\"}"
    );
    assert_eq!(out, example.bytes());
    assert_eq!(
        template.shown_target(sources(&feeders)),
        "/{{user}}?q={{note}}&r=%C3%BC%20x"
    );
}

#[test]
fn values_of_http2_take_the_places_of_the_examples() {
    let feeders = [feeder(
        "site,user\na.example,ann\nb.example,\" bob \"\n",
        FeederOrder::Cyclic,
    )];
    let (template, example) = compile_for(
        HTTP2,
        "/{{user}}",
        &[
            ("x-fixed", "1"),
            ("Host", "{{site}}"),
            ("X-User", "{{user}}"),
        ],
        Some("<{{user}}>"),
        &feeders,
    )
    .unwrap();
    let mut request = example.clone();
    let mut random = fastrand::Rng::with_seed(0);
    let values = Values {
        feeders: &feeders,
        rows: &[1],
        kept: &[],
        entropy: entropy(&mut random),
        compressor: None,
    };
    template.make(values, &mut Scratch::default(), &mut request);
    let shown = |request: &Request| {
        let request = request.http2().unwrap();
        let fields = request.headers().map(|(name, value)| {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            format!("{}={}", text(name), text(value))
        });
        let body = String::from_utf8_lossy(request.body()).into_owned();
        fields.chain([body]).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(
        shown(&example),
        ":method=POST; :scheme=http; :path=/ann; :authority=a.example; x-fixed=1; x-user=ann; \
         content-length=5; <ann>"
    );
    assert_eq!(
        shown(&request),
        ":method=POST; :scheme=http; :path=/%20bob%20; :authority=b.example; x-fixed=1; \
         x-user=bob; content-length=7; < bob >"
    );
}

#[test]
fn bodies_are_compressed_anew() {
    let feeders = [feeder("user\nann\nbob\n", FeederOrder::Cyclic)];
    for form in [HTTP1, HTTP2] {
        let form = TemplateForm {
            coding: Some(ContentCoding::Deflate),
            ..form
        };
        let text = format!("{{{{user}}}}{}", "x".repeat(1000));
        let (template, example) = compile_for(form, "/", &[], Some(&text), &feeders).unwrap();
        let mut request = example.clone();
        for (row, name) in [(1, "bob"), (0, "ann"), (1, "bob")] {
            let mut random = fastrand::Rng::with_seed(0);
            let values = Values {
                feeders: &feeders,
                rows: &[row],
                kept: &[],
                entropy: entropy(&mut random),
                compressor: Some(&mut Compressor::new(ContentCoding::Deflate)),
            };
            template.make(values, &mut Scratch::default(), &mut request);
            let mut expected = Vec::new();
            let content = format!("{name}{}", "x".repeat(1000));
            Compressor::new(ContentCoding::Deflate).write(content.as_bytes(), &mut expected);
            assert!(expected.len() < 100);
            let length = expected.len().to_string();
            assert_eq!(request.field("content-length"), Some(length.as_bytes()));
            match request.http2() {
                Some(http2) => assert_eq!(http2.body(), expected),
                None => assert!(request.bytes().ends_with(&expected)),
            }
        }
    }
}

#[test]
fn what_is_no_host_is_refused_over_http2() {
    let feeders = [feeder("site\na\nb/c\n", FeederOrder::Cyclic)];
    let headers = [("host", "{{site}}")];
    let error = compile_for(HTTP2, "/", &headers, None, &feeders).unwrap_err();
    assert_eq!(
        error.to_string(),
        "row 2 of users.csv: `site` is not part of a host and port"
    );
    assert!(compile("/", &headers, None, &feeders).is_ok());
}

#[test]
fn what_would_split_a_request_is_refused() {
    let feeders = [feeder("a,b\n1,2\n3,\"4\r\nx: y\"\n", FeederOrder::Cyclic)];
    let error = compile("/", &[("x-b", "{{b}}")], None, &feeders).unwrap_err();
    assert_eq!(
        error.to_string(),
        "row 2 of users.csv: `b` contains a control character, which header `x-b` must not"
    );
    assert!(compile("/{{b}}", &[("x-a", "{{a}}")], Some("{{b}}"), &feeders).is_ok());
    for (headers, expected) in [
        (("x", "a\r\nb: c"), "control character"),
        (("x y", "a"), "header name `x y`"),
        (("transfer-encoding", "chunked"), "set from the body"),
        (("x", "{{c}}"), "`{{c}}` has no value"),
    ] {
        let error = compile("/", &[headers], None, &feeders)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn rows_in_each_order() {
    let of = |order| {
        let feeders = vec![feeder("id\n1\n2\n3\n", order)];
        plan(vec![planned("/{{id}}", &feeders)], Pick::Turn, feeders)
    };
    let cyclic = of(FeederOrder::Cyclic);
    assert_eq!(targets(&cyclic, Share::ALL, 0, 4), ["/1", "/2", "/3", "/1"]);
    // Two workers use every row between them.
    let [even, odd] = [0, 1].map(|index| targets(&cyclic, Share { index, of: 2 }, 0, 3));
    assert_eq!(even, ["/1", "/3", "/2"]);
    assert_eq!(odd, ["/2", "/1", "/3"]);
    let per_user = of(FeederOrder::PerUser);
    assert_eq!(targets(&per_user, Share::ALL, 4, 3), ["/2", "/2", "/2"]);
    let random = of(FeederOrder::Random);
    let drawn = targets(&random, Share::ALL, 0, 60);
    assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 3);
    assert_eq!(drawn, targets(&random, Share::ALL, 0, 60), "the same seed");
    assert_ne!(drawn, targets(&random, Share::ALL, 1, 60), "another user");
}

#[test]
fn users_of_two_agents_have_the_rows_of_their_numbers_in_the_run() {
    const USERS: usize = 7;

    let names: Vec<_> = (0..USERS).map(|number| format!("row-{number}")).collect();
    let text = format!("id\n{}\n", names.join("\n"));
    let feeders = vec![feeder(&text, FeederOrder::PerUser)];
    let plan = plan(vec![planned("/{{id}}", &feeders)], Pick::Turn, feeders);
    // One has the first of three workers, the other the rest.
    let parts = [(0, 1), (1, 2)].map(|(first, workers)| RunPart {
        first,
        workers,
        of: 3,
    });
    let rows = parts.map(|part| {
        let shares = (0..part.workers).map(|worker| part.share(worker));
        let users = shares.flat_map(|share| {
            let users = 0..connections_of(USERS, share);
            users.map(move |number| (share, user_index(number, share)))
        });
        let rows = users.map(|(share, user)| {
            let [first, second] = targets(&plan, share, user, 2).try_into().unwrap();
            assert_eq!(first, second);
            first
        });
        rows.collect::<Vec<_>>()
    });
    assert_eq!(rows[0], ["/row-0", "/row-3", "/row-6"]);
    assert_eq!(rows[1], ["/row-1", "/row-4", "/row-2", "/row-5"]);
}

#[test]
fn users_of_one_worker_share_rows_and_numbers() {
    let feeders = vec![feeder("id\na\nb\nc\n", FeederOrder::Sequential)];
    let plan = plan(
        vec![planned("/{{id}}/{{$counter 10 5}}", &feeders)],
        Pick::Turn,
        feeders,
    );
    let shared = Rc::new(SharedSource::new(&plan, Share { index: 1, of: 2 }));
    let mut users = [0, 1].map(|index| RequestSource::new(Rc::clone(&shared), &plan, index));
    let first = target(&plan, &mut users[0]);
    let second = target(&plan, &mut users[1]);
    assert_eq!([first, second], ["/b/15", "/a/25"]);
}

#[test]
fn each_row_is_used_once_where_only_some_requests_need_one() {
    let feeders = vec![feeder("id\na\nb\nc\nd\n", FeederOrder::Sequential)];
    let requests = vec![
        planned("/plain", &feeders),
        planned("/{{id}}", &feeders),
        planned("/other", &feeders),
    ];
    let plan = plan(requests, Pick::Turn, feeders);
    let mut rows = Vec::new();
    for index in 0..2 {
        let shared = Rc::new(SharedSource::new(&plan, Share { index, of: 2 }));
        let mut source = RequestSource::new(shared, &plan, 0);
        for _ in 0..12 {
            let target = target(&plan, &mut source);
            // A user that was to begin when the last row was taken goes on with another request.
            rows.extend(Some(target).filter(|target| !["/plain", "/other"].contains(&&**target)));
        }
        assert!(source.has_run_out());
    }
    rows.sort();
    assert_eq!(rows, ["/a", "/b", "/c", "/d"]);
}

#[test]
fn generators_give_what_they_say() {
    let generated = |place: &str| {
        let plan = plan(vec![planned(&format!("/{place}"), &[])], Pick::Turn, vec![]);
        let mut targets = targets(&plan, Share::ALL, 0, 200);
        for target in &mut targets {
            target.remove(0);
        }
        targets
    };
    for uuid in generated("{{$uuid}}") {
        let groups: Vec<_> = uuid.split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12], "{uuid}");
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
    }
    let numbers: BTreeSet<i64> = generated("{{$random.integer(-2, 3)}}")
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
    assert_eq!(numbers, BTreeSet::from([-2, -1, 0, 1, 2]));
    for text in generated("{{$random.float(-0.5, 0.25)}}") {
        let number: f64 = text.parse().unwrap();
        assert!((-0.5..0.25).contains(&number), "{text}");
        assert_eq!(text.split_once('.').unwrap().1.len(), 6, "{text}");
    }
    let chosen: BTreeSet<_> = generated("{{$random.choice(a b, c)}}")
        .into_iter()
        .collect();
    assert_eq!(chosen, BTreeSet::from(["a%20b".to_owned(), "c".to_owned()]));
    for text in generated("{{$random.hex(5)}}") {
        assert!(text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
    assert!(generated("{{$isoTimestamp}}")[0].ends_with('Z'));
    let seconds: u64 = generated("{{$timestamp}}")[0].parse().unwrap();
    assert!(seconds > 1_700_000_000);
    let distinct: BTreeSet<_> = generated("{{$counter}}").into_iter().collect();
    assert_eq!(distinct.len(), 200);
}

#[test]
fn requests_are_picked_as_requested() {
    let requests: Vec<_> = [("/a", 1), ("/b", 9)]
        .into_iter()
        .map(|(target, weight)| PlannedRequest {
            weight,
            ..planned(target, &[])
        })
        .collect();
    let picked = |pick| {
        let plan = plan(requests.clone(), pick, vec![]);
        let targets = targets(&plan, Share::ALL, 0, 1000);
        targets.iter().filter(|target| *target == "/b").count()
    };
    assert_eq!(picked(Pick::Turn), 500);
    assert!((400..600).contains(&picked(Pick::Random)));
    assert!((850..950).contains(&picked(Pick::Weighted)));
}

#[test]
fn entries_of_a_log_belong_to_their_arrivals() {
    let requests = ["/a", "/b", "/c"]
        .map(|target| planned(target, &[]))
        .to_vec();
    let entries = [0, 1, 2, 0, 2];
    let plan = plan(requests, Pick::Recorded(Arc::new(entries)), vec![]);
    let of = 2;
    for index in 0..of {
        let share = Share { index, of };
        // Arrival 1 was dropped.
        let shared = Rc::new(SharedSource::new(&plan, share));
        let mut source = RequestSource::new(shared, &plan, 0);
        for arrival in [0, 2] {
            source.advance(&plan, Some(arrival));
            let entry = usize::try_from(arrival * u64::from(of) + u64::from(index)).unwrap();
            assert_eq!(source.position(), entries[entry % entries.len()] as usize);
        }
    }
    // Without a schedule, all users of all workers together go through the log.
    let mut sent: Vec<_> = (0..of)
        .flat_map(|index| targets(&plan, Share { index, of }, 0, 5))
        .collect();
    sent.sort();
    assert_eq!(
        sent,
        ["/a", "/a", "/a", "/a", "/b", "/b", "/c", "/c", "/c", "/c"]
    );
}

proptest! {
    /// No value makes more than one request, and its body is as long as it says.
    #[test]
    fn any_value_makes_one_request(value in "\\PC{0,20}|[ -~\r\n]{0,20}") {
        let quoted = value.replace('"', "\"\"");
        let feeders = [feeder(&format!("a\n\"{quoted}\"\n"), FeederOrder::Cyclic)];
        let (template, _) = compile("/{{a}}", &[], Some("{{a}}"), &feeders).unwrap();
        let mut out = Vec::new();
        let mut random = fastrand::Rng::with_seed(0);
        let values = Values {
            feeders: &feeders,
            rows: &[0],
            kept: &[],
            entropy: entropy(&mut random),
        compressor: None,
        };
        template.write(values, &mut Scratch::default(), &mut out);
        let expected = format!(
            " HTTP/1.1\r\nhost: h\r\ncontent-length: {}\r\n\r\n{value}",
            value.len()
        );
        let line_end = out.windows(2).position(|window| window == b"\r\n").unwrap();
        let line = out[..line_end].split(|byte| *byte == b' ');
        prop_assert_eq!(line.count(), 3);
        prop_assert!(out.ends_with(expected.as_bytes()));
    }
}
