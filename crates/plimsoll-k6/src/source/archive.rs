//! Archives of k6: a tar file with a script, its modules, its files, its options and its variables.
//!
//! The layout is k6's: `metadata.json`, `data` (the main script), and below `file/` and `https/` everything that was read.
//! Paths carry no name of a user.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};
use tar::{EntryType, Header};

use crate::summary::K6_VERSION;

/// Longer archives are rejected: an archive is unpacked as a whole.
const MOST_BYTES: u64 = 1 << 30;

/// Archives with more files are rejected.
const MOST_FILES: usize = 100_000;

/// Seconds since 1970 in the entries of archives: the same script makes the same archive.
const MODIFIED: u64 = 1_000_000_000;

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is no tar file, or it is damaged.
    #[error("the archive cannot be read: {0}")]
    Tar(#[from] io::Error),
    /// It is no archive of k6.
    #[error("the archive {0}")]
    Layout(String),
}

/// A script with everything that it reads.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Archive {
    /// The main script: a `file://` or `https://` URL.
    pub(crate) main: String,
    /// What `open()` is relative to, in the same form.
    pub(crate) directory: String,
    /// The options, as k6 consolidates them.
    pub(crate) options: Map<String, Value>,
    /// Variables of `__ENV`.
    pub(crate) environment: Vec<(String, String)>,
    /// The text of the main script.
    pub(crate) text: Vec<u8>,
    /// Contents by absolute path.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Contents by URL without `https:/`.
    pub(crate) remote: BTreeMap<String, Vec<u8>>,
}

/// An archive in a folder of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct UnpackedArchive {
    /// The folder that absolute paths of the script are relative to.
    pub root: PathBuf,
    /// The main script, if it is a file.
    pub script: Option<PathBuf>,
    /// The folder that `open()` is relative to.
    pub directory: PathBuf,
    /// The name of the main script as its URL.
    pub main: String,
    /// The text of the main script.
    pub text: String,
    /// Contents of remote modules by URL.
    pub remote: BTreeMap<String, Vec<u8>>,
    /// The options, as k6 consolidates them.
    pub options: Map<String, Value>,
    /// Variables of `__ENV`.
    pub environment: Vec<(String, String)>,
}

impl Archive {
    /// True if these are the first bytes (512 at least) of a tar file.
    pub fn is_archive(bytes: &[u8]) -> bool {
        bytes.get(257..262) == Some(b"ustar")
    }

    /// Reads an archive that plimsoll or k6 has written.
    pub fn read(input: impl Read) -> Result<Self, ArchiveError> {
        let layout = |message: &str| ArchiveError::Layout(message.to_owned());
        let mut archive = Self::default();
        let mut metadata = None;
        let mut bytes_left = MOST_BYTES;
        let mut tar = tar::Archive::new(input);
        for (number, entry) in tar.entries()?.enumerate() {
            if number == MOST_FILES {
                return Err(layout("has too many files"));
            }
            let mut entry = entry?;
            if !matches!(entry.header().entry_type(), EntryType::Regular) {
                continue;
            }
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let mut content = Vec::new();
            let read = (&mut entry)
                .take(bytes_left + 1)
                .read_to_end(&mut content)?;
            bytes_left = bytes_left
                .checked_sub(read as u64)
                .ok_or_else(|| layout("is longer than 1 GiB"))?;
            match name.split_once('/') {
                None if name == "metadata.json" => metadata = Some(content),
                None if name == "data" => archive.text = content,
                Some(("file", path)) => drop(archive.files.insert(format!("/{path}"), content)),
                Some(("https", path)) => drop(archive.remote.insert(format!("/{path}"), content)),
                _ => {
                    let message = format!("has `{name}`, which is no part of an archive of k6");
                    return Err(ArchiveError::Layout(message));
                }
            }
        }
        let metadata = metadata.ok_or_else(|| layout("has no metadata.json"))?;
        archive.describe(&metadata)?;
        Ok(archive)
    }

