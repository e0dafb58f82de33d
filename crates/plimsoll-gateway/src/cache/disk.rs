//! Stored responses on disk, beside those in memory: a restart keeps them.
//!
//! Each is a file of its own, written under another name by a thread, and renamed once it is whole. A process that is killed
//! loses what was not written yet; a file that is not whole, or whose sum is wrong, is removed when it is read. Removing is
//! immediate, so that nothing that was removed comes back.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, IoSliceMut, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::SystemTime;

use lru::LruCache;
use plimsoll_server::{Notice, Notices, Severity};
use plimsoll_wire::http::FieldList;
use ring::digest::{SHA256, digest};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::ReadWriteFlags;

use super::entry::{Entry, Selecting, is_selected_by};
use super::record::{self, Identity, RecordHead};
use super::store::{Counts, Key};

/// Responses that may wait to be written.
const MOST_WAITING: usize = 256;

/// The longest head of a record that is read at the start.
const MOST_HEAD: usize = 1 << 20;

/// End of the names of files that are being written.
const PART: &str = "part";

/// What a file system takes for a file beside its bytes.
const FILE_BYTES: u64 = 4096;

/// Where responses are kept.
#[derive(Debug, Clone)]
pub(crate) struct DiskPlan {
    /// The folder of the route.
    pub(crate) folder: PathBuf,
    /// Bytes of all files.
    pub(crate) limit: u64,
    /// Everything in the configuration that responses depend on.
    pub(crate) identity: String,
    /// Learns of a folder that cannot be used.
    pub(crate) notices: Notices,
}

/// The responses of a route on disk.
#[derive(Debug)]
pub(super) struct Disk {
    plan: DiskPlan,
    identity: Identity,
    index: Mutex<Index>,
    /// To the thread that writes, once it runs.
    writer: OnceLock<Option<SyncSender<Job>>>,
    counts: Arc<Counts>,
    /// The last response could not be written.
    is_failing: AtomicBool,
}

#[derive(Debug)]
struct Index {
    slots: LruCache<Key, Vec<Located>>,
    bytes: u64,
    /// Responses that wait to be written, by their numbers; those that were removed meanwhile are not here.
    waiting: HashMap<u64, Key>,
    last: u64,
}

/// A response in a file, and the requests that it is for.
#[derive(Debug)]
struct Located {
    selecting: Selecting,
    stored: Arc<Stored>,
}

/// A file with a response.
#[derive(Debug)]
struct Stored {
    file: PathBuf,
    /// What it takes of the limit.
    bytes: u64,
    /// The response, while a request uses it.
    loaded: Mutex<Weak<Entry>>,
    /// When the file was changed last, as it was when its sum was found to be right; 0 before.
    whole_since: AtomicI64,
}

impl Stored {
    fn new(file: PathBuf, length: u64) -> Arc<Self> {
        Arc::new(Self {
            file,
            bytes: length + FILE_BYTES,
            loaded: Mutex::default(),
            whole_since: AtomicI64::new(0),
        })
    }
}

/// What is on disk for a request.
pub(super) enum OnDisk {
    Nothing,
    /// It is read already.
    Entry(Arc<Entry>),
    /// Reading it has to wait for the disk: [`Disk::load`] on another thread.
    Elsewhere(Arc<Disk>),
}

/// Whether reading may wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Only what the system has in memory.
    Now,
    Whole,
}

#[derive(Debug)]
struct Job {
    number: u64,
    key: Key,
    entry: Arc<Entry>,
}

impl Disk {
    /// Does nothing yet: the folder is read once the route is served.
    pub(super) fn new(plan: DiskPlan, counts: &Arc<Counts>) -> Self {
        let sum = digest(&SHA256, plan.identity.as_bytes());
        let mut identity = Identity::default();
        identity.copy_from_slice(sum.as_ref());
        Self {
            plan,
            identity,
            index: Mutex::new(Index {
                slots: LruCache::unbounded(),
                bytes: 0,
                waiting: HashMap::new(),
                last: 0,
            }),
            writer: OnceLock::new(),
            counts: Arc::clone(counts),
            is_failing: AtomicBool::new(false),
        }
    }

