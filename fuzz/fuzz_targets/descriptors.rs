//! Any bytes are a descriptor set or are refused; in one that is, methods are found or others are named.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_formats::grpc::{Descriptors, MethodName};

fuzz_target!(|data: &[u8]| {
    let Ok(descriptors) = Descriptors::decode(data) else {
        return;
    };
    let name: MethodName = "plimsoll.test.Echo/Say".parse().expect("it is a name");
    match descriptors.method(&name) {
        Ok(method) => {
            drop(method.messages(br#"{"text": "hi", "took": "1.5s"}"#));
            drop(method.answer(br#"{"text": "hi", "took": "1.5s"}"#));
            drop(method.request_to_json(data));
        }
        Err(unknown) => assert!(!unknown.hint().is_empty()),
    }
});
