//! Conditions on XML: any expression is one or is refused, and looking for it in any content ends without a panic. The first
//! line is the expression, the rest the content.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_mock::KeptRequest;
use plimsoll_mock::condition::Condition;
use plimsoll_mock::condition::equal_xml::EqualXml;
use plimsoll_mock::condition::field::FieldTest;
use plimsoll_mock::condition::xpath::XPath;

fuzz_target!(|text: &str| {
    let (expression, content) = text.split_once('\n').unwrap_or((text, "<a/>"));
    let mut request = KeptRequest::made("POST", "/");
    request.body = content.to_owned().into();
    let view = request.view();
    let namespaces = [("p".to_owned(), "urn:p".to_owned())];
    if let Ok(path) = XPath::new(expression, &namespaces) {
        let path = Box::new(path);
        let exists = Condition::XPath(path.clone(), FieldTest::Exists);
        let absent = Condition::XPath(path, FieldTest::Absent);
        // Of XML one of the two holds, of anything else neither.
        let (exists, absent) = (exists.is_met_by(&view), absent.is_met_by(&view));
        assert!(!(exists && absent));
    }
    for ignores_order in [false, true] {
        if let Ok(equal) = EqualXml::new(content, ignores_order) {
            let condition = Condition::EqualXml(Box::new(equal));
            // What may stand before a document in a rule must not in a request.
            let is_same = content.trim_start() == content;
            assert!(condition.is_met_by(&view) || !is_same);
        }
    }
});
