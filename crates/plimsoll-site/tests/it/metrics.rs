//! `/metrics` of sites, and lists that are refreshed on demand.

use std::fs;

use plimsoll_testkit::eventually;

use crate::server::Site;

/// A site with a short link.
fn site(tables: &str) -> (tempfile::TempDir, Site) {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("links.txt");
    fs::write(&list, "gh https://a.example/x\nother https://a.example/\n").unwrap();
    let routes = format!(
        "[[route]]\nfiles = {{ root = \"site\", redirects = {:?} }}\n{tables}",
        list.to_str().unwrap()
    );
    (
        directory,
        Site::with_routes(&[("index.html", b"top")], &routes),
    )
}

fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|it| it == *line), "no {line} in {text}");
    }
}

#[test]
fn requests_statuses_and_redirects_are_counted_under_the_names_of_servy() {
    let tables = "[metrics]\naddress = \"127.0.0.1:0\"\nprefix = \"servy\"\n";
    let (_directory, site) = site(tables);
    eventually(|| site.get("/other").status == 308);
    for _ in 0..3 {
        assert_eq!(site.get("/").status, 200);
    }
    assert_eq!(site.get("/gh").status, 308);
    assert_eq!(site.get("/gh/").status, 308);
    assert_eq!(site.get("/missing").status, 404);
    assert_eq!(site.ask("POST", "/", "").status, 405);
    let metrics = site.ask_admin("GET", "/metrics", "");
    let kind = metrics.joined_field("content-type");
    assert_eq!(
        kind.as_deref(),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let text = metrics.text();
    has(
        text,
        &[
            "# TYPE servy_requests_total counter",
            "# TYPE servy_redirects_served counter",
            "servy_redirects_served{alias=\"gh\"} 2",
            "# TYPE servy_redirects_defined gauge",
            "servy_redirects_defined 2",
            "# TYPE servy_response_status counter",
            "servy_response_status{status=\"200\"} 3",
            "servy_response_status{status=\"405\"} 1",
            "# TYPE servy_response_seconds histogram",
        ],
    );
    let value = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse().unwrap()
    };
    let statuses = text
        .lines()
        .filter_map(|line| line.strip_prefix("servy_response_status{"));
    let statuses = statuses.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    assert_eq!(statuses.sum::<u64>(), value("servy_requests_total"));
    assert_eq!(
        value("servy_response_seconds_count"),
        value("servy_requests_total")
    );
    assert!(value("servy_response_bytes_total") >= 9);
    // An undefined alias is no label.
    assert!(!text.contains("alias=\"missing\""), "{text}");
    eventually(|| {
        site.get("/");
        let metrics = site.ask_admin("GET", "/metrics", "");
        !metrics.text().contains("{result=\"hit\"} 0\n")
    });
    // The port of metrics shows nothing else but health and readiness, for probes that do not reach the admin port.
    for path in ["/", "/config", "/redirects/refresh"] {
        assert_eq!(site.ask_admin("GET", path, "").status, 404);
    }
    for path in ["/healthz", "/readyz"] {
        let health = site.ask_admin("GET", path, "");
        assert_eq!(
            (health.status, health.text()),
            (200, "{\"status\":\"ok\"}\n")
        );
    }
}

#[test]
fn pages_in_browsers_cannot_have_lists_loaded() {
    let (_directory, site) = site("[admin]\naddress = \"127.0.0.1:0\"\n");
    let text = site.ask_admin("GET", "/metrics", "");
    has(text.text(), &["plimsoll_site_requests_total 0"]);
    let refresh = |method, fields| site.ask_admin(method, "/redirects/refresh", fields).status;
    assert_eq!(refresh("GET", ""), 405);
    assert_eq!(refresh("POST", "origin: https://evil.example\r\n"), 403);
    assert_eq!(refresh("POST", "sec-fetch-site: cross-site\r\n"), 403);
    assert_eq!(refresh("POST", ""), 202);
}

#[test]
fn short_links_need_no_files() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("links.txt");
    fs::write(&list, "gh https://a.example/x\n").unwrap();
    let route = format!(
        "[[route]]\nfiles = {{ redirects = {:?}, redirect_cache_control = \"\" }}\n",
        list.to_str().unwrap()
    );
    let site = Site::with_routes(&[("index.html", b"top")], &route);
    eventually(|| site.get("/gh").status == 308);
    assert_eq!(site.get("/gh").joined_field("cache-control"), None);
    assert_eq!(site.get("/").status, 404);
    assert_eq!(site.get("/index.html").status, 404);
}

#[test]
fn a_site_may_say_nothing_of_caching() {
    let site = Site::new(
        &[("index.html", b"top"), ("404.html", b"gone")],
        "cache_control = \"\"",
    );
    assert_eq!(site.get("/").joined_field("cache-control"), None);
    assert_eq!(site.get("/missing").joined_field("cache-control"), None);
    let site = Site::new(
        &[("a", b"a"), ("404.html", b"gone")],
        "cache_control = \"max-age=5\"",
    );
    assert_eq!(
        site.get("/a").joined_field("cache-control").as_deref(),
        Some("max-age=5")
    );
    assert_eq!(
        site.get("/missing")
            .joined_field("cache-control")
            .as_deref(),
        Some("no-cache")
    );
}
