//! A crawl of a site that is served here.

use std::time::Duration;

use plimsoll_site::crawl::{CrawlError, CrawlPlan, Crawled, crawl};

use crate::server::Site;

fn run(site: &Site, change: impl FnOnce(&mut CrawlPlan)) -> Result<Crawled, CrawlError> {
    let mut plan = CrawlPlan {
        start: format!("http://{}/", site.address).parse().unwrap(),
        concurrency: 4,
        most: 1000,
        timeout: Duration::from_secs(20),
        robots: false,
        anchors: false,
    };
    change(&mut plan);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(crawl(&plan))
}

#[test]
fn links_are_followed_wherever_they_stand_and_the_broken_ones_reported() {
    let files: &[(&str, &[u8])] = &[
        (
            "index.html",
            b"<link rel=stylesheet href=style.css><a href=docs>d</a><a href='/missing'>m</a>\
              <a href='http://other.example/x'>o</a><a href='?q=1#part'>q</a>",
        ),
        ("style.css", b"@import 'more.css'; a { b: url(img/a.png) }"),
        ("more.css", b"a { b: url(\"gone.png\") }"),
        ("img/a.png", b"png"),
        (
            "docs/index.html",
            b"<img src=../img/a.png srcset='b.png 2x'><a href='../missing'>m</a>",
        ),
        ("docs/b.png", b"png"),
        (
            "sitemap.xml",
            b"<urlset><url><loc>/hidden.html</loc></url></urlset>",
        ),
        ("hidden.html", b"<a href=private/x>p</a>"),
        ("private/x", b"x"),
        ("robots.txt", b"user-agent: *\ndisallow: /private/\n"),
    ];
    let site = Site::new(files, "");
    let crawled = run(&site, |_| {}).unwrap();
    assert_eq!(
        crawled.paths(),
        [
            "",
            "?q=1",
            "docs",
            "docs/",
            "docs/b.png",
            "hidden.html",
            "img/a.png",
            "more.css",
            "private/x",
            "sitemap.xml",
            "style.css",
        ]
    );
    let base = format!("http://{}", site.address);
    let broken: Vec<_> = crawled
        .broken()
        .map(|(url, found)| (url.replace(&base, ""), found.status, found.referrers.len()))
        .collect();
    let expected = [
        ("/gone.png".to_owned(), Some(404), 1),
        ("/missing".to_owned(), Some(404), 3),
    ];
    assert_eq!(broken, expected);
    let with_robots = run(&site, |plan| plan.robots = true).unwrap();
    assert!(!with_robots.paths().contains(&"private/x".to_owned()));
    assert!(!crawled.is_cut_short);
    let few = run(&site, |plan| plan.most = 3).unwrap();
    assert_eq!((few.found.len(), few.is_cut_short), (3, true));
}

#[test]
fn anchors_are_checked_where_that_is_wanted() {
    let files: &[(&str, &[u8])] = &[
        (
            "index.html",
            b"<a href='#here' id=here>h</a><a href='#gone'>g</a><a href='docs#part'>p</a>\
              <a href='docs#no-part'>n</a><a href='a.png#x=1'>i</a><a href='missing#part'>m</a>",
        ),
        ("a.png", b"png"),
        (
            "docs/index.html",
            b"<a name=part></a><a href='../#here'>h</a>",
        ),
    ];
    let site = Site::new(files, "");
    let broken = |anchors: bool| -> Vec<_> {
        let crawled = run(&site, |plan| plan.anchors = anchors).unwrap();
        let base = format!("http://{}", site.address);
        let broken = crawled.broken();
        broken.map(|(url, _)| url.replace(&base, "")).collect()
    };
    assert_eq!(broken(false), ["/missing"]);
    assert_eq!(broken(true), ["/missing", "/#gone", "/docs#no-part"]);
}

#[test]
fn a_site_without_lists_has_nothing_broken() {
    let site = Site::new(&[("index.html", b"<p>alone</p>")], "");
    let crawled = run(&site, |_| {}).unwrap();
    assert_eq!(crawled.paths(), [""]);
    assert_eq!(crawled.broken().count(), 0);
}

#[test]
fn what_cannot_be_crawled_is_reported() {
    let site = Site::new(&[], "");
    let error = run(&site, |plan| {
        plan.start = "file:///etc/passwd".parse().unwrap();
    });
    assert!(matches!(error, Err(CrawlError::Scheme(_))), "{error:?}");
    let error = run(&site, |plan| {
        plan.start = "http://127.0.0.1:1/".parse().unwrap();
    });
    assert!(matches!(error, Err(CrawlError::Start { .. })), "{error:?}");
}
