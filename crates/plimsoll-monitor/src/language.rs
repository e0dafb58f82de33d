//! Texts of pages by language, from the files of the folder `language`.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use jiff::civil::Date;

/// One of the supported languages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Language(usize);

struct Messages {
    texts: HashMap<String, String>,
    months: Vec<String>,
}

const FILES: [&str; 5] = [
    include_str!("language/en.toml"),
    include_str!("language/de.toml"),
    include_str!("language/fr.toml"),
    include_str!("language/es.toml"),
    include_str!("language/ja.toml"),
];

static ALL: LazyLock<Vec<Messages>> =
    LazyLock::new(|| FILES.iter().map(|file| read(file)).collect());

fn read(file: &str) -> Messages {
    let table: toml::Table = file.parse().expect("a test reads every file");
    let mut texts = HashMap::with_capacity(table.len());
    let mut months = Vec::new();
    for (key, value) in table {
        match value {
            toml::Value::String(text) => {
                texts.insert(key, text);
            }
            toml::Value::Array(list) => {
                let list = list.iter().filter_map(toml::Value::as_str);
                months = list.map(str::to_owned).collect();
            }
            _ => {}
        }
    }
    Messages { texts, months }
}

impl Language {
    pub(crate) const COUNT: usize = FILES.len();
    pub(crate) const ALL: [Self; Self::COUNT] = [Self(0), Self(1), Self(2), Self(3), Self(4)];

