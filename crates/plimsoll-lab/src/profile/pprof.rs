//! Profiles as `go tool pprof` and continuous profilers read them.
//!
//! Source: google/pprof, `proto/profile.proto` (`perftools.profiles.Profile`), gzip around it.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::rc::Rc;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use super::{Frame, Profile};

#[derive(Clone, PartialEq, Message)]
struct Document {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
}

/// What a value is, by numbers of strings.
#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// The innermost first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    text: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
}

/// The profile in that format, compressed; values are samples, and nanoseconds of processor time.
pub fn encode(profile: &Profile) -> io::Result<Vec<u8>> {
    let mut strings = Strings::default();
    // The first one has to be empty.
    strings.number("");
    let samples = strings.number("samples");
    let count = strings.number("count");
    let cpu = strings.number("cpu");
    let nanoseconds = strings.number("nanoseconds");
    let thread_name = strings.number("thread");
    let period = i64::try_from(profile.time_per_sample().as_nanos()).unwrap_or(i64::MAX);
    let mut functions: HashMap<Rc<Frame>, u64> = HashMap::new();
    let mut document = Document {
        sample_type: vec![
            ValueType {
                kind: samples,
                unit: count,
            },
            ValueType {
                kind: cpu,
                unit: nanoseconds,
            },
        ],
        duration_nanos: i64::try_from(profile.duration.as_nanos()).unwrap_or(i64::MAX),
        period_type: Some(ValueType {
            kind: cpu,
            unit: nanoseconds,
        }),
        period,
        ..Document::default()
    };
    for thread in profile.threads.values() {
        for (stack, seen) in &thread.stacks {
            let mut locations = Vec::with_capacity(stack.len());
            for frame in stack.iter().rev() {
                let next = functions.len() as u64 + 1;
                let id = *functions.entry(Rc::clone(frame)).or_insert(next);
                if id == next {
                    document.function.push(Function {
                        id,
                        name: strings.number(&frame.name),
                    });
                    document.location.push(Location {
                        id,
                        line: vec![Line { function_id: id }],
                    });
                }
                locations.push(id);
            }
            let seen = i64::try_from(*seen).unwrap_or(i64::MAX);
            document.sample.push(Sample {
                location_id: locations,
                value: vec![seen, seen.saturating_mul(period)],
                label: vec![Label {
                    key: thread_name,
                    text: strings.number(&thread.name),
                }],
            });
        }
    }
    document.string_table = strings.all;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&document.encode_to_vec())?;
    gzip.finish()
}

/// Strings by the order in which they were first needed.
#[derive(Default)]
struct Strings {
    all: Vec<String>,
    numbers: HashMap<String, i64>,
}

impl Strings {
    fn number(&mut self, text: &str) -> i64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = i64::try_from(self.all.len()).unwrap_or(i64::MAX);
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;
    use crate::profile::result::Thread;

    #[test]
    fn stacks_are_locations_from_the_innermost_on() {
        let stack: Vec<_> = ["main", "work", "main"]
            .map(|name| Rc::new(Frame::user(name)))
            .into();
        let thread = Thread {
            name: "worker".to_owned(),
            stacks: HashMap::from([(stack, 7)]),
        };
        let profile = Profile {
            frequency: 1000,
            threads: std::collections::BTreeMap::from([((1, 1), thread)]),
            ..Profile::default()
        };
        let mut bytes = Vec::new();
        GzDecoder::new(&encode(&profile).unwrap()[..])
            .read_to_end(&mut bytes)
            .unwrap();
        let read = Document::decode(&bytes[..]).unwrap();
        assert_eq!(read.string_table[0], "");
        let [sample] = &read.sample[..] else {
            panic!("one stack is one sample");
        };
        assert_eq!(sample.value, [7, 7_000_000]);
        let name = |id: &u64| {
            let location = read.location.iter().find(|location| location.id == *id);
            let function_id = location.unwrap().line[0].function_id;
            let function = read
                .function
                .iter()
                .find(|function| function.id == function_id);
            let number = usize::try_from(function.unwrap().name).unwrap();
            read.string_table[number].as_str()
        };
        let names: Vec<_> = sample.location_id.iter().map(name).collect();
        assert_eq!(names, ["main", "work", "main"]);
    }
}
