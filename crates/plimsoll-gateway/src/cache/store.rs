//! Stored responses of all workers, within a bound on memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use lru::LruCache;
use plimsoll_wire::http::FieldList;
use tokio::sync::watch;

use super::content::Content;
use super::disk::{Disk, DiskPlan, OnDisk};
use super::entry::Entry;

/// Scheme, host, path and query of a request.
pub(super) type Key = Arc<str>;

/// Responses of one key that differ by the fields that `Vary` names; the oldest makes room.
const MOST_VARIANTS: usize = 16;

/// How long it is remembered that responses of a key are not stored, so that requests do not wait for one another.
const REMEMBERED: Duration = Duration::from_secs(10);

/// Bytes that a key takes beside its text and its responses.
const KEY_BYTES: usize = 128;

/// The store of a route; shared by all workers, and kept by a reload that does not change it.
#[derive(Debug)]
pub(crate) struct Store {
    state: Mutex<State>,
    /// Bytes.
    limit: usize,
    /// Those that are in files too.
    disk: Option<Arc<Disk>>,
    pub(super) counts: Arc<Counts>,
}

#[derive(Debug)]
struct State {
    slots: LruCache<Key, Slot>,
    /// Slots with responses; others only remember that those are not stored.
    filled: usize,
    bytes: usize,
    /// Keys for which a request is under way, whose response others wait for.
    flights: HashMap<Key, watch::Receiver<()>>,
}

#[derive(Debug)]
enum Slot {
    /// The last one was stored last.
    Entries(Vec<Arc<Entry>>),
    NotStored {
        until: SystemTime,
    },
}

impl Slot {
    fn size(&self) -> usize {
        match self {
            Self::Entries(entries) => entries.iter().map(|entry| entry.size()).sum(),
            Self::NotStored { .. } => 0,
        }
    }

    /// 1 if responses are in it.
    fn filled(&self) -> usize {
        usize::from(matches!(self, Self::Entries(_)))
    }
}

/// Counts of a store.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) hits: AtomicU64,
    pub(super) stale: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) validated: AtomicU64,
    pub(super) stored: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) disk_hits: AtomicU64,
    pub(super) disk_stored: AtomicU64,
    /// Not written, since too many waited or the disk refused them.
    pub(super) disk_dropped: AtomicU64,
    pub(super) disk_damaged: AtomicU64,
}

impl Counts {
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    const fn named(&self) -> [(&'static str, &AtomicU64); 10] {
        [
            ("hit", &self.hits),
            ("stale", &self.stale),
            ("miss", &self.misses),
            ("validated", &self.validated),
            ("stored", &self.stored),
            ("evicted", &self.evicted),
            ("disk_hit", &self.disk_hits),
            ("disk_stored", &self.disk_stored),
            ("disk_dropped", &self.disk_dropped),
            ("disk_damaged", &self.disk_damaged),
        ]
    }
}

/// What stores keep and have done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StoreState {
    /// URLs of which responses are stored.
    pub(crate) entries: usize,
    /// Bytes that it takes in memory.
    pub(crate) bytes: usize,
    /// Bytes that it takes on disk.
    pub(crate) disk_bytes: u64,
    /// Counts of what became of requests and responses.
    pub(crate) events: BTreeMap<&'static str, u64>,
}

impl StoreState {
    /// The sum of several stores.
    pub(crate) fn from_stores(stores: &[Arc<Store>]) -> Self {
        let mut sum = Self::default();
        for state in stores.iter().map(|store| store.state()) {
            sum.entries += state.entries;
            sum.bytes += state.bytes;
            sum.disk_bytes += state.disk_bytes;
            for (event, count) in state.events {
                *sum.events.entry(event).or_default() += count;
            }
        }
        sum
    }

    /// The count of an event.
    pub(crate) fn counted(&self, event: &str) -> u64 {
        self.events.get(event).copied().unwrap_or_default()
    }
}