    /// Starts the thread that reads the entries on disk and writes new ones. Later calls do nothing.
    pub(super) fn start(self: &Arc<Self>) {
        self.writer.get_or_init(|| {
            if let Err(error) = fs::create_dir_all(&self.plan.folder) {
                self.report(&error);
                return None;
            }
            let (sender, jobs) = sync_channel(MOST_WAITING);
            let disk = Arc::downgrade(self);
            let thread = std::thread::Builder::new().name("cache-disk".to_owned());
            match thread.spawn(move || run(&disk, &jobs)) {
                Ok(_) => Some(sender),
                Err(error) => {
                    self.report(&error);
                    None
                }
            }
        });
    }

    fn report(&self, error: &io::Error) {
        let folder = self.plan.folder.display();
        let text = format!("a response is kept in memory alone: {folder}: {error}");
        let notice = Notice::new(Severity::Warning, text).about("cache");
        self.plan.notices.report(&notice);
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The response for a request, if it is there; reads what can be had without waiting for the disk.
    pub(super) fn find<'s>(
        self: &Arc<Self>,
        key: &str,
        seen: &dyn Fn() -> &'s FieldList,
    ) -> OnDisk {
        let Some(stored) = self.lock().located(key, seen) else {
            return OnDisk::Nothing;
        };
        // Another thread reads it, or it is to be read by one.
        let entry = match stored.loaded.try_lock() {
            Ok(loaded) => self.entry(key, &stored, loaded, Reading::Now),
            Err(_) => None,
        };
        entry.map_or_else(|| OnDisk::Elsewhere(Arc::clone(self)), OnDisk::Entry)
    }

    /// The response for a request; reads a file. Several that want the same at once share what the first has read.
    pub(super) fn load(&self, key: &str, seen: &FieldList) -> Option<Arc<Entry>> {
        let stored = self.lock().located(key, &|| seen)?;
        let loaded = stored.loaded.lock();
        let loaded = loaded.unwrap_or_else(PoisonError::into_inner);
        let entry = self.entry(key, &stored, loaded, Reading::Whole);
        if entry.is_none() {
            self.lock().forget(key, &stored.file);
            fs::remove_file(&stored.file).ok();
            Counts::count(&self.counts.disk_damaged);
        }
        entry
    }

    fn entry(
        &self,
        key: &str,
        stored: &Stored,
        mut loaded: MutexGuard<'_, Weak<Entry>>,
        reading: Reading,
    ) -> Option<Arc<Entry>> {
        let entry = if let Some(entry) = loaded.upgrade() {
            entry
        } else {
            let entry = Arc::new(stored.read(reading, (&self.identity, key))?);
            *loaded = Arc::downgrade(&entry);
            entry
        };
        Counts::count(&self.counts.disk_hits);
        Some(entry)
    }

    /// Writes a response soon, unless too many wait already.
    pub(super) fn put(&self, key: &Key, entry: &Arc<Entry>) {
        let Some(Some(writer)) = self.writer.get() else {
            return;
        };
        let number = self.lock().expect(key);
        let job = Job {
            number,
            key: Arc::clone(key),
            entry: Arc::clone(entry),
        };
        if writer.try_send(job).is_err() {
            self.lock().waiting.remove(&number);
            Counts::count(&self.counts.disk_dropped);
        }
    }

    /// Forgets everything that is stored of a key.
    pub(super) fn remove(&self, key: &str) {
        let removed = self.lock().remove_key(key);
        for stored in removed {
            fs::remove_file(&stored.file).ok();
        }
    }

    /// Forgets the keys that begin so, and returns them.
    pub(super) fn remove_all(&self, beginning: &str) -> Vec<Key> {
        let keys: Vec<Key> = {
            let index = self.lock();
            let stored = index.slots.iter().map(|(key, _)| key);
            let all = stored.chain(index.waiting.values());
            all.filter(|key| key.starts_with(beginning))
                .cloned()
                .collect()
        };
        for key in &keys {
            self.remove(key);
        }
        keys
    }

