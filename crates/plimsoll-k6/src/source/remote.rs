//! Modules that scripts import by https: fetched once, kept in a folder, pinned by their hash.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_wire::files;
use ring::digest::{SHA256, digest};

use crate::crypto::hex;

/// Longer modules are rejected, as files are.
const LONGEST: usize = 16 << 20;

/// The first line of a cached module.
const MAGIC: &str = "plimsoll module 1";

/// Gets the content of a URL.
pub type Fetch = Box<dyn Fn(&str) -> Result<Vec<u8>, ModuleFetchError> + Send + Sync>;

/// Why there is no content of a URL, which the one who fetches knows.
pub type ModuleFetchError = Box<dyn Error + Send + Sync>;

/// The cache and source of modules from other servers.
pub struct RemoteModules {
    /// The cache folder; absent caches none.
    folder: Option<PathBuf>,
    /// A file with the hash of each, which may stand beside a script.
    lock: Option<Lock>,
    fetch: Fetch,
}

impl std::fmt::Debug for RemoteModules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteModules")
            .field("folder", &self.folder)
            .field("lock", &self.lock)
            .finish_non_exhaustive()
    }
}

/// Why there is no text of a module.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    /// The server gave none.
    #[error(
        "cannot fetch {url}, which is not in the cache: {cause}; without a connection, save the file beside the script and import it by its path"
    )]
    Fetch {
        url: String,
        cause: ModuleFetchError,
    },
    #[error("{url} is longer than {} MiB", LONGEST >> 20)]
    TooLong { url: String },
    #[error("{url} is not UTF-8")]
    NotUtf8 { url: String },
    #[error("cannot read {}: {cause}", file.display())]
    Read { file: PathBuf, cause: io::Error },
    #[error("cannot write {}: {cause}", file.display())]
    Write { file: PathBuf, cause: io::Error },
    #[error("the cached copy of {url} has been changed: delete {} to fetch it again", file.display())]
    CopyChanged { url: String, file: PathBuf },
    #[error(
        "{url} has the SHA-256 {hash}, but {} has {pinned}: the module has changed; remove the line to accept it", lock.display()
    )]
    ModuleChanged {
        url: String,
        hash: String,
        lock: PathBuf,
        pinned: String,
    },
}

/// Why the file with the hashes of modules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModuleLockError {
    /// It cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// Of the file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// A line of another form.
    #[error("{}:{line}: is not a line `SHA-256 URL`", path.display())]
    Line {
        /// Of the file.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
}

/// Hashes by URL.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    hashes: Mutex<BTreeMap<String, String>>,
}

impl RemoteModules {
    /// - `folder`: where modules are kept; absent keeps none.
    /// - `lock`: a file of lines `SHA-256 URL`. A module must have the hash that it names; others are added to it.
    ///
    /// Fails if the lock file cannot be read or parsed.
    pub fn new(
        folder: Option<PathBuf>,
        lock: Option<PathBuf>,
        fetch: Fetch,
    ) -> Result<Self, ModuleLockError> {
        Ok(Self {
            folder,
            lock: lock.map(Lock::read).transpose()?,
            fetch,
        })
    }

    /// The text of a module: that of the folder, or fetched.
    pub(crate) fn text(&self, url: &str) -> Result<Arc<str>, RemoteError> {
        let kept = self.kept(url)?;
        let is_new = kept.is_none();
        let bytes = match kept {
            Some(bytes) => bytes,
            None => (self.fetch)(url).map_err(|cause| RemoteError::Fetch {
                url: url.to_owned(),
                cause,
            })?,
        };
        self.checked(url, &bytes, is_new)
    }

    /// The text of a module with the hash that is expected; it is kept if it is new.
    fn checked(&self, url: &str, bytes: &[u8], is_new: bool) -> Result<Arc<str>, RemoteError> {
        if bytes.len() > LONGEST {
            let url = url.to_owned();
            return Err(RemoteError::TooLong { url });
        }
        let hash = hash(bytes);
        if let Some(lock) = &self.lock {
            lock.check(url, &hash)?;
        }
        let text = std::str::from_utf8(bytes).map_err(|_| RemoteError::NotUtf8 {
            url: url.to_owned(),
        })?;
        if is_new {
            self.keep(url, &hash, text)?;
        }
        Ok(Arc::from(text))
    }

    fn file(&self, url: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join(hash(url.as_bytes())))
    }

    /// The module as it was fetched before.
    fn kept(&self, url: &str) -> Result<Option<Vec<u8>>, RemoteError> {
        let Some(file) = self.file(url) else {
            return Ok(None);
        };
        let bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(RemoteError::Read { file, cause }),
        };
        let line = bytes.iter().position(|byte| *byte == b'\n');
        let head = line.and_then(|end| std::str::from_utf8(bytes.get(..end)?).ok());
        let content = line.and_then(|end| bytes.get(end + 1..));
        match (head, content) {
            (Some(head), Some(content)) if head == first_line(url, &hash(content)) => {
                Ok(Some(content.to_vec()))
            }
            _ => Err(RemoteError::CopyChanged {
                url: url.to_owned(),
                file,
            }),
        }
    }

    fn keep(&self, url: &str, hash: &str, text: &str) -> Result<(), RemoteError> {
        let Some(file) = self.file(url) else {
            return Ok(());
        };
        let failed = |cause| RemoteError::Write {
            file: file.clone(),
            cause,
        };
        let folder = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        // Whole or not at all: another process may write the same.
        let content = format!("{}\n{text}", first_line(url, hash));
        files::replace(&file, content.as_bytes()).map_err(failed)
    }
}

