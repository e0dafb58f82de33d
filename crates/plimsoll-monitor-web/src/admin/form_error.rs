//! Why a form is not accepted.

use std::fmt::Write as _;

use plimsoll_model::document::ConfigProblem;
use plimsoll_monitor::engine::CommandError;
use plimsoll_monitor::manage::ChangeError;
use plimsoll_monitor::notify::SendFailure;
use plimsoll_monitor::store::StoreError;

use crate::admin::outgoing::OutgoingError;
use crate::admin::password::HashFailure;
use crate::answer::ApiError;

/// Why a form is not accepted, as its page says it.
#[derive(Debug, thiserror::Error)]
pub(super) enum FormError {
    /// The field for further settings is no TOML.
    #[error("More settings: {}", .0.message())]
    MoreSettings(toml::de::Error),
    /// All problems of a definition, each on a line.
    #[error("{}", lines(.0))]
    Definition(Vec<ConfigProblem>),
    #[error("{}", .0.message())]
    Refused(ApiError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Engine(#[from] CommandError),
    #[error("the system has no random numbers")]
    NoRandomNumbers,
    #[error("there is nothing to test")]
    NothingToTest,
    #[error("This kind is not probed, so there is nothing to test.")]
    NotProbed,
    #[error("The test message was not accepted: {0}")]
    NotSent(OutgoingError<SendFailure>),
    /// A setting of credentials that would go to another server.
    #[error("The address changes, so type `{0}` again: what is stored is sent to no other server.")]
    AddressChanges(&'static str),
    /// A field, by its name in the form, and what is wrong with it.
    #[error("{1}")]
    Field(&'static str, String),
    /// A setting of pairs.
    #[error("`{0}` has a line without a colon")]
    NoColon(&'static str),
    #[error("Too many attempts. Try again later.")]
    TooManyAttempts,
    #[error("The present password is wrong.")]
    WrongPassword,
    #[error("The password was not checked: {0}.")]
    PasswordNotChecked(HashFailure),
}

impl From<ChangeError> for FormError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Invalid(problems) => {
                Self::Definition(problems.into_iter().map(|(_, problem)| problem).collect())
            }
            other => Self::Refused(ApiError::from(other)),
        }
    }
}

fn lines(problems: &[ConfigProblem]) -> String {
    let mut text = String::new();
    for problem in problems {
        if !text.is_empty() {
            text.push('\n');
        }
        write!(text, "{problem}").expect("text can be written to memory");
        if let Some(hint) = &problem.hint {
            write!(text, "; {hint}").expect("text can be written to memory");
        }
    }
    text
}
