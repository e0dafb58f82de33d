//! The serving engine: listeners and the small actions that answer requests.