/// The state of a key.
#[derive(Debug)]
pub(super) enum Found {
    Entry(Arc<Entry>),
    /// Responses are not stored.
    NotStored,
    /// Responses to requests with other fields are stored.
    OtherVariants,
    Nothing,
}

/// The part of a request in fetching a missing response.
#[derive(Debug)]
pub(super) enum Turn {
    /// Fetch it; others wait until the guard is dropped.
    Fetch(Flight),
    /// Wait for the request that fetches it.
    Wait(watch::Receiver<()>),
}

/// A request that others wait for. Dropping it lets them go on.
#[derive(Debug)]
pub(super) struct Flight {
    store: Arc<Store>,
    key: Key,
    _over: watch::Sender<()>,
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.store.lock().flights.remove(&self.key);
    }
}

impl Store {
    /// - `limit`: bytes of all responses in memory.
    /// - `disk`: where they are kept beside that, if they are.
    pub(crate) fn new(limit: usize, disk: Option<DiskPlan>) -> Self {
        let counts = Arc::<Counts>::default();
        Self {
            disk: disk.map(|plan| Arc::new(Disk::new(plan, &counts))),
            state: Mutex::new(State {
                slots: LruCache::unbounded(),
                filled: 0,
                bytes: 0,
                flights: HashMap::new(),
            }),
            limit,
            counts,
        }
    }

    /// Begins with what is on disk; the first call does.
    pub(super) fn start(&self) {
        if let Some(disk) = &self.disk {
            disk.start();
        }
    }

