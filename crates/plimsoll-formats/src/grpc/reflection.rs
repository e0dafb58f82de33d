//! Descriptors from a server that describes itself, by `grpc.reflection.v1` or `v1alpha`, whose messages
//! are the same.
//!
//! Pure: the caller carries the messages. Files that the server leaves out of an answer are requested
//! one by one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use prost::Message as _;

use super::descriptors::{Descriptors, DescriptorsError};

/// The files of one service and all that they import; the largest APIs have some hundreds.
const MOST_FILES: usize = 10_000;

/// Learns all about one service.
#[derive(Debug)]
pub struct Reflection {
    service: String,
    /// The next questions.
    ahead: VecDeque<Question>,
    /// Names of files that were requested.
    requested: BTreeSet<String>,
    /// Encoded descriptors by the names of their files.
    files: BTreeMap<String, Vec<u8>>,
}

/// Why a server's answers are no descriptors.
#[derive(Debug, thiserror::Error)]
pub enum ReflectionError {
    /// It does not know the requested symbol or file.
    #[error("the server has no description of {of}: {message} (code {code})")]
    Refused {
        /// The service or the file.
        of: String,
        /// Its message.
        message: String,
        /// The status of gRPC that it gives.
        code: i32,
    },
    /// An answer is not of the protocol.
    #[error("the server's answer about {0} is not one of reflection")]
    NotAnAnswer(String),
    /// There is no end of it.
    #[error("the server describes more than {MOST_FILES} files")]
    TooMany,
    /// The files do not fit together.
    #[error(transparent)]
    Descriptors(#[from] DescriptorsError),
}

#[derive(Debug, Clone)]
enum Question {
    Symbol(String),
    File(String),
}

impl Reflection {
    /// Full names of the services to ask, best first: the second is for servers that know only that.
    pub const SERVICES: [&str; 2] = [
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ];

    /// Their method, which takes a stream of requests and answers each.
    pub const METHOD: &str = "ServerReflectionInfo";

    /// - `service`: with its package.
    pub fn new(service: &str) -> Self {
        Self {
            service: service.to_owned(),
            ahead: VecDeque::from([Question::Symbol(service.to_owned())]),
            requested: BTreeSet::new(),
            files: BTreeMap::new(),
        }
    }

    /// The next message to send; `None` once all is known. Called again before there is an answer, it
    /// is the same.
    pub fn next_request(&self) -> Option<Vec<u8>> {
        let request = match self.ahead.front()? {
            Question::Symbol(name) => Request {
                symbol: Some(name.clone()),
                file: None,
            },
            Question::File(name) => Request {
                symbol: None,
                file: Some(name.clone()),
            },
        };
        Some(request.encode_to_vec())
    }

    /// Takes the answer to the last request.
    pub fn answer(&mut self, message: &[u8]) -> Result<(), ReflectionError> {
        let of = match self.ahead.pop_front() {
            Some(Question::Symbol(name) | Question::File(name)) => name,
            None => self.service.clone(),
        };
        let wrong = || ReflectionError::NotAnAnswer(of.clone());
        let response = Response::decode(message).map_err(|_| wrong())?;
        if let Some(refusal) = response.error {
            return Err(ReflectionError::Refused {
                of,
                message: refusal.message,
                code: refusal.code,
            });
        }
        for file in response.files.ok_or_else(wrong)?.files {
            let Imports { name, imports } =
                Imports::decode(file.as_slice()).map_err(|_| wrong())?;
            self.files.entry(name).or_insert(file);
            for import in imports {
                if self.requested.insert(import.clone()) {
                    self.ahead.push_back(Question::File(import));
                }
            }
            if self.files.len() + self.ahead.len() > MOST_FILES {
                return Err(ReflectionError::TooMany);
            }
        }
        let files = &self.files;
        self.ahead.retain(|question| match question {
            Question::Symbol(_) => true,
            Question::File(name) => !files.contains_key(name),
        });
        Ok(())
    }

    /// The descriptors that reflection returned.
    pub fn finish(self) -> Result<Descriptors, ReflectionError> {
        let set = Set {
            files: self.files.into_values().collect(),
        };
        Ok(Descriptors::decode(&set.encode_to_vec())?)
    }
}

/// `grpc.reflection.v1.ServerReflectionRequest`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct Request {
    #[prost(string, optional, tag = "3")]
    file: Option<String>,
    #[prost(string, optional, tag = "4")]
    symbol: Option<String>,
}

/// `grpc.reflection.v1.ServerReflectionResponse`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Response {
    #[prost(message, optional, tag = "4")]
    pub(super) files: Option<Set>,
    #[prost(message, optional, tag = "7")]
    pub(super) error: Option<Refusal>,
}

/// `google.protobuf.FileDescriptorSet`, and `FileDescriptorResponse`, which is the same on the wire;
/// the files stay encoded, so that nothing in them is lost.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Set {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(super) files: Vec<Vec<u8>>,
}

/// `grpc.reflection.v1.ErrorResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Refusal {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

/// Of `google.protobuf.FileDescriptorProto`, what says which files belong together.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Imports {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, repeated, tag = "3")]
    pub(super) imports: Vec<String>,
}
