//! Compressed forms of files, made once per file.
//!
//! All workers of a site share one [`Compressor`]. Pages of one file share its [`Forms`], whatever path they were
//! requested by, so spelling a path differently never compresses a file again. Few files are compressed at a time;
//! further ones wait. A compression goes on if its client leaves, and the next client finds the result.

use std::collections::HashMap;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::available_parallelism;

use bytes::Bytes;
use plimsoll_server::Coding;
use tokio::sync::{OnceCell, Semaphore};

use crate::files::tree::Tag;

/// Compressed forms of one file, by the position of their coding in [`Coding::ALL`].
///
/// `None` in a cell: the compressed form is not shorter than the file.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    made: [OnceCell<Option<Bytes>>; 3],
}

/// Makes forms, a few at a time.
#[derive(Debug)]
pub(crate) struct Compressor {
    permits: Arc<Semaphore>,
    /// Forms that some page holds, by the path and the tag of their file.
    forms: Mutex<HashMap<(String, Tag), Weak<Forms>>>,
    started: Arc<AtomicU64>,
}

/// Entries of the map beyond which those that no page holds are removed.
const SWEEP: usize = 4096;

impl Default for Compressor {
    fn default() -> Self {
        // The other half of the processors goes on serving.
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            permits: Arc::new(Semaphore::new((processors / 2).max(1))),
            forms: Mutex::default(),
            started: Arc::default(),
        }
    }
}

impl Compressor {
    /// The forms of a file, those of the pages that have it already.
    pub(crate) fn forms(&self, path: &str, tag: &Tag) -> Arc<Forms> {
        let mut all = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SWEEP {
            all.retain(|_, forms| forms.strong_count() > 0);
        }
        let known = all.entry((path.to_owned(), tag.clone())).or_default();
        known.upgrade().unwrap_or_else(|| {
            let new = Arc::new(Forms::default());
            *known = Arc::downgrade(&new);
            new
        })
    }

    /// Makes a form now, on this thread; for short files.
    pub(crate) fn make_now(
        &self,
        forms: &Forms,
        coding: Coding,
        work: impl FnOnce() -> io::Result<Option<Bytes>>,
    ) -> Option<Bytes> {
        let cell = forms.cell(coding);
        if let Some(made) = cell.get() {
            return made.clone();
        }
        self.started.fetch_add(1, Ordering::Relaxed);
        let made = work().ok()?;
        cell.set(made.clone()).ok();
        made
    }

    /// Makes a form on a thread of its own once there is room.
    pub(crate) async fn make(
        &self,
        forms: Arc<Forms>,
        coding: Coding,
        work: impl FnOnce() -> io::Result<Option<Bytes>> + Send + 'static,
    ) -> Option<Bytes> {
        let (permits, started) = (Arc::clone(&self.permits), Arc::clone(&self.started));
        // A separate task, which is not dropped when the client leaves.
        let task = tokio::spawn(async move {
            let making = || async {
                let permit = permits.acquire().await;
                started.fetch_add(1, Ordering::Relaxed);
                let made = tokio::task::spawn_blocking(work).await;
                drop(permit);
                made.ok()?.ok().flatten()
            };
            forms.cell(coding).get_or_init(making).await.clone()
        });
        task.await.ok().flatten()
    }

    /// Compressions that were begun.
    #[cfg(test)]
    pub(crate) fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }
}

impl Forms {
    /// The form, if it was made; the inner `None` if it is not worth having.
    pub(crate) fn get(&self, coding: Coding) -> Option<&Option<Bytes>> {
        self.cell(coding).get()
    }

    fn cell(&self, coding: Coding) -> &OnceCell<Option<Bytes>> {
        let at = Coding::ALL.iter().position(|it| *it == coding);
        &self.made[at.unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(future)
    }

    #[test]
    fn few_files_are_compressed_at_a_time() {
        let compressor = Arc::new(Compressor::default());
        let most = compressor.permits.available_permits();
        let running = Arc::<AtomicUsize>::default();
        run(async {
            let tasks: Vec<_> = (0..16)
                .map(|_| {
                    let (compressor, running) = (Arc::clone(&compressor), Arc::clone(&running));
                    tokio::spawn(async move {
                        let work = move || {
                            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                            for _ in 0..100 {
                                std::thread::yield_now();
                            }
                            running.fetch_sub(1, Ordering::SeqCst);
                            Ok(Some(Bytes::from(vec![u8::try_from(now).unwrap()])))
                        };
                        compressor.make(Arc::default(), Coding::Gzip, work).await
                    })
                })
                .collect();
            for task in tasks {
                let at_a_time = task.await.unwrap().unwrap()[0];
                assert!(usize::from(at_a_time) <= most, "{at_a_time} of {most}");
            }
        });
        assert_eq!(compressor.started(), 16);
    }

    #[test]
    fn a_client_that_leaves_leaves_its_form_to_the_next() {
        let compressor = Compressor::default();
        let forms = Arc::<Forms>::default();
        run(async {
            let work = || Ok(Some(Bytes::from_static(b"form")));
            let mut leaving = Box::pin(compressor.make(Arc::clone(&forms), Coding::Zstd, work));
            let polled = std::future::poll_fn(|cx| {
                std::task::Poll::Ready(leaving.as_mut().poll(cx).is_pending())
            });
            assert!(polled.await);
            drop(leaving);
            let never = || -> io::Result<Option<Bytes>> { panic!("it is compressed twice") };
            let made = compressor.make(forms, Coding::Zstd, never).await;
            assert_eq!(made.as_deref(), Some(&b"form"[..]));
        });
        assert_eq!(compressor.started(), 1);
    }

    #[test]
    fn pages_of_a_file_share_its_forms_and_another_state_of_it_has_its_own() {
        let compressor = Compressor::default();
        let tag = |opaque: &str| Tag {
            is_weak: true,
            opaque: opaque.to_owned(),
            changed: 2,
        };
        let first = compressor.forms("a", &tag("1"));
        assert!(Arc::ptr_eq(&first, &compressor.forms("a", &tag("1"))));
        assert!(!Arc::ptr_eq(&first, &compressor.forms("a", &tag("2"))));
        assert!(!Arc::ptr_eq(&first, &compressor.forms("b", &tag("1"))));
    }
}
