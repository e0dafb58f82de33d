//! What people write in flags and variables: no text makes a parser panic, and what was understood
//! is understood again from how it is shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_client::{Endpoint, NoProxy, Proxy, ResolveOverride};
use plimsoll_load::StatusSet;
use plimsoll_load::scenario::Segment;
use plimsoll_model::{parse_byte_size, parse_duration, parse_rate};

fuzz_target!(|text: &str| {
    if let Ok(rate) = parse_rate(text) {
        assert!(rate.per_second().is_finite() && rate.per_second() >= 0.0);
    }
    if let Ok(duration) = parse_duration(text) {
        drop(plimsoll_model::DurationText(duration).to_string());
    }
    if let Ok(size) = parse_byte_size(text) {
        drop(size.to_string());
    }
    if let Ok(set) = StatusSet::parse(text) {
        assert!((100..=999).any(|status| set.contains(status)));
        assert!(!set.contains(99) && !set.contains(1000));
    }
    let (segment, sequence) = text.split_once(' ').unwrap_or((text, ""));
    if let Ok(segment) = Segment::new(segment, sequence) {
        let share = segment.share(1000);
        assert!(share <= 1000);
        assert!((0..share).all(|own| segment.of_run(own) < 1000));
        let (again, all) = segment.texts();
        assert_eq!(Segment::new(again, all).as_ref(), Ok(&segment));
    }
    if let Ok(given) = text.parse::<ResolveOverride>() {
        assert!(!given.addresses().is_empty());
    }
    let endpoint = Endpoint::parse(text);
    if let Ok(proxy) = text.parse::<Proxy>() {
        drop(proxy.authorization());
        drop(proxy.to_string());
    }
    if let (Ok(list), Ok(endpoint)) = (text.parse::<NoProxy>(), &endpoint) {
        list.matches(&endpoint.host(), endpoint.port());
    }
    match endpoint {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(endpoint) => {
            assert!(endpoint.path_and_query().starts_with('/'));
            let shown = endpoint.to_string();
            assert!(shown.is_ascii(), "{shown:?}");
            let again = Endpoint::parse(&shown).expect("it was parsed before");
            assert_eq!(again.to_string(), shown);
            assert_eq!(again.host(), endpoint.host());
            assert_eq!(again.port(), endpoint.port());
        }
    }
});