    /// What is on disk for a request.
    pub(super) fn on_disk<'s>(&self, key: &str, seen: &dyn Fn() -> &'s FieldList) -> OnDisk {
        match &self.disk {
            Some(disk) => disk.find(key, seen),
            None => OnDisk::Nothing,
        }
    }

    /// Takes a response of the disk into memory.
    pub(super) fn restore<'s>(
        &self,
        key: &Key,
        seen: &dyn Fn() -> &'s FieldList,
        entry: &Arc<Entry>,
    ) {
        self.keep(key, seen, Arc::clone(entry));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> StoreState {
        let events = self.counts.named();
        let state = self.lock();
        StoreState {
            entries: state.filled,
            bytes: state.bytes,
            disk_bytes: self.disk.as_ref().map_or(0, |disk| disk.bytes()),
            events: events
                .map(|(name, counter)| (name, counter.load(Ordering::Relaxed)))
                .into(),
        }
    }

    /// The response for a request; of several the one that was stored last.
    ///
    /// - `seen`: yields the fields of the request as a server sees them; called only if responses depend on any.
    pub(super) fn find<'s>(
        &self,
        key: &str,
        seen: &dyn Fn() -> &'s FieldList,
        now: SystemTime,
    ) -> Found {
        let mut state = self.lock();
        match state.slots.get(key) {
            Some(Slot::Entries(entries)) => {
                let mut entries = entries.iter().rev();
                let found = entries.find(|entry| entry.is_selected_by(seen));
                found.map_or(Found::OtherVariants, |entry| {
                    Found::Entry(Arc::clone(entry))
                })
            }
            Some(Slot::NotStored { until }) if *until > now => Found::NotStored,
            Some(Slot::NotStored { .. }) | None => Found::Nothing,
        }
    }

    /// Whether a request for `key` is to be sent, or waits for one that is under way.
    pub(super) fn turn(self: &Arc<Self>, key: &Key) -> Turn {
        let mut state = self.lock();
        if let Some(flight) = state.flights.get(key) {
            return Turn::Wait(flight.clone());
        }
        let (sender, receiver) = watch::channel(());
        state.flights.insert(Arc::clone(key), receiver);
        Turn::Fetch(Flight {
            store: Arc::clone(self),
            key: Arc::clone(key),
            _over: sender,
        })
    }

    /// Stores a response in place of those for the same request.
    ///
    /// - `seen`: the fields of the request as the server saw them.
    pub(super) fn insert(&self, key: &Key, seen: &FieldList, entry: Entry) {
        let entry = Arc::new(entry);
        self.keep(key, &|| seen, Arc::clone(&entry));
        Counts::count(&self.counts.stored);
        if let Some(disk) = &self.disk {
            disk.put(key, &entry);
        }
    }

    /// Keeps a response in memory in place of those for the same request, unless its content stays in a file or has no room by
    /// itself.
    fn keep<'s>(&self, key: &Key, seen: &dyn Fn() -> &'s FieldList, entry: Arc<Entry>) {
        if matches!(entry.content, Content::File(_)) {
            return;
        }
        // It would push everything else out, and then itself.
        let has_room = entry.content.len() <= self.limit;
        let mut state = self.lock();
        let mut entries = match state.remove_slot(key) {
            Some(Slot::Entries(entries)) => entries,
            Some(Slot::NotStored { .. }) | None => Vec::new(),
        };
        entries.retain(|known| !known.is_selected_by(seen));
        if has_room {
            if entries.len() >= MOST_VARIANTS {
                entries.remove(0);
            }
            entries.push(entry);
        }
        if !entries.is_empty() {
            self.put(&mut state, key, Slot::Entries(entries));
        }
    }

    /// Remembers for a while that responses of a key are not stored. What is stored of it stays.
    pub(super) fn note_not_stored(&self, key: &Key, now: SystemTime) {
        let mut state = self.lock();
        if matches!(state.slots.peek(key), Some(Slot::Entries(_))) {
            return;
        }
        state.remove_slot(key);
        let until = now + REMEMBERED;
        self.put(&mut state, key, Slot::NotStored { until });
    }

    /// Forgets everything that is stored of a key.
    pub(super) fn remove(&self, key: &str) {
        self.lock().remove_slot(key);
        if let Some(disk) = &self.disk {
            disk.remove(key);
        }
    }

    /// Forgets the responses of a URL, or of all URLs that begin with it; returns of how many URLs something was kept.
    ///
    /// All workers wait while the keys of the store are looked through.
    pub(crate) fn purge(&self, url: &str, is_prefix: bool) -> usize {
        let mut purged: HashSet<Key> = HashSet::new();
        {
            let mut state = self.lock();
            let keys: Vec<Key> = if is_prefix {
                let keys = state.slots.iter().map(|(key, _)| key);
                keys.filter(|key| key.starts_with(url)).cloned().collect()
            } else {
                vec![Key::from(url)]
            };
            for key in keys {
                if state
                    .remove_slot(&key)
                    .is_some_and(|slot| slot.filled() > 0)
                {
                    purged.insert(key);
                }
            }
        }
        if let Some(disk) = &self.disk {
            if is_prefix {
                purged.extend(disk.remove_all(url));
            } else {
                if disk.has_any(url) {
                    purged.insert(Key::from(url));
                }
                disk.remove(url);
            }
        }
        purged.len()
    }

    fn put(&self, state: &mut State, key: &Key, slot: Slot) {
        state.filled += slot.filled();
        state.bytes += slot.size() + key.len() + KEY_BYTES;
        state.slots.put(Arc::clone(key), slot);
        while state.bytes > self.limit {
            let Some((key, slot)) = state.slots.pop_lru() else {
                break;
            };
            state.left(&key, &slot);
            Counts::count(&self.counts.evicted);
        }
    }
}

impl State {
    fn remove_slot(&mut self, key: &str) -> Option<Slot> {
        let slot = self.slots.pop(key)?;
        self.left(key, &slot);
        Some(slot)
    }

    fn left(&mut self, key: &str, slot: &Slot) {
        self.filled -= slot.filled();
        self.bytes -= slot.size() + key.len() + KEY_BYTES;
    }
}

#[cfg(test)]
mod tests;
