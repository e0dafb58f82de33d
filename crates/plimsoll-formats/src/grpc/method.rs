//! One method: its name, its kind, and its messages from JSON.

use std::fmt;
use std::str::FromStr;

use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions};
use serde_json::Value;

/// The name of a method: `package.Service/Method`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodName {
    service: String,
    method: String,
}

/// A text that names no method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not of the form `package.Service/Method`")]
pub struct MethodNameError(String);

impl MethodName {
    /// The service, with its package.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// The method, without its service.
    pub fn method(&self) -> &str {
        &self.method
    }
}

/// As it stands in the path of a call, without the slash before it.
impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.service, self.method)
    }
}

impl FromStr for MethodName {
    type Err = MethodNameError;

    /// Parses `package.Service/Method`, with or without a slash before it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_name = |name: &str| {
            let mut bytes = name.bytes();
            !name.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let whole = text.strip_prefix('/').unwrap_or(text);
        match whole.split_once('/') {
            Some((service, method)) if service.split('.').all(is_name) && is_name(method) => {
                Ok(Self {
                    service: service.to_owned(),
                    method: method.to_owned(),
                })
            }
            _ => Err(MethodNameError(text.to_owned())),
        }
    }
}

/// A method that can be called.
#[derive(Debug, Clone)]
pub struct Method {
    input: MessageDescriptor,
    output: MessageDescriptor,
    is_client_streaming: bool,
    is_server_streaming: bool,
}

/// Why JSON is no message of a method.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// It is not JSON, or not of the message's type.
    #[error("is not a {of}")]
    Message {
        /// The full name of the message's type.
        of: String,
        /// The error and its position.
        source: serde_json::Error,
    },
    /// The same in one of several messages.
    #[error("message {number} is not a {of}")]
    OneOf {
        /// Which one, from 1.
        number: usize,
        /// The full name of the message's type.
        of: String,
        /// The error.
        source: serde_json::Error,
    },
    /// Several messages for a method that takes one.
    #[error("is a list of messages, but the method takes one {0}")]
    List(String),
}

/// Why bytes are no answer of a method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// They are not of the message's type.
    #[error("the answer is not a {0}: {1}")]
    Message(String, String),
    /// JSON has no such value.
    #[error("the answer, a {0}, has no form in JSON: {1}")]
    Json(String, String),
}

impl Method {
    pub(super) fn new(method: &MethodDescriptor) -> Self {
        Self {
            input: method.input(),
            output: method.output(),
            is_client_streaming: method.is_client_streaming(),
            is_server_streaming: method.is_server_streaming(),
        }
    }

    /// True if it takes a stream of messages, not exactly one.
    pub fn is_client_streaming(&self) -> bool {
        self.is_client_streaming
    }

    /// True if it answers with a stream of messages, not with exactly one.
    pub fn is_server_streaming(&self) -> bool {
        self.is_server_streaming
    }

    /// A message that the method answered with, as JSON.
    ///
    /// Source: "ProtoJSON Format", protobuf.dev; fields that have their defaults are left out.
    pub fn answer_to_json(&self, message: &[u8]) -> Result<String, AnswerError> {
        let of = || self.output.full_name().to_owned();
        let decoded = DynamicMessage::decode(self.output.clone(), message)
            .map_err(|error| AnswerError::Message(of(), error.to_string()))?;
        serde_json::to_string(&decoded).map_err(|error| AnswerError::Json(of(), error.to_string()))
    }

    /// A message of a response as JSON, with the defaults of fields that are not set, as Go's `EmitUnpopulated` and k6.
    ///
    /// Source: "ProtoJSON Format", protobuf.dev.
    pub fn answer_to_whole_json(&self, message: &[u8]) -> Result<String, AnswerError> {
        let of = || self.output.full_name().to_owned();
        let decoded = DynamicMessage::decode(self.output.clone(), message)
            .map_err(|error| AnswerError::Message(of(), error.to_string()))?;
        let options = SerializeOptions::new().skip_default_fields(false);
        let mut json = Vec::new();
        let mut writer = serde_json::Serializer::new(&mut json);
        decoded
            .serialize_with_options(&mut writer, &options)
            .map_err(|error| AnswerError::Json(of(), error.to_string()))?;
        String::from_utf8(json).map_err(|error| AnswerError::Json(of(), error.to_string()))
    }

    /// A request message of the method, as JSON, without fields that have their defaults; nothing if it is none,
    /// or JSON has no such value.
    pub fn request_to_json(&self, message: &[u8]) -> Option<String> {
        let decoded = DynamicMessage::decode(self.input.clone(), message).ok()?;
        serde_json::to_string(&decoded).ok()
    }

    /// The message that the method answers with which `json` describes, encoded.
    pub fn answer(&self, json: &[u8]) -> Result<Vec<u8>, MessageError> {
        let mut reader = serde_json::Deserializer::from_slice(json);
        let message = DynamicMessage::deserialize(self.output.clone(), &mut reader)
            .and_then(|message| reader.end().map(|()| message));
        let message = message.map_err(|source| MessageError::Message {
            of: self.output.full_name().to_owned(),
            source,
        })?;
        Ok(message.encode_to_vec())
    }

    /// The messages that `json` describes, encoded: one, or for a method that takes a stream those of
    /// a list.
    ///
    /// Source: "ProtoJSON Format", protobuf.dev; field names may also be those of the `.proto` file.
    pub fn messages(&self, json: &[u8]) -> Result<Vec<Vec<u8>>, MessageError> {
        let of = || self.input.full_name().to_owned();
        let is_list = json.trim_ascii_start().first() == Some(&b'[');
        // Some types of message, such as `google.protobuf.ListValue`, are lists themselves.
        let may_be_list = self.input.parent_file().package_name() == "google.protobuf";
        if is_list && !self.is_client_streaming && !may_be_list {
            return Err(MessageError::List(of()));
        }
        if !is_list || !self.is_client_streaming {
            let mut reader = serde_json::Deserializer::from_slice(json);
            let message = DynamicMessage::deserialize(self.input.clone(), &mut reader)
                .and_then(|message| reader.end().map(|()| message))
                .map_err(|source| MessageError::Message { of: of(), source })?;
            return Ok(vec![message.encode_to_vec()]);
        }
        let values: Vec<Value> = serde_json::from_slice(json)
            .map_err(|source| MessageError::Message { of: of(), source })?;
        let encode = |(number, value): (usize, Value)| {
            let message = DynamicMessage::deserialize(self.input.clone(), value);
            match message {
                Ok(message) => Ok(message.encode_to_vec()),
                Err(source) => Err(MessageError::OneOf {
                    number,
                    of: of(),
                    source,
                }),
            }
        };
        (1..).zip(values).map(encode).collect()
    }
}
