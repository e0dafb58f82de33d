//! Mail servers: one that receives mail, and one that encrypts after STARTTLS.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{ServerConfig, ServerConnection};

/// A server of SMTP (RFC 5321) that receives one message, which the thread returns.
pub fn mail_server() -> (SocketAddr, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener
        .local_addr()
        .expect("a bound listener has an address");
    let serving = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client connects");
        receive(&stream)
    });
    (address, serving)
}

/// A mail server for any number of connections, each with one mail.
#[derive(Debug)]
pub struct MailReceiver {
    /// Where it listens.
    pub address: SocketAddr,
    mails: Arc<Mutex<Vec<String>>>,
}

impl MailReceiver {
    /// Starts it on a free port of loopback.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener
            .local_addr()
            .expect("a bound listener has an address");
        let mails = Arc::<Mutex<Vec<String>>>::default();
        let received = Arc::clone(&mails);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mail = receive(&stream);
                received
                    .lock()
                    .expect("no other thread panicked with it")
                    .push(mail);
            }
        });
        Self { address, mails }
    }

    /// The mails so far, in the order of their arrival.
    pub fn mails(&self) -> Vec<String> {
        let mails = self.mails.lock();
        mails.expect("no other thread panicked with it").clone()
    }
}

/// The mail of a connection (RFC 5321).
fn receive(stream: &TcpStream) -> String {
    let mut writer = stream;
    let mut write = |line: &str| {
        writer
            .write_all(format!("{line}\r\n").as_bytes())
            .expect("the client reads");
    };
    write("220 ready");
    let (mut mail, mut is_data) = (String::new(), false);
    for line in BufReader::new(stream).lines() {
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
}

/// A mail server that encrypts after STARTTLS (RFC 3207; RFC 3501, section 6.2.1), for one connection.
///
/// - `greeting`: its first line.
/// - `replies`: what it replies to the commands, one after the other; the last one is followed by the handshake.
///
/// The thread returns the commands and, if the handshake succeeded, the server name that the client sent.
pub fn starttls_server(
    greeting: &'static str,
    replies: &'static [&'static str],
    config: ServerConfig,
) -> (SocketAddr, thread::JoinHandle<StartTlsSession>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener
        .local_addr()
        .expect("a bound listener has an address");
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client connects");
        stream
            .write_all(greeting.as_bytes())
            .expect("the client reads");
        let mut commands = Vec::new();
        for reply in replies {
            commands.push(command(&mut stream));
            stream
                .write_all(reply.as_bytes())
                .expect("the client reads");
        }
        let mut tls = ServerConnection::new(Arc::new(config)).expect("the configuration is valid");
        while tls.is_handshaking() {
            if tls.complete_io(&mut stream).is_err() {
                return StartTlsSession {
                    commands,
                    server_name: None,
                };
            }
        }
        StartTlsSession {
            commands,
            server_name: tls.server_name().map(ToString::to_string),
        }
    });
    (address, serving)
}

/// A mail server that its users sign in at over TLS (RFC 4954, RFC 8314), for one connection.
///
/// - `begins_in_clear`: whether STARTTLS comes first; over TLS alone it has `AUTH`.
/// - `mechanisms`: of `AUTH`.
///
/// It accepts the user `ann` with the password `secret`. The thread returns the commands over TLS.
pub fn login_server(
    begins_in_clear: bool,
    mechanisms: &'static str,
    config: ServerConfig,
) -> (SocketAddr, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener
        .local_addr()
        .expect("a bound listener has an address");
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client connects");
        if begins_in_clear {
            let replies = [
                "220 mail.test\r\n",
                "250-mail.test\r\n250-AUTH CRAM-MD5\r\n250 STARTTLS\r\n",
                "220 go ahead\r\n",
            ];
            for (index, reply) in replies.iter().enumerate() {
                if index > 0 {
                    command(&mut stream);
                }
                stream
                    .write_all(reply.as_bytes())
                    .expect("the client reads");
            }
        }
        let tls = ServerConnection::new(Arc::new(config)).expect("the configuration is valid");
        let mut stream = rustls::StreamOwned::new(tls, stream);
        signed_in(&mut stream, begins_in_clear, mechanisms)
    });
    (address, serving)
}

/// The commands until the client leaves.
fn signed_in(stream: &mut (impl Read + Write), has_greeted: bool, mechanisms: &str) -> Vec<String> {
    // `\0ann\0secret`, `ann` and `secret` in Base64.
    const PLAIN: &str = "AUTH PLAIN AGFubgBzZWNyZXQ=";
    const USER: &str = "YW5u";
    const PASSWORD: &str = "c2VjcmV0";

    let mut commands = Vec::new();
    let mut reply = if has_greeted { "" } else { "220 mail.test\r\n" }.to_owned();
    let mut user = String::new();
    loop {
        let is_written = stream
            .write_all(reply.as_bytes())
            .and_then(|()| stream.flush());
        let Some(line) = is_written.ok().and_then(|()| read_line(stream)) else {
            return commands;
        };
        let previous = commands.last().cloned().unwrap_or_default();
        reply = match line.as_str() {
            _ if previous == "AUTH LOGIN" => {
                user.clone_from(&line);
                "334 UGFzc3dvcmQ6\r\n".to_owned()
            }
            PASSWORD if user == USER => "235 welcome\r\n".to_owned(),
            PLAIN => "235 welcome\r\n".to_owned(),
            "AUTH LOGIN" => "334 VXNlcm5hbWU6\r\n".to_owned(),
            "QUIT" => "221 bye\r\n".to_owned(),
            _ if line.starts_with("EHLO ") => {
                format!("250-mail.test\r\n250-AUTH {mechanisms}\r\n250 SIZE 1000\r\n")
            }
            _ => format!("535 5.7.8 no such login: {line}\r\n"),
        };
        commands.push(line);
    }
}

/// What a client of [`starttls_server`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartTlsSession {
    /// Its commands in the clear.
    pub commands: Vec<String>,
    /// The server name of its handshake; `None` if it failed or had none.
    pub server_name: Option<String>,
}

fn command(stream: &mut TcpStream) -> String {
    read_line(stream).expect("the client writes lines")
}

/// One line, read byte by byte: the handshake may follow. `None` at the end.
fn read_line(stream: &mut impl Read) -> Option<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") {
        stream.read_exact(&mut byte).ok()?;
        line.push(byte[0]);
    }
    Some(String::from_utf8_lossy(line.trim_ascii_end()).into_owned())
}
