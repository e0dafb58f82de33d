//! Making a packed site.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use plimsoll_server::{Coding, compress_well};
use plimsoll_wire::files::NewFile;
use ring::digest::{Context, SHA256};

use crate::files::media;
use crate::pack::executable::{is_dynamic, program_length, without_sections};
use crate::pack::format::{Index, IndexedFile, PackError, Stored, Trailer, digest_bytes, hash_of};

/// The site to pack, and the program to pack it into.
#[derive(Debug, Clone)]
pub struct PackOptions {
    /// The directory of the site.
    pub directory: PathBuf,
    /// The program that serves it; a payload that it has is replaced.
    pub program: PathBuf,
    /// The file to write.
    pub output: PathBuf,
    /// Keys of `files` that it is served with, as they stand in TOML, one a line.
    pub keys: String,
    /// Lines of aliases and URLs.
    pub links: String,
    /// Names that begin with a dot are packed too.
    pub hidden: bool,
}

/// The packed site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packed {
    /// Files.
    pub files: usize,
    /// Compressed copies that are smaller.
    pub copies: usize,
    /// Bytes of the program.
    pub program_bytes: u64,
    /// Bytes of the whole.
    pub bytes: u64,
    /// The program needs libraries of the system, so that it does not run in an empty root.
    pub is_dynamic: bool,
}

/// Content from so many bytes on is compressed: shorter content fits one packet anyway.
const LEAST_COMPRESSED: usize = 256;

/// Packs a directory; the file is complete or not there.
pub fn pack(options: &PackOptions) -> Result<Packed, PackError> {
    let mut writer = Writer::begin(options)?;
    let packed = writer.write_all(options)?;
    writer.new.put().map_err(io("write", &options.output))?;
    Ok(packed)
}

fn io(verb: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> PackError {
    let path = path.to_owned();
    move |source| PackError::Io { verb, path, source }
}

struct Writer {
    /// Becomes the output.
    new: NewFile,
    output: PathBuf,
    program_bytes: u64,
    is_dynamic: bool,
    /// Bytes of the payload so far.
    written: u64,
    checksum: Context,
    index: Index,
    /// Contents by their hashes.
    known: HashMap<String, usize>,
}

impl Writer {
    fn begin(options: &PackOptions) -> Result<Self, PackError> {
        let program = program(&options.program)?;
        let output = options.output.clone();
        let mut new = NewFile::beside(&output).map_err(io("write", &output))?;
        let runnable = fs::Permissions::from_mode(0o755);
        new.file()
            .write_all(&program)
            .and_then(|()| new.file().set_permissions(runnable))
            .map_err(io("write", &output))?;
        Ok(Self {
            new,
            output,
            program_bytes: program.len() as u64,
            is_dynamic: is_dynamic(&program),
            written: 0,
            checksum: Context::new(&SHA256),
            index: Index {
                keys: options.keys.clone(),
                links: options.links.clone(),
                ..Index::default()
            },
            known: HashMap::new(),
        })
    }

    fn write_all(&mut self, options: &PackOptions) -> Result<Packed, PackError> {
        let mut paths = Vec::new();
        walk(&options.directory, "", options.hidden, 0, &mut paths)?;
        paths.sort();
        for path in paths {
            self.file(&options.directory, path)?;
        }
        let index = serde_json::to_vec(&self.index).expect("an index is made of texts and numbers");
        let at = self.written;
        self.write(&index)?;
        let trailer = Trailer {
            payload: self.program_bytes,
            index: self.program_bytes + at,
            end: self.program_bytes + self.written,
            checksum: digest_bytes(&self.checksum.clone().finish()),
        };
        let bytes = trailer.to_bytes();
        let written = self.new.file().write_all(&bytes);
        written.map_err(io("write", &self.output))?;
        let files = &self.index.files;
        Ok(Packed {
            files: files.len(),
            copies: files.iter().map(|file| file.copies.len()).sum(),
            program_bytes: self.program_bytes,
            bytes: trailer.end + bytes.len() as u64,
            is_dynamic: self.is_dynamic,
        })
    }

    fn file(&mut self, directory: &Path, path: String) -> Result<(), PackError> {
        let place = directory.join(&path);
        let content = fs::read(&place)
            .map(Bytes::from)
            .map_err(io("read", &place))?;
        let metadata = fs::metadata(&place).map_err(io("read", &place))?;
        let modified = metadata.modified().ok();
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let stored = self.content(&content)?;
        let mut copies = Vec::new();
        let compresses =
            content.len() >= LEAST_COMPRESSED && media::compresses(&media::media_type(&path));
        for coding in Coding::ALL.into_iter().filter(|_| compresses) {
            let copy = compress_well(coding, &content);
            if copy.len() < content.len() {
                copies.push((coding.name().to_owned(), self.content(&copy)?));
            }
        }
        self.index.files.push(IndexedFile {
            path,
            modified: since.map(|since| since.as_secs()),
            content: stored,
            copies,
        });
        Ok(())
    }

    /// The place of a content, which is written if it is not there yet.
    fn content(&mut self, content: &[u8]) -> Result<usize, PackError> {
        let hash = hash_of(content);
        if let Some(place) = self.known.get(&hash) {
            return Ok(*place);
        }
        let offset = self.written;
        self.write(content)?;
        let place = self.index.contents.len();
        self.index.contents.push(Stored {
            offset,
            length: content.len() as u64,
            hash: hash.clone(),
        });
        self.known.insert(hash, place);
        Ok(place)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), PackError> {
        self.new
            .file()
            .write_all(bytes)
            .map_err(io("write", &self.output))?;
        self.checksum.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }
}

/// The program without a payload, and without what it does not need to run.
fn program(path: &Path) -> Result<Vec<u8>, PackError> {
    let mut bytes = fs::read(path).map_err(io("read", path))?;
    let file = File::open(path).map_err(io("read", path))?;
    if let Some(trailer) = Trailer::read(&file).map_err(io("read", path))? {
        bytes.truncate(usize::try_from(trailer.payload).unwrap_or(usize::MAX));
    }
    bytes.truncate(program_length(&bytes));
    without_sections(&mut bytes);
    Ok(bytes)
}

/// Directories within each other that are packed.
const DEEPEST: usize = 64;

/// Notes the files below a directory; links that lead to files are followed, others are left out.
fn walk(
    root: &Path,
    below: &str,
    hidden: bool,
    depth: usize,
    paths: &mut Vec<String>,
) -> Result<(), PackError> {
    let directory = root.join(below);
    let entries = fs::read_dir(&directory).map_err(io("read", &directory))?;
    for entry in entries {
        let entry = entry.map_err(io("read", &directory))?;
        let Ok(name) = entry.file_name().into_string() else {
            return Err(PackError::Name(entry.path()));
        };
        if name.starts_with('.') && !hidden && !(below.is_empty() && name == ".well-known") {
            continue;
        }
        let path = if below.is_empty() {
            name
        } else {
            format!("{below}/{name}")
        };
        let kind = entry.file_type().map_err(io("read", &directory))?;
        if kind.is_dir() && depth < DEEPEST {
            walk(root, &path, hidden, depth + 1, paths)?;
        } else if kind.is_file() || (kind.is_symlink() && is_within(root, &entry.path())) {
            paths.push(path);
        }
    }
    Ok(())
}

/// Whether a link leads to a file within the root.
fn is_within(root: &Path, link: &Path) -> bool {
    let (Ok(root), Ok(target)) = (fs::canonicalize(root), fs::canonicalize(link)) else {
        return false;
    };
    target.starts_with(root) && target.is_file()
}
