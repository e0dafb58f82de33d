//! Services and the types of their messages, as a descriptor set holds them.

use std::collections::HashSet;

use prost::Message as _;
use prost_reflect::DescriptorPool;

use super::method::{Method, MethodName};
use super::proto::with_dots;
use super::reflection::Set;

/// The maximum depth of imports.
const MOST_IMPORTS: usize = 100;

/// Descriptors of services and of the types of their messages.
#[derive(Debug, Clone)]
pub struct Descriptors {
    pool: DescriptorPool,
}

/// A method as its file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedMethod {
    /// The package of its service; empty if there is none.
    pub package: String,
    /// Its service, without the package.
    pub service: String,
    /// Its name.
    pub name: String,
    /// The path of its calls: `/package.Service/Method`.
    pub path: String,
    /// Whether the client sends any number of messages.
    pub is_client_streaming: bool,
    /// Whether the server does.
    pub is_server_streaming: bool,
}

/// Why bytes are no descriptor set that can be used.
#[derive(Debug, thiserror::Error)]
pub enum DescriptorsError {
    /// They are something else.
    #[error("is not a descriptor set, as `protoc --descriptor_set_out` writes it")]
    NotASet,
    /// A file is written in another language than is understood.
    #[error("{file} has the syntax `{syntax}`, and proto2 and proto3 are understood")]
    Syntax {
        /// Its name.
        file: String,
        /// Its message.
        syntax: String,
    },
    /// A file imports itself, through others or not, or others too deep.
    #[error("{file} imports itself, or others more than {MOST_IMPORTS} deep")]
    Imports {
        /// Its name.
        file: String,
    },
    /// Something that they refer to is not among them.
    #[error("the descriptors are not complete: {0}")]
    Incomplete(String),
}

/// Why a method cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownMethod {
    /// There is no such service.
    #[error("there is no service {service}")]
    Service {
        /// The wanted service.
        service: String,
        /// Those that there are.
        known: Vec<String>,
        /// A similar name, as a suggestion.
        similar: Option<String>,
    },
    /// The service has no such method.
    #[error("{service} has no method {method}")]
    Method {
        /// Whose method.
        service: String,
        /// The wanted method.
        method: String,
        /// Those that it has.
        known: Vec<String>,
        /// A similar name, as a suggestion.
        similar: Option<String>,
    },
}

impl UnknownMethod {
    /// Similar names, as suggestions.
    pub fn hint(&self) -> String {
        let (similar, known) = match self {
            Self::Service { similar, known, .. } | Self::Method { similar, known, .. } => {
                (similar, known)
            }
        };
        match similar {
            Some(similar) => format!("did you mean {similar}?"),
            None if known.is_empty() => "there is none at all".to_owned(),
            None => format!("there are {}", known.join(", ")),
        }
    }
}

impl Descriptors {
    /// Reads a `FileDescriptorSet`, which must have all that its files import.
    pub fn decode(set: &[u8]) -> Result<Self, DescriptorsError> {
        let heads = heads(set)?;
        check_syntax(&heads)?;
        check_imports(&heads)?;
        let pool = DescriptorPool::decode(set).map_err(|error| {
            // The only problem that lies in the bytes and not in what they say.
            if error.to_string().starts_with("failed to decode") {
                return DescriptorsError::NotASet;
            }
            DescriptorsError::Incomplete(error.to_string())
        })?;
        Ok(Self { pool })
    }

    /// Names of the files that they were compiled from, as imports write them.
    pub fn file_names(&self) -> impl Iterator<Item = String> {
        self.pool.files().map(|file| with_dots(file.name()))
    }

    /// Every method, in the order of files, services and methods.
    pub fn methods(&self) -> impl Iterator<Item = DescribedMethod> {
        let methods = self.pool.services().flat_map(|service| {
            let methods: Vec<_> = service.methods().collect();
            methods
        });
        methods.map(|method| {
            let service = method.parent_service();
            DescribedMethod {
                package: service.package_name().to_owned(),
                service: service.name().to_owned(),
                name: method.name().to_owned(),
                path: format!("/{}/{}", service.full_name(), method.name()),
                is_client_streaming: method.is_client_streaming(),
                is_server_streaming: method.is_server_streaming(),
            }
        })
    }

    /// The method called `name`.
    pub fn method(&self, name: &MethodName) -> Result<Method, UnknownMethod> {
        let services = || self.pool.services();
        let Some(service) = self.pool.get_service_by_name(name.service()) else {
            let known: Vec<_> = services()
                .map(|service| service.full_name().to_owned())
                .collect();
            return Err(UnknownMethod::Service {
                service: name.service().to_owned(),
                similar: similar(name.service(), &known),
                known,
            });
        };
        let found = service
            .methods()
            .find(|method| method.name() == name.method());
        if let Some(method) = found {
            return Ok(Method::new(&method));
        }
        let methods = service.methods();
        let known: Vec<_> = methods.map(|method| method.name().to_owned()).collect();
        Err(UnknownMethod::Method {
            service: name.service().to_owned(),
            method: name.method().to_owned(),
            similar: similar(name.method(), &known),
            known,
        })
    }
}

/// A file descriptor: `google.protobuf.FileDescriptorProto`, as far as it is read.
#[derive(Clone, PartialEq, prost::Message)]
struct Head {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, repeated, tag = "3")]
    imports: Vec<String>,
    #[prost(string, optional, tag = "12")]
    syntax: Option<String>,
}

fn heads(set: &[u8]) -> Result<Vec<Head>, DescriptorsError> {
    let not_a_set = |_| DescriptorsError::NotASet;
    let files = Set::decode(set).map_err(not_a_set)?.files;
    let heads = files.iter().map(|file| Head::decode(file.as_slice()));
    heads.collect::<Result<_, _>>().map_err(not_a_set)
}

/// `prost-reflect` would panic at another syntax, such as that of editions or one that is there and empty.
fn check_syntax(files: &[Head]) -> Result<(), DescriptorsError> {
    for Head { name, syntax, .. } in files {
        if let Some(syntax) = syntax
            && !matches!(syntax.as_str(), "proto2" | "proto3")
        {
            return Err(DescriptorsError::Syntax {
                file: name.clone(),
                syntax: syntax.clone(),
            });
        }
    }
    Ok(())
}

/// `prost-reflect` follows imports by recursion: a circle, or a long enough row, would overflow the stack.
fn check_imports(files: &[Head]) -> Result<(), DescriptorsError> {
    let mut waiting: Vec<&Head> = files.iter().collect();
    for _ in 0..MOST_IMPORTS {
        // Those that import nothing that still waits need not be looked at again; what is not there at all is reported
        // elsewhere.
        let names: HashSet<&str> = waiting.iter().map(|file| file.name.as_str()).collect();
        waiting.retain(|file| {
            let mut imports = file.imports.iter();
            imports.any(|import| names.contains(import.as_str()))
        });
        if waiting.is_empty() {
            return Ok(());
        }
    }
    let file = waiting[0].name.clone();
    Err(DescriptorsError::Imports { file })
}

/// The one that looks most like `text`, unless none does. A package may have been left out.
fn similar(text: &str, known: &[String]) -> Option<String> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or(name).to_lowercase();
    let likeness = |name: &str| {
        let whole = strsim::jaro_winkler(text, name);
        whole.max(strsim::jaro_winkler(&last(text), &last(name)))
    };
    let rated = known.iter().map(|name| (likeness(name), name));
    let best = rated.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(likeness, _)| *likeness > 0.8)
        .map(|(_, name)| name.clone())
}
