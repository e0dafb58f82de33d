//! Files as answers, kept by each worker until something changes where they are.

mod long;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use plimsoll_server::{Response, ResponseBody};

use crate::folder::contents::{self, Contents, ContentsError};
use crate::ready::{self, Ready};
use crate::sharing::{Allowed, Sharing};
use crate::watch::{News, Watcher};
use crate::worker::without_empty_type;

use self::long::LongFile;

/// Longer content is read each time.
const LONGEST_KEPT: usize = 1 << 20;

/// What a worker keeps at most, in bytes of content and in answers.
const MOST_BYTES: usize = 64 << 20;
const MOST_ANSWERS: usize = 8192;

/// What one worker has made of files.
#[derive(Debug, Clone)]
pub(crate) struct Files(Rc<RefCell<Kept>>);

#[derive(Debug)]
struct Kept {
    watcher: Watcher,
    answers: HashMap<Box<str>, Option<Rc<Ready>>>,
    bytes: usize,
    /// How often everything was forgotten.
    epoch: u64,
}

/// What is known of an answer.
#[derive(Debug)]
pub(crate) enum Known {
    /// This is it; without one there is no such file.
    Answer(Option<Rc<Ready>>),
    /// It is to be loaded, and belongs to this epoch.
    No(u64),
}

/// What was loaded.
#[derive(Debug)]
pub(crate) enum Loaded {
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
        Self(Rc::new(RefCell::new(Kept {
            watcher: Watcher::new(roots),
            answers: HashMap::new(),
            bytes: 0,
            epoch: 0,
        })))
    }

    /// What is kept under `key`.
    #[inline]
    pub(crate) fn known(&self, key: &str) -> Known {
        let mut kept = self.0.borrow_mut();
        kept.look();
        match kept.answers.get(key) {
            Some(answer) => Known::Answer(answer.clone()),
            None => Known::No(kept.epoch),
        }
    }

    /// The answer that something was loaded for, kept if nothing has changed since.
    ///
    /// - `head`: the status of the response, and its fields besides those that it has anyway.
    pub(crate) fn answer(
        &self,
        key: &str,
        epoch: u64,
        loaded: Loaded,
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
            Loaded::Missing => None,
            Loaded::Whole(contents) => {
                let fields = typed(contents.media_type);
                Some(Ready::new(sharing, status, fields, contents.bytes))
            }
            Loaded::Wrong(message) => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                Some(Ready::text(sharing, status, message + "\n"))
            }
            Loaded::Long(file) => {
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

impl Kept {
    #[inline]
    fn look(&mut self) {
        if self.watcher.news() != News::None {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.answers.clear();
        self.bytes = 0;
        self.epoch += 1;
    }

    fn keep(&mut self, key: &str, epoch: u64, answer: Option<Rc<Ready>>) {
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
pub(crate) fn load(file: &Path, records: &str) -> Loaded {
    let Ok(metadata) = file.metadata() else {
        return Loaded::Missing;
    };
    // Opening something else, such as a pipe, may wait for ever.
    if !metadata.is_file() {
        return Loaded::Missing;
    }
    if metadata.len() > contents::LONGEST_WHOLE && !contents::is_converted(file) {
        return match LongFile::open(file, metadata.len()) {
            Ok(long) => Loaded::Long(long),
            Err(_) => Loaded::Missing,
        };
    }
    match contents::read(file, records) {
        Ok(contents) => Loaded::Whole(contents),
        // It was there a moment ago.
        Err(ContentsError::Read(_, error)) if error.kind() == std::io::ErrorKind::NotFound => {
            Loaded::Missing
        }
        Err(error) => Loaded::Wrong(error.to_string()),
    }
}

/// What `load` does, elsewhere than where others wait.
pub(crate) async fn loaded(load: impl FnOnce() -> Loaded + Send + 'static) -> Loaded {
    let loading = tokio::task::spawn_blocking(load).await;
    loading.unwrap_or_else(|_| Loaded::Wrong("the file could not be read".to_owned()))
}
