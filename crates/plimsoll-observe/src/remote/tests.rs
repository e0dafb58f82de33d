use super::*;

#[test]
fn a_url_names_an_agent_and_one_target() {
    let plan = |text: &str| RemotePlan::new(text, None, Trust::PublicRoots);
    let https = plan("https://db1:7070/?unit=postgresql").unwrap();
    assert_eq!(https.target().to_string(), "unit:postgresql");
    assert_eq!(https.agent(), "https://db1:7070");
    let sample = https.url.sample().to_string();
    assert_eq!(sample, "https://db1:7070/v1/sample?unit=postgresql");
    let behind = plan("https://proxy.example/agents/db1/?pod=shop%2Fdb-0").unwrap();
    assert_eq!(behind.target().to_string(), "pod:shop/db-0");
    assert_eq!(
        behind.url.sample().path(),
        "/agents/db1/v1/sample",
        "it may be below a path of a gateway"
    );
    for (text, error) in [
        ("db1:7070?unit=a", RemoteUrlError::Scheme),
        ("https://db1/?unit=a&pid=1", RemoteUrlError::Query),
        ("https://db1/?service=a", RemoteUrlError::Query),
        ("https://db1/", RemoteUrlError::Query),
        ("https://u:p@db1/?unit=a", RemoteUrlError::User),
    ] {
        assert_eq!(plan(text).unwrap_err(), error, "{text}");
    }
    assert!(matches!(plan("nothing"), Err(RemoteUrlError::Url { .. })));
    assert!(matches!(
        plan("https://db1/?unit="),
        Err(RemoteUrlError::Target(_))
    ));
}

#[test]
fn a_token_leaves_this_machine_encrypted_only() {
    let plan = |text: &str| {
        let token = Some(Secret::new("0123456789abcdef"));
        RemotePlan::new(text, token, Trust::PublicRoots).map(drop)
    };
    for local in ["http://127.0.0.1:7070", "http://[::1]", "http://localhost"] {
        assert_eq!(plan(&format!("{local}/?unit=a")), Ok(()), "{local}");
    }
    for other in [
        "http://db1",
        "http://10.0.0.1:7070",
        "http://localhost.example",
    ] {
        let error = plan(&format!("{other}/?unit=a")).unwrap_err();
        assert!(matches!(error, RemoteUrlError::Clear(_)), "{other}");
    }
    assert_eq!(plan("https://db1/?unit=a"), Ok(()));
}

#[test]
fn clocks_may_be_apart_in_either_direction() {
    let now = UNIX_EPOCH + Duration::from_secs(1_000);
    let later = now + Duration::from_millis(3);
    assert_eq!(difference_ns(later, now), 3_000_000);
    assert_eq!(difference_ns(now, later), -3_000_000);
}
