//! SNMP version 2c: the values of objects.
//!
//! Source: RFC 3416, sections 3 and 4.2.1; RFC 1901, section 3; RFC 3417, section 8.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::sync::Arc;

use plimsoll_model::{Clock, Failure, FailureKind, Phase, Secret};
use serde_json::{Value, json};

use crate::probe::ber::{Elements, element, integer, number, tag, unsigned};
use crate::probe::context::{ProbeContext, Reach, TcpTarget, timed};
use crate::probe::reading::Reading;
use crate::probe::udp::{exchange, resolve};
use crate::probe::{Probe, ProbeFuture};

/// The version 2c on the wire.
const VERSION: i64 = 1;

const GET: u8 = 0xa0;
const RESPONSE: u8 = 0xa2;

/// Reads objects of an agent.
pub struct SnmpProbe {
    /// Address of the agent.
    pub target: TcpTarget,
    /// What gives access.
    pub community: Secret,
    /// The objects.
    pub objects: Vec<ObjectId>,
    /// Connection options.
    pub reach: Reach,
}

/// The number of an object, such as `1.3.6.1.2.1.1.3.0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectId(Vec<u32>);

/// Why a text is no number of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be numbers with dots between them, such as 1.3.6.1.2.1.1.3.0")]
pub struct ObjectIdError;

impl FromStr for ObjectId {
    type Err = ObjectIdError;

    fn from_str(text: &str) -> Result<Self, ObjectIdError> {
        let text = text.strip_prefix('.').unwrap_or(text);
        let numbers: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
        let numbers = numbers.filter(|all| (2..=128).contains(&all.len()));
        let numbers = numbers.ok_or(ObjectIdError)?;
        // The first two share a number (X.690, section 8.19.4).
        let is_valid = numbers[0] <= 2 && (numbers[0] == 2 || numbers[1] < 40);
        let is_valid = is_valid && numbers[1] <= u32::MAX - 80;
        is_valid.then_some(Self(numbers)).ok_or(ObjectIdError)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, number) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(".")?;
            }
            write!(f, "{number}")?;
        }
        Ok(())
    }
}

impl ObjectId {
    fn to_ber(&self) -> Vec<u8> {
        let mut content = Vec::new();
        let (first, rest) = self.0.split_at(2);
        let first = first[0] * 40 + first[1];
        for number in std::iter::once(&first).chain(rest) {
            let groups = (0..5).rev().map(|group| (number >> (7 * group)) & 0x7f);
            let mut groups = groups.skip_while(|group| *group == 0).peekable();
            if groups.peek().is_none() {
                content.push(0);
            }
            while let Some(group) = groups.next() {
                let more = if groups.peek().is_some() { 0x80 } else { 0 };
                content.push(u8::try_from(group).unwrap_or(0) | more);
            }
        }
        content
    }

    fn of_ber(content: &[u8]) -> Option<Self> {
        let (mut numbers, mut number) = (Vec::new(), 0_u32);
        for byte in content {
            number = number
                .checked_mul(128)?
                .checked_add(u32::from(byte & 0x7f))?;
            if byte & 0x80 == 0 {
                if numbers.is_empty() {
                    let first = (number / 40).min(2);
                    numbers.push(first);
                    number -= first * 40;
                }
                numbers.push(number);
                number = 0;
            }
        }
        let is_whole = content.last().is_some_and(|last| last & 0x80 == 0);
        (is_whole && numbers.len() <= 128).then_some(Self(numbers))
    }
}

/// A response of an agent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    /// The values, in the order of the objects.
    Values(Vec<(ObjectId, Value)>),
    /// An error, and the number of the object that it is about.
    Error(i64, i64),
    /// An object that is not there.
    Missing(ObjectId),
}

fn request(community: &str, number: i64, objects: &[ObjectId]) -> Vec<u8> {
    let bindings = objects.iter().flat_map(|object| {
        let name = element(tag::OID, &object.to_ber());
        element(tag::SEQUENCE, &[name, element(tag::NULL, &[])].concat())
    });
    let bindings: Vec<u8> = bindings.collect();
    let content = [
        integer(tag::INTEGER, number),
        // No error, and none of an object.
        integer(tag::INTEGER, 0),
        integer(tag::INTEGER, 0),
        element(tag::SEQUENCE, &bindings),
    ];
    let message = [
        integer(tag::INTEGER, VERSION),
        element(tag::OCTETS, community.as_bytes()),
        element(GET, &content.concat()),
    ];
    element(tag::SEQUENCE, &message.concat())
}

