//! What a broker knows of its cluster.

use serde_json::{Value, json};

use super::text;
use crate::probe::big_endian::Fields;

/// A length that stands for no value.
const NULL: u16 = u16::MAX;

/// No broker leads a partition.
const NO_LEADER: u32 = u32::MAX;

/// The request for a topic, or for none. A topic that is not there is not made.
pub(super) fn request(topic: Option<&str>) -> Vec<u8> {
    let count = u32::from(topic.is_some());
    let topic = topic.map(text).unwrap_or_default();
    [&count.to_be_bytes()[..], &topic, &[0]].concat()
}

/// A response of version 4.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Metadata {
    brokers: u32,
    cluster: Option<String>,
    controller: u32,
    /// The topic that was asked for.
    topic: Option<Topic>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Topic {
    name: String,
    /// Zero if it is there.
    error: u16,
    partitions: u32,
    /// Partitions without a leader, by their numbers.
    without_leader: Vec<u32>,
    /// Partitions with fewer replicas in sync than replicas.
    under_replicated: u32,
}

impl Metadata {
    /// Reads a response. `None` if it is none.
    pub(super) fn read(response: &[u8]) -> Option<Self> {
        let mut fields = Fields(response);
        // For how long the client was throttled.
        fields.number32()?;
        let brokers = fields.number32()?;
        for _ in 0..brokers {
            fields.number32()?;
            nullable_text(&mut fields)?;
            fields.number32()?;
            // The rack.
            nullable_text(&mut fields)?;
        }
        let cluster = nullable_text(&mut fields)?;
        let controller = fields.number32()?;
        let mut topic = None;
        for _ in 0..fields.number32()? {
            topic = Some(Topic::read(&mut fields)?);
        }
        Some(Self {
            brokers,
            cluster,
            controller,
            topic,
        })
    }

    /// Why the topic cannot be used, if it cannot.
    pub(super) fn problem(&self) -> Option<String> {
        let topic = self.topic.as_ref()?;
        let name = &topic.name;
        if topic.error != 0 {
            return Some(format!("the topic `{name}`: {}", reason(topic.error)));
        }
        let first = topic.without_leader.first()?;
        Some(match topic.without_leader.len() {
            1 => format!("partition {first} of `{name}` has no leader"),
            more => format!(
                "{more} of {} partitions of `{name}` have no leader, such as {first}",
                topic.partitions
            ),
        })
    }

    /// For conditions about the body.
    pub(super) fn to_json(&self) -> Value {
        let mut shown = json!({
            "brokers": self.brokers,
            "controller": self.controller,
        });
        if let Some(cluster) = &self.cluster {
            shown["cluster"] = json!(cluster);
        }
        if let Some(topic) = &self.topic {
            shown["topic"] = json!(topic.name);
            shown["partitions"] = json!(topic.partitions);
            shown["without_leader"] = json!(topic.without_leader.len());
            shown["under_replicated"] = json!(topic.under_replicated);
        }
        shown
    }
}

impl Topic {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let error = fields.number16()?;
        let mut topic = Self {
            error,
            name: nullable_text(fields)?.unwrap_or_default(),
            ..Self::default()
        };
        // Whether it is internal.
        fields.number8()?;
        topic.partitions = fields.number32()?;
        for _ in 0..topic.partitions {
            let error = fields.number16()?;
            let (number, leader) = (fields.number32()?, fields.number32()?);
            let replicas = skip_numbers(fields)?;
            let in_sync = skip_numbers(fields)?;
            // Some brokers name a leader that is not there, with an error.
            if leader == NO_LEADER || error == LEADER_NOT_AVAILABLE {
                topic.without_leader.push(number);
            }
            topic.under_replicated += u32::from(in_sync < replicas);
        }
        Some(topic)
    }
}

/// The length of a list of numbers that is passed over.
fn skip_numbers(fields: &mut Fields<'_>) -> Option<u32> {
    let count = fields.number32()?;
    let bytes = usize::try_from(count).ok()?.checked_mul(4)?;
    fields.bytes(bytes)?;
    Some(count)
}

/// A text, or that there is none.
#[expect(
    clippy::option_option,
    reason = "the outer one says that the message ended, as for all that is read"
)]
pub(super) fn nullable_text(fields: &mut Fields<'_>) -> Option<Option<String>> {
    let length = fields.number16()?;
    if length == NULL {
        return Some(None);
    }
    let bytes = fields.bytes(length.into())?;
    Some(Some(String::from_utf8_lossy(bytes).into_owned()))
}

