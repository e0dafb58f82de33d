//! The secrets of TLS sessions, written to a file so that a capture can be read (RFC 9850).

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Mutex;

/// A file in the format of NSS and Wireshark: a label, the client's random and the secret in
/// hexadecimal, one secret per line.
#[derive(Debug)]
pub(crate) struct KeyLogFile {
    file: Mutex<File>,
}

impl KeyLogFile {
    /// Opens `path` for appending; a new file is readable by its owner only.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self {
            file: Mutex::new(options.open(path)?),
        })
    }
}

impl rustls::KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = format!("{label} ");
        push_hex(&mut line, client_random);
        line.push(' ');
        push_hex(&mut line, secret);
        line.push('\n');
        if let Ok(mut file) = self.file.lock() {
            // A full disk costs the log its lines; a handshake cannot report it.
            file.write_all(line.as_bytes()).ok();
        }
    }
}

fn push_hex(line: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(line, "{byte:02x}").expect("a string takes everything");
    }
}

#[cfg(test)]
mod tests {
    use rustls::KeyLog;

    use super::*;

    #[test]
    fn lines_are_appended_and_for_the_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys.log");
        for secret in [[0x0a, 0xff], [0x00, 0x01]] {
            let log = KeyLogFile::open(&path).unwrap();
            log.log("CLIENT_RANDOM", &[0x12, 0x34], &secret);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "CLIENT_RANDOM 1234 0aff\nCLIENT_RANDOM 1234 0001\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