/// Reads the response to the request of that number; `None` if it is none.
pub(super) fn read(message: &[u8], wanted: i64) -> Option<Answer> {
    let mut message = Elements(Elements(message).expect(tag::SEQUENCE)?);
    if message.number(tag::INTEGER)? != VERSION {
        return None;
    }
    message.expect(tag::OCTETS)?;
    let mut content = Elements(message.expect(RESPONSE)?);
    if content.number(tag::INTEGER)? != wanted {
        return None;
    }
    let (error, position) = (content.number(tag::INTEGER)?, content.number(tag::INTEGER)?);
    if error != 0 {
        return Some(Answer::Error(error, position));
    }
    let mut bindings = Elements(content.expect(tag::SEQUENCE)?);
    let mut values = Vec::new();
    while let Some(binding) = bindings.expect(tag::SEQUENCE) {
        let mut binding = Elements(binding);
        let object = ObjectId::of_ber(binding.expect(tag::OID)?)?;
        let (tag, content) = binding.next()?;
        // noSuchObject, noSuchInstance and endOfMibView (RFC 3416, section 3).
        if matches!(tag, 0x80..=0x82) {
            return Some(Answer::Missing(object));
        }
        values.push((object, value(tag, content)?));
    }
    Some(Answer::Values(values))
}

fn value(tag: u8, content: &[u8]) -> Option<Value> {
    Some(match tag {
        tag::INTEGER => number(content)?.into(),
        // Counter32, Gauge32, TimeTicks, Counter64.
        0x41..=0x43 | 0x46 => unsigned(content)?.into(),
        tag::OID => ObjectId::of_ber(content)?.to_string().into(),
        // IpAddress.
        0x40 => {
            let address: [u8; 4] = content.try_into().ok()?;
            Ipv4Addr::from(address).to_string().into()
        }
        tag::NULL => Value::Null,
        // Octets, and values of their own kinds: text if they are one.
        _ => match std::str::from_utf8(content) {
            Ok(text) if !text.chars().any(|c| c.is_control() && !c.is_whitespace()) => text.into(),
            _ => {
                let digits = content.iter().map(|byte| format!("{byte:02x}"));
                digits.collect::<String>().into()
            }
        },
    })
}

impl SnmpProbe {
    async fn look(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Failure> {
        let peer = resolve(&self.target, &self.reach, context, reading).await?;
        reading.peer = Some(peer.ip());
        let number = i64::from(fastrand::i32(1..));
        let request = request(self.community.expose(), number, &self.objects);
        let begun = context.clock.now();
        let answer = exchange(peer, Some(&request)).await;
        let answer = answer.map_err(|error| Failure::from_io(Phase::Wait, &error))?;
        let waited = context.clock.now().saturating_duration_since(begun);
        reading.phases.set(Phase::Wait, waited);
        reading.connected = true;
        let answer = read(&answer, number).ok_or_else(|| {
            let cause = "the answer is not one of SNMP to this request";
            Failure::new(Phase::Receive, FailureKind::Protocol).because(cause)
        })?;
        match answer {
            Answer::Values(values) => {
                let values = values
                    .into_iter()
                    .map(|(object, value)| json!({ "oid": object.to_string(), "value": value }));
                let body = Value::Array(values.collect());
                reading.body = body.to_string().into_bytes();
                reading.size = reading.body.len() as u64;
            }
            Answer::Missing(object) => {
                reading.unmet = Some(format!("the agent has no object {object}"));
            }
            Answer::Error(error, position) => {
                let object = usize::try_from(position)
                    .ok()
                    .and_then(|at| at.checked_sub(1));
                let object = object.and_then(|at| self.objects.get(at));
                let about = object.map_or(String::new(), |object| format!(" for {object}"));
                let name = match error {
                    1 => "tooBig",
                    2 => "noSuchName",
                    5 => "genErr",
                    6 => "noAccess",
                    16 => "authorizationError",
                    _ => "an error",
                };
                reading.unmet = Some(format!("the agent reports {name} ({error}){about}"));
            }
        }
        Ok(())
    }
}

impl Probe for SnmpProbe {
    fn kind(&self) -> &'static str {
        "snmp"
    }

