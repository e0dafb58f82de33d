//! Profiles as `go tool pprof` and continuous profilers read and servers give them.
//!
//! Source: google/pprof, `proto/profile.proto` (`perftools.profiles.Profile`), gzip around it.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use prost::Message;

use super::{Frame, Profile, ProfileKind};

#[derive(Clone, PartialEq, Message)]
struct Document {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
}

/// The type of a value, by numbers of strings.
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

/// A file that code is from.
#[derive(Clone, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    file_name: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(uint64, tag = "3")]
    address: u64,
    /// The innermost of what was inlined first.
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
///
/// - `begun`: when it was begun.
pub fn encode(profile: &Profile, begun: SystemTime) -> io::Result<Vec<u8>> {
    let mut strings = Strings::default();
    // The first one has to be empty.
    strings.number("");
    let nanoseconds = strings.number("nanoseconds");
    let time = ValueType {
        kind: strings.number(match profile.kind {
            ProfileKind::Cpu => "cpu",
            ProfileKind::OffCpu => "off_cpu",
        }),
        unit: nanoseconds,
    };
    // A microsecond of waiting is no sample that was taken.
    let count = (profile.kind == ProfileKind::Cpu).then(|| ValueType {
        kind: strings.number("samples"),
        unit: strings.number("count"),
    });
    let thread_name = strings.number("thread");
    let period = i64::try_from(profile.time_per_sample().as_nanos()).unwrap_or(i64::MAX);
    let mut functions: HashMap<Rc<Frame>, u64> = HashMap::new();
    let mut document = Document {
        sample_type: count.iter().cloned().chain([time.clone()]).collect(),
        time_nanos: begun
            .duration_since(SystemTime::UNIX_EPOCH)
            .ok()
            .and_then(|since| i64::try_from(since.as_nanos()).ok())
            .unwrap_or(0),
        duration_nanos: i64::try_from(profile.duration.as_nanos()).unwrap_or(i64::MAX),
        period_type: Some(time),
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
                        ..Location::default()
                    });
                }
                locations.push(id);
            }
            let seen = i64::try_from(*seen).unwrap_or(i64::MAX);
            document.sample.push(Sample {
                location_id: locations,
                value: count
                    .iter()
                    .map(|_| seen)
                    .chain([seen.saturating_mul(period)])
                    .collect(),
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

/// Most that a profile may come to once it is unpacked, in bytes.
const LARGEST: u64 = 256 << 20;

/// Most frames of a stack that are kept, from the outermost on.
const DEEPEST: usize = 4096;

/// Most samples that one stack counts: 2^40 at 1,000 a second are 35 years. A file of [`LARGEST`] bytes has
/// fewer than 2^24 stacks, so their sum stays below 2^64.
const MOST_OF_STACK: u64 = 1 << 40;

/// Why bytes are no profile.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not gzip although they begin so, or too much.
    #[error("the profile cannot be unpacked")]
    Unpack(#[source] io::Error),
    /// Larger than anybody needs.
    #[error("the profile has more than {} MiB", LARGEST >> 20)]
    TooLarge,
    /// Not Protocol Buffers of that shape.
    #[error("this is no profile in the format of pprof")]
    Format(#[source] prost::DecodeError),
    /// It is one, of something else.
    #[error("the profile holds {found}, not samples or processor time")]
    NotCpu {
        /// The kinds of its values.
        found: String,
    },
}

/// The profile of processor time in `bytes`, in gzip or plain.
///
/// Stacks without a thread's name are those of one thread called `all`.
pub fn decode(bytes: &[u8]) -> Result<Profile, DecodeError> {
    let mut plain = Vec::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let read = MultiGzDecoder::new(bytes)
            .take(LARGEST + 1)
            .read_to_end(&mut plain);
        read.map_err(DecodeError::Unpack)?;
    } else {
        plain.extend_from_slice(bytes);
    }
    if plain.len() as u64 > LARGEST {
        return Err(DecodeError::TooLarge);
    }
    let document = Document::decode(&plain[..]).map_err(DecodeError::Format)?;
    document.profile()
}

impl Document {
    fn profile(&self) -> Result<Profile, DecodeError> {
        let (position, is_time) = self.value()?;
        let period = match &self.period_type {
            Some(kind) if self.text(kind.unit) == "nanoseconds" => self.period,
            _ => 0,
        };
        // A hundred a second is what Go takes, and what a profile means that does not say.
        let period = u64::try_from(period).unwrap_or(0);
        let period = if period == 0 { 10_000_000 } else { period };
        let names = self.names();
        let mut profile = Profile {
            duration: Duration::from_nanos(u64::try_from(self.duration_nanos).unwrap_or(0)),
            frequency: (1_000_000_000 / period).max(1),
            ..Profile::default()
        };
        let mut threads: HashMap<&str, u32> = HashMap::new();
        for sample in &self.sample {
            let value = sample.value.get(position).copied().unwrap_or(0);
            let value = u64::try_from(value).unwrap_or(0);
            let seen = if is_time { value / period } else { value };
            if seen == 0 {
                continue;
            }
            let name = self.thread(sample);
            let next = u32::try_from(threads.len()).unwrap_or(u32::MAX);
            let number = *threads.entry(name).or_insert(next);
            let mut stack: Vec<Rc<Frame>> = Vec::new();
            for location in sample.location_id.iter().rev() {
                let frames = names.get(location).map_or(&[][..], Vec::as_slice);
                stack.extend(frames.iter().take(DEEPEST - stack.len()).cloned());
            }
            let thread = profile.threads.entry((0, number)).or_default();
            if thread.name.is_empty() {
                name.clone_into(&mut thread.name);
            }
            let count = thread.stacks.entry(stack).or_default();
            // Limited after stacks are merged: limited before, a profile that is written and read again loses
            // what merging had brought beyond the limit.
            *count = count.saturating_add(seen).min(MOST_OF_STACK);
        }
        Ok(profile)
    }

    /// Which value counts, and whether it is nanoseconds.
    fn value(&self) -> Result<(usize, bool), DecodeError> {
        let kinds: Vec<(&str, &str)> = self
            .sample_type
            .iter()
            .map(|kind| (self.text(kind.kind), self.text(kind.unit)))
            .collect();
        let at = |wanted: fn(&(&str, &str)) -> bool| kinds.iter().position(wanted);
        if let Some(position) = at(|kind| *kind == ("samples", "count")) {
            return Ok((position, false));
        }
        if let Some(position) = at(|kind| *kind == ("cpu", "nanoseconds")) {
            return Ok((position, true));
        }
        let found: Vec<String> = kinds
            .iter()
            .take(8)
            .map(|(kind, unit)| format!("{kind} in {unit}"))
            .collect();
        Err(DecodeError::NotCpu {
            found: if found.is_empty() {
                "nothing".to_owned()
            } else {
                found.join(", ")
            },
        })
    }

    /// The functions at each location, the outermost first.
    fn names(&self) -> HashMap<u64, Vec<Rc<Frame>>> {
        let functions: HashMap<u64, Rc<Frame>> = self
            .function
            .iter()
            .map(|function| {
                let frame = Frame::user(self.text(function.name));
                (function.id, Rc::new(frame))
            })
            .collect();
        let files: HashMap<u64, &str> = self
            .mapping
            .iter()
            .map(|mapping| (mapping.id, self.text(mapping.file_name)))
            .collect();
        let named = |location: &Location| {
            let lines = location.line.iter().rev();
            let frames: Vec<Rc<Frame>> = lines
                .filter_map(|line| functions.get(&line.function_id).cloned())
                .collect();
            if !frames.is_empty() {
                return frames;
            }
            let file = files.get(&location.mapping_id).copied().unwrap_or_default();
            let name = match file.rsplit('/').next() {
                Some(file) if !file.is_empty() => format!("[{file}]"),
                _ => format!("[{:#x}]", location.address),
            };
            vec![Rc::new(Frame::user(&name))]
        };
        self.location
            .iter()
            .map(|location| (location.id, named(location)))
            .collect()
    }

    fn thread(&self, sample: &Sample) -> &str {
        let label = sample
            .label
            .iter()
            .find(|label| matches!(self.text(label.key), "thread" | "thread_name"));
        match label.map(|label| self.text(label.text)) {
            Some(name) if !name.is_empty() => name,
            _ => "all",
        }
    }

    fn text(&self, number: i64) -> &str {
        let text = usize::try_from(number)
            .ok()
            .and_then(|number| self.string_table.get(number));
        text.map_or("", String::as_str)
    }
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

    /// Found by fuzzing: two samples of one stack, each at the former limit of 2^32 − 1, came to more than a
    /// single one could.
    #[test]
    fn merged_stacks_survive_being_written_and_read() {
        let sample = |count: i64| Sample {
            location_id: vec![1],
            value: vec![count],
            ..Sample::default()
        };
        let document = Document {
            sample_type: vec![ValueType { kind: 1, unit: 2 }],
            sample: vec![sample(i64::from(u32::MAX)), sample(8), sample(i64::MAX)],
            string_table: ["", "samples", "count"].map(str::to_owned).into(),
            ..Document::default()
        };
        let largest = decode(&document.encode_to_vec()).unwrap();
        assert_eq!(largest.samples(), MOST_OF_STACK);
        let document = Document {
            sample: vec![sample(i64::from(u32::MAX)), sample(8)],
            ..document
        };
        let merged = decode(&document.encode_to_vec()).unwrap();
        assert_eq!(merged.samples(), u64::from(u32::MAX) + 8);
        let written = encode(&merged, SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(decode(&written).unwrap().samples(), merged.samples());
    }

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
        GzDecoder::new(
            &encode(&profile, SystemTime::UNIX_EPOCH + Duration::from_secs(7)).unwrap()[..],
        )
        .read_to_end(&mut bytes)
        .unwrap();
        let read = Document::decode(&bytes[..]).unwrap();
        assert_eq!(read.string_table[0], "");
        assert_eq!(read.time_nanos, 7_000_000_000);
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
        let again = decode(&bytes).unwrap();
        assert_eq!(again.folded(), profile.folded());
        assert_eq!(again.frequency, 1000);
    }

    /// As Go writes them: samples by count and time, what was inlined as lines of one location.
    fn of_go() -> Document {
        let texts = [
            "",
            "samples",
            "count",
            "cpu",
            "nanoseconds",
            "main.main",
            "main.inlined",
            "runtime.x",
            "/usr/bin/server",
        ];
        Document {
            sample_type: vec![
                ValueType { kind: 1, unit: 2 },
                ValueType { kind: 3, unit: 4 },
            ],
            sample: vec![Sample {
                location_id: vec![3, 2, 1],
                value: vec![5, 50_000_000],
                label: Vec::new(),
            }],
            mapping: vec![Mapping {
                id: 1,
                file_name: 8,
            }],
            location: vec![
                Location {
                    id: 1,
                    line: vec![Line { function_id: 2 }, Line { function_id: 1 }],
                    ..Location::default()
                },
                Location {
                    id: 2,
                    mapping_id: 1,
                    ..Location::default()
                },
                Location {
                    id: 3,
                    address: 0x10,
                    ..Location::default()
                },
            ],
            function: vec![Function { id: 1, name: 5 }, Function { id: 2, name: 6 }],
            string_table: texts.map(str::to_owned).into(),
            time_nanos: 0,
            duration_nanos: 1_000_000_000,
            period_type: Some(ValueType { kind: 3, unit: 4 }),
            period: 10_000_000,
        }
    }

    #[test]
    fn what_a_server_gives_is_read() {
        let profile = decode(&of_go().encode_to_vec()).unwrap();
        assert_eq!(
            profile.folded(),
            "all;main.main;main.inlined;[server];[0x10] 5\n"
        );
        assert_eq!((profile.frequency, profile.duration.as_secs()), (100, 1));
        let mut by_time = of_go();
        by_time.sample_type.remove(0);
        by_time.sample[0].value.remove(0);
        let profile = decode(&by_time.encode_to_vec()).unwrap();
        assert_eq!(profile.samples(), 5);
    }

    #[test]
    fn other_profiles_and_other_bytes_are_reported() {
        let mut heap = of_go();
        heap.sample_type = vec![ValueType { kind: 7, unit: 2 }];
        let error = decode(&heap.encode_to_vec()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the profile holds runtime.x in count, not samples or processor time"
        );
        assert!(decode(b"<!doctype html>").is_err());
        assert!(decode(&[0x1f, 0x8b, 8, 0]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            // Whatever they are, they are something.
            let _profile_or_error = decode(&bytes);
        }

        #[test]
        fn no_numbers_make_it_panic(
            locations in proptest::collection::vec(0_u64..6, 0..20),
            values in proptest::collection::vec(proptest::num::i64::ANY, 0..3),
            period in proptest::num::i64::ANY,
            text in proptest::num::i64::ANY,
        ) {
            let mut document = of_go();
            document.sample[0].location_id = locations;
            document.sample[0].value = values;
            document.sample[0].label = vec![Label { key: text, text }];
            document.period = period;
            document.function[0].name = text;
            let _profile_or_error = decode(&document.encode_to_vec());
        }
    }
}
