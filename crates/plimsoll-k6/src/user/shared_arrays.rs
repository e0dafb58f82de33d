//! The elements of `SharedArray`s.

use std::sync::{Arc, Mutex, PoisonError};

/// Arrays that all virtual users share, each element as JSON.
#[derive(Debug, Default)]
pub(crate) struct SharedArrays(Mutex<Vec<(String, Arc<Vec<String>>)>>);

impl SharedArrays {
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let arrays = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        arrays.iter().position(|(other, _)| other == name)
    }

    /// The first array of a name stays.
    pub(crate) fn add(&self, name: &str, elements: Vec<String>) -> usize {
        if let Some(index) = self.find(name) {
            return index;
        }
        let mut arrays = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        arrays.push((name.to_owned(), Arc::new(elements)));
        arrays.len() - 1
    }

    pub(crate) fn get(&self, index: usize) -> Option<Arc<Vec<String>>> {
        let arrays = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        arrays.get(index).map(|(_, elements)| Arc::clone(elements))
    }
}
