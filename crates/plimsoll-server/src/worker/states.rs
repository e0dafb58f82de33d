//! State that outlives a reload, found again by its type and the identity of the configuration that it belongs to.
//!
//! A store keeps no state alive: what uses it does. On a reload the new actions are made before the old ones are
//! dropped, so a state whose configuration is still there goes on, and one whose configuration is gone is dropped
//! with its last user. There is nothing to be cleared up.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{self, Rc};
use std::sync::{self, Arc, Mutex, PoisonError};

/// A type, and what the configuration calls its state.
type Key = (TypeId, Box<str>);

/// The states of one worker; shared by its listeners.
#[derive(Debug, Default)]
pub(crate) struct LocalStates(RefCell<HashMap<Key, rc::Weak<dyn Any>>>);

impl LocalStates {
    /// The state of that type and identity, which `make` makes if nothing uses one.
    pub(crate) fn state<T: Any>(&self, identity: &str, make: impl FnOnce() -> T) -> Rc<T> {
        let key = (TypeId::of::<T>(), Box::from(identity));
        let known = self.0.borrow().get(&key).and_then(rc::Weak::upgrade);
        if let Some(known) = known.and_then(|known| known.downcast().ok()) {
            return known;
        }
        // Not borrowed meanwhile: it may need other states.
        let new = Rc::new(make());
        let mut states = self.0.borrow_mut();
        states.retain(|_, state| state.strong_count() > 0);
        let weak: rc::Weak<T> = Rc::downgrade(&new);
        states.insert(key, weak);
        new
    }
}

/// The states that all workers of an engine share, such as the buckets of rate limits; clones share them too.
#[derive(Debug, Clone, Default)]
pub struct SharedStates(Arc<Mutex<HashMap<Key, sync::Weak<dyn Any + Send + Sync>>>>);

impl SharedStates {
    /// The state of that type and identity, which `make` makes if nothing uses one.
    ///
    /// - `identity`: everything in the configuration that the state depends on; one that is configured differently
    ///   begins anew.
    pub fn state<T: Any + Send + Sync>(&self, identity: &str, make: impl FnOnce() -> T) -> Arc<T> {
        self.try_state(identity, || Ok::<_, std::convert::Infallible>(make()))
            .unwrap_or_else(|never| match never {})
    }

    /// The same where making it may fail.
    pub fn try_state<T: Any + Send + Sync, E>(
        &self,
        identity: &str,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let key = (TypeId::of::<T>(), Box::from(identity));
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        // Not locked meanwhile: it may need other states.
        let new = Arc::new(make()?);
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.retain(|_, state| state.strong_count() > 0);
        let weak: sync::Weak<T> = Arc::downgrade(&new);
        states.insert(key, weak);
        Ok(new)
    }

    fn known<T: Any + Send + Sync>(&self, key: &Key) -> Option<Arc<T>> {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.get(key)?.upgrade()?.downcast().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_state_lives_as_long_as_something_uses_it() {
        let states = LocalStates::default();
        let old = states.state("pool a", || Cell::new(1));
        old.set(2);
        let new = states.state("pool a", || Cell::new(3));
        assert!(Rc::ptr_eq(&old, &new));
        assert_eq!(states.state("pool b", || Cell::new(4)).get(), 4);
        // Another type of the same identity is another state.
        assert_eq!(*states.state("pool a", || 5_u8), 5);
        drop((old, new));
        assert_eq!(states.state("pool a", || Cell::new(6)).get(), 6);
        let kept = states.state("pool c", || Cell::new(7));
        assert_eq!(states.0.borrow().len(), 1, "unused ones take no room");
        drop(kept);
    }

    #[test]
    fn a_state_may_be_made_of_others() {
        let states = LocalStates::default();
        let outer = states.state("outer", || (states.state("inner", || 1_u8), 2_u8));
        assert!(Rc::ptr_eq(&outer.0, &states.state("inner", || 9)));
    }

    #[test]
    fn shared_states_are_those_of_all_clones() {
        let states = SharedStates::default();
        let one = states.state("limit", || Mutex::new(1));
        *one.lock().unwrap() = 2;
        let other = states.clone().state("limit", || Mutex::new(3));
        assert!(Arc::ptr_eq(&one, &other));
        let failed = states.try_state("file", || Err::<u8, _>("no such file"));
        assert_eq!(failed, Err("no such file"));
        drop((one, other));
        assert_eq!(*states.state("limit", || Mutex::new(4)).lock().unwrap(), 4);
    }
}