    /// The codes of all languages, English first.
    pub fn codes() -> Vec<&'static str> {
        Self::all().map(Self::code).collect()
    }

    /// All languages.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }

    /// The language of a code such as `de`, or of a tag such as `de-CH`.
    pub fn of(tag: &str) -> Option<Self> {
        let primary = tag.split('-').next().unwrap_or_default();
        Self::all().find(|language| language.code().eq_ignore_ascii_case(primary))
    }

    /// The supported language that a value of `accept-language` prefers (RFC 9110, section 12.5.4).
    pub fn accepted(value: &str) -> Option<Self> {
        let mut best: Option<(f32, Self)> = None;
        for range in value.split(',').take(32) {
            let mut parts = range.split(';');
            let Some(language) = parts.next().and_then(|tag| Self::of(tag.trim())) else {
                continue;
            };
            let weight = parts.find_map(|part| part.trim().strip_prefix("q=")?.parse().ok());
            let weight: f32 = weight.unwrap_or(1.0);
            if weight > 0.0 && best.is_none_or(|(known, _)| weight > known) {
                best = Some((weight, language));
            }
        }
        best.map(|(_, language)| language)
    }

    /// Its code, such as `en`.
    pub fn code(self) -> &'static str {
        self.text("code")
    }

    /// The text of a key. A missing text shows as its key; a test makes sure that no language misses one.
    pub(crate) fn text(self, key: &'static str) -> &'static str {
        let messages: &'static Messages = &ALL[self.0];
        messages.texts.get(key).map_or(key, String::as_str)
    }

    /// A text with one value in it: `{name}` is replaced by it.
    pub(crate) fn with(self, key: &'static str, name: &str, value: &str) -> String {
        self.text(key).replace(&format!("{{{name}}}"), value)
    }

    /// A share as a percentage with up to two decimals, never rounded up to 100 %.
    pub(crate) fn percent(self, ratio: f64) -> String {
        let hundredths = (ratio * 10_000.0).floor() / 100.0;
        let text = format!("{hundredths:.2}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        format!("{}\u{a0}%", text.replace('.', self.text("decimal")))
    }

    /// A duration by its two largest units.
    pub(crate) fn duration(self, duration: Duration) -> String {
        let seconds = duration.as_secs();
        let unit = |key, count: u64| self.with(key, "n", &count.to_string());
        let pair = |large: &'static str, count, small: &'static str, rest| {
            if rest == 0 {
                unit(large, count)
            } else {
                format!("{} {}", unit(large, count), unit(small, rest))
            }
        };
        match seconds {
            0..60 => unit("seconds", seconds),
            60..3_600 => unit("minutes", seconds / 60),
            3_600..86_400 => pair("hours", seconds / 3_600, "minutes", seconds % 3_600 / 60),
            _ => pair("days", seconds / 86_400, "hours", seconds % 86_400 / 3_600),
        }
    }

    /// A response time from microseconds.
    pub(crate) fn latency(self, micros: u64) -> String {
        let millis = micros as f64 / 1000.0;
        let text = match millis {
            millis if millis >= 1000.0 => format!("{:.1}\u{a0}s", millis / 1000.0),
            millis if millis >= 10.0 => format!("{millis:.0}\u{a0}ms"),
            millis => format!("{millis:.1}\u{a0}ms"),
        };
        text.replace('.', self.text("decimal"))
    }

    /// A day, such as `3 March 2026`.
    pub(crate) fn date(self, date: Date) -> String {
        self.dated("date", date)
    }

    /// The month of a day, such as `March 2026`.
    pub(crate) fn month(self, date: Date) -> String {
        self.dated("month_year", date)
    }

    fn dated(self, pattern: &'static str, date: Date) -> String {
        let month = usize::try_from(date.month()).unwrap_or(1) - 1;
        self.text(pattern)
            .replace("{day}", &date.day().to_string())
            .replace("{month}", &ALL[self.0].months[month])
            .replace("{year}", &date.year().to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every language has the texts of English, with the same values in them.
    #[test]
    fn languages_are_complete() {
        let values = |text: &str| -> BTreeSet<String> {
            let parts = text.split('{').skip(1);
            parts
                .map(|part| part.split('}').next().unwrap_or_default().to_owned())
                .collect()
        };
        let english = &ALL[0];
        for language in Language::all() {
            let messages = &ALL[language.0];
            assert_eq!(messages.months.len(), 12, "{}", language.code());
            let keys: BTreeSet<_> = messages.texts.keys().collect();
            assert_eq!(keys, english.texts.keys().collect(), "{}", language.code());
            for (key, text) in &messages.texts {
                assert_eq!(
                    values(text),
                    values(&english.texts[key]),
                    "{} {key}",
                    language.code()
                );
            }
        }
    }

    /// Every key that a template or the code names has a text.
    #[test]
    fn keys_of_templates_exist() {
        let templates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
        let mut count = 0;
        for file in std::fs::read_dir(templates).unwrap() {
            let path = file.unwrap().path();
            // The admin pages, which are in English only.
            if path.is_dir() {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for part in text
                .split("t.text(\"")
                .skip(1)
                .chain(text.split("t.with(\"").skip(1))
            {
                let key = part.split('"').next().unwrap();
                count += 1;
                assert!(
                    ALL[0].texts.contains_key(key),
                    "{} names `{key}`",
                    path.display()
                );
            }
        }
        assert!(count > 10, "templates name texts");
    }

    #[test]
    fn readers_get_their_language() {
        let accepted = |value| Language::accepted(value).map(Language::code);
        assert_eq!(accepted("fr-CH, fr;q=0.9, en;q=0.8"), Some("fr"));
        assert_eq!(accepted("sv, de;q=0.5, ja;q=0.7"), Some("ja"));
        assert_eq!(accepted("sv"), None);
        assert_eq!(accepted("en;q=0, de;q=nonsense"), Some("de"));
    }

    #[test]
    fn figures_follow_the_language() {
        let [english, german] = [Language(0), Language(1)];
        assert_eq!(english.percent(0.999_99), "99.99\u{a0}%");
        assert_eq!(german.percent(0.995), "99,5\u{a0}%");
        assert_eq!(english.percent(1.0), "100\u{a0}%");
        assert_eq!(german.latency(1_250_000), "1,2\u{a0}s");
        assert_eq!(english.latency(2_340), "2.3\u{a0}ms");
        assert_eq!(english.duration(Duration::from_mins(62)), "1 h 2 min");
        assert_eq!(english.duration(Duration::from_hours(2)), "2 h");
        let date = jiff::civil::date(2026, 3, 1);
        assert_eq!(german.date(date), "1. März 2026");
        assert_eq!(Language(4).date(date), "2026年3月1日");
    }
}
