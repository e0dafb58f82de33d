//! Texts of pages by language, from the files of the folder `language`.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use jiff::civil::Date;
use plimsoll_model::{percent_rounded_down, without_trailing_zeros};
use plimsoll_monitor::config::Language;

struct Messages {
    texts: HashMap<String, String>,
    months: Vec<String>,
}

/// In the order of [`Language::ALL`].
const FILES: [&str; 10] = [
    include_str!("language/en.toml"),
    include_str!("language/de.toml"),
    include_str!("language/fr.toml"),
    include_str!("language/es.toml"),
    include_str!("language/it.toml"),
    include_str!("language/pt.toml"),
    include_str!("language/nl.toml"),
    include_str!("language/zh.toml"),
    include_str!("language/ja.toml"),
    include_str!("language/ko.toml"),
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

/// The texts of a language, and figures and dates as it writes them.
pub(crate) trait Texts: Copy {
    /// The text of a key. A missing text shows as its key; a test makes sure that no language misses one.
    fn text(self, key: &'static str) -> &'static str;

    /// A text with one value in it: `{name}` is replaced by it.
    fn with(self, key: &'static str, name: &str, value: &str) -> String {
        self.text(key).replace(&format!("{{{name}}}"), value)
    }

    /// A share as a percentage with up to two decimals, never rounded up to 100 %.
    fn percent(self, ratio: f64) -> String;

    /// A duration by its two largest units.
    fn duration(self, duration: Duration) -> String;

    /// A response time from microseconds.
    fn latency(self, micros: u64) -> String;

    /// A day, such as `3 March 2026`.
    fn date(self, date: Date) -> String;

    /// The month of a day, such as `March 2026`.
    fn month(self, date: Date) -> String;
}

/// The texts of a language.
fn messages(language: Language) -> &'static Messages {
    &ALL[language as usize]
}

impl Texts for Language {
    fn text(self, key: &'static str) -> &'static str {
        messages(self).texts.get(key).map_or(key, String::as_str)
    }

    fn percent(self, ratio: f64) -> String {
        let percent = percent_rounded_down(ratio, 2);
        let percent = without_trailing_zeros(&percent);
        format!("{}\u{a0}%", percent.replace('.', self.text("decimal")))
    }

    fn duration(self, duration: Duration) -> String {
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

    fn latency(self, micros: u64) -> String {
        let millis = micros as f64 / 1000.0;
        let text = match millis {
            millis if millis >= 1000.0 => format!("{:.1}\u{a0}s", millis / 1000.0),
            millis if millis >= 10.0 => format!("{millis:.0}\u{a0}ms"),
            millis => format!("{millis:.1}\u{a0}ms"),
        };
        text.replace('.', self.text("decimal"))
    }

    fn date(self, date: Date) -> String {
        dated(self, "date", date)
    }

    fn month(self, date: Date) -> String {
        dated(self, "month_year", date)
    }
}

fn dated(language: Language, pattern: &'static str, date: Date) -> String {
    let month = usize::try_from(date.month()).unwrap_or(1) - 1;
    language
        .text(pattern)
        .replace("{day}", &date.day().to_string())
        .replace("{month}", &messages(language).months[month])
        .replace("{year}", &date.year().to_string())
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
        assert_eq!(FILES.len(), Language::ALL.len());
        for language in Language::ALL {
            let messages = messages(language);
            assert_eq!(language.text("code"), language.code());
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
    fn figures_follow_the_language() {
        let [english, german] = [Language::English, Language::German];
        assert_eq!(english.percent(0.999_99), "99.99\u{a0}%");
        assert_eq!(german.percent(0.995), "99,5\u{a0}%");
        assert_eq!(english.percent(1.0), "100\u{a0}%");
        assert_eq!(german.latency(1_250_000), "1,2\u{a0}s");
        assert_eq!(english.latency(2_340), "2.3\u{a0}ms");
        assert_eq!(english.duration(Duration::from_mins(62)), "1 h 2 min");
        assert_eq!(english.duration(Duration::from_hours(2)), "2 h");
        let date = jiff::civil::date(2026, 3, 1);
        assert_eq!(german.date(date), "1. März 2026");
        assert_eq!(Language::Japanese.date(date), "2026年3月1日");
    }
}