    fn target(&self) -> String {
        self.target.text()
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.target.text().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            if let Err(failure) = self.look(context, reading).await {
                reading.failure = Some(failure);
            }
        }))
    }
}

impl fmt::Debug for SnmpProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnmpProbe")
            .field("target", &self.target())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Turns a request into the response of an agent.
    fn responded(number: i64, error: i64, bindings: &[(&str, u8, &[u8])]) -> Vec<u8> {
        let bindings = bindings.iter().flat_map(|(object, tag, content)| {
            let object: ObjectId = object.parse().unwrap();
            let name = element(tag::OID, &object.to_ber());
            element(tag::SEQUENCE, &[name, element(*tag, content)].concat())
        });
        let bindings: Vec<u8> = bindings.collect();
        let content = [
            integer(tag::INTEGER, number),
            integer(tag::INTEGER, error),
            integer(tag::INTEGER, 1),
            element(tag::SEQUENCE, &bindings),
        ];
        let message = [
            integer(tag::INTEGER, VERSION),
            element(tag::OCTETS, b"public"),
            element(RESPONSE, &content.concat()),
        ];
        element(tag::SEQUENCE, &message.concat())
    }

    #[test]
    fn values_have_the_types_of_json() {
        let message = responded(
            7,
            0,
            &[
                ("1.3.6.1.2.1.1.3.0", 0x43, &[1, 0]),
                ("1.3.6.1.2.1.1.5.0", tag::OCTETS, b"host"),
                ("1.3.6.1.2.1.2.2.1.6.2", tag::OCTETS, &[0, 0x1b, 0xff]),
                ("1.3.6.1.2.1.2.1.0", tag::INTEGER, &[0xff]),
                (
                    "1.3.6.1.2.1.31.1.1.1.6.1",
                    0x46,
                    &[0, 255, 255, 255, 255, 255, 255, 255, 255],
                ),
                ("1.3.6.1.2.1.4.20.1.1.1", 0x40, &[127, 0, 0, 1]),
                ("1.3.6.1.2.1.1.2.0", tag::OID, &[0x2b, 6, 1]),
            ],
        );
        let Some(Answer::Values(values)) = read(&message, 7) else {
            panic!("{:?}", read(&message, 7));
        };
        let values: Vec<_> = values.into_iter().map(|(_, value)| value).collect();
        let expected = json!([256, "host", "001bff", -1, u64::MAX, "127.0.0.1", "1.3.6.1"]);
        assert_eq!(Value::Array(values), expected);
        assert_eq!(read(&message, 8), None);
        let missing = responded(7, 0, &[("1.3.6.1.9", 0x81, &[])]);
        assert_eq!(
            read(&missing, 7),
            Some(Answer::Missing("1.3.6.1.9".parse().unwrap()))
        );
        assert_eq!(read(&responded(7, 5, &[]), 7), Some(Answer::Error(5, 1)));
    }

    #[test]
    fn numbers_of_objects_are_checked() {
        let object: ObjectId = ".1.3.6.1.4.1.2021.10.1.3.1".parse().unwrap();
        assert_eq!(object.to_string(), "1.3.6.1.4.1.2021.10.1.3.1");
        for wrong in [
            "",
            "1",
            "a.b",
            "1.3..6",
            "3.1",
            "1.40.1",
            "1.3.-1",
            "1.3.4294967296",
        ] {
            assert_eq!(wrong.parse::<ObjectId>(), Err(ObjectIdError), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn objects_are_read_as_they_are_written(
            first in 0_u32..3, second in 0_u32..40, rest in proptest::collection::vec(any::<u32>(), 0..20),
        ) {
            let mut numbers = vec![first, second];
            numbers.extend(rest);
            let object = ObjectId(numbers);
            prop_assert_eq!(ObjectId::of_ber(&object.to_ber()), Some(object.clone()));
            prop_assert_eq!(object.to_string().parse(), Ok(object));
        }

        #[test]
        fn any_answer_is_read_without_a_panic(
            at in 0_usize..60, byte in any::<u8>(), cut in 0_usize..60,
        ) {
            let mut message = responded(7, 0, &[("1.3.6.1.2.1.1.3.0", 0x43, &[1, 0]), ("1.3", 4, b"x")]);
            let at = at % message.len();
            message[at] = byte;
            message.truncate(cut.max(1));
            read(&message, 7);
        }
    }
}
