//! Whether operands answer alike: two that send something else are not to be compared by what a request costs.

use std::time::Duration;

use plimsoll_client::fetch::FetchError;
use plimsoll_model::Phase;
use plimsoll_wire::tls::{TlsSettings, Trust};
use url::Url;

use crate::server::probe::{Answer, COMPARED_LIMIT, ProbeError, answer};

/// Time for one answer.
const WITHIN: Duration = Duration::from_secs(10);

/// What there is to compare.
#[derive(Debug)]
pub(super) enum Asked {
    /// Both requests were answered.
    Answered(Answers),
    /// Its certificate is not trusted; load generators may trust others.
    Untrusted,
}

/// What an operand answered, twice: content that changes from one request to the next is not compared.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answers {
    /// The content is longer than is looked at.
    Long,
    /// The whole of it was looked at.
    Whole {
        /// Of the first answer.
        status: u16,
        /// `None` if it changes.
        length: Option<usize>,
        /// `None` if it changes.
        content: Option<Vec<u8>>,
    },
}

impl Answers {
    /// Makes two requests.
    ///
    /// - `trust`: in certificates, of `https`.
    pub(super) fn request(url: &Url, trust: &Trust) -> Result<Asked, ProbeError> {
        let tls = if url.scheme() == "https" {
            let settings = TlsSettings {
                trust: trust.clone(),
                alpn: vec![b"http/1.1".to_vec()],
                ..TlsSettings::default()
            };
            Some(settings.compile()?)
        } else {
            None
        };
        let ask = || answer(url, tls.clone(), WITHIN);
        let both = ask().and_then(|first| Ok(first.zip(ask()?)));
        match both {
            Ok(Some((first, second))) => Ok(Asked::Answered(Self::new(first, &second))),
            Ok(None) => Ok(Asked::Answered(Self::Long)),
            Err(ProbeError::Fetch(FetchError::Failed(failure))) if failure.phase == Phase::Tls => {
                Ok(Asked::Untrusted)
            }
            Err(error) => Err(error),
        }
    }

    fn new(first: Answer, second: &Answer) -> Self {
        let length = first.content.len();
        Self::Whole {
            status: first.status,
            length: (length == second.content.len()).then_some(length),
            content: Some(first.content).filter(|content| *content == second.content),
        }
    }

    /// What is different, in words that follow the name of the operand: of `self`, and of `other`.
    pub(super) fn difference(&self, other: &Self) -> Option<(String, String)> {
        let (
            Self::Whole {
                status,
                length,
                content,
            },
            Self::Whole {
                status: other_status,
                length: other_length,
                content: other_content,
            },
        ) = (self, other)
        else {
            return (self.is_long() != other.is_long()).then(|| (self.size(), other.size()));
        };
        if status != other_status {
            let text = |status: &u16| format!("answers with status {status}");
            return Some((text(status), text(other_status)));
        }
        if let (Some(own), Some(others)) = (length, other_length)
            && own != others
        {
            let text = |length: &usize| format!("answers with {length} bytes");
            return Some((text(own), text(others)));
        }
        let (own, others) = (content.as_ref()?, other_content.as_ref()?);
        let at = own
            .iter()
            .zip(others)
            .position(|(own, others)| own != others)?;
        let text = || format!("answers with other content from byte {at} on");
        Some((text(), text()))
    }
}

impl Answers {
    /// Whether the content is longer than is looked at.
    pub(super) fn is_long(&self) -> bool {
        matches!(self, Self::Long)
    }

    /// How much was answered, in words that follow the name of the operand.
    fn size(&self) -> String {
        match self {
            Self::Long => format!("answers with more than {COMPARED_LIMIT} bytes"),
            Self::Whole { status, .. } => {
                format!("answers with at most {COMPARED_LIMIT}, with status {status}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(status: u16, contents: [&str; 2]) -> Answers {
        let [first, second] = contents.map(|content| Answer {
            status,
            content: content.into(),
        });
        Answers::new(first, &second)
    }

    #[test]
    fn status_length_and_content_are_compared_as_far_as_they_stay() {
        let same = |content| answers(200, [content, content]);
        let difference = |ours: &Answers, peer: &Answers| ours.difference(peer).map(|(own, _)| own);
        assert_eq!(difference(&same("abc"), &same("abc")), None);
        assert_eq!(
            difference(&same("abc"), &answers(404, ["abc", "abc"])).unwrap(),
            "answers with status 200"
        );
        assert_eq!(
            difference(&same("abc"), &same("abcd")).unwrap(),
            "answers with 3 bytes"
        );
        assert_eq!(
            difference(&same("abc"), &same("axc")).unwrap(),
            "answers with other content from byte 1 on"
        );
        assert_eq!(
            Answers::Long.difference(&answers(500, ["abc", "abc"])),
            Some((
                "answers with more than 1048576 bytes".to_owned(),
                "answers with at most 1048576, with status 500".to_owned()
            ))
        );
        assert_eq!(Answers::Long.difference(&Answers::Long), None);
        // A clock in the content, and a counter that gets longer.
        assert_eq!(
            difference(&answers(200, ["at 1", "at 2"]), &same("at 9")),
            None
        );
        assert_eq!(difference(&answers(200, ["9", "10"]), &same("abc")), None);
    }
}
