//! Links of pages, style sheets and lists, and what robots.txt allows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_site::crawl::{Robots, css_links, html_links, sitemap_links};

fuzz_target!(|text: &str| {
    let page = url::Url::parse("http://a.example/d/page.html").expect("it is a URL");
    for links in [
        html_links(text, &page).links,
        css_links(text, &page),
        sitemap_links(text, &page),
    ] {
        for link in links {
            assert!(["http", "https"].contains(&link.scheme()));
        }
    }
    Robots::parse(text, "plimsoll").allows(text);
});
