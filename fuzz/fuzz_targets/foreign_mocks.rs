//! Files of other mock servers: no text makes a parser panic, and a mapping that became a rule is one when it is read
//! again.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use plimsoll_formats::har::parse_recording;
use plimsoll_formats::mockoon::parse_environment;
use plimsoll_formats::wiremock::parse_mappings;
use plimsoll_mock::KeptRequest;
use plimsoll_mock::config;
use plimsoll_mock::import::wiremock::stub;
use plimsoll_mock::openapi::{OpenApi, OpenApiOptions};
use plimsoll_mock::states::States;

fuzz_target!(|text: &str| {
    let nowhere = Path::new("/nonexistent");
    if let Ok(recording) = parse_recording(text) {
        for exchange in recording.exchanges {
            assert!(exchange.target.starts_with('/'));
        }
    }
    if let Ok(environment) = parse_environment(text) {
        for response in environment.routes.iter().flat_map(|it| &it.responses) {
            assert!((200..=599).contains(&response.status));
        }
    }
    if let Ok(parsed) = parse_mappings(text) {
        for (number, _) in parsed.mappings {
            assert!(number > 0);
        }
    }
    if let Ok(mapping) = serde_json::from_str(text)
        && let Ok(stub) = stub(mapping, nowhere, &States::default())
    {
        let again = config::parse(&stub.text, nowhere).expect("it was compiled before");
        assert_eq!(again.rules().len(), 1);
    }
    let options = OpenApiOptions {
        validates: true,
        is_dynamic: true,
        seed: 1,
    };
    if let Ok((openapi, _)) = OpenApi::new(nowhere, text, "", options) {
        let request = KeptRequest::made("GET", "/a?b=c");
        openapi.covers(&request.view().path);
    }
});
