//! A transport within one process, for tests: messages are delivered by the thread that sends them, in order.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Deliver, Delivered, FleetTransport, LOG_IS_FULL, Subscription, TransportError};

/// Carries messages within one process; clones share everything.
#[derive(Debug, Clone, Default)]
pub struct MemoryTransport {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    next: AtomicU64,
    is_cut: AtomicBool,
}

#[derive(Default)]
struct State {
    listeners: BTreeMap<u64, Listener>,
    logs: BTreeMap<String, Log>,
    blobs: BTreeMap<(String, String), Vec<u8>>,
}

struct Listener {
    subject: String,
    /// Of a log; `None` hears what is only published.
    log: Option<String>,
    deliver: Arc<Mutex<Deliver>>,
}

#[derive(Debug, Default)]
struct Log {
    subjects: Vec<String>,
    messages: Vec<Delivered>,
    bytes: usize,
    most_bytes: usize,
    ids: HashSet<String>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("listeners", &self.listeners.len())
            .field("logs", &self.logs)
            .finish_non_exhaustive()
    }
}

impl MemoryTransport {
    /// Cuts everyone off, or connects them again.
    pub fn cut(&self, is_cut: bool) {
        self.inner.is_cut.store(is_cut, Ordering::Relaxed);
    }

    /// Names of the logs and of the buckets that exist.
    pub fn names(&self) -> Vec<String> {
        let state = self.lock();
        let buckets = state.blobs.keys().map(|(bucket, _)| bucket.clone());
        state.logs.keys().cloned().chain(buckets).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn reach(&self, action: &'static str) -> Result<(), TransportError> {
        if self.is_connected() {
            Ok(())
        } else {
            Err(TransportError::away(action, "the transport is cut"))
        }
    }

    fn listen(&self, listener: Listener) -> Subscription {
        let number = self.inner.next.fetch_add(1, Ordering::Relaxed);
        self.lock().listeners.insert(number, listener);
        Subscription::new(Unlisten {
            transport: self.clone(),
            number,
        })
    }

    fn deliver(&self, message: &Delivered, log: Option<&str>) {
        let listeners: Vec<_> = {
            let state = self.lock();
            let wanted = state.listeners.iter().filter(|(_, listener)| {
                listener.subject == message.subject && listener.log.as_deref() == log
            });
            wanted
                .map(|(number, listener)| (*number, Arc::clone(&listener.deliver)))
                .collect()
        };
        for (number, deliver) in listeners {
            let goes_on = {
                let mut deliver = deliver.lock().unwrap_or_else(PoisonError::into_inner);
                deliver(message.clone())
            };
            if !goes_on {
                self.lock().listeners.remove(&number);
            }
        }
    }
}

struct Unlisten {
    transport: MemoryTransport,
    number: u64,
}

impl Drop for Unlisten {
    fn drop(&mut self) {
        self.transport.lock().listeners.remove(&self.number);
    }
}

impl FleetTransport for MemoryTransport {
    fn publish(&self, subject: &str, payload: Vec<u8>) -> Result<(), TransportError> {
        self.reach("publish")?;
        let message = Delivered {
            subject: subject.to_owned(),
            payload,
        };
        self.deliver(&message, None);
        Ok(())
    }

    fn subscribe(&self, subject: &str, deliver: Deliver) -> Result<Subscription, TransportError> {
        self.reach("subscribe")?;
        Ok(self.listen(Listener {
            subject: subject.to_owned(),
            log: None,
            deliver: Arc::new(Mutex::new(deliver)),
        }))
    }

    fn create_log(
        &self,
        log: &str,
        subjects: &[String],
        most_bytes: u64,
    ) -> Result<(), TransportError> {
        self.reach("create the log")?;
        let mut state = self.lock();
        if state.logs.contains_key(log) {
            return Err(TransportError::new("create the log", "it exists"));
        }
        let made = Log {
            subjects: subjects.to_vec(),
            most_bytes: usize::try_from(most_bytes).unwrap_or(usize::MAX),
            ..Log::default()
        };
        state.logs.insert(log.to_owned(), made);
        Ok(())
    }

    fn append(&self, subject: &str, id: &str, payload: Vec<u8>) -> Result<(), TransportError> {
        const ACTION: &str = "append to the log";

        self.reach(ACTION)?;
        let message = Delivered {
            subject: subject.to_owned(),
            payload,
        };
        let name = {
            let mut state = self.lock();
            let mut logs = state.logs.iter_mut();
            let found = logs.find(|(_, log)| log.subjects.iter().any(|held| held == subject));
            let Some((name, log)) = found else {
                return Err(TransportError::new(ACTION, "no log holds the subject"));
            };
            if log.ids.contains(id) {
                return Ok(());
            }
            if log.bytes + message.payload.len() > log.most_bytes {
                return Err(TransportError::new(ACTION, LOG_IS_FULL));
            }
            log.bytes += message.payload.len();
            log.ids.insert(id.to_owned());
            log.messages.push(message.clone());
            name.clone()
        };
        self.deliver(&message, Some(&name));
        Ok(())
    }

    fn follow_log(
        &self,
        log: &str,
        subject: &str,
        mut deliver: Deliver,
    ) -> Result<Subscription, TransportError> {
        self.reach("read the log")?;
        let past = {
            let state = self.lock();
            let Some(log) = state.logs.get(log) else {
                return Err(TransportError::new("read the log", "it does not exist"));
            };
            let past = log.messages.iter().filter(|it| it.subject == subject);
            past.cloned().collect::<Vec<_>>()
        };
        for message in past {
            deliver(message);
        }
        Ok(self.listen(Listener {
            subject: subject.to_owned(),
            log: Some(log.to_owned()),
            deliver: Arc::new(Mutex::new(deliver)),
        }))
    }

    fn put_blob(&self, bucket: &str, name: &str, content: Vec<u8>) -> Result<(), TransportError> {
        self.reach("store a file")?;
        let key = (bucket.to_owned(), name.to_owned());
        self.lock().blobs.insert(key, content);
        Ok(())
    }

    fn blob(&self, bucket: &str, name: &str, most: usize) -> Result<Vec<u8>, TransportError> {
        const ACTION: &str = "read a file";

        self.reach(ACTION)?;
        let key = (bucket.to_owned(), name.to_owned());
        match self.lock().blobs.get(&key) {
            Some(content) if content.len() > most => {
                Err(TransportError::new(ACTION, "it is too large"))
            }
            Some(content) => Ok(content.clone()),
            None => Err(TransportError::new(ACTION, "it does not exist")),
        }
    }

    fn delete(&self, log: &str, bucket: &str) -> Result<(), TransportError> {
        self.reach("delete the log")?;
        let mut state = self.lock();
        state.logs.remove(log);
        state.blobs.retain(|(of, _), _| of != bucket);
        Ok(())
    }

    fn is_connected(&self) -> bool {
        !self.inner.is_cut.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport_contract;

    #[test]
    fn it_keeps_the_contract() {
        let shared = MemoryTransport::default();
        transport_contract::all(&|| Box::new(shared.clone()));
        assert!(shared.names().is_empty(), "{:?}", shared.names());
    }

    #[test]
    fn while_it_is_cut_nothing_is_carried() {
        let transport = MemoryTransport::default();
        transport.cut(true);
        assert!(!transport.is_connected());
        assert!(transport.publish("a", Vec::new()).unwrap_err().is_away);
        transport.cut(false);
        transport.publish("a", Vec::new()).unwrap();
    }
}