    /// Takes over what `metadata.json` says.
    fn describe(&mut self, metadata: &[u8]) -> Result<(), ArchiveError> {
        let wrong = |message: String| ArchiveError::Layout(format!("has a wrong {message}"));
        let metadata: Value = serde_json::from_slice(metadata)
            .map_err(|error| wrong(format!("metadata.json: {error}")))?;
        let text = |key: &str| {
            let value = metadata[key].as_str().filter(|it| !it.is_empty());
            let value = value.ok_or_else(|| wrong(format!("metadata.json: `{key}` is missing")))?;
            Ok::<_, ArchiveError>(value.to_owned())
        };
        if metadata["type"] != "js" {
            return Err(wrong(format!("type, {}, not \"js\"", metadata["type"])));
        }
        self.main = text("filename")?;
        self.directory = text("pwd")?;
        if let Value::Object(options) = &metadata["options"] {
            self.options.clone_from(options);
        }
        let variables = metadata["env"].as_object().into_iter().flatten();
        self.environment = variables
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect();
        Ok(())
    }

    /// Removes the variables of `__ENV`.
    pub fn leave_out_variables(&mut self) {
        self.environment.clear();
    }

    /// Writes the archive as k6 does.
    pub fn write(&self, output: impl Write) -> io::Result<()> {
        let mut tar = tar::Builder::new(output);
        let variables = self.environment.iter();
        let variables: Map<_, _> = variables
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        let metadata = json!({
            "type": "js",
            "options": self.options,
            "filename": self.main,
            "pwd": self.directory,
            "env": variables,
            "compatibilityMode": "extended",
            "k6version": K6_VERSION,
            "goos": "linux",
        });
        let metadata = format!("{metadata:#}\n");
        append(&mut tar, "metadata.json", metadata.as_bytes())?;
        append(&mut tar, "data", &self.text)?;
        let main = self.main.split_once(":/").map_or("", |(_, path)| path);
        for (folder, contents) in [("file", &self.files), ("https", &self.remote)] {
            let is_main = |path: &str| {
                self.main.starts_with(folder)
                    && path.trim_start_matches('/') == main.trim_start_matches('/')
            };
            for directory in directories(contents.keys()) {
                let mut header = header(EntryType::Directory, 0o755, 0);
                tar.append_data(&mut header, format!("{folder}{directory}"), io::empty())?;
            }
            for (path, content) in contents {
                let name = format!("{folder}{path}");
                if is_main(path) {
                    let mut header = header(EntryType::Link, 0o644, 0);
                    tar.append_link(&mut header, name, "data")?;
                } else {
                    append(&mut tar, &name, content)?;
                }
            }
        }
        tar.into_inner()?.flush()
    }

    /// Writes the files into a folder, which must be empty.
    pub fn unpack(self, folder: &Path) -> Result<UnpackedArchive, ArchiveError> {
        let root = folder.canonicalize()?;
        let main = local(&self.main);
        let directory = local(&self.directory).map(|path| root.join(path));
        let mut files = self.files;
        if let Some(main) = &main {
            files.insert(format!("/{}", main.display()), self.text.clone());
        }
        for (path, content) in &files {
            let relative = relative(path).ok_or_else(|| {
                ArchiveError::Layout(format!("has `{path}`, which is outside of it"))
            })?;
            let path = root.join(relative);
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(path, content)?;
        }
        let directory = directory.unwrap_or_else(|| root.clone());
        std::fs::create_dir_all(&directory)?;
        let text = String::from_utf8(self.text)
            .map_err(|_| ArchiveError::Layout("has a script that is not UTF-8".to_owned()))?;
        let remote = self.remote.into_iter();
        Ok(UnpackedArchive {
            script: main.map(|main| root.join(main)),
            directory,
            root,
            main: self.main,
            text,
            remote: remote
                .map(|(path, content)| (format!("https:/{path}"), content))
                .collect(),
            options: self.options,
            environment: self.environment,
        })
    }
}

/// The path of a `file://` URL or of a bare path, relative to the root of an archive.
fn local(url: &str) -> Option<PathBuf> {
    let path = match url.strip_prefix("file://") {
        Some(path) => percent_encoding::percent_decode_str(path)
            .decode_utf8_lossy()
            .into_owned(),
        None if url.starts_with('/') => url.to_owned(),
        None => return None,
    };
    relative(&path)
}

