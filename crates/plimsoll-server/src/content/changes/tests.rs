use proptest::prelude::*;
use serde_json::json;

use super::*;

const FILE: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n\
                    [[route]]\nname = \"a\"\nprefix = \"/a\"\nproxy = \"api\"\n\
                    [[route]]\nprefix = \"/b\"\nrespond = {}\n\
                    [upstream.api]\nservers = [\"http://a\", { url = \"http://b\", weight = 2 }]\nretry = { retries = 3 }\n";

/// A file with changes that were made to it.
struct Edited {
    file: ConfigContent,
    changes: Changes,
    served: ConfigContent,
}

impl Edited {
    fn new(file: &str) -> Self {
        let file = ConfigContent::parse(file);
        Self {
            served: file.clone(),
            changes: Changes::default(),
            file,
        }
    }

    fn edit(&mut self, edit: &Edit) -> Result<(), EditError> {
        (self.changes, self.served) = self.changes.edited(edit, &self.file, &self.served)?;
        Ok(())
    }

    /// What is different from the file.
    fn lines(&self) -> Vec<String> {
        let differences = self.file.differences(&self.served);
        differences.iter().map(ToString::to_string).collect()
    }

    /// What is different with another file, and what does not fit it.
    fn on(&self, file: &str) -> (Vec<String>, Vec<RefusedChange>) {
        let file = ConfigContent::parse(file);
        let (served, _, refused) = self.changes.made_on(&file);
        let differences = file.differences(&served);
        (
            differences.iter().map(ToString::to_string).collect(),
            refused,
        )
    }
}

fn add_server(url: &str) -> Edit {
    Edit::AddServer {
        upstream: "api".to_owned(),
        value: json!(url),
    }
}

fn remove_server(url: &str) -> Edit {
    Edit::RemoveServer {
        upstream: "api".to_owned(),
        url: url.to_owned(),
    }
}

#[test]
fn servers_are_added_replaced_and_removed() {
    let mut edited = Edited::new(FILE);
    edited.edit(&add_server("http://c")).unwrap();
    edited.edit(&remove_server("http://a/")).unwrap();
    let put = Edit::PutServer {
        upstream: "api".to_owned(),
        url: "http://b".to_owned(),
        value: json!({ "url": "http://b", "weight": 0 }),
    };
    edited.edit(&put).unwrap();
    assert_eq!(
        edited.lines(),
        [
            "- upstream.api.servers[1]: \"http://a\"",
            "~ upstream.api.servers[1].weight: 2 -> 0",
            "+ upstream.api.servers[2]: \"http://c\"",
        ]
    );
    assert_eq!(edited.changes.len(), 1, "they are one change of the list");
    assert!(matches!(
        edited.edit(&remove_server("http://a")),
        Err(EditError::Missing(_))
    ));
    assert!(matches!(
        edited.edit(&add_server("http://c/")),
        Err(EditError::Conflict(_))
    ));
    let other = Edit::RemoveServer {
        upstream: "web".to_owned(),
        url: String::new(),
    };
    let error = edited.edit(&other).unwrap_err();
    assert_eq!(error.to_string(), "there is no upstream `web`");
    // As the file has it again: nothing is left of the changes.
    let value = ConfigContent::parse(FILE).upstream("api").unwrap()["servers"].clone();
    let back = Edit::PutServers {
        upstream: "api".to_owned(),
        value,
    };
    edited.edit(&back).unwrap();
    assert!(edited.changes.is_empty());
}

