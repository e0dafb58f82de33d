use plimsoll_testkit::Authority;
use proptest::prelude::*;

use super::*;

/// A leaf and its issuer.
fn chain(names: &[&str]) -> Vec<CertificateDer<'static>> {
    let authority = Authority::new();
    vec![authority.issue(names).der(), authority.der()]
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_hours(500_000)
}

#[test]
fn a_question_is_about_the_first_certificate_of_its_issuer() {
    let chain = chain(&["a.test"]);
    let question = OcspQuestion::new(&chain).unwrap();
    assert_eq!(question.responder(), None);
    assert_eq!(question.to_string(), "CN=a.test");
    let request = question.request();
    let mut reader = Reader::new(&request);
    let list = reader.expect(SEQUENCE).unwrap().inside().next().unwrap();
    let one = list.inside().next().unwrap().inside().next().unwrap();
    let identity = one.inside().next().unwrap();
    assert!(question.is_this(&identity).unwrap());
    let other = OcspQuestion::new(&self::chain(&["a.test"])).unwrap();
    assert!(!other.is_this(&identity).unwrap());
    let strangers = [chain[0].clone(), Authority::new().issue(&["b.test"]).der()];
    for wrong in [&chain[..1], &[], &strangers] {
        assert!(matches!(OcspQuestion::new(wrong), Err(OcspError::NoIssuer)));
    }
}

#[test]
fn refusals_are_reported() {
    let question = OcspQuestion::new(&chain(&["a.test"])).unwrap();
    let refusal = |status| {
        let der = element(SEQUENCE, &[&element(ENUMERATED, &[&[status]])]);
        question.answer(&der, now()).unwrap_err().to_string()
    };
    assert_eq!(refusal(6), "the responder refuses to answer: it must not");
    assert_eq!(refusal(4), "it is no response of OCSP in DER");
    assert_eq!(refusal(0), "it is no response of OCSP in DER");
    let long = vec![0; 64 * 1024 + 1];
    assert!(matches!(
        question.answer(&long, now()),
        Err(OcspError::TooLong)
    ));
}

proptest! {
    #[test]
    fn any_bytes_can_be_answered_with(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let question = OcspQuestion {
            issuer: CertificateDer::from(Vec::new()),
            issuer_name: Vec::new(),
            issuer_key: Vec::new(),
            serial: Vec::new(),
            responder: None,
            name: String::new(),
        };
        let basic = element(OCTET_STRING, &[&bytes]);
        let typed = element(SEQUENCE, &[&element(OBJECT_IDENTIFIER, &[BASIC]), &basic]);
        let whole = element(SEQUENCE, &[&element(ENUMERATED, &[&[0]]), &element(CONTEXT, &[&typed])]);
        prop_assert!(question.answer(&bytes, now()).is_err());
        prop_assert!(question.answer(&whole, now()).is_err());
    }
}
