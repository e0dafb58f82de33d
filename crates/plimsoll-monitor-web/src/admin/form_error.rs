//! Why a form is not accepted.

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
    #[error("Turn one-time codes on first.")]
    NoCodes,
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

/// A problem of a form.
#[derive(Debug)]
pub(super) struct Problem {
    /// The key of the definition, or the name that the error has for a field; empty if it is of the form as a whole.
    pub(super) key: String,
    pub(super) message: String,
    /// What the message is about apart from its field; empty if it says so itself.
    place: String,
}

impl Problem {
    /// The message, apart from its field.
    pub(super) fn text(&self) -> String {
        if self.place.is_empty() {
            self.message.clone()
        } else {
            format!("{}: {}", self.place, self.message)
        }
    }
}

impl FormError {
    /// All problems, each with its field.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let key = match self {
            Self::Definition(problems) => return problems.iter().map(of_definition).collect(),
            Self::MoreSettings(_) => "more",
            Self::AddressChanges(key) | Self::NoColon(key) | Self::Field(key, _) => key,
            Self::WrongPassword => "present",
            _ => "",
        };
        vec![Problem {
            key: key.to_owned(),
            message: self.to_string(),
            place: String::new(),
        }]
    }
}

fn of_definition(problem: &ConfigProblem) -> Problem {
    let hint = problem.hint.as_ref().map(|hint| format!("; {hint}"));
    // The place of a key that is missing is its table.
    let missing = problem.message.strip_prefix('`');
    let missing = missing.and_then(|rest| rest.strip_suffix("` is missing"));
    let key = match (missing, problem.key.as_str()) {
        (None, table) => table.to_owned(),
        (Some(key), "") => key.to_owned(),
        (Some(key), table) => format!("{table}.{key}"),
    };
    Problem {
        key,
        message: format!("{}{}", problem.message, hint.unwrap_or_default()),
        place: problem.key.clone(),
    }
}

fn lines(problems: &[ConfigProblem]) -> String {
    let texts: Vec<_> = problems
        .iter()
        .map(|problem| of_definition(problem).text())
        .collect();
    texts.join("\n")
}
