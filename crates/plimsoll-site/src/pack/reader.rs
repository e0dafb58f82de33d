//! Reading a packed site, to serve it or to see what is in it.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_server::{Coding, FilePart};

use crate::files::tree::{Listed, SiteFile, StoredCopy, Tag, Tree, TreeEntry};
use crate::pack::executable::is_cut;
use crate::pack::format::{Index, IndexedFile, PackError, PackedFile, Stored, Trailer};

/// A packed site, open.
#[derive(Debug)]
pub(crate) struct Pack {
    file: Arc<File>,
    payload: u64,
    contents: Vec<Stored>,
    files: HashMap<String, IndexedFile>,
    /// The names in each directory.
    directories: HashMap<String, BTreeMap<String, bool>>,
    links: String,
}

impl Pack {
    /// Opens a file with a payload, of which every byte is checked.
    pub(crate) fn open(path: &Path) -> Result<Self, PackError> {
        let (file, trailer, index) = open(path)?;
        let mut directories: HashMap<String, BTreeMap<String, bool>> = HashMap::new();
        directories.entry(String::new()).or_default();
        for indexed in &index.files {
            let mut path = indexed.path.as_str();
            let mut is_directory = false;
            loop {
                let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
                let entries = directories.entry(above.to_owned()).or_default();
                entries.insert(name.to_owned(), is_directory);
                if above.is_empty() {
                    break;
                }
                (path, is_directory) = (above, true);
            }
        }
        let files = index.files.into_iter();
        Ok(Self {
            file: Arc::new(file),
            payload: trailer.payload,
            contents: index.contents,
            files: files.map(|file| (file.path.clone(), file)).collect(),
            directories,
            links: index.links,
        })
    }

    /// Lines of aliases and URLs.
    pub(crate) fn links(&self) -> &str {
        &self.links
    }

    fn part(&self, content: usize) -> Option<(FilePart, Tag)> {
        let stored = self.contents.get(content)?;
        let offset = self.payload + stored.offset;
        let part = FilePart::new(Arc::clone(&self.file), offset, stored.length);
        let tag = Tag {
            is_weak: false,
            opaque: stored.hash.get(..32)?.to_owned(),
            changed: i128::MIN,
        };
        Some((part, tag))
    }
}

impl Tree for Arc<Pack> {
    fn find(&self, path: &str) -> io::Result<TreeEntry> {
        if self.directories.contains_key(path) {
            return Ok(TreeEntry::Directory);
        }
        let file = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        let (part, tag) = self.part(file.content).ok_or(io::ErrorKind::InvalidData)?;
        Ok(TreeEntry::File(SiteFile {
            part,
            modified: file.modified,
            tag,
        }))
    }

    fn copies(&self, path: &str, _file: &SiteFile) -> Vec<StoredCopy> {
        let copies = self.files.get(path).map_or(&[][..], |file| &file.copies);
        let copies = copies.iter().filter_map(|(name, content)| {
            let coding = Coding::ALL
                .into_iter()
                .find(|coding| coding.name() == name)?;
            let (part, tag) = self.part(*content)?;
            Some(StoredCopy { coding, part, tag })
        });
        copies.collect()
    }

    fn list(&self, path: &str) -> io::Result<Vec<Listed>> {
        let entries = self.directories.get(path).ok_or(io::ErrorKind::NotFound)?;
        let listed = entries.iter().map(|(name, is_directory)| {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}/{name}")
            };
            let file = self.files.get(&path);
            let stored = file.and_then(|file| self.contents.get(file.content));
            Listed {
                name: name.clone(),
                is_directory: *is_directory,
                length: stored.map_or(0, |stored| stored.length),
                modified: file.and_then(|file| file.modified),
            }
        });
        Ok(listed.collect())
    }

    fn generation(&self) -> u64 {
        0
    }
}

/// Opens a file and checks its payload.
fn open(path: &Path) -> Result<(File, Trailer, Index), PackError> {
    read(path, true)
}

