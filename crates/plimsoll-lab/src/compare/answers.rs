//! Whether operands answer alike: two that send something else are not to be compared by what a request costs.

use std::time::Duration;

use url::Url;

use crate::server::probe::{Answer, ProbeError, answer};

/// Time for one answer.
const WITHIN: Duration = Duration::from_secs(10);

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
    /// Makes two requests. `None` if the content is longer than is looked at, and for a URL that is not of `http`: which
    /// certificates are accepted is for the load generator to say.
    pub(super) fn request(url: &Url) -> Result<Option<Self>, ProbeError> {
        if url.scheme() != "http" {
            return Ok(None);
        }
        let both = answer(url, WITHIN)?.zip(answer(url, WITHIN)?);
        Ok(both.map(|(first, second)| Self::new(first, &second)))
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
