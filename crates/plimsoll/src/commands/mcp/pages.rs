//! The documentation within the program: its pages as resources, and a search over their sections.
//!
//! Pages of measurements and of reasons are left out; some 550 kB remain.

/// A page of docs/.
#[derive(Debug)]
pub(super) struct Page {
    /// Its name without `.md`.
    pub(super) name: &'static str,
    /// Markdown.
    pub(super) text: &'static str,
}

macro_rules! page {
    ($name:literal) => {
        Page {
            name: $name,
            text: include_str!(concat!("../../../../../docs/", $name, ".md")),
        }
    };
}

/// In the order of their names.
pub(super) const PAGES: &[Page] = &[
    page!("agent"),
    page!("auth"),
    page!("channels"),
    page!("chaos"),
    page!("check"),
    page!("ci"),
    page!("compare"),
    page!("completions"),
    page!("crawl"),
    page!("fleet"),
    page!("formats"),
    page!("from-caddy"),
    page!("from-haproxy"),
    page!("from-nginx"),
    page!("from-traefik"),
    page!("gateway"),
    page!("hardening"),
    page!("install"),
    page!("k6"),
    page!("lab"),
    page!("layer4"),
    page!("lexicon"),
    page!("line"),
    page!("load"),
    page!("loadtest"),
    page!("man"),
    page!("mcp"),
    page!("migration"),
    page!("mock"),
    page!("mock-admin"),
    page!("monitor"),
    page!("monitor-admin"),
    page!("notices"),
    page!("observe"),
    page!("pack"),
    page!("profile"),
    page!("report"),
    page!("schema"),
    page!("serve"),
    page!("soak"),
    page!("status-pages"),
    page!("up"),
];

/// A section that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) page: String,
    /// The headings that lead to it.
    pub(super) title: String,
    /// Its text, or the lines of it that have the words.
    pub(super) text: String,
}

/// Longer sections are cut to the lines that have the words.
const LONGEST: usize = 4000;

/// Words of a query; more do not sharpen it.
const MOST_WORDS: usize = 32;

/// The sections in which the words of `query` are most frequent, weighted by how rare a word is among all sections.
pub(super) fn search(query: &str, limit: usize) -> Vec<Found> {
    let mut words: Vec<_> = words(query).take(MOST_WORDS).collect();
    words.sort();
    words.dedup();
    let sections: Vec<_> = PAGES.iter().flat_map(sections).collect();
    let counts: Vec<Vec<f64>> = sections
        .iter()
        .map(|section| section.counts(&words))
        .collect();
    let total = sections.len() as f64;
    let rarity: Vec<f64> = (0..words.len())
        .map(|word| {
            let having = counts.iter().filter(|counts| counts[word] > 0.0).count();
            (total / (1.0 + having as f64)).ln().max(0.1)
        })
        .collect();
    let score = |counts: &[f64]| -> f64 {
        let each = counts.iter().zip(&rarity);
        // The tenth occurrence says little more than the second.
        each.map(|(count, rarity)| rarity * count / (count + 1.5))
            .sum()
    };
    let mut ranked: Vec<_> = sections
        .iter()
        .zip(&counts)
        .map(|(section, counts)| (score(counts), section))
        .filter(|(score, _)| *score > 0.0)
        .collect();
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
    let best = ranked.into_iter().take(limit);
    best.map(|(_, section)| section.found(&words)).collect()
}

/// A heading with the text up to the next one.
struct Section {
    page: &'static str,
    title: String,
    text: &'static str,
}

/// The words of a heading count as much as this many in the text.
const HEADING: f64 = 4.0;

impl Section {
    fn counts(&self, wanted: &[String]) -> Vec<f64> {
        let mut counts = vec![0.0; wanted.len()];
        let mut add = |text: &str, weight: f64| {
            for word in words(text) {
                if let Ok(index) = wanted.binary_search(&word) {
                    counts[index] += weight;
                }
            }
        };
        add(self.text, 1.0);
        add(&self.title, HEADING);
        counts
    }

    fn found(&self, wanted: &[String]) -> Found {
        Found {
            page: self.page.to_owned(),
            title: self.title.clone(),
            text: self.excerpt(wanted),
        }
    }

