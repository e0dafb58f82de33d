//! Whether the contents of a document's responses are what its own schemas accept.

use plimsoll_formats::openapi::{MakeError, MediaContent, StandaloneError};
use plimsoll_schema::{JsonSchema, JsonSchemaError};
use serde_json::Value;

use super::OpenApi;

/// A content that its own schema does not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfitContent {
    /// Method, path, status and media type.
    pub response: String,
    /// Whether the document is wrong: an example of it, or alternatives of `oneOf` that accept the same; else the content
    /// that was made.
    pub is_documents: bool,
    /// The error.
    pub reason: String,
}

/// The verdict on the contents of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fit {
    /// Contents in JSON with a schema.
    pub judged: usize,
    /// Those that their schemas do not accept, or that cannot be made.
    pub unfit: Vec<UnfitContent>,
}

/// Why a response cannot be judged.
#[derive(Debug, thiserror::Error)]
enum UnjudgedError {
    #[error(transparent)]
    Standalone(#[from] StandaloneError),
    #[error(transparent)]
    Schema(#[from] JsonSchemaError),
    #[error(transparent)]
    Make(#[from] MakeError),
}

impl OpenApi {
    /// Judges what each response in JSON would be by its own schema.
    pub fn fit(&self) -> Fit {
        let mut fit = Fit::default();
        for operation in &self.api.operations {
            for response in &operation.responses {
                for content in &response.content {
                    let is_json = content.kind.contains("json");
                    let Some(schema) = self.api.schema_of(content).filter(|_| is_json) else {
                        continue;
                    };
                    fit.judged += 1;
                    let judged = schema.map_err(UnjudgedError::from);
                    let judged = judged.and_then(|schema| self.judge(content, &schema));
                    let (is_documents, reason) = match judged {
                        Ok(None) => continue,
                        Ok(Some(wrong)) => wrong,
                        Err(error) => (false, error.to_string()),
                    };
                    let (method, path) = (&operation.method, &operation.path);
                    fit.unfit.push(UnfitContent {
                        response: format!("{method} {path} {} {}", response.code, content.kind),
                        is_documents,
                        reason,
                    });
                }
            }
        }
        fit
    }

    /// The error in a content, if there is one, and whether it is the document's.
    fn judge(
        &self,
        content: &MediaContent,
        schema: &Value,
    ) -> Result<Option<(bool, String)>, UnjudgedError> {
        let validator = JsonSchema::of_openapi(schema)?;
        let given = content.examples.first().map(|(_, value)| value.clone());
        let is_given = given.is_some();
        let value = match given {
            Some(value) => value,
            None => self.api.make(content, None)?,
        };
        let mistakes = validator.mistakes(&value, 1);
        let Some(mistake) = mistakes.first() else {
            return Ok(None);
        };
        // If a value without examples fits, one within the schema does not.
        let fits_without = || {
            let made = self.api.make_without_examples(content);
            made.is_ok_and(|value| validator.is_valid(&value))
        };
        let is_ambiguous = mistake.message.contains("valid under more than one");
        let is_documents = is_given || is_ambiguous || fits_without();
        let reason = format!("at `{}`: {}", mistake.pointer, mistake.message);
        Ok(Some((
            is_documents,
            reason.chars().take(LONGEST_REASON).collect(),
        )))
    }
}

const LONGEST_REASON: usize = 300;
