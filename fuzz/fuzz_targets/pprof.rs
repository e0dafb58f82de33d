//! Profiles that servers give: any bytes are one or are refused, and what is one can be written again.
#![no_main]

use std::time::SystemTime;

use libfuzzer_sys::fuzz_target;
use plimsoll_lab::profile::pprof;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(profile) = pprof::decode(bytes) {
        let folded = profile.folded();
        let again =
            pprof::encode(&profile, SystemTime::UNIX_EPOCH).expect("memory takes what is written");
        let again = pprof::decode(&again).expect("it is our own");
        assert_eq!(again.samples(), profile.samples());
        assert_eq!(again.folded().is_empty(), folded.is_empty());
    }
});
