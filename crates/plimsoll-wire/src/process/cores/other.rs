//! Platforms that do not bind threads to cores.

use super::PinError;

pub(super) fn available() -> Vec<usize> {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    (0..count).collect()
}

pub(super) fn of_process(_pid: u32) -> Option<Vec<usize>> {
    None
}

pub(super) fn pin_thread(_cores: &[usize]) -> Result<(), PinError> {
    Err(PinError::Unsupported)
}

pub(super) fn pin_process(_pid: u32, _cores: &[usize]) -> Result<(), PinError> {
    Err(PinError::Unsupported)
}

/// Never made here: [`Rebound::to`] always fails.
#[derive(Debug)]
pub(crate) struct Rebound;

impl Rebound {
    pub(crate) fn to(_cores: &[usize]) -> Result<Self, PinError> {
        Err(PinError::Unsupported)
    }
}
