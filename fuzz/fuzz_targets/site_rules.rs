//! Files that say how a site answers: every line of redirects is kept, told or empty.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_formats::site::{Dialect, parse_aliases, parse_header_rules, parse_redirects};

fuzz_target!(|text: &str| {
    let unmarked = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = unmarked.lines().map(str::trim);
    let count = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .count();
    for dialect in [Dialect::Netlify, Dialect::Cloudflare] {
        let redirects = parse_redirects(text, dialect);
        // A rule of which a part is ignored is kept and told.
        let ignored = redirects.remarks.iter();
        let ignored = ignored.filter(|remark| {
            remark
                .message
                .ends_with("is ignored: Cloudflare matches paths only")
        });
        let told = redirects.remarks.len() - ignored.count();
        assert_eq!(redirects.entries.len() + told, count);
        for rule in &redirects.entries {
            assert!(rule.from.starts_with('/') && rule.to.is_ascii());
        }
        for rule in parse_header_rules(text, dialect).entries {
            assert!(rule.path.starts_with('/'));
        }
    }
    let aliases = parse_aliases(text);
    assert_eq!(aliases.entries.len() + aliases.remarks.len(), count);
});
