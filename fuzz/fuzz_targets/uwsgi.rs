//! The beginning of a response of uwsgi comes to the same, whether it was read whole or byte by byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::uwsgi::as_http1;

fuzz_target!(|data: &[u8]| {
    let whole = as_http1(data);
    for length in 0..data.len() {
        match as_http1(&data[..length]) {
            Ok(None) => {}
            Ok(Some(begun)) => {
                let whole = whole.expect("what was decided stays").expect("what was decided stays");
                assert_eq!([&*begun, &data[length..]].concat(), *whole);
                return;
            }
            Err(error) => {
                assert_eq!(whole, Err(error));
                return;
            }
        }
    }
});