impl Lock {
    fn read(path: PathBuf) -> Result<Self, ModuleLockError> {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(cause) => return Err(ModuleLockError::Read { path, cause }),
        };
        let mut hashes = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let pair = line.split_once(' ');
            let is_hash =
                |it: &str| it.len() == 64 && it.bytes().all(|byte| byte.is_ascii_hexdigit());
            let Some((hash, url)) = pair.filter(|(hash, _)| is_hash(hash)) else {
                let line = number + 1;
                return Err(ModuleLockError::Line { path, line });
            };
            hashes.insert(url.trim().to_owned(), hash.to_ascii_lowercase());
        }
        Ok(Self {
            path,
            hashes: Mutex::new(hashes),
        })
    }

    /// Compares the hash of a module, or adds it.
    fn check(&self, url: &str, hash: &str) -> Result<(), RemoteError> {
        let hashes = self.hashes.lock();
        let mut hashes = hashes.unwrap_or_else(PoisonError::into_inner);
        match hashes.get(url) {
            Some(pinned) if pinned == hash => Ok(()),
            Some(pinned) => Err(RemoteError::ModuleChanged {
                url: url.to_owned(),
                hash: hash.to_owned(),
                lock: self.path.clone(),
                pinned: pinned.clone(),
            }),
            None => {
                let failed = |cause| RemoteError::Write {
                    file: self.path.clone(),
                    cause,
                };
                let file = fs::OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(&self.path);
                let line = format!("{hash} {url}\n");
                file.and_then(|mut file| file.write_all(line.as_bytes()))
                    .map_err(failed)?;
                hashes.insert(url.to_owned(), hash.to_owned());
                Ok(())
            }
        }
    }
}

fn first_line(url: &str, hash: &str) -> String {
    format!("{MAGIC} {hash} {url}")
}

fn hash(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const URL: &str = "https://example.com/a.js";

    fn modules(
        folder: &Path,
        lock: Option<PathBuf>,
        answer: Result<&'static str, &'static str>,
    ) -> (RemoteModules, Arc<AtomicU32>) {
        let fetched = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&fetched);
        let fetch: Fetch = Box::new(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            answer
                .map(|text| text.as_bytes().to_vec())
                .map_err(ModuleFetchError::from)
        });
        let modules = RemoteModules::new(Some(folder.to_owned()), lock, fetch);
        (modules.unwrap(), fetched)
    }

    #[test]
    fn a_module_is_fetched_once_and_then_read() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("cache");
        let (first, fetched) = modules(&inner, None, Ok("export const a = 1;\n"));
        assert_eq!(&*first.text(URL).unwrap(), "export const a = 1;\n");
        assert_eq!(&*first.text(URL).unwrap(), "export const a = 1;\n");
        assert_eq!(fetched.load(Ordering::Relaxed), 1);
        let (offline, fetched) = modules(&inner, None, Err("no route"));
        assert_eq!(&*offline.text(URL).unwrap(), "export const a = 1;\n");
        assert_eq!(fetched.load(Ordering::Relaxed), 0);
        let error = offline.text("https://example.com/b.js").unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("cannot fetch https://example.com/b.js, which is not in the cache: no route; without"), "{error}");
        // A copy that was changed is no copy.
        let file = fs::read_dir(&inner)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let changed = fs::read_to_string(&file).unwrap().replace("= 1", "= 2");
        fs::write(&file, changed).unwrap();
        let error = offline.text(URL).unwrap_err().to_string();
        assert!(error.contains("has been changed: delete"), "{error}");
    }

    #[test]
    fn a_lock_file_pins_what_is_fetched() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("modules.lock");
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        modules(&one, Some(lock.clone()), Ok("a"))
            .0
            .text(URL)
            .unwrap();
        let expected = format!("{} {URL}\n", hash(b"a"));
        assert_eq!(fs::read_to_string(&lock).unwrap(), expected);
        // On another machine the server gives something else.
        let error = modules(&other, Some(lock.clone()), Ok("b"))
            .0
            .text(URL)
            .unwrap_err()
            .to_string();
        assert!(error.contains("the module has changed"), "{error}");
        assert!(!other.exists());
        modules(&other, Some(lock.clone()), Ok("a"))
            .0
            .text(URL)
            .unwrap();
        assert_eq!(fs::read_to_string(&lock).unwrap(), expected);
        fs::write(&lock, "# comment\nnonsense\n").unwrap();
        let fetch: Fetch = Box::new(|_| Err("".into()));
        let error = RemoteModules::new(None, Some(lock), fetch);
        let error = error.unwrap_err().to_string();
        assert!(
            error.ends_with("modules.lock:2: is not a line `SHA-256 URL`"),
            "{error}"
        );
    }
}