    fn excerpt(&self, wanted: &[String]) -> String {
        if self.text.len() <= LONGEST {
            return self.text.trim().to_owned();
        }
        let mut excerpt = String::new();
        let mut is_gap = false;
        for line in self.text.lines() {
            let has_word = words(line).any(|word| wanted.binary_search(&word).is_ok());
            if !has_word {
                is_gap = true;
                continue;
            }
            if excerpt.len() + line.len() > LONGEST {
                excerpt.push_str("…\n");
                break;
            }
            if is_gap {
                excerpt.push_str("…\n");
                is_gap = false;
            }
            excerpt.extend([line, "\n"]);
        }
        excerpt
    }
}

/// The sections of a page; `#` in a block of code begins none.
fn sections(page: &'static Page) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut headings: Vec<(usize, &str)> = Vec::new();
    let (mut start, mut position, mut in_code) = (0, 0, false);
    let mut end_section = |headings: &[(usize, &str)], start: usize, end: usize| {
        let text = page.text.get(start..end).unwrap_or_default();
        if !text.trim().is_empty() {
            let titles: Vec<_> = headings.iter().map(|(_, title)| *title).collect();
            sections.push(Section {
                page: page.name,
                title: titles.join(" › "),
                text,
            });
        }
    };
    for line in page.text.split_inclusive('\n') {
        in_code ^= line.starts_with("```");
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        let title = line.get(level..).unwrap_or_default();
        if !in_code && level > 0 && title.starts_with(' ') {
            end_section(&headings, start, position);
            headings.retain(|(above, _)| *above < level);
            headings.push((level, title.trim()));
            start = position + line.len();
        }
        position += line.len();
    }
    end_section(&headings, start, position);
    sections
}

/// Words in lower case: letters, digits, and what flags and keys have within them.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_inner = |character: char| character.is_alphanumeric() || "-_".contains(character);
    text.split(move |character| !is_inner(character))
        .map(|word| word.trim_matches(['-', '_']).to_lowercase())
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Measurements, reasons and the table of contents.
    const LEFT_OUT: [&str; 6] = [
        "README",
        "SUMMARY",
        "benchmarks",
        "conformance",
        "decisions",
        "performance",
    ];

    #[test]
    fn every_page_is_within_the_program_or_left_out_by_name() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let files = fs::read_dir(docs).unwrap();
        let names: BTreeSet<_> = files
            .filter_map(|entry| {
                let name = entry.unwrap().file_name().into_string().unwrap();
                name.strip_suffix(".md").map(str::to_owned)
            })
            .collect();
        let pages = PAGES.iter().map(|page| page.name);
        let known: BTreeSet<_> = pages.chain(LEFT_OUT).map(str::to_owned).collect();
        assert_eq!(known, names);
    }

    #[test]
    fn words_of_flags_keys_and_headings_find_their_sections() {
        for (query, page) in [
            ("open loop rate", "load"),
            ("max-redirs location", "check"),
            ("status page incidents", "status-pages"),
            ("allow_private", "monitor"),
            ("fail-if-slower", "compare"),
        ] {
            let found = search(query, 3);
            assert!(!found.is_empty() && found.len() <= 3, "{query}");
            assert!(
                found.iter().any(|section| section.page == page),
                "{query}: {:?}",
                found
                    .iter()
                    .map(|it| (&it.page, &it.title))
                    .collect::<Vec<_>>()
            );
            for section in &found {
                assert!(
                    section.text.len() < 2 * LONGEST,
                    "{query}: {}",
                    section.title
                );
            }
        }
        assert_eq!(search("", 3), []);
        assert_eq!(search("xyzzyplugh", 3), []);
        assert_eq!(search(&"\u{202e}é".repeat(10_000), 3), []);
    }

    #[test]
    fn a_comment_in_code_begins_no_section() {
        const PAGE: Page = Page {
            name: "a",
            text: "# A\n\nb\n\n```\n# c\n```\n## D\ne\n#f\n",
        };
        let sections = sections(&PAGE);
        let titles: Vec<_> = sections.iter().map(|it| it.title.as_str()).collect();
        assert_eq!(titles, ["A", "A › D"]);
        assert!(sections[0].text.contains("# c"));
        assert!(sections[1].text.contains("#f"));
    }
}
