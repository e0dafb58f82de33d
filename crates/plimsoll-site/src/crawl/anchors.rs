//! The places within pages that links name, beside those that the pages have.
//!
//! A place is the `id` of an element or the `name` of an `<a>`. Pages that scripts complete may have more.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use percent_encoding::percent_decode_str;
use url::Url;

use super::{CrawledUrl, MOST_REFERRERS};

/// Redirects that are followed from one link.
const MOST_REDIRECTS: usize = 20;

/// Links with a fragment, and what their pages have.
#[derive(Debug)]
pub(super) struct Anchors {
    /// By the URL of a page.
    present: HashMap<String, HashSet<String>>,
    /// By the URL that redirects.
    redirects: HashMap<String, Url>,
    /// By the URL with its fragment: pages that link to it.
    linked: BTreeMap<Url, BTreeSet<String>>,
    /// Different links that are kept.
    most: usize,
}

impl Anchors {
    /// - `most`: different links that are kept; others are not checked.
    pub(super) fn new(most: usize) -> Self {
        Self {
            present: HashMap::new(),
            redirects: HashMap::new(),
            linked: BTreeMap::new(),
            most,
        }
    }

    /// A link, if it has a fragment; false if it was too many.
    pub(super) fn add_link(&mut self, link: &Url, page: &Url) -> bool {
        if link.fragment().is_none_or(str::is_empty) {
            return true;
        }
        if self.linked.len() >= self.most && !self.linked.contains_key(link) {
            return false;
        }
        let referrers = self.linked.entry(link.clone()).or_default();
        if referrers.len() < MOST_REFERRERS {
            referrers.insert(page.to_string());
        }
        true
    }

    /// What a page has.
    pub(super) fn add_page(&mut self, page: &Url, anchors: HashSet<String>) {
        self.present.insert(page.to_string(), anchors);
    }

    pub(super) fn add_redirect(&mut self, from: &Url, to: Url) {
        self.redirects.insert(from.to_string(), to);
    }

    /// Links to places that their pages do not have. Links to pages that were not read are not judged.
    pub(super) fn broken(self) -> BTreeMap<String, CrawledUrl> {
        let broken = |link: &Url| self.is_missing(link);
        self.linked
            .iter()
            .filter(|(link, _)| broken(link))
            .map(|(link, referrers)| {
                let found = CrawledUrl {
                    status: None,
                    failure: Some("the page has no such anchor".to_owned()),
                    referrers: referrers.clone(),
                };
                (link.to_string(), found)
            })
            .collect()
    }

    fn is_missing(&self, link: &Url) -> bool {
        let mut page = link.clone();
        for _ in 0..MOST_REDIRECTS {
            let fragment = page.fragment().map(str::to_owned);
            page.set_fragment(None);
            let Some(target) = self.redirects.get(page.as_str()) else {
                let present = self.present.get(page.as_str());
                let fragment = fragment.unwrap_or_default();
                return present.is_some_and(|present| !leads_somewhere(&fragment, present));
            };
            let mut target = target.clone();
            // A target without a fragment takes that of the link (RFC 9110, section 10.2.2).
            if target.fragment().is_none() {
                target.set_fragment(fragment.as_deref());
            }
            page = target;
        }
        false
    }
}

/// Whether a browser finds a place for the fragment (HTML, section 7.4.6.4): as it is, or decoded.
fn leads_somewhere(fragment: &str, present: &HashSet<String>) -> bool {
    // Text to search for (`:~:text=`) is no name.
    let name = fragment.split(":~:").next().unwrap_or_default();
    if name.is_empty() || name.eq_ignore_ascii_case("top") || present.contains(name) {
        return true;
    }
    let decoded = percent_decode_str(name).decode_utf8_lossy();
    present.contains(&*decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse("http://a.example/").unwrap().join(text).unwrap()
    }

    #[test]
    fn links_are_held_against_what_pages_have() {
        let mut anchors = Anchors::new(100);
        let have = ["part", "über", "a%20b"].map(str::to_owned);
        anchors.add_page(&url("/page"), have.into());
        anchors.add_redirect(&url("/old"), url("/page"));
        anchors.add_redirect(&url("/moved"), url("/page#part"));
        anchors.add_redirect(&url("/gone"), url("/page#gone"));
        anchors.add_redirect(&url("/circle"), url("/circle"));
        for link in [
            "/page#part",
            "/page#top",
            "/page#",
            "/page",
            "/page#%C3%BCber",
            "/page#über",
            "/page#a%20b",
            "/page#part:~:text=x",
            "/page#:~:text=x",
            "/old#part",
            "/moved#whatever",
            "/circle#x",
            "/unread#x",
            "/page#Part",
            "/page#nope",
            "/old#nope",
            "/gone#part",
        ] {
            assert!(anchors.add_link(&url(link), &url("/from")));
        }
        let broken = anchors.broken();
        let names: Vec<_> = broken
            .keys()
            .map(|link| link.replace("http://a.example", ""))
            .collect();
        assert_eq!(
            names,
            ["/gone#part", "/old#nope", "/page#Part", "/page#nope"]
        );
        assert!(
            broken
                .values()
                .all(|found| found.is_broken() && found.referrers.len() == 1)
        );
    }

    #[test]
    fn links_beyond_the_limit_are_refused() {
        let mut anchors = Anchors::new(1);
        assert!(anchors.add_link(&url("/a#b"), &url("/")));
        assert!(!anchors.add_link(&url("/a#c"), &url("/")));
        assert!(anchors.add_link(&url("/a#b"), &url("/d")));
        assert_eq!(anchors.broken().len(), 0);
    }
}
