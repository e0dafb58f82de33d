//! A server that receives mail.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

/// A server of SMTP (RFC 5321) that receives one message, which the thread returns.
pub fn mail_server() -> (SocketAddr, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener
        .local_addr()
        .expect("a bound listener has an address");
    let serving = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client connects");
        let mut writer = &stream;
        let mut write = |line: &str| {
            writer
                .write_all(format!("{line}\r\n").as_bytes())
                .expect("the client reads");
        };
        write("220 ready");
        let (mut mail, mut is_data) = (String::new(), false);
        for line in BufReader::new(&stream).lines() {
            let line = line.expect("the client writes lines");
            match line.as_str() {
                "." if is_data => {
                    write("250 taken");
                    return mail;
                }
                _ if is_data => {
                    mail.push_str(&line);
                    mail.push('\n');
                }
                "DATA" => {
                    is_data = true;
                    write("354 go on");
                }
                _ => write("250 fine"),
            }
        }
        mail
    });
    (address, serving)
}
