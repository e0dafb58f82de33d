//! Operations of GraphQL: any content holds one or none, whichever way it is sent. The first line is the query of the URL.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_mock::KeptRequest;
use plimsoll_mock::condition::Condition;
use plimsoll_mock::condition::graphql::OperationTest;

fuzz_target!(|text: &str| {
    let (query, content) = text.split_once('\n').unwrap_or(("", text));
    let any = Condition::GraphQl(Box::<OperationTest>::default());
    for kind in ["application/json", "application/graphql"] {
        let mut request = KeptRequest::made("POST", &format!("/?{query}"));
        let field = ("content-type".to_owned(), kind.as_bytes().to_vec());
        request.fields.push(field);
        request.body = content.to_owned().into();
        let view = request.view();
        // An operation that is found is one that a test without parts accepts.
        let is_found = any.found(&view) != "no operation of GraphQL";
        assert_eq!(any.is_met_by(&view), is_found);
    }
});
