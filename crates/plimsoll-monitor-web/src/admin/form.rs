//! Forms as browsers send them, and their length limits.

/// The fields of a form, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// - `content`: `application/x-www-form-urlencoded`.
    pub(crate) fn parse(content: &[u8]) -> Self {
        let pairs = url::form_urlencoded::parse(content);
        Self(pairs.into_owned().collect())
    }

    /// A field without space around it; empty if it is not there.
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.trim())
    }

    /// A field as it was typed, such as a password.
    pub(crate) fn raw(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// A text with line feeds only, as TOML has them.
    pub(crate) fn text(&self, name: &str) -> String {
        self.get(name).replace("\r\n", "\n")
    }

    /// The lines of a field that are not empty.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let lines = self.get(name).lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// The words of a field, which commas or spaces separate.
    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        let words = self
            .get(name)
            .split(|c: char| c == ',' || c.is_whitespace());
        words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// All values of a field, such as those of check boxes.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let found = self.0.iter().filter(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).collect()
    }

    /// Whether a check box is set.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        !self.get(name).is_empty()
    }
}
