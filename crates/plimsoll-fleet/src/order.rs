//! What a run is: the command that agents run, its files, and who makes which part. It is one text, which can be signed.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::message::{Instances, Shares};
use crate::transport::TransportError;

/// Bytes of all files of a run, at most.
pub const MOST_FILE_BYTES: usize = 256 << 20;

/// The order of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOrder {
    /// The run; an agent does not run an order of another one.
    pub run: String,
    /// When it was made, in seconds since 1970. Agents refuse old orders, so none can be used again.
    pub made_at: u64,
    /// Version of the program; agents of another one refuse it, because its flags may mean something else.
    pub program: String,
    /// What kind of run it is.
    pub work: Work,
    /// Seconds of a tick of a plain load; at least one.
    pub tick_seconds: u64,
    /// What agents run.
    pub command: Vec<Argument>,
    /// The files of the command.
    pub files: Vec<FileEntry>,
    /// The parts of the agents.
    pub shares: Shares,
    /// The process that makes each part: another one of the same name makes none.
    pub instances: Instances,
}

/// The kinds of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// A plain load: the command has the flags of `load`.
    Load,
    /// A script: the first file is its archive, and the command has its flags.
    Script,
    /// Checks of built-in servers: the command has the flags of `loadtest`.
    Loadtest,
}

/// An argument of the command `load`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Argument {
    /// As it is.
    Text(String),
    /// The path of a file of the run: the agent puts its own copy here.
    File(String),
}

/// A file as the order names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its name, without folders.
    pub name: String,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// A file with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderFile {
    /// Its name, without folders.
    pub name: String,
    /// Its content.
    pub content: Vec<u8>,
}

impl OrderFile {
    /// How the order names it.
    pub fn entry(&self) -> FileEntry {
        FileEntry {
            name: self.name.clone(),
            sha256: sha256(&self.content),
        }
    }
}

impl FileEntry {
    /// Whether the name can be that of a file in a folder, and leads out of none.
    pub fn has_safe_name(&self) -> bool {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
        let has_letter = self.name.chars().any(|it| it.is_ascii_alphanumeric());
        has_letter && self.name.len() <= 100 && self.name.chars().all(is_plain)
    }

    /// Whether `content` is that of the file.
    pub fn matches(&self, content: &[u8]) -> bool {
        self.sha256 == sha256(content)
    }
}

fn sha256(content: &[u8]) -> String {
    hexadecimal(digest(&SHA256, content).as_ref())
}

/// Two digits for each byte.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes more");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_content_and_stays_in_its_folder() {
        let file = OrderFile {
            name: "0-users.csv".to_owned(),
            content: b"abc".to_vec(),
        };
        let entry = file.entry();
        // FIPS 180-2, appendix B.1.
        assert_eq!(
            entry.sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert!(entry.matches(b"abc") && !entry.matches(b"abd"));
        assert!(entry.has_safe_name());
        for name in ["", "..", ".", "a/b", "../a", "a b", "a\0"] {
            let entry = FileEntry {
                name: name.to_owned(),
                sha256: String::new(),
            };
            assert!(!entry.has_safe_name(), "{name}");
        }
    }
}

/// Why an agent does not make its part of an order.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The agent asks for a signature.
    #[error(
        "the order is not signed, and this agent runs signed orders only (--sign KEY at the coordinator)"
    )]
    NotSigned,
    /// The signature is of another key, or of another text.
    #[error("none of the keys of --trust signed the order")]
    UnknownKey,
    /// The text is no order.
    #[error("the order cannot be read: {0}")]
    Unreadable(serde_json::Error),
    /// The name of the run is not that of its subject.
    #[error("the order is for another run, {0}")]
    OtherRun(String),
    /// Versions differ in what they count.
    #[error(
        "the coordinator is plimsoll {coordinator}, this agent {agent}: use the same version everywhere"
    )]
    OtherVersion {
        /// Its version.
        coordinator: String,
        /// The version of this program.
        agent: String,
    },
    /// It may be sent again by another.
    #[error("the order was made more than {} minutes before or after the date of this machine", .0.as_secs() / 60)]
    Age(Duration),
    /// A share outside of the whole.
    #[error("the order gives this agent no part")]
    NoPart,
    /// A name of a file with a folder before it.
    #[error("the order names a file with a folder")]
    FileInFolder,
    /// The broker does not give a file.
    #[error("{name}: {cause}")]
    File {
        /// Of the file.
        name: String,
        /// Why not.
        cause: TransportError,
    },
    /// Its hash or length differs.
    #[error("the file {0} is not the one of the order")]
    OtherFile(String),
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
