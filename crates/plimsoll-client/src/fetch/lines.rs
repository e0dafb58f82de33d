//! A response that is read line by line while it comes: watches and logs of events.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;

use super::{FetchError, Fetched, Fetcher};
use crate::connect::endpoint::Endpoint;
use crate::forward::Exchange;

/// The lines of a response that may not end.
#[derive(Debug)]
pub struct FetchedLines {
    exchange: Exchange<Full<Bytes>>,
    /// Of one line, in bytes.
    limit: u64,
    whole: VecDeque<Vec<u8>>,
    /// The beginning of the next line.
    rest: Vec<u8>,
}

impl Fetcher {
    /// Gets `endpoint`, and leaves the content to be read by lines. The time limit is that of the head, and the limit on the
    /// length that of a line.
    ///
    /// Another status than 200 is an answer as by [`Fetcher::send_to`].
    pub async fn lines(
        &self,
        endpoint: &Endpoint,
        fields: Vec<(String, String)>,
    ) -> Result<Result<FetchedLines, Fetched>, FetchError> {
        let timeout = self.limits.timeout;
        let opening = async {
            let (head, exchange) = self.begin("GET", endpoint, fields, Bytes::new()).await?;
            if head.status != 200 {
                return Ok(Err(self.read(head, exchange, None).await?));
            }
            Ok(Ok(FetchedLines {
                exchange,
                limit: self.limits.bytes,
                whole: VecDeque::new(),
                rest: Vec::new(),
            }))
        };
        let opened = tokio::time::timeout(timeout, opening).await;
        opened.unwrap_or(Err(FetchError::Timeout(timeout)))
    }
}

impl FetchedLines {
    /// The next line, without its end; `None` at the end of the response. A line that has no end is one if the response has.
    ///
    /// - `patience`: without a byte for so long, it fails.
    ///
    /// Nothing is lost if it is dropped before it is done.
    pub async fn next(&mut self, patience: Duration) -> Result<Option<Vec<u8>>, FetchError> {
        loop {
            if let Some(line) = self.whole.pop_front() {
                return Ok(Some(line));
            }
            let frame = tokio::time::timeout(patience, self.exchange.frame()).await;
            let Some(frame) = frame.map_err(|_| FetchError::Timeout(patience))? else {
                let rest = std::mem::take(&mut self.rest);
                return Ok((!rest.is_empty()).then_some(rest));
            };
            let frame = frame.map_err(|incomplete| FetchError::Failed(incomplete.failure))?;
            if let Ok(data) = frame.into_data() {
                self.add(&data);
            }
            let longest = self.whole.iter().map(Vec::len).max().unwrap_or_default();
            if longest.max(self.rest.len()) as u64 > self.limit {
                return Err(FetchError::TooLong(self.limit));
            }
        }
    }

    fn add(&mut self, data: &[u8]) {
        let mut lines = data.split(|byte| *byte == b'\n');
        self.rest
            .extend_from_slice(lines.next().unwrap_or_default());
        for next in lines {
            let mut line = std::mem::replace(&mut self.rest, next.to_vec());
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            self.whole.push_back(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_testkit::{Origin, Script};
    use plimsoll_wire::tls::Trust;

    use super::*;
    use crate::fetch::FetchLimits;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn fetcher(bytes: u64) -> Fetcher {
        let limits = FetchLimits {
            timeout: PATIENCE,
            bytes,
            redirects: 0,
        };
        Fetcher::believing(Trust::Anyone, limits).unwrap()
    }

    async fn lines_of(response: &str, bytes: u64) -> Result<Vec<String>, FetchError> {
        let script = Script::serve(response.to_owned());
        let origin = Origin::builder().script(move |_| script.clone()).start();
        let endpoint = Endpoint::parse(&origin.url("/")).unwrap();
        let fetcher = fetcher(bytes);
        let opened = fetcher.lines(&endpoint, Vec::new()).await?;
        let mut opened = opened.map_err(|_| FetchError::TooLong(0))?;
        let mut lines = Vec::new();
        while let Some(line) = opened.next(PATIENCE).await? {
            lines.push(String::from_utf8(line).unwrap());
        }
        Ok(lines)
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        tokio::task::LocalSet::new().block_on(&runtime.unwrap(), work)
    }

    #[test]
    fn lines_are_whole_however_they_are_cut() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunks = "4\r\na\nbc\r\n3\r\nd\r\n\r\n2\r\n\n\n\r\n4\r\nlast\r\n0\r\n\r\n";
        let lines = run(lines_of(&format!("{head}{chunks}"), 100)).unwrap();
        assert_eq!(lines, ["a", "bcd", "", "", "last"]);
    }

    #[test]
    fn a_line_has_a_limit_and_a_response_has_none() {
        let response = |content: &str| {
            let length = content.len();
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{content}")
        };
        let many = "12345678\n".repeat(50);
        assert_eq!(run(lines_of(&response(&many), 10)).unwrap().len(), 50);
        let long = run(lines_of(&response("123456789012"), 10));
        assert!(matches!(long, Err(FetchError::TooLong(10))), "{long:?}");
    }

    #[test]
    fn another_status_is_an_answer() {
        let script = Script::serve("HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone");
        let origin = Origin::builder().script(move |_| script.clone()).start();
        let endpoint = Endpoint::parse(&origin.url("/")).unwrap();
        let answer = run(async { fetcher(100).lines(&endpoint, Vec::new()).await }).unwrap();
        let answer = answer.unwrap_err();
        assert_eq!(
            (answer.status, answer.content.as_slice()),
            (410, &b"gone"[..])
        );
    }
}
