//! Profiles as the Firefox Profiler (<https://profiler.firefox.com>) and samply open them.
//!
//! The format keeps samples in order of time; a [`Profile`] holds only how often each stack was seen.
//! So each stack is one sample with that weight, the most frequent first: call tree and flame graph are
//! right, and where a sample stands in time means nothing.

use std::rc::Rc;
use std::time::SystemTime;

use fxprof_processed_profile::{
    CategoryColor, CpuDelta, Frame as Label, FrameFlags, FrameInfo, Profile as Document,
    ReferenceTimestamp, SamplingInterval, Timestamp,
};

use super::{Frame, Origin, Profile};

/// The profile in the processed format, as JSON.
///
/// - `name`: what was profiled.
/// - `started`: when.
pub fn encode(profile: &Profile, name: &str, started: SystemTime) -> Vec<u8> {
    let nanos = |samples: u64| {
        let period = profile.time_per_sample().as_nanos();
        u64::try_from(period * u128::from(samples)).unwrap_or(u64::MAX)
    };
    let mut document = Document::new(
        name,
        ReferenceTimestamp::from_system_time(started),
        SamplingInterval::from_nanos(nanos(1)),
    );
    // Names are there already; nothing is to be looked up.
    document.set_symbolicated(true);
    let user = document.add_category("user", CategoryColor::Yellow);
    let kernel = document.add_category("kernel", CategoryColor::Orange);
    let begin = Timestamp::from_nanos_since_reference(0);
    let mut process = None;
    for ((pid, tid), thread) in &profile.threads {
        let owner = match process {
            Some((known, handle)) if known == pid => handle,
            _ => document.add_process(name, *pid, begin),
        };
        process = Some((pid, owner));
        let handle = document.add_thread(owner, *tid, begin, pid == tid);
        document.set_thread_name(handle, &thread.name);
        let mut stacks: Vec<(&Vec<Rc<Frame>>, &u64)> = thread.stacks.iter().collect();
        stacks.sort_by(|one, other| (other.1, one.0).cmp(&(one.1, other.0)));
        let mut before = 0_u64;
        for (stack, &seen) in stacks {
            before = before.saturating_add(seen);
            let frames: Vec<FrameInfo> = stack
                .iter()
                .map(|frame| FrameInfo {
                    frame: Label::Label(document.intern_string(&frame.name)),
                    category_pair: match frame.origin {
                        Origin::User => user.into(),
                        Origin::Kernel => kernel.into(),
                    },
                    flags: FrameFlags::empty(),
                })
                .collect();
            let stack = document.intern_stack_frames(handle, frames.into_iter());
            document.add_sample(
                handle,
                Timestamp::from_nanos_since_reference(nanos(before)),
                stack,
                CpuDelta::from_nanos(nanos(seen)),
                i32::try_from(seen).unwrap_or(i32::MAX),
            );
        }
    }
    serde_json::to_vec(&document).expect("plain values have string keys only")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use serde_json::Value;

    use super::*;
    use crate::profile::result::Thread;

    #[test]
    fn stacks_have_the_weight_with_which_they_were_seen() {
        let stack = |names: &[&str]| -> Vec<Rc<Frame>> {
            names
                .iter()
                .map(|name| Rc::new(Frame::user(name)))
                .collect()
        };
        let thread = |name: &str, stacks: Vec<(Vec<Rc<Frame>>, u64)>| Thread {
            name: name.to_owned(),
            stacks: stacks.into_iter().collect::<HashMap<_, _>>(),
        };
        let profile = Profile {
            frequency: 1000,
            threads: BTreeMap::from([
                (
                    (7, 7),
                    thread(
                        "main",
                        vec![(stack(&["main", "cold"]), 2), (stack(&["main", "hot"]), 40)],
                    ),
                ),
                ((7, 8), thread("worker", vec![(stack(&["work"]), 3)])),
            ]),
            ..Profile::default()
        };
        let json = encode(&profile, "server", SystemTime::UNIX_EPOCH);
        let document: Value = serde_json::from_slice(&json).unwrap();
        let threads = document["threads"].as_array().unwrap();
        let names: Vec<_> = threads.iter().map(|thread| &thread["name"]).collect();
        // The first thread of a process goes by the name of the process there.
        assert_eq!(names, ["server", "worker"]);
        let main = &threads[0];
        assert_eq!(main["samples"]["weight"], serde_json::json!([40, 2]));
        assert_eq!(main["pid"], threads[1]["pid"], "one process");

        // The innermost function of the first sample, by way of the tables.
        let index = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        let sample = index(&main["samples"]["stack"][0]);
        let frame = index(&main["stackTable"]["frame"][sample]);
        let function = index(&main["frameTable"]["func"][frame]);
        let name = index(&main["funcTable"]["name"][function]);
        let strings = main
            .get("stringArray")
            .or_else(|| document.pointer("/shared/stringArray"))
            .unwrap();
        assert_eq!(strings[name], "hot");
        assert_eq!(document["meta"]["symbolicated"], true);
    }
}
