//! `robots.txt` (RFC 9309): what a crawler may ask for.

/// The rules for one crawler.
#[derive(Debug, Clone, Default)]
pub struct Robots {
    rules: Vec<Rule>,
    sitemaps: Vec<String>,
}

#[derive(Debug, Clone)]
struct Rule {
    pattern: String,
    allows: bool,
}

/// Rules that are kept.
const MOST: usize = 10_000;

impl Robots {
    /// The rules of the groups for `agent`, or of those for all if there are none.
    pub fn parse(text: &str, agent: &str) -> Self {
        let mut own: Option<Vec<Rule>> = None;
        let mut of_all = Vec::new();
        let mut sitemaps = Vec::new();
        let (mut is_own, mut is_all, mut in_rules) = (false, false, true);
        for line in text.lines() {
            let line = line.split_once('#').map_or(line, |(line, _)| line);
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            let key = key.trim().to_ascii_lowercase();
            match key.as_str() {
                "user-agent" => {
                    // Names in a row begin one group together.
                    if in_rules {
                        (is_own, is_all, in_rules) = (false, false, false);
                    }
                    is_all |= value == "*";
                    let is_named = value.eq_ignore_ascii_case(agent);
                    is_own |= is_named;
                    if is_named {
                        own.get_or_insert_default();
                    }
                }
                "allow" | "disallow" => {
                    in_rules = true;
                    let rule = Rule {
                        pattern: value.to_owned(),
                        allows: key == "allow",
                    };
                    // An empty one says nothing.
                    if value.is_empty() || of_all.len() + own.as_ref().map_or(0, Vec::len) >= MOST {
                        continue;
                    }
                    if is_own && let Some(own) = &mut own {
                        own.push(rule.clone());
                    }
                    if is_all {
                        of_all.push(rule);
                    }
                }
                "sitemap" => sitemaps.push(value.to_owned()),
                _ => {}
            }
        }
        Self {
            rules: own.unwrap_or(of_all),
            sitemaps,
        }
    }

    /// Lists of pages that it names.
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }

    /// Whether a path with its query may be requested: the longest rule that matches decides, and of two as long
    /// the one that allows.
    pub fn allows(&self, path: &str) -> bool {
        let matching = self
            .rules
            .iter()
            .filter(|rule| matches(&rule.pattern, path));
        matching
            .max_by_key(|rule| (rule.pattern.len(), rule.allows))
            .is_none_or(|rule| rule.allows)
    }
}

/// Whether `path` begins as the pattern says, in which `*` is anything and `$` at the end is the end.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, to_end) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = rest.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
        last = Some(piece);
    }
    // At the end, the last piece may come later than where it was found first.
    !to_end || rest.is_empty() || last.is_some_and(|last| rest.ends_with(last) || last.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_longest_rule_decides() {
        let text = "User-agent: other\nDisallow: /\n\nuser-agent: *\nDisallow: /private # no\nAllow: /private/but\n\
                    Disallow: /*.pdf$\nDisallow:\nSitemap: http://a.example/s.xml\nDisallow: /q*x\n";
        let robots = Robots::parse(text, "plimsoll");
        for (path, allowed) in [
            ("/", true),
            ("/private", false),
            ("/private/x", false),
            ("/private/but/y", true),
            ("/a.pdf", false),
            ("/a.pdf.pdf", false),
            ("/a.pdf?x", true),
            ("/q/a/x/b", false),
            ("/qx", false),
            ("/q", true),
        ] {
            assert_eq!(robots.allows(path), allowed, "{path}");
        }
        assert_eq!(robots.sitemaps(), ["http://a.example/s.xml"]);
        let own = format!("{text}\nUser-agent: a\nUser-agent: Plimsoll\nAllow: /private\n");
        assert!(Robots::parse(&own, "plimsoll").allows("/private"));
        assert!(Robots::parse("", "plimsoll").allows("/x"));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,100}", pattern in "[/a*$]{0,10}", path in "/[a/$*]{0,10}") {
            Robots::parse(&text, "plimsoll").allows(&path);
            matches(&pattern, &path);
        }
    }
}