    /// Whether anything of a key is there.
    pub(super) fn has_any(&self, key: &str) -> bool {
        self.lock().slots.contains(key)
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    fn write(&self, job: Job) {
        let Job { number, key, entry } = job;
        if !self.lock().waiting.contains_key(&number) {
            return;
        }
        let file = self
            .plan
            .folder
            .join(format!("{:032x}", fastrand::u128(..)));
        let written = record::encode(&self.identity, &key, &entry)
            .and_then(|bytes| self.write_whole(&file, &bytes).map(|()| bytes.len()));
        let length = match written {
            Ok(length) => length,
            Err(error) => {
                self.lock().waiting.remove(&number);
                Counts::count(&self.counts.disk_dropped);
                // Once until it works again.
                if !self.is_failing.swap(true, Ordering::Relaxed) {
                    self.report(&error);
                }
                return;
            }
        };
        self.is_failing.store(false, Ordering::Relaxed);
        let located = Located {
            selecting: entry.head.selecting.clone(),
            stored: Stored::new(file, length as u64),
        };
        let gone = {
            let mut index = self.lock();
            match index.waiting.remove(&number) {
                Some(_) => index.insert(&key, located, self.plan.limit),
                // It was removed meanwhile.
                None => vec![located.stored],
            }
        };
        for stored in gone {
            fs::remove_file(&stored.file).ok();
        }
        Counts::count(&self.counts.disk_stored);
    }

    /// Writes a file under another name first; makes the folder again if it is gone.
    ///
    /// Unlike `wire::files` it does not wait for the disk: an entry that a loss of power takes is fetched again, and one
    /// that it leaves incomplete does not match its SHA-256.
    fn write_whole(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let part = file.with_extension(PART);
        let mut written = fs::write(&part, bytes);
        if written
            .as_ref()
            .is_err_and(|it| it.kind() == ErrorKind::NotFound)
        {
            fs::create_dir_all(&self.plan.folder)?;
            written = fs::write(&part, bytes);
        }
        let written = written.and_then(|()| fs::rename(&part, file));
        if written.is_err() {
            fs::remove_file(&part).ok();
        }
        written
    }

    /// Takes over what is in the folder, the oldest first; what is not of this configuration is removed.
    fn scan(&self) {
        let entries = fs::read_dir(&self.plan.folder);
        let mut found = Vec::new();
        for file in entries.into_iter().flatten().flatten().map(|it| it.path()) {
            match self.own(&file) {
                Some(own) => found.push(own),
                None => _ = fs::remove_file(file),
            }
        }
        found.sort_by_key(|(received, ..)| *received);
        for (_, key, located) in found {
            let gone = self.lock().insert(&key, located, self.plan.limit);
            for stored in gone {
                fs::remove_file(&stored.file).ok();
            }
        }
    }

    /// A file with a response of this configuration: when that came, and for what it is.
    fn own(&self, file: &Path) -> Option<(SystemTime, Key, Located)> {
        let (record, bytes) = read_head(file)?;
        let RecordHead {
            identity,
            key,
            head,
        } = record::decode_head(&record)?;
        let located = Located {
            selecting: head.selecting,
            stored: Stored::new(file.to_owned(), bytes),
        };
        (*identity == self.identity).then(|| (head.times.received, Key::from(key), located))
    }
}

/// Reads the folder, then writes until the store is gone.
fn run(disk: &Weak<Disk>, jobs: &Receiver<Job>) {
    if let Some(disk) = disk.upgrade() {
        disk.scan();
    }
    while let Ok(job) = jobs.recv() {
        let Some(disk) = disk.upgrade() else {
            return;
        };
        disk.write(job);
    }
}

/// Bytes at the beginning of a long record, in which its head is as a rule.
const BEGINNING: usize = 16 << 10;

/// The longest record whose sum a worker takes itself: a tenth of a millisecond.
const MOST_SUMMED: usize = 64 << 10;

impl Stored {
    /// The response in the file; `None` if it is not whole or not the one that is wanted, or cannot be read in this way.
    fn read(&self, reading: Reading, wanted: (&Identity, &str)) -> Option<Entry> {
        let file = open(&self.file, reading).ok()?;
        let metadata = file.metadata().ok()?;
        // Another length than what was written or found at the start is damage, and may be more than fits memory.
        let length = usize::try_from(metadata.len()).ok()?;
        if metadata.len().saturating_add(FILE_BYTES) != self.bytes {
            return None;
        }
        let changed = metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec();
        // Its sum was right before, and nothing was written since.
        let is_known = self.whole_since.load(Ordering::Relaxed) == changed;
        let is_long = length > record::MOST_IN_MEMORY + BEGINNING;
        if reading == Reading::Now && !is_known && length > MOST_SUMMED {
            return None;
        }
        let mut bytes = vec![
            0;
            if is_known && is_long {
                BEGINNING
            } else {
                length
            }
        ];
        read_at_start(&file, &mut bytes, reading).ok()?;
        if !is_known {
            if !record::is_whole(&bytes) {
                return None;
            }
            self.whole_since.store(changed, Ordering::Relaxed);
        }
        let file = Arc::new(file);
        record::decode(&bytes, length, &file, wanted).or_else(|| {
            // A head that is longer than that.
            bytes.resize(length, 0);
            read_at_start(&file, &mut bytes, reading).ok()?;
            record::decode(&bytes, length, &file, wanted)
        })
    }
}

fn open(file: &Path, reading: Reading) -> io::Result<File> {
    if reading == Reading::Whole {
        return File::open(file);
    }
    let (flags, none) = (OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let opened = rustix::fs::openat2(CWD, file, flags, none, ResolveFlags::CACHED)?;
    Ok(File::from(opened))
}

/// Fills all of `bytes`.
fn read_at_start(file: &File, bytes: &mut [u8], reading: Reading) -> io::Result<()> {
    if reading == Reading::Whole {
        return file.read_exact_at(bytes, 0);
    }
    let mut buffers = [IoSliceMut::new(bytes)];
    let wanted = buffers[0].len();
    let read = rustix::io::preadv2(file, &mut buffers, 0, ReadWriteFlags::NOWAIT)?;
    if read == wanted {
        Ok(())
    } else {
        Err(ErrorKind::WouldBlock.into())
    }
}

/// The beginning of a record in a file up to the end of its head, and the bytes of the file.
fn read_head(file: &Path) -> Option<(Vec<u8>, u64)> {
    let mut opened = File::open(file).ok()?;
    let bytes = opened.metadata().ok().filter(fs::Metadata::is_file)?.len();
    if file.extension().is_some() {
        return None;
    }
    let mut record = vec![0; record::PREFIX];
    opened.read_exact(&mut record).ok()?;
    let end = record::head_end(&record).filter(|end| *end <= MOST_HEAD)?;
    record.resize(end, 0);
    opened.read_exact(record.get_mut(record::PREFIX..)?).ok()?;
    Some((record, bytes))
}

impl Index {
    fn expect(&mut self, key: &Key) -> u64 {
        self.last += 1;
        self.waiting.insert(self.last, Arc::clone(key));
        self.last
    }

    fn located<'s>(&mut self, key: &str, seen: &dyn Fn() -> &'s FieldList) -> Option<Arc<Stored>> {
        let mut located = self.slots.get(key)?.iter().rev();
        let found = located.find(|it| is_selected_by(&it.selecting, seen))?;
        Some(Arc::clone(&found.stored))
    }

    /// Puts a response in place of the one for the same requests; returns files that nothing leads to any more.
    fn insert(&mut self, key: &Key, located: Located, limit: u64) -> Vec<Arc<Stored>> {
        let mut gone = Vec::new();
        self.bytes += located.stored.bytes;
        let mut all = self.slots.pop(key).unwrap_or_default();
        for old in all.extract_if(.., |it| it.selecting == located.selecting) {
            self.bytes -= old.stored.bytes;
            gone.push(old.stored);
        }
        all.push(located);
        self.slots.put(Arc::clone(key), all);
        while self.bytes > limit {
            let Some((_, evicted)) = self.slots.pop_lru() else {
                break;
            };
            for old in evicted {
                self.bytes -= old.stored.bytes;
                gone.push(old.stored);
            }
        }
        gone
    }

    fn remove_key(&mut self, key: &str) -> Vec<Arc<Stored>> {
        self.waiting.retain(|_, waiting| &**waiting != key);
        let taken = self.slots.pop(key).unwrap_or_default();
        self.bytes -= taken.iter().map(|it| it.stored.bytes).sum::<u64>();
        taken.into_iter().map(|it| it.stored).collect()
    }

    fn forget(&mut self, key: &str, file: &Path) {
        let Some(all) = self.slots.get_mut(key) else {
            return;
        };
        let before: u64 = all.iter().map(|it| it.stored.bytes).sum();
        all.retain(|it| it.stored.file != file);
        let after: u64 = all.iter().map(|it| it.stored.bytes).sum();
        let is_empty = all.is_empty();
        self.bytes -= before - after;
        if is_empty {
            self.slots.pop(key);
        }
    }
}
