//! Secrets of scripts (`k6/secrets`), from files or the command line.

use std::io;
use std::path::Path;

/// Stands in log lines where a secret was.
const REDACTED: &str = "***SECRET_REDACTED***";

/// Sources of secrets, each with a name.
#[derive(Clone, Default)]
pub struct Secrets {
    sources: Vec<Source>,
}

#[derive(Clone)]
struct Source {
    name: String,
    is_default: bool,
    values: Vec<(String, String)>,
}

/// Why sources of secrets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretSourceError {
    /// Another kind.
    #[error("`{0}` is not a kind of source; use file=PATH or mock=KEY=VALUE")]
    Kind(String),
    /// A part of a source.
    #[error("`{part}` in `{kind}=…` is neither a secret nor an option")]
    Part {
        /// As written.
        part: String,
        /// Of the source.
        kind: String,
    },
    /// A file without its place.
    #[error("`file` needs a path: file=secrets.txt")]
    NoPath,
    /// The file of a source.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// As written.
        path: String,
        /// Why not.
        cause: io::Error,
    },
    /// A line of a file.
    #[error("{path}:{line}: expected KEY=VALUE")]
    Line {
        /// As written.
        path: String,
        /// From 1.
        line: usize,
    },
    /// Two of one name.
    #[error("two sources are called `{0}`: give one of them another `name=`")]
    SameName(String),
    /// Two defaults.
    #[error("more than one source is the `default`")]
    Defaults,
}

/// Why a script gets no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoSecret {
    #[error("no secret sources are configured: run with --secret-source")]
    NoSources,
    #[error("no secret source with name \"{0}\"")]
    Source(String),
    #[error("none of the secret sources is the default: name one with secrets.source()")]
    NoDefault,
    #[error("no secret with key \"{0}\"")]
    Key(String),
}

/// Shows names alone.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.sources.iter().map(|source| &source.name);
        f.debug_list().entries(names).finish()
    }
}

impl Secrets {
    /// Reads sources in k6's form: `file=PATH`, `file=filename=PATH,name=NAME,default`, or `mock=KEY=VALUE,…`.
    ///
    /// - `read`: gets the text of a file.
    pub fn parse(
        specifications: &[String],
        read: impl Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, SecretSourceError> {
        let mut sources: Vec<Source> = Vec::new();
        for text in specifications {
            let source = Source::parse(text, &read)?;
            if sources.iter().any(|other| other.name == source.name) {
                return Err(SecretSourceError::SameName(source.name));
            }
            sources.push(source);
        }
        if let [only] = sources.as_mut_slice() {
            only.is_default = true;
        }
        if sources.iter().filter(|source| source.is_default).count() > 1 {
            return Err(SecretSourceError::Defaults);
        }
        Ok(Self { sources })
    }

    /// The secret called `key`.
    ///
    /// - `source`: absent means the default.
    pub(crate) fn get(&self, source: Option<&str>, key: &str) -> Result<&str, NoSecret> {
        if self.sources.is_empty() {
            return Err(NoSecret::NoSources);
        }
        let mut sources = self.sources.iter();
        let found = match source {
            Some(name) => sources
                .find(|source| source.name == name)
                .ok_or_else(|| NoSecret::Source(name.to_owned()))?,
            None => sources
                .find(|source| source.is_default)
                .ok_or(NoSecret::NoDefault)?,
        };
        let value = found.values.iter().find(|(name, _)| name == key);
        let value = value.ok_or_else(|| NoSecret::Key(key.to_owned()))?;
        Ok(&value.1)
    }

    /// The text without the values of secrets.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let values = self.sources.iter().flat_map(|source| &source.values);
        for (_, value) in values.filter(|(_, value)| !value.is_empty()) {
            text = text.replace(value.as_str(), REDACTED);
        }
        text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }
}