/// A list of texts.
pub(super) fn texts(fields: &mut Fields<'_>) -> Option<Vec<String>> {
    let count = fields.number32()?;
    let mut texts = Vec::new();
    for _ in 0..count {
        texts.push(nullable_text(fields)?.unwrap_or_default());
    }
    Some(texts)
}

const LEADER_NOT_AVAILABLE: u16 = 5;

/// An error of the protocol in words.
pub(super) fn reason(code: u16) -> String {
    let known = match code {
        3 => "it is not there",
        LEADER_NOT_AVAILABLE => "there is no leader",
        17 => "this is no name of a topic",
        29 => "the user may not describe it",
        31 => "the user may not use the cluster",
        34 => "the login is in another state than the broker",
        35 => "the broker does not have this version of the request",
        58 => "the login failed",
        _ => return format!("error {code} of Kafka's protocol"),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(numbers: &[u32]) -> Vec<u8> {
        let count = u32::try_from(numbers.len()).unwrap();
        let all = [&[count], numbers].concat();
        all.into_iter().flat_map(u32::to_be_bytes).collect()
    }

    fn partition(error: u16, number: u32, leader: u32, in_sync: &[u32]) -> Vec<u8> {
        [
            &error.to_be_bytes()[..],
            &number.to_be_bytes(),
            &leader.to_be_bytes(),
            &numbers(&[1, 2, 3]),
            &numbers(in_sync),
        ]
        .concat()
    }

    fn response(error: u16, partitions: &[Vec<u8>]) -> Vec<u8> {
        let count = u32::try_from(partitions.len()).unwrap();
        [
            &[0; 4][..],
            &1u32.to_be_bytes(),
            &7u32.to_be_bytes(),
            &text("kafka1"),
            &9092u32.to_be_bytes(),
            &NULL.to_be_bytes(),
            &text("c1"),
            &7u32.to_be_bytes(),
            &1u32.to_be_bytes(),
            &error.to_be_bytes(),
            &text("orders"),
            &[0],
            &count.to_be_bytes(),
            &partitions.concat(),
        ]
        .concat()
    }

    #[test]
    fn partitions_without_a_leader_are_a_problem_and_missing_replicas_are_counted() {
        let healthy = partition(0, 0, 1, &[1, 2, 3]);
        let metadata = Metadata::read(&response(0, std::slice::from_ref(&healthy))).unwrap();
        assert_eq!(metadata.problem(), None);
        assert_eq!(
            metadata.to_json(),
            json!({"brokers": 1, "controller": 7, "cluster": "c1", "topic": "orders", "partitions": 1,
                   "without_leader": 0, "under_replicated": 0})
        );
        let lagging = partition(9, 1, 1, &[1]);
        let lost = partition(5, 2, NO_LEADER, &[]);
        let metadata = Metadata::read(&response(0, &[healthy, lagging, lost.clone()])).unwrap();
        let problem = metadata.problem().unwrap();
        assert_eq!(problem, "partition 2 of `orders` has no leader");
        assert_eq!(metadata.to_json()["under_replicated"], 2);
        let metadata = Metadata::read(&response(0, &[lost.clone(), lost])).unwrap();
        let problem = metadata.problem().unwrap();
        assert!(problem.starts_with("2 of 2 partitions"), "{problem}");
    }

    #[test]
    fn a_topic_that_is_not_there_is_a_problem() {
        let metadata = Metadata::read(&response(3, &[])).unwrap();
        let problem = metadata.problem().unwrap();
        assert_eq!(problem, "the topic `orders`: it is not there");
        let cut = response(0, &[partition(0, 0, 1, &[1])]);
        assert_eq!(Metadata::read(&cut[..cut.len() - 1]), None);
    }

    #[test]
    fn a_request_never_makes_a_topic() {
        assert_eq!(request(None), [0, 0, 0, 0, 0]);
        assert_eq!(request(Some("a")), [0, 0, 0, 1, 0, 1, b'a', 0]);
    }

    proptest! {
        #[test]
        fn any_response_is_read_without_a_panic(response in proptest::collection::vec(any::<u8>(), 0..200)) {
            Metadata::read(&response);
            texts(&mut Fields(&response));
        }
    }
}
