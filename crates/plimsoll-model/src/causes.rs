//! Errors as people read them: on one line, with their causes.

use std::error::Error;

/// An error with all its causes, `a: b: c`. A cause that the text has already, since some errors name theirs, is left out.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Failure {
        #[error("cannot open the store")]
        Open(#[source] io::Error),
        #[error("cannot open the store: {0}")]
        Named(#[source] io::Error),
        #[error("cannot start")]
        Start(#[source] Box<Failure>),
    }

    #[test]
    fn each_cause_is_shown_once() {
        let full = || io::Error::other("the disk is full");
        let text = "cannot open the store: the disk is full";
        assert_eq!(with_causes(&Failure::Open(full())), text);
        assert_eq!(with_causes(&Failure::Named(full())), text);
        let failure = Failure::Start(Box::new(Failure::Open(full())));
        assert_eq!(with_causes(&failure), format!("cannot start: {text}"));
    }
}
