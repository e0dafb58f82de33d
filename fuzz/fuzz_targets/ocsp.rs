//! Responses of OCSP: any bytes are refused, or one that holds and is the certificate's.
#![no_main]

use std::time::{Duration, SystemTime};

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::tls::OcspQuestion;

const LEAF: &[u8] = include_bytes!("../certificates/leaf.der");

const ISSUER: &[u8] = include_bytes!("../certificates/issuer.der");

fuzz_target!(|data: &[u8]| {
    let question =
        OcspQuestion::new(&[LEAF.into(), ISSUER.into()]).expect("one has issued the other");
    let now = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
    if let Ok(response) = question.answer(data, now) {
        assert_eq!(response.der, data);
        assert!(response.until > now);
    }
});