impl Source {
    fn parse(
        text: &str,
        read: &impl Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, SecretSourceError> {
        let (kind, rest) = text.split_once('=').unwrap_or((text, ""));
        if !["file", "mock"].contains(&kind) {
            return Err(SecretSourceError::Kind(kind.to_owned()));
        }
        let mut source = Self {
            name: "default".to_owned(),
            is_default: false,
            values: Vec::new(),
        };
        let mut path = None;
        for part in rest.split(',').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                None if part == "default" => source.is_default = true,
                Some(("name", name)) => name.clone_into(&mut source.name),
                Some(("filename", file)) if kind == "file" => path = Some(file),
                None if kind == "file" => path = Some(part),
                Some((key, value)) if kind == "mock" => {
                    let value = value.trim_matches('"');
                    source.values.push((key.to_owned(), value.to_owned()));
                }
                _ => {
                    return Err(SecretSourceError::Part {
                        part: part.to_owned(),
                        kind: kind.to_owned(),
                    });
                }
            }
        }
        match (kind, path) {
            ("file", Some(path)) => {
                let text = read(Path::new(path));
                let text = text.map_err(|cause| SecretSourceError::Read {
                    path: path.to_owned(),
                    cause,
                })?;
                source.values = values(&text).map_err(|line| SecretSourceError::Line {
                    path: path.to_owned(),
                    line,
                })?;
            }
            ("file", None) => return Err(SecretSourceError::NoPath),
            _ => {}
        }
        Ok(source)
    }
}

/// The lines of a file. Fails with the number of the first that is none.
fn values(text: &str) -> Result<Vec<(String, String)>, usize> {
    let mut values = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let (key, value) = line.split_once('=').ok_or(index + 1)?;
        values.push((key.to_owned(), value.to_owned()));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(specifications: &[&str]) -> Result<Secrets, SecretSourceError> {
        let texts: Vec<_> = specifications.iter().map(|it| (*it).to_owned()).collect();
        Secrets::parse(&texts, |path| match path.to_str() {
            Some("secrets.txt") => Ok("token=t0k=en\n\nempty=\n".to_owned()),
            Some("broken.txt") => Ok("token=x\nnothing\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        })
    }

    #[test]
    fn sources_have_names_and_a_default() {
        let one = parsed(&["file=secrets.txt"]).unwrap();
        assert_eq!(one.get(None, "token"), Ok("t0k=en"));
        assert_eq!(
            one.get(None, "other"),
            Err(NoSecret::Key("other".to_owned()))
        );
        let several = parsed(&[
            "mock=name=first,key=one",
            "file=name=second,filename=secrets.txt,default",
        ]);
        let several = several.unwrap();
        assert_eq!(several.get(Some("first"), "key"), Ok("one"));
        assert_eq!(several.get(None, "token"), Ok("t0k=en"));
        assert!(several.get(Some("third"), "key").is_err());
        assert!(
            Secrets::default()
                .get(None, "key")
                .unwrap_err()
                .to_string()
                .contains("--secret-source")
        );
        assert_eq!(format!("{several:?}"), r#"["first", "second"]"#);
    }

    #[test]
    fn values_are_redacted() {
        let secrets = parsed(&["file=secrets.txt"]).unwrap();
        assert_eq!(
            secrets.redact("with t0k=en."),
            "with ***SECRET_REDACTED***."
        );
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for (specifications, expected) in [
            (vec!["vault=x"], "`vault` is not a kind of source"),
            (vec!["file"], "`file` needs a path"),
            (vec!["file=missing.txt"], "cannot read missing.txt"),
            (vec!["file=broken.txt"], "broken.txt:2: expected KEY=VALUE"),
            (
                vec!["mock=a=b", "mock=c=d"],
                "two sources are called `default`",
            ),
            (
                vec!["mock=name=a,default", "mock=name=b,default"],
                "more than one source is the `default`",
            ),
        ] {
            let error = parsed(&specifications).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
