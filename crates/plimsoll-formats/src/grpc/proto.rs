//! Descriptors from `.proto` files, compiled without `protoc`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

use super::descriptors::{Descriptors, DescriptorsError};

/// Why `.proto` files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProtoError {
    /// A file cannot be read, or is invalid: the message names file, line and column.
    #[error("{0}")]
    Source(String),
    /// The compiled files cannot be used.
    #[error(transparent)]
    Descriptors(#[from] DescriptorsError),
}

impl From<protox::Error> for ProtoError {
    fn from(error: protox::Error) -> Self {
        // The message alone lacks the position, which the debug form has before it.
        Self::Source(format!("{error:?}").trim_end().to_owned())
    }
}

impl Descriptors {
    /// Compiles `.proto` files and all that they import.
    ///
    /// - `includes`: folders that imports and `files` are relative to, as `--proto_path` of `protoc`.
    pub fn compile<P: AsRef<Path>>(includes: &[P], files: &[P]) -> Result<Self, ProtoError> {
        let mut compiler = Compiler::new(includes)?;
        compiler.include_imports(true).open_files(files)?;
        Ok(Self::decode(&compiler.encode_file_descriptor_set())?)
    }

    /// Compiles `.proto` files and all that they import, found by their names: these may lead out of any folder.
    ///
    /// - `places`: where a file of that name may be; the first that is there counts.
    pub fn compile_named(
        names: &[String],
        places: impl Fn(&str) -> Vec<PathBuf> + 'static,
    ) -> Result<Self, ProtoError> {
        let mut resolver = ChainFileResolver::new();
        resolver.add(NamedFiles(places));
        resolver.add(GoogleFileResolver::new());
        let mut compiler = Compiler::with_file_resolver(resolver);
        compiler.include_imports(true).open_files(names)?;
        Ok(Self::decode(&compiler.encode_file_descriptor_set())?)
    }

    /// Reads a file: a `.proto` file, whose imports are relative to its folder, or a descriptor set.
    pub fn open(path: &Path) -> Result<Self, ProtoError> {
        if path.extension().is_some_and(|it| it == "proto") {
            let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
            return Self::compile(&[folder.unwrap_or(Path::new("."))], &[path]);
        }
        let set = std::fs::read(path);
        let set = set.map_err(|error| ProtoError::Source(format!("cannot read it: {error}")))?;
        Ok(Self::decode(&set)?)
    }

    /// Compiles the text of one `.proto` file, which may import Google's well-known types alone.
    ///
    /// - `name`: of the file, for messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProtoError> {
        let mut resolver = ChainFileResolver::new();
        resolver.add(GivenFile(File::from_source(name, text)?));
        resolver.add(GoogleFileResolver::new());
        let mut compiler = Compiler::with_file_resolver(resolver);
        compiler.include_imports(true).open_file(name)?;
        Ok(Self::decode(&compiler.encode_file_descriptor_set())?)
    }
}

/// Resolves files by names that are no paths below a folder.
struct NamedFiles<F>(F);

impl<F: Fn(&str) -> Vec<PathBuf>> FileResolver for NamedFiles<F> {
    /// The name is what was given, as for imports, and not a path below a folder.
    fn resolve_path(&self, path: &Path) -> Option<String> {
        path.to_str().map(name_without_dots)
    }

    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let written = with_dots(name);
        let places = (self.0)(&written);
        let found = places.iter().find(|place| place.is_file());
        let found = found.ok_or_else(|| protox::Error::file_not_found(&written))?;
        let text = std::fs::read_to_string(found);
        let text =
            text.map_err(|error| protox::Error::new(format!("cannot read {written}: {error}")))?;
        // Without its path, which would have to be below the folder of its name.
        File::from_source(name, &without_dots(&text))
    }
}

/// Take the place of `.` and `..` in imports, which the parser refuses as `protoc` does.
const DOTS: [(&str, &str); 2] = [("..", "(parent)"), (".", "(here)")];

/// The name as an import writes it.
pub(super) fn with_dots(name: &str) -> String {
    let parts = name.split('/').map(|part| {
        let dots = DOTS.iter().find(|(_, instead)| *instead == part);
        dots.map_or(part, |(dots, _)| *dots)
    });
    parts.collect::<Vec<_>>().join("/")
}