#[test]
fn routes_are_added_at_a_place_replaced_and_removed() {
    let mut edited = Edited::new(FILE);
    let route = |prefix: &str| json!({ "prefix": prefix, "respond": {} });
    let add = |place, prefix| Edit::AddRoute {
        place,
        value: route(prefix),
    };
    edited.edit(&add(RoutePlace::End, "/z")).unwrap();
    edited
        .edit(&add(RoutePlace::Before("a".to_owned()), "/x"))
        .unwrap();
    edited
        .edit(&add(RoutePlace::After("a".to_owned()), "/y"))
        .unwrap();
    let prefixes = |edited: &Edited| {
        let routes = edited.served.routes().iter();
        routes
            .map(|it| it["prefix"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(prefixes(&edited), ["/x", "/a", "/y", "/b", "/z"]);
    let put = |route: &str, value| Edit::PutRoute {
        route: route.to_owned(),
        value,
    };
    // What stands behind a route stays there when the route is replaced or goes.
    edited.edit(&put("a", route("/a2"))).unwrap();
    edited.edit(&put("1", route("/x2"))).unwrap();
    assert_eq!(prefixes(&edited), ["/x2", "/a2", "/y", "/b", "/z"]);
    let remove = |route: &str| Edit::RemoveRoute {
        route: route.to_owned(),
    };
    edited.edit(&remove("2")).unwrap();
    edited.edit(&remove("3")).unwrap();
    assert_eq!(prefixes(&edited), ["/x2", "/y", "/z"]);
    assert!(matches!(
        edited.edit(&remove("4")),
        Err(EditError::Missing(_))
    ));
    assert!(matches!(
        edited.edit(&add(RoutePlace::End, "/y")),
        Err(EditError::Conflict(_))
    ));
    edited.edit(&Edit::Undo).unwrap();
    assert_eq!(edited.served, edited.file);
    assert!(edited.changes.is_empty());
}

#[test]
fn a_changed_file_keeps_changes_of_what_it_left_alone() {
    let mut edited = Edited::new(FILE);
    edited.edit(&add_server("http://c")).unwrap();
    let web = Edit::PutUpstream {
        name: "web".to_owned(),
        value: json!({ "servers": "http://w" }),
    };
    edited.edit(&web).unwrap();
    let put = Edit::PutRoute {
        route: "2".to_owned(),
        value: json!({ "prefix": "/b", "proxy": "web" }),
    };
    edited.edit(&put).unwrap();
    let made = edited.lines();
    assert_eq!(
        made,
        [
            "- route[2].respond: {}",
            "+ route[2].proxy: \"web\"",
            "+ upstream.api.servers[3]: \"http://c\"",
            "+ upstream.web: { servers = \"http://w\" }",
        ]
    );
    // Another setting of the same upstream, and another route, are the file's.
    let other = FILE
        .replace("retries = 3", "retries = 5")
        .replace("\"/a\"", "\"/a2\"");
    assert_eq!(edited.on(&other), (made.clone(), vec![]));
    // The servers, a route, and an upstream of that name are the file's now.
    let conflicting = FILE
        .replace("weight = 2", "weight = 3")
        .replace("\"/b\"", "\"/b2\"")
        + "[upstream.web]\nservers = \"http://w2\"\n";
    let (lines, refused) = edited.on(&conflicting);
    assert_eq!(lines, [""; 0]);
    let misfits: Vec<_> = refused
        .iter()
        .map(|it| (it.change.as_str(), &it.misfit))
        .collect();
    assert_eq!(
        misfits,
        [
            ("change the servers of upstream api", &Misfit::Changed),
            ("add upstream web", &Misfit::Changed),
            ("change a route (prefix = \"/b\")", &Misfit::Gone),
        ]
    );
    // The operator has written the changes into the file.
    let (_, refused) = edited.on(&edited.served.to_toml());
    assert!(
        refused.iter().all(|it| it.misfit == Misfit::Present),
        "{refused:?}"
    );
    assert_eq!(refused.len(), 3);
}

#[test]
fn a_change_that_leads_to_an_error_is_left_out_alone() {
    let mut edited = Edited::new(FILE);
    edited.edit(&add_server("http://c")).unwrap();
    let web = Edit::PutUpstream {
        name: "web".to_owned(),
        value: json!({}),
    };
    edited.edit(&web).unwrap();
    let error = |content: &ConfigContent| {
        let has_web = content.upstream("web").is_some();
        has_web.then(|| "upstream.web: no".to_owned())
    };
    let (kept, refused) = edited.changes.valid_on(&edited.file, error);
    assert_eq!(kept.len(), 1);
    assert_eq!(
        refused[0].misfit,
        Misfit::Invalid("upstream.web: no".to_owned())
    );
}

#[test]
fn masks_stand_for_the_secrets_at_the_same_place_and_for_no_others() {
    let file = "[[route]]\nprefix = \"/a\"\nproxy = { to = \"http://me:hunter2@a\", headers = { authorization = \"hunter2\" } }\n\
                oidc = [{ issuer = \"a\", client_secret = \"one\" }, { issuer = \"b\", client_secret = \"two\" }]\n";
    let mut edited = Edited::new(file);
    let mut route = edited.served.masked().routes()[0].clone();
    route["prefix"] = json!("/b");
    // Without the first of both: the secret of the second goes with it.
    route["oidc"].as_array_mut().unwrap().remove(0);
    let put = |value: &Value| Edit::PutRoute {
        route: "1".to_owned(),
        value: value.clone(),
    };
    edited.edit(&put(&route)).unwrap();
    let served = &edited.served.routes()[0];
    assert_eq!(served["prefix"], "/b");
    assert_eq!(served["proxy"]["headers"]["authorization"], "hunter2");
    assert_eq!(served["proxy"]["to"], "http://me:hunter2@a");
    assert_eq!(
        served["oidc"],
        json!([{ "issuer": "b", "client_secret": "two" }])
    );
    // To another provider no secret goes along.
    route["oidc"][0]["issuer"] = json!("evil");
    let error = edited.edit(&put(&route)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "route[1].oidc[1].client_secret: `…` stands for a secret that is not known here: give it"
    );
    let error = edited.edit(&put(&json!({ "prefix": null }))).unwrap_err();
    assert!(
        error.to_string().starts_with("route[1].prefix: null"),
        "{error}"
    );
    let shown = edited.changes.shown();
    assert!(!format!("{shown:?}").contains("hunter2"), "{shown:?}");
}

#[test]
fn the_file_of_changes_is_read_as_it_was_written() {
    let mut edited = Edited::new(FILE);
    edited.edit(&add_server("http://c")).unwrap();
    let remove = Edit::RemoveRoute {
        route: "a".to_owned(),
    };
    edited.edit(&remove).unwrap();
    let text = edited.changes.to_text();
    assert_eq!(Changes::parse(&text).unwrap(), edited.changes, "{text}");
    assert_eq!(
        Changes::parse(&Changes::default().to_text()),
        Ok(Changes::default())
    );
    for (text, expected) in [
        ("version = ", "this is not TOML"),
        ("", "`version = 1` is missing"),
        ("version = 2", "`version = 1` is missing"),
        (
            "version = 1\n[[change]]\nupstream = \"a\"\nservers_of = \"a\"",
            "change[1]",
        ),
        (
            "version = 1\n[[change]]\nupstream = \"a\"\n[[change]]\nother = 1",
            "change[2]",
        ),
        ("version = 1\nchange = 1", "change[1]"),
    ] {
        let error = Changes::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

/// Changes of few upstreams, servers and routes, so that they meet.
fn any_edit() -> impl Strategy<Value = Edit> {
    let upstream = || prop_oneof![Just("api".to_owned()), Just("web".to_owned())];
    let url = || {
        prop_oneof![
            Just("http://a".to_owned()),
            Just("http://b".to_owned()),
            Just("http://c".to_owned())
        ]
    };
    let route = || {
        prop_oneof![
            Just("a".to_owned()),
            (1..5_u8).prop_map(|it| it.to_string())
        ]
    };
    let table = || (0..4_u8).prop_map(|it| json!({ "prefix": format!("/{it}"), "respond": {} }));
    let place = prop_oneof![
        Just(RoutePlace::End),
        route().prop_map(RoutePlace::Before),
        route().prop_map(RoutePlace::After),
    ];
    prop_oneof![
        (upstream(), url()).prop_map(|(name, url)| Edit::PutUpstream {
            name,
            value: json!({ "servers": [url] })
        }),
        upstream().prop_map(|name| Edit::RemoveUpstream { name }),
        (upstream(), url()).prop_map(|(upstream, url)| Edit::AddServer {
            upstream,
            value: json!(url)
        }),
        (upstream(), url()).prop_map(|(upstream, url)| Edit::RemoveServer { upstream, url }),
        (place, table()).prop_map(|(place, value)| Edit::AddRoute { place, value }),
        (route(), table()).prop_map(|(route, value)| Edit::PutRoute { route, value }),
        route().prop_map(|route| Edit::RemoveRoute { route }),
    ]
}

proptest! {
    /// However changes follow each other, what is kept of them leads to what is served.
    #[test]
    fn changes_are_made_again_as_they_were_made(edits in prop::collection::vec(any_edit(), 0..24)) {
        let mut edited = Edited::new(FILE);
        for edit in &edits {
            let before = edited.served.clone();
            match edit.change(&before) {
                Err(error) => prop_assert_eq!(edited.edit(edit), Err(error)),
                Ok(change) => {
                    let mut expected = before;
                    // What is so already stays.
                    change.unwrap().make(&mut expected).ok();
                    prop_assert_eq!(edited.edit(edit), Ok(()), "{:?}", edit);
                    prop_assert_eq!(&edited.served, &expected, "{:?}", edit);
                }
            }
            let read = Changes::parse(&edited.changes.to_text()).unwrap();
            let (served, kept, refused) = read.made_on(&edited.file);
            prop_assert_eq!(&served, &edited.served);
            prop_assert_eq!(&kept, &edited.changes);
            prop_assert_eq!(refused, vec![]);
        }
        edited.edit(&Edit::Undo).unwrap();
        prop_assert_eq!(&edited.served, &edited.file);
    }
}
