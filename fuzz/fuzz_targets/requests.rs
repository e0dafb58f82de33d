//! Files of requests and rows: no text makes a parser panic, and what was understood is whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_formats::{Format, Table, Template, parse};

fuzz_target!(|text: &str| {
    for format in Format::ALL {
        let mut read = |path: &str| match path.len() % 2 {
            0 => Ok(path.as_bytes().to_vec()),
            _ => Err(format!("cannot read {path}").into()),
        };
        match parse(format, text, &mut read) {
            Err(problems) => assert!(!problems.is_empty()),
            Ok(file) => {
                assert!(!file.requests.is_empty());
                for request in &file.requests {
                    assert!(request.weight > 0);
                    for (name, _) in &request.headers {
                        assert!(!name.is_empty() && !name.eq_ignore_ascii_case("content-length"));
                    }
                }
            }
        }
    }
    assert_eq!(Format::detect("a", text), Format::detect("a", text));
    if let Ok(template) = Template::parse(text) {
        let again = Template::parse(&template.to_string()).expect("it was parsed before");
        assert_eq!(again, template);
    }
    if let Ok(table) = Table::parse(text) {
        assert!(table.rows() > 0);
        for column in 0..table.columns().len() {
            assert_eq!(table.values(column).count(), table.rows());
        }
    }
});
