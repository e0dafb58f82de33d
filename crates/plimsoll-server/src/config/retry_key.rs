//! `retry_key`: the file of a secret that a gateway and the servers of QUIC behind it have in common.

use std::fs::File;
use std::io::Read as _;

use plimsoll_model::document::Table;
use plimsoll_wire::RetryKey;

use crate::config::paths::NamedPaths;

/// Bytes of a secret, at most.
const MOST: u64 = 4096;

/// Takes the key; what is wrong with its file is noted.
pub fn retry_key(table: &mut Table<'_>, paths: &NamedPaths<'_>) -> Option<RetryKey> {
    let value = table.take_value("retry_key")?;
    let file = paths.read(&value)?;
    let mut secret = Vec::new();
    let read = File::open(&file).and_then(|file| file.take(MOST).read_to_end(&mut secret));
    if let Err(error) = read {
        return value.wrong(format!("cannot read {}: {error}", file.display()));
    }
    let key = RetryKey::new(&secret);
    if key.is_none() {
        let message = format!(
            "{} has fewer than {} bytes",
            file.display(),
            RetryKey::LEAST
        );
        let hint = format!("head -c 64 /dev/urandom > {}", file.display());
        return value.wrong_with(message, Some(hint));
    }
    key
}
