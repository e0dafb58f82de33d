//! Commands and URLs with placeholders.

/// A command, already split into words, whose words may contain placeholders.
///
/// `{seconds}`, `{connections}`, `{rate}`, `{url}` and `{port}` are replaced; other braces stay as they are,
/// since commands carry JSON and format strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<String>);

/// Why a template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// No words.
    #[error("a command is empty")]
    Empty,
    /// `{url}` without a URL.
    #[error("`{text}` uses {{url}}, but no URL is given; name it with --url")]
    NoUrl {
        /// The word that uses it.
        text: String,
    },
}

/// The values of placeholders in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Values {
    pub(super) seconds: u32,
    pub(super) connections: u32,
    pub(super) rate: Option<u32>,
    pub(super) url: Option<String>,
    pub(super) port: u16,
}

impl Template {
    /// A command of at least one word.
    pub fn new(words: Vec<String>) -> Result<Self, TemplateError> {
        if words.first().is_none_or(String::is_empty) {
            return Err(TemplateError::Empty);
        }
        Ok(Self(words))
    }

    /// The words with their placeholders.
    pub fn words(&self) -> &[String] {
        &self.0
    }

    /// The first word that contains `{url}`.
    pub(super) fn needs_url(&self) -> Option<&str> {
        self.0
            .iter()
            .map(String::as_str)
            .find(|word| word.contains("{url}"))
    }

    /// The words with every placeholder replaced.
    pub(super) fn fill(&self, values: &Values) -> Vec<String> {
        self.0.iter().map(|word| values.fill(word)).collect()
    }
}

impl Values {
    /// `text` with every placeholder replaced. The URL may contain `{port}` itself.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        if let Some(url) = &self.url {
            filled = filled.replace("{url}", url);
        }
        if let Some(rate) = self.rate {
            filled = filled.replace("{rate}", &rate.to_string());
        }
        filled
            .replace("{seconds}", &self.seconds.to_string())
            .replace("{connections}", &self.connections.to_string())
            .replace("{port}", &self.port.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(words: &[&str]) -> Template {
        Template::new(words.iter().map(|&word| word.to_owned()).collect()).unwrap()
    }

    #[test]
    fn placeholders_are_replaced_and_other_braces_kept() {
        let values = Values {
            seconds: 3,
            connections: 64,
            rate: Some(500),
            url: Some("http://127.0.0.1:{port}/a?b={c}".to_owned()),
            port: 8123,
        };
        let command = template(&[
            "wrk",
            "-d{seconds}s",
            "-c{connections}",
            "{url}",
            r#"{"a":1}"#,
        ]);
        assert_eq!(command.needs_url(), Some("{url}"));
        assert_eq!(
            command.fill(&values),
            [
                "wrk",
                "-d3s",
                "-c64",
                "http://127.0.0.1:8123/a?b={c}",
                r#"{"a":1}"#
            ]
        );
    }

    #[test]
    fn a_command_has_a_program() {
        assert_eq!(Template::new(vec![]), Err(TemplateError::Empty));
        assert_eq!(
            Template::new(vec![String::new()]),
            Err(TemplateError::Empty)
        );
    }
}
