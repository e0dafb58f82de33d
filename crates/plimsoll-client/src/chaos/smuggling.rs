//! Smuggling: requests that two readers could understand differently, each on a connection of its own,
//! and how they are answered.

mod cases;

use std::time::Duration;

use plimsoll_model::{CaseAnswer, ChaosCase};
use plimsoll_wire::h1::{KnownHead, Limits, ResponseDecoder};
use tokio::io::AsyncReadExt;

use self::cases::{Case, cases};
use super::door::Speaks;
use super::ground::Ground;
use crate::Stream;

/// Timeout for a response, and for a second response behind it.
const PATIENCE: Duration = Duration::from_millis(500);

/// Bytes of responses that are looked at.
const MOST_BYTES: usize = 1 << 20;

/// By these a server says that there is something wrong with the request itself; others, such as 404, are
/// answers to a request that it took for one.
const REFUSALS: [u16; 11] = [400, 408, 411, 413, 414, 415, 417, 421, 431, 501, 505];

pub(super) async fn attack(ground: &Ground<'_>) -> Vec<ChaosCase> {
    let endpoint = ground.door.endpoint();
    let mut answered = Vec::new();
    for case in cases(endpoint.path_and_query(), endpoint.authority()) {
        if ground.leave(1).await.is_none() {
            break;
        }
        let Some(answer) = answer(ground, &case).await else {
            continue;
        };
        answered.push(ChaosCase {
            name: case.name.to_owned(),
            about: case.about.to_owned(),
            allowed: case.rule,
            answer,
        });
    }
    answered
}

/// `None` if there was no connection to be had.
async fn answer(ground: &Ground<'_>, case: &Case) -> Option<CaseAnswer> {
    let mut stream = ground.open(Speaks::Http1, None).await?;
    let sent = ground.send(&mut stream, &case.bytes).await;
    ground.tally.sent(1);
    let answer = match sent {
        Ok(()) => read(ground, &mut stream).await,
        Err(_) => SeenResponses::default(),
    };
    for status in answer.statuses.iter().flatten() {
        ground.tally.status(*status);
    }
    if answer.is_ended {
        ground.tally.ended();
    }
    Some(answer.judged())
}

/// Responses seen on a connection.
#[derive(Debug, Default, PartialEq, Eq)]
struct SeenResponses {
    /// Of the first two responses.
    statuses: [Option<u16>; 2],
    is_ended: bool,
}

impl SeenResponses {
    /// Those beyond the second do not matter.
    fn add(&mut self, status: u16) {
        if let Some(place) = self.statuses.iter_mut().find(|status| status.is_none()) {
            *place = Some(status);
        }
    }

    fn judged(&self) -> CaseAnswer {
        match self.statuses {
            [Some(status), _] if REFUSALS.contains(&status) => CaseAnswer::Refused(status),
            // A second response that refuses what follows was not taken for a request.
            [Some(status), Some(second)] if !REFUSALS.contains(&second) => CaseAnswer::Two(status),
            [Some(status), second] if second.is_some() || self.is_ended => {
                CaseAnswer::OneAndEnd(status)
            }
            [Some(status), _] => CaseAnswer::One(status),
            [None, _] if self.is_ended => CaseAnswer::Closed,
            [None, _] => CaseAnswer::Waits,
        }
    }
}

/// Reads two responses, or until nothing more comes.
async fn read(ground: &Ground<'_>, stream: &mut Stream) -> SeenResponses {
    let mut seen = SeenResponses::default();
    let mut decoder = ResponseDecoder::new(Limits::default());
    let mut known = KnownHead::new();
    decoder.begin(false);
    let mut buffer = vec![0; 16 * 1024];
    let mut total = 0;
    while total < MOST_BYTES {
        let read = match tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await {
            Err(_) => return seen,
            Ok(Ok(0) | Err(_)) => {
                seen.is_ended = true;
                if decoder.has_head() && decoder.end_of_stream().is_ok() {
                    seen.add(decoder.status());
                }
                return seen;
            }
            Ok(Ok(read)) => read,
        };
        ground.tally.bytes_received(read);
        total += read;
        let mut input = &buffer[..read];
        while !input.is_empty() {
            let Ok(part) = decoder.decode(input, &mut (), &mut known) else {
                return seen;
            };
            input = &input[part.consumed..];
            if part.complete {
                seen.add(decoder.status());
                decoder.begin(false);
            }
        }
        if seen.statuses[1].is_some() {
            return seen;
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_distinguished() {
        let seen = |first, second, is_ended| {
            SeenResponses {
                statuses: [first, second],
                is_ended,
            }
            .judged()
        };
        assert_eq!(seen(Some(400), None, true), CaseAnswer::Refused(400));
        assert_eq!(seen(Some(404), None, false), CaseAnswer::One(404));
        assert_eq!(seen(Some(404), None, true), CaseAnswer::OneAndEnd(404));
        assert_eq!(seen(Some(200), Some(404), false), CaseAnswer::Two(200));
        let refused = seen(Some(200), Some(400), false);
        assert_eq!(refused, CaseAnswer::OneAndEnd(200));
        assert_eq!(seen(None, None, true), CaseAnswer::Closed);
        assert_eq!(seen(None, None, false), CaseAnswer::Waits);
    }
}
