//! The smallest load generator that `plimsoll compare` understands: `small_load URL NUMBER [LOG NAME]`
//! makes NUMBER requests one after another and prints their count.
//!
//! With LOG it first appends NAME to that file, so that the order of trials can be seen.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::TcpStream;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, number, rest @ ..] = arguments.as_slice() else {
        return Err("usage: small_load URL NUMBER [LOG NAME]".into());
    };
    if let [log, name] = rest {
        let mut log = OpenOptions::new().create(true).append(true).open(log)?;
        writeln!(log, "{name}")?;
    }
    let authority = url.trim_start_matches("http://").trim_end_matches('/');
    let mut ok = 0_u64;
    for _ in 0..number.parse()? {
        let mut stream = TcpStream::connect(authority)?;
        stream.write_all(format!("GET / HTTP/1.0\r\nhost: {authority}\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.take(65_536).read_to_string(&mut answer)?;
        ok += u64::from(answer.starts_with("HTTP/"));
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        r#"{{"schema":"plimsoll.load.summary/1","counts":{{"ok":{ok}}}}}"#
    )?;
    Ok(())
}
