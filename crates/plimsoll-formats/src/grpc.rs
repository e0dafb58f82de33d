//! Methods of gRPC: what `protoc` or a server says of them, and messages from JSON.
//!
//! [`Descriptors`] come from a descriptor set file, or by [`Reflection`] from a server that describes
//! itself; of them a [`Method`] is chosen by its [`MethodName`], and makes its messages of JSON.

mod descriptors;

mod method;

mod proto;

mod reflection;

pub use self::descriptors::{DescribedMethod, Descriptors, DescriptorsError, UnknownMethod};
pub use self::method::{AnswerError, MessageError, Method, MethodName, MethodNameError};
pub use self::proto::ProtoError;
pub use self::reflection::{Reflection, ReflectionError};

#[cfg(test)]
mod tests;
