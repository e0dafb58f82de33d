//! Redis and servers with its protocol (RESP2): a command and its reply.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use plimsoll_client::Stream;
use plimsoll_model::{Clock, Failure, FailureKind, Phase, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::probe::context::{ProbeContext, Reach, TcpTarget, timed};
use crate::probe::database::{DatabaseScheme, DatabaseUrl, DatabaseUrlError};
use crate::probe::reading::Reading;
use crate::probe::starttls::line;
use crate::probe::{Probe, ProbeFuture};

const SCHEME: DatabaseScheme = DatabaseScheme {
    names: ["redis", "rediss"],
    port: 6379,
    example: "redis://user:password@cache.example.org/0",
};

/// Bytes of a reply.
const MOST_READ: usize = 64 * 1024;

/// Values of a reply, however they are nested.
const MOST_VALUES: usize = 10_000;

/// Sends a command to Redis.
pub struct RedisProbe {
    target: TcpTarget,
    /// `AUTH` and `SELECT`, as far as the URL has them.
    before: Vec<Vec<Secret>>,
    command: Vec<String>,
    reach: Reach,
}

impl RedisProbe {
    /// - `url`: `redis://user:password@host:port/number`, or `rediss://` for TLS.
    /// - `command`: the words of a command; `PING` if there are none.
    pub fn new(url: &str, command: Vec<String>, reach: Reach) -> Result<Self, DatabaseUrlError> {
        let url = DatabaseUrl::parse(url, SCHEME, |scheme| scheme == "rediss")?;
        let mut before = Vec::new();
        if let Some(password) = &url.password {
            let mut words = vec![Secret::new("AUTH")];
            if !url.user.is_empty() {
                words.push(Secret::new(url.user.clone()));
            }
            words.push(password.clone());
            before.push(words);
        }
        if !url.database.is_empty() {
            let number = url.database.parse::<u32>();
            number.map_err(|_| DatabaseUrlError::Url(SCHEME.example))?;
            before.push(vec![Secret::new("SELECT"), Secret::new(url.database)]);
        }
        let command = if command.is_empty() {
            vec!["PING".to_owned()]
        } else {
            command
        };
        Ok(Self {
            target: url.target,
            before,
            command,
            reach,
        })
    }

    async fn exchange(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Failure> {
        let endpoint = self.target.endpoint();
        let Some(connection) = self.reach.connect(endpoint, context, reading).await else {
            return Ok(());
        };
        let mut stream = connection.stream;
        if let Some(session) = stream.tls_session() {
            reading.certificate = session.certificate;
        }
        let begun = context.clock.now();
        for words in &self.before {
            let words: Vec<&str> = words.iter().map(Secret::expose).collect();
            if let Reply::Refused(refusal) = reply(&mut stream, &words).await? {
                reading.unmet = Some(refusal);
                return Ok(());
            }
        }
        let words: Vec<&str> = self.command.iter().map(String::as_str).collect();
        let outcome = reply(&mut stream, &words).await?;
        let waited = context.clock.now().saturating_duration_since(begun);
        reading.phases.set(Phase::Wait, waited);
        match outcome {
            Reply::Lines(text) => {
                reading.size = text.len() as u64;
                reading.body = text.into_bytes();
            }
            Reply::Refused(refusal) => reading.unmet = Some(refusal),
        }
        Ok(())
    }
}

/// What the server replies to a command.
enum Reply {
    Lines(String),
    /// Its reason.
    Refused(String),
}

/// Sends a command, and reads its reply.
async fn reply(stream: &mut Stream, words: &[&str]) -> Result<Reply, Failure> {
    let mut command = format!("*{}\r\n", words.len());
    for word in words {
        write!(command, "${}\r\n{word}\r\n", word.len()).expect("text can be written to memory");
    }
    let sent = async {
        stream.write_all(command.as_bytes()).await?;
        stream.flush().await
    };
    let sent = sent.await;
    sent.map_err(|error| Failure::from_io(Phase::Send, &error))?;
    let mut text = String::new();
    // Values that are still to come.
    let (mut left, mut values) = (1_u64, 0);
    while left > 0 {
        left -= 1;
        values += 1;
        if values > MOST_VALUES {
            return Err(too_large());
        }
        let head = line(stream).await?;
        let head = head.trim_end_matches(['\r', '\n']);
        let (kind, rest) = head.split_at_checked(1).unwrap_or_default();
        let length = || rest.parse::<i64>().map_err(|_| unknown(head));
        match kind {
            "-" if values == 1 => return Ok(Reply::Refused(format!("the server reports: {rest}"))),
            "+" | ":" | "-" => text.push_str(rest),
            "$" => match usize::try_from(length()?) {
                // No value.
                Err(_) => {}
                Ok(length) if text.len() + length > MOST_READ => return Err(too_large()),
                Ok(length) => {
                    let mut content = vec![0; length + 2];
                    let read = stream.read_exact(&mut content).await;
                    read.map_err(|error| Failure::from_io(Phase::Receive, &error))?;
                    content.truncate(length);
                    text.push_str(&String::from_utf8_lossy(&content));
                }
            },
            "*" => {
                left = left.saturating_add(u64::try_from(length()?).unwrap_or(0));
                continue;
            }
            _ => return Err(unknown(head)),
        }
        if text.len() > MOST_READ {
            return Err(too_large());
        }
        if left > 0 {
            text.push('\n');
        }
    }
    Ok(Reply::Lines(text))
}

fn too_large() -> Failure {
    let cause = format!("the reply has more than {MOST_READ} bytes or {MOST_VALUES} values");
    Failure::new(Phase::Receive, FailureKind::TooLarge).because(cause)
}

fn unknown(head: &str) -> Failure {
    let shown: String = head.chars().take(40).collect();
    let cause = format!("the server does not speak the protocol of Redis: `{shown}`");
    Failure::new(Phase::Receive, FailureKind::Protocol).because(cause)
}

impl Probe for RedisProbe {
    fn kind(&self) -> &'static str {
        "redis"
    }

    fn target(&self) -> String {
        self.target.text()
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.target.text().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            if let Err(failure) = self.exchange(context, reading).await {
                reading.failure = Some(failure);
            }
        }))
    }
}

impl fmt::Debug for RedisProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisProbe")
            .field("target", &self.target())
            .finish_non_exhaustive()
    }
}