/// - `checks`: every byte is looked at.
fn read(path: &Path, checks: bool) -> Result<(File, Trailer, Index), PackError> {
    let io = |source| PackError::Io {
        verb: "read",
        path: path.to_owned(),
        source,
    };
    let damaged = |reason| PackError::Damaged {
        path: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(io)?;
    let trailer = Trailer::read(&file).map_err(io)?;
    let Some(trailer) = trailer else {
        let mut head = [0; 64];
        let is_cut = file.read_exact_at(&mut head, 0).is_ok() && is_cut(&head);
        return Err(if is_cut {
            damaged("its end is missing, so it was not copied as a whole")
        } else {
            PackError::NoPayload(path.to_owned())
        });
    };
    if checks && trailer.computed(&file).map_err(io)? != trailer.checksum {
        return Err(damaged("its checksum is another one"));
    }
    let length = usize::try_from(trailer.end - trailer.index)
        .map_err(|_| damaged("its index is too long"))?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, trailer.index).map_err(io)?;
    let index: Index =
        serde_json::from_slice(&bytes).map_err(|_| damaged("its index cannot be read"))?;
    let room = trailer.index - trailer.payload;
    let fits = |stored: &Stored| {
        stored.hash.len() == 64
            && stored.hash.is_ascii()
            && stored
                .offset
                .checked_add(stored.length)
                .is_some_and(|end| end <= room)
    };
    let is_known = |content: usize| content < index.contents.len();
    let is_whole = index.contents.iter().all(fits)
        && index.files.iter().all(|file| {
            is_known(file.content) && file.copies.iter().all(|(_, content)| is_known(*content))
        });
    if !is_whole {
        return Err(damaged("its index names what is not there"));
    }
    Ok((file, trailer, index))
}

/// The keys of `files` that a program is to be served with, if it carries a site; its bytes are not checked yet.
pub fn packed_keys(program: &Path) -> Option<String> {
    match read(program, false) {
        Ok((_, _, index)) => Some(index.keys),
        Err(PackError::NoPayload(_) | PackError::Io { .. }) => None,
        // Damage is reported when it is to be served.
        Err(_) => Some(String::new()),
    }
}

/// The files of a packed site, by path.
pub fn list(path: &Path) -> Result<Vec<PackedFile>, PackError> {
    let (_, _, index) = open(path)?;
    let length = |content: usize| index.contents[content].length;
    let files = index.files.iter().map(|file| PackedFile {
        path: file.path.clone(),
        length: length(file.content),
        copies: file
            .copies
            .iter()
            .map(|(name, content)| (name.clone(), length(*content)))
            .collect(),
    });
    Ok(files.collect())
}

/// Writes the files of a packed site below `directory`, which must not be there or be empty; returns how many.
pub fn extract(path: &Path, directory: &Path) -> Result<usize, PackError> {
    let (file, trailer, index) = open(path)?;
    let io = |verb, path: &Path| {
        let path: PathBuf = path.to_owned();
        move |source| PackError::Io { verb, path, source }
    };
    if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(PackError::Occupied(directory.to_owned()));
    }
    for packed in &index.files {
        let leads_out = |name: &str| name.is_empty() || name == "." || name == "..";
        if packed.path.split('/').any(leads_out) || packed.path.contains('\0') {
            return Err(PackError::Path(packed.path.clone()));
        }
    }
    for packed in &index.files {
        let stored = &index.contents[packed.content];
        let offset = trailer.payload + stored.offset;
        let mut part = FilePart::new(
            Arc::new(file.try_clone().map_err(io("read", path))?),
            offset,
            stored.length,
        );
        let place = directory.join(&packed.path);
        if let Some(above) = place.parent() {
            fs::create_dir_all(above).map_err(io("create", above))?;
        }
        let mut written = File::create(&place).map_err(io("write", &place))?;
        part.copy_to(&mut written).map_err(io("write", &place))?;
    }
    Ok(index.files.len())
}
