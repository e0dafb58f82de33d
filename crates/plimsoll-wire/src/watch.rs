//! Changes of files and folders, reported by the kernel or found by polling.

pub(crate) mod watched_files;

pub(crate) mod folder_watch;