/// A path without its root; `None` if it leads out of it.
pub(crate) fn relative(path: &str) -> Option<PathBuf> {
    let mut made = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => made.push(name),
            Component::ParentDir if made.pop() => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(made)
}

/// A path without the name of the user whose home it is in, as k6 archives it.
pub(crate) fn anonymous(path: &str) -> String {
    let mut parts: Vec<_> = path.split('/').collect();
    if let ["", "home" | "Users", user, ..] = parts.as_mut_slice() {
        *user = "nobody";
    }
    parts.join("/")
}

/// All folders above some absolute paths, those above before those below.
fn directories<'a>(paths: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut found = std::collections::BTreeSet::new();
    for path in paths {
        let above = Path::new(path).ancestors().skip(1);
        found.extend(above.map(|it| it.to_string_lossy().into_owned()));
    }
    found.into_iter().collect()
}

fn append(tar: &mut tar::Builder<impl Write>, name: &str, content: &[u8]) -> io::Result<()> {
    let mut header = header(EntryType::Regular, 0o644, content.len() as u64);
    tar.append_data(&mut header, name, content)
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(MODIFIED);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> Archive {
        let file = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
        Archive {
            main: "file:///home/nobody/a/script.js".to_owned(),
            directory: "file:///home/nobody/a/".to_owned(),
            options: json!({ "vus": 3 }).as_object().cloned().unwrap(),
            environment: vec![("NAME".to_owned(), "a value".to_owned())],
            text: b"import './b.js';".to_vec(),
            files: BTreeMap::from([
                file("/home/nobody/a/script.js", "import './b.js';"),
                file("/home/nobody/a/b.js", "b"),
            ]),
            remote: BTreeMap::from([file("/example.com/c.js", "c")]),
        }
    }

    #[test]
    fn an_archive_is_read_as_it_was_written() {
        let mut bytes = Vec::new();
        archive().write(&mut bytes).unwrap();
        assert!(Archive::is_archive(&bytes));
        let mut read = Archive::read(bytes.as_slice()).unwrap();
        // The main script is a link to `data`.
        let main = archive().files["/home/nobody/a/script.js"].clone();
        read.files
            .insert("/home/nobody/a/script.js".to_owned(), main);
        assert_eq!(read, archive());
    }

    #[test]
    fn unpacked_files_are_where_the_script_looks_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = Vec::new();
        archive().write(&mut bytes).unwrap();
        let read = Archive::read(bytes.as_slice()).unwrap();
        let unpacked = read.unpack(folder.path()).unwrap();
        let script = unpacked.script.unwrap();
        assert!(script.ends_with("home/nobody/a/script.js"));
        assert_eq!(
            std::fs::read_to_string(&script).unwrap(),
            "import './b.js';"
        );
        assert_eq!(
            std::fs::read_to_string(script.with_file_name("b.js")).unwrap(),
            "b"
        );
        assert_eq!(unpacked.remote["https://example.com/c.js"], b"c");
    }

    #[test]
    fn files_that_lead_out_of_the_archive_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = archive();
        archive.files.insert("/../../evil".to_owned(), Vec::new());
        let error = archive.unpack(folder.path()).unwrap_err();
        assert!(error.to_string().contains("outside"), "{error}");
    }

    #[test]
    fn anything_else_is_no_archive() {
        let mut tar = tar::Builder::new(Vec::new());
        append(&mut tar, "other.txt", b"x").unwrap();
        let bytes = tar.into_inner().unwrap();
        let error = Archive::read(bytes.as_slice()).unwrap_err();
        assert!(error.to_string().contains("other.txt"), "{error}");
        assert!(!Archive::is_archive(b"import http from 'k6/http'"));
    }

    #[test]
    fn paths_do_not_name_users() {
        for (path, expected) in [
            ("/home/ann/a/b.js", "/home/nobody/a/b.js"),
            ("/Users/ann/b.js", "/Users/nobody/b.js"),
            ("/srv/home/ann/b.js", "/srv/home/ann/b.js"),
        ] {
            assert_eq!(anonymous(path), expected);
        }
    }
}
