use super::*;

fn order(line: &str) -> Result<OrderArguments, Failed> {
    let words: Vec<_> = line.split(' ').map(OsString::from).collect();
    of_arguments(&words, Reader::Agents)
}

fn texts(order: &OrderArguments) -> Vec<String> {
    let texts = order.command.iter().map(|argument| match argument {
        Argument::Text(text) => text.clone(),
        Argument::File(name) => format!("<{name}>"),
    });
    texts.collect()
}

#[test]
fn the_table_has_every_flag_and_no_other() {
    let command = command();
    let ids: Vec<_> = command
        .get_arguments()
        .map(|it| it.get_id().as_str())
        .collect();
    for id in &ids {
        assert!(destination(id).is_some(), "{id}");
    }
    for (id, _) in destination::FLAGS {
        let is_of_feature = matches!(*id, "append" | "profile") && !cfg!(feature = "lab");
        assert!(ids.contains(id) || is_of_feature, "{id}");
    }
}

#[test]
fn agents_get_the_load_and_the_coordinator_keeps_the_rest() {
    let order = order(
        "--fleet nats://127.0.0.1 --agents 2 --json -c 8 -z 2s -k --threshold errors:rate<1% -H a:1 -H b:2 http://127.0.0.1/",
    )
    .unwrap();
    assert_eq!(
        texts(&order),
        [
            "--connections=8",
            "--duration=2s",
            "--header=a:1",
            "--header=b:2",
            "--insecure",
            "http://127.0.0.1/"
        ]
    );
    let folder = Path::new("/nowhere");
    let args = of_order(&order.command, folder).unwrap();
    assert_eq!(args.shape.connections, Some(8));
    assert_eq!(args.url.as_deref(), Some("http://127.0.0.1/"));
}

#[test]
fn files_go_along_under_names_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("the users.csv");
    fs::write(&path, "name\nann\n").unwrap();
    let words = [
        "--feeder",
        path.to_str().unwrap(),
        "--fleet",
        "nats://a",
        "--agents",
        "1",
        "http://127.0.0.1/{{name}}",
    ];
    let words: Vec<_> = words.iter().map(OsString::from).collect();
    let order = of_arguments(&words, Reader::Agents).unwrap();
    assert_eq!(
        texts(&order),
        ["--feeder", "<0-the-users.csv>", "http://127.0.0.1/{{name}}"]
    );
    assert_eq!(order.files[0].content, b"name\nann\n");
    let args = of_order(&order.command, Path::new("/tmp/order")).unwrap();
    assert_eq!(
        args.requests.feeder,
        [PathBuf::from("/tmp/order/0-the-users.csv")]
    );
}

#[test]
fn what_only_one_machine_has_is_refused_with_its_flag() {
    let failed = order("--fleet nats://a --agents 1 -t 2 --cores 0 http://127.0.0.1/").unwrap_err();
    let about: Vec<_> = failed
        .problems
        .iter()
        .map(|it| it.about.clone().unwrap())
        .collect();
    assert_eq!(about, ["--threads", "--cores"]);
}

#[test]
fn an_agent_takes_no_order_that_reaches_for_its_machine() {
    let check = |words: &[&str], expected: &str| {
        let order: Vec<_> = words
            .iter()
            .map(|it| Argument::Text((*it).to_owned()))
            .collect();
        let refused = of_order(&order, Path::new("/tmp/order")).unwrap_err();
        assert!(refused.contains(expected), "{words:?}: {refused}");
    };
    check(
        &["--spawn=rm -rf /", "http://127.0.0.1/"],
        "--spawn, which agents do not take",
    );
    check(
        &["--pid=1", "http://127.0.0.1/"],
        "--pid, which agents do not take",
    );
    check(
        &["--out=/tmp/x", "http://127.0.0.1/"],
        "--out, which agents do not take",
    );
    check(
        &["--data-file=/etc/passwd", "http://127.0.0.1/"],
        "a file of this machine",
    );
    check(
        &["--data=@/etc/passwd", "http://127.0.0.1/"],
        "something of this machine",
    );
    check(
        &["--form=a=@/etc/passwd", "http://127.0.0.1/"],
        "something of this machine",
    );
    check(
        &["--var=HOME", "http://127.0.0.1/"],
        "something of this machine",
    );
    check(&["--from=/etc/passwd"], "a file of this machine");
    check(&["-c", "1"], "no target");
    check(&["--unknown"], "wrong flags");
}
