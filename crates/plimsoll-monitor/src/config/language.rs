//! The languages that status pages have. Their texts are with the pages.

/// A language of status pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// `en`.
    #[default]
    English,
    /// `de`.
    German,
    /// `fr`.
    French,
    /// `es`.
    Spanish,
    /// `it`.
    Italian,
    /// `pt`.
    Portuguese,
    /// `nl`.
    Dutch,
    /// `zh`, in simplified characters.
    Chinese,
    /// `ja`.
    Japanese,
    /// `ko`.
    Korean,
}

impl Language {
    /// All languages, English first.
    pub const ALL: [Self; 10] = [
        Self::English,
        Self::German,
        Self::French,
        Self::Spanish,
        Self::Italian,
        Self::Portuguese,
        Self::Dutch,
        Self::Chinese,
        Self::Japanese,
        Self::Korean,
    ];

    /// Its code, such as `en` (ISO 639-1).
    pub const fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::French => "fr",
            Self::Spanish => "es",
            Self::Italian => "it",
            Self::Portuguese => "pt",
            Self::Dutch => "nl",
            Self::Chinese => "zh",
            Self::Japanese => "ja",
            Self::Korean => "ko",
        }
    }

    /// The codes of all languages, English first.
    pub fn codes() -> [&'static str; 10] {
        Self::ALL.map(Self::code)
    }

    /// The language of a code such as `de`, or of a tag such as `de-CH`.
    pub fn with_tag(tag: &str) -> Option<Self> {
        let primary = tag.split('-').next().unwrap_or_default();
        let mut all = Self::ALL.into_iter();
        all.find(|language| language.code().eq_ignore_ascii_case(primary))
    }

    /// The supported language that a value of `accept-language` prefers (RFC 9110, section 12.5.4).
    pub fn accepted(value: &str) -> Option<Self> {
        let mut best: Option<(f32, Self)> = None;
        for range in value.split(',').take(32) {
            let mut parts = range.split(';');
            let Some(language) = parts.next().and_then(|tag| Self::with_tag(tag.trim())) else {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_get_their_language() {
        let accepted = |value| Language::accepted(value).map(Language::code);
        assert_eq!(accepted("fr-CH, fr;q=0.9, en;q=0.8"), Some("fr"));
        assert_eq!(accepted("sv, de;q=0.5, ja;q=0.7"), Some("ja"));
        assert_eq!(accepted("sv"), None);
        assert_eq!(accepted("en;q=0, de;q=nonsense"), Some("de"));
    }
}
