//! Recently requested pages, kept by one worker within bounds.

use std::num::NonZeroUsize;
use std::rc::Rc;

use lru::LruCache;

use crate::files::page::{MemoryTotal, Page};

/// Pages that one worker keeps; each may hold a file open for each of its forms.
const MOST: NonZeroUsize = NonZeroUsize::new(1024).expect("it is above zero");

/// Pages are cached by the normal form of the requested path, so that all its spellings share a page.
pub(crate) struct PageCache {
    pages: LruCache<Box<str>, CachedPage>,
    bytes: u64,
    memory: MemoryTotal,
}

struct CachedPage {
    page: Rc<Page>,
    generation: u64,
}

/// A page that is kept.
pub(crate) enum Hit {
    /// Nothing has changed since it was looked at.
    Fresh(Rc<Page>),
    /// Whether it is still what its file holds has to be looked at.
    Stale(Rc<Page>),
}

impl PageCache {
    /// - `bytes`: what the pages may hold in memory together.
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            pages: LruCache::new(MOST),
            bytes,
            memory: MemoryTotal::default(),
        }
    }

    pub(crate) fn memory(&self) -> &MemoryTotal {
        &self.memory
    }

    #[inline]
    pub(crate) fn get(&mut self, path: &str, generation: u64) -> Option<Hit> {
        // Forms that were made for pages that are kept count too.
        self.keep_within();
        let kept = self.pages.get(path)?;
        let page = Rc::clone(&kept.page);
        Some(if kept.generation == generation {
            Hit::Fresh(page)
        } else {
            Hit::Stale(page)
        })
    }

    /// - `generation`: from before the page was loaded.
    pub(crate) fn put(&mut self, path: &str, page: Rc<Page>, generation: u64) {
        self.pages.put(path.into(), CachedPage { page, generation });
        self.keep_within();
    }

    #[inline]
    fn keep_within(&mut self) {
        while self.memory.get() > self.bytes && self.pages.pop_lru().is_some() {}
    }

    pub(crate) fn clear(&mut self) {
        self.pages.clear();
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.pages.pop(path);
    }
}
