//! Whether operands answer alike: two that send something else are not to be compared by what a request costs.

use std::time::Duration;

use plimsoll_client::fetch::FetchError;
use plimsoll_model::Phase;
use plimsoll_wire::tls::{TlsSettings, Trust};
use url::Url;

use crate::server::probe::{Answer, ProbeError, answer};

/// Time for one answer.
const WITHIN: Duration = Duration::from_secs(10);

/// What there is to compare.
#[derive(Debug)]
pub(super) enum Asked {
    /// Both requests were answered.
    Answered(Answers),
    /// The content is longer than is looked at.
    Long,
    /// Its certificate is not trusted; load generators may trust others.
    Untrusted,
}

/// What an operand answered, twice: content that changes from one request to the next is not compared.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answers {
    status: u16,
    /// `None` if it changes.
    length: Option<usize>,
    /// `None` if it changes.
    content: Option<Vec<u8>>,
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
            Ok(None) => Ok(Asked::Long),
            Err(ProbeError::Fetch(FetchError::Failed(failure))) if failure.phase == Phase::Tls => {
                Ok(Asked::Untrusted)
            }
            Err(error) => Err(error),
        }
    }

    fn new(first: Answer, second: &Answer) -> Self {
        let length = first.content.len();
        Self {
            status: first.status,
            length: (length == second.content.len()).then_some(length),
            content: Some(first.content).filter(|content| *content == second.content),
        }
    }

    /// What is different, in words that follow the name of the operand: of `self`, and of `other`.
    pub(super) fn difference(&self, other: &Self) -> Option<(String, String)> {
        if self.status != other.status {
            let text = |status: u16| format!("answers with status {status}");
            return Some((text(self.status), text(other.status)));
        }
        if let (Some(own), Some(others)) = (self.length, other.length)
            && own != others
        {
            let text = |length: usize| format!("answers with {length} bytes");
            return Some((text(own), text(others)));
        }
        let (own, others) = (self.content.as_ref()?, other.content.as_ref()?);
        let at = own
            .iter()
            .zip(others)
            .position(|(own, others)| own != others)?;
        let text = || format!("answers with other content from byte {at} on");
        Some((text(), text()))
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
        // A clock in the content, and a counter that gets longer.
        assert_eq!(
            difference(&answers(200, ["at 1", "at 2"]), &same("at 9")),
            None
        );
        assert_eq!(difference(&answers(200, ["9", "10"]), &same("abc")), None);
    }
}
