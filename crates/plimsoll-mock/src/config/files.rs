//! Files as answers, kept by each worker until something changes where they are.

mod long;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use plimsoll_server::{Response, ResponseBody};
use plimsoll_wire::{FolderNews, FolderWatch};

use crate::config::ready::{self, PreparedResponse};
use crate::folder::contents::{self, Contents, ContentsError};
use crate::reply::without_empty_type;
use crate::worker::sharing::{Allowed, Sharing};

use self::long::LongFile;

/// Longer content is read each time: fixtures are shorter, and 8,192 kept files of this size are as much as a small
/// machine has.
const LONGEST_KEPT: usize = 1 << 20;

/// Limits of the cache of one worker, in bytes of content and in responses.
const MOST_BYTES: usize = 64 << 20;
const MOST_ANSWERS: usize = 8192;

/// More folders than these are not watched: each worker watches, and the system has only so many watches for all programs of
/// a user.
const MOST_FOLDERS: usize = 4096;

/// The file cache of one worker.
#[derive(Debug, Clone)]
pub(crate) struct Files(Rc<RefCell<FileCache>>);

#[derive(Debug)]
struct FileCache {
    watch: FolderWatch,
    answers: HashMap<Box<str>, Option<Rc<PreparedResponse>>>,
    bytes: usize,
    /// Number of times the cache was cleared.
    epoch: u64,
}

/// The state of a cached response.
#[derive(Debug)]
pub(crate) enum CacheLookup {
    /// This is it; without one there is no such file.
    Answer(Option<Rc<PreparedResponse>>),
    /// It is to be loaded, and belongs to this epoch.
    No(u64),
}

/// The result of loading a file.
#[derive(Debug)]
pub(crate) enum LoadedFile {
    /// There is no such file.
    Missing,
    /// All of it.
    Whole(Contents),
    /// It is to be sent in pieces.
    Long(LongFile),
    /// It cannot be sent, for this reason.
    Wrong(String),
}

impl Files {
    /// Keeps answers as long as nothing changes in `roots`.
    pub(crate) fn new(roots: Vec<PathBuf>) -> Self {
        Self(Rc::new(RefCell::new(FileCache {
            watch: FolderWatch::new(roots, MOST_FOLDERS),
            answers: HashMap::new(),
            bytes: 0,
            epoch: 0,
        })))
    }

    /// The cached response for `key`.
    #[inline]
    pub(crate) fn known(&self, key: &str) -> CacheLookup {
        let mut kept = self.0.borrow_mut();
        kept.look();
        match kept.answers.get(key) {
            Some(answer) => CacheLookup::Answer(answer.clone()),
            None => CacheLookup::No(kept.epoch),
        }
    }

    /// The answer that something was loaded for, kept if nothing has changed since.
    ///
    /// - `head`: the status of the response, and its fields besides those that it has anyway.
    pub(crate) fn answer(
        &self,
        key: &str,
        epoch: u64,
        loaded: LoadedFile,
        head: (StatusCode, &[(HeaderName, HeaderValue)]),
        sharing: &Sharing,
        allowed: &Allowed,
    ) -> Option<Response> {
        let (status, fields) = head;
        let typed = |media_type: &'static str| {
            let mut fields = fields.to_vec();
            if !fields.iter().any(|(name, _)| name == CONTENT_TYPE) {
                fields.push((CONTENT_TYPE, HeaderValue::from_static(media_type)));
            }
            without_empty_type(&mut fields);
            fields
        };
        let ready = match loaded {
            LoadedFile::Missing => None,
            LoadedFile::Whole(contents) => {
                let fields = typed(contents.media_type);
                Some(PreparedResponse::new(
                    sharing,
                    status,
                    fields,
                    contents.bytes,
                ))
            }
            LoadedFile::Wrong(message) => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                Some(PreparedResponse::text(sharing, status, message + "\n"))
            }
            LoadedFile::Long(file) => {
                let fields = typed(file.media_type());
                let response = ready::response(sharing, allowed, status, &fields);
                return Some(response.with_body(ResponseBody::Stream(Box::pin(file))));
            }
        };
        let ready = ready.map(Rc::new);
        self.0.borrow_mut().keep(key, epoch, ready.clone());
        ready.map(|ready| ready.response(sharing, allowed))
    }
}

impl FileCache {
    #[inline]
    fn look(&mut self) {
        if self.watch.news() != FolderNews::None {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.answers.clear();
        self.bytes = 0;
        self.epoch += 1;
    }

    fn keep(&mut self, key: &str, epoch: u64, answer: Option<Rc<PreparedResponse>>) {
        self.look();
        let length = answer.as_ref().map_or(0, |ready| ready.length()) + key.len();
        // Files whose changes are not watched are forgotten by `look` each time.
        if epoch != self.epoch || length > LONGEST_KEPT {
            return;
        }
        if self.bytes + length > MOST_BYTES || self.answers.len() == MOST_ANSWERS {
            self.forget();
        }
        self.bytes += length;
        self.answers.insert(key.into(), answer);
    }
}

/// Reads a file for sending; blocks.
///
/// - `file`: links resolved.
pub(crate) fn load(file: &Path, records: &str) -> LoadedFile {
    let Ok(metadata) = file.metadata() else {
        return LoadedFile::Missing;
    };
    // Opening something else, such as a pipe, may wait for ever.
    if !metadata.is_file() {
        return LoadedFile::Missing;
    }
    if metadata.len() > contents::LONGEST_WHOLE && !contents::is_converted(file) {
        return match LongFile::open(file, metadata.len()) {
            Ok(long) => LoadedFile::Long(long),
            Err(_) => LoadedFile::Missing,
        };
    }
    match contents::read(file, records) {
        Ok(contents) => LoadedFile::Whole(contents),
        // It was there a moment ago.
        Err(ContentsError::Read(_, error)) if error.kind() == std::io::ErrorKind::NotFound => {
            LoadedFile::Missing
        }
        Err(error) => LoadedFile::Wrong(error.to_string()),
    }
}

/// Runs `load` on a thread that may block.
pub(crate) async fn loaded(load: impl FnOnce() -> LoadedFile + Send + 'static) -> LoadedFile {
    let loading = tokio::task::spawn_blocking(load).await;
    loading.unwrap_or_else(|_| LoadedFile::Wrong("the file could not be read".to_owned()))
}