/// The name that a file has within the compiler.
fn name_without_dots(name: &str) -> String {
    let parts = name.split('/').map(|part| {
        let instead = DOTS.iter().find(|(dots, _)| *dots == part);
        instead.map_or(part, |(_, instead)| *instead)
    });
    parts.collect::<Vec<_>>().join("/")
}

/// A text whose imports have no such parts.
fn without_dots(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let changed = import_without_dots(line);
        changed.map_or(Cow::Borrowed(line), Cow::Owned)
    });
    lines.collect()
}

/// The line, if it begins with an import that has such parts.
fn import_without_dots(line: &str) -> Option<String> {
    line.trim_start().strip_prefix("import")?;
    let (head, rest) = line.split_at(line.find(['"', '\''])? + 1);
    let quote = head.chars().next_back()?;
    let (name, tail) = rest.split_at(rest.find(quote)?);
    let changed = name_without_dots(name);
    (changed != name).then(|| format!("{head}{changed}{tail}"))
}

/// Resolves one file, which is in memory.
struct GivenFile(File);

impl FileResolver for GivenFile {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        if name == self.0.name() {
            return Ok(self.0.clone());
        }
        Err(protox::Error::file_not_found(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_compiled_with_their_imports() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "part.proto",
            "syntax = 'proto3'; package p; message Part { int64 size = 1; }",
        );
        write(
            "whole.proto",
            "syntax = 'proto3'; package p; import 'part.proto'; import 'google/protobuf/empty.proto';
             service S { rpc Get(Part) returns (google.protobuf.Empty); }",
        );
        let compiled = Descriptors::compile(&[folder.path()], &[Path::new("whole.proto")]);
        let method = compiled
            .unwrap()
            .method(&"p.S/Get".parse().unwrap())
            .unwrap();
        assert_eq!(method.messages(br#"{"size": "3"}"#).unwrap(), [[8, 3]]);
    }

    #[test]
    fn names_may_lead_out_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, other) = (folder.path().join("a/b"), folder.path().join("other"));
        for made in [&inner.join("sub"), &other] {
            std::fs::create_dir_all(made).unwrap();
        }
        let part = "syntax = 'proto3'; package p; message Part { int64 size = 1; }";
        std::fs::write(inner.join("sub/part.proto"), part).unwrap();
        let whole = "syntax = 'proto3'; package p; import 'sub/part.proto'; service S { rpc Get(Part) returns (Part); }";
        std::fs::write(other.join("whole.proto"), whole).unwrap();
        let compile = |name: &str| {
            let inner = inner.clone();
            Descriptors::compile_named(&[name.to_owned()], move |name| vec![inner.join(name)])
        };
        let compiled = compile("../../other/whole.proto").unwrap();
        assert!(compiled.method(&"p.S/Get".parse().unwrap()).is_ok());
        // Imports may, too: the folder that they are relative to is the same.
        let outer = "syntax = 'proto3'; package o;
            import \"./sub/part.proto\";
            message Outer { p.Part part = 1; }";
        std::fs::write(other.join("outer.proto"), outer).unwrap();
        let whole = "syntax = 'proto3'; package w;
              import public '../../other/outer.proto'; // not ../other
              service S { rpc Get(o.Outer) returns (o.Outer); }";
        std::fs::write(inner.join("up.proto"), whole).unwrap();
        let compiled = compile("up.proto").unwrap();
        assert!(compiled.method(&"w.S/Get".parse().unwrap()).is_ok());
        let names: Vec<_> = compiled.file_names().collect();
        assert!(
            names.contains(&"../../other/outer.proto".to_owned()),
            "{names:?}"
        );
        let missing = compile("../part.proto").unwrap_err().to_string();
        assert!(missing.contains("../part.proto"), "{missing}");
    }

    #[test]
    fn errors_name_the_position() {
        let error = Descriptors::parse(
            "a.proto",
            "syntax = 'proto3';\nmessage A { Missing m = 1; }",
        );
        let message = error.unwrap_err().to_string();
        assert!(message.starts_with("a.proto:2:13: "), "{message}");
        let missing = Descriptors::compile(&[Path::new(".")], &[Path::new("no_such.proto")]);
        let message = missing.unwrap_err().to_string();
        assert!(message.contains("no_such.proto"), "{message}");
    }
}
