//! A stored response as the bytes of a file.
//!
//! `PLIMCACHE3`, the length of the head (32 bits), the head, the content, and SHA-256 of all that. The head has texts with
//! their lengths (32 bits) before them, numbers of 64 bits, all in little endian. What is not whole is no record.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderName;
use plimsoll_server::FilePart;
use plimsoll_wire::http::FieldList;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

use super::content::Content;
use super::entry::{Entry, Head, Reuse};
use super::freshness::Times;
use super::stored_fields::StoredFields;

const MAGIC: &[u8] = b"PLIMCACHE3";

/// Bytes of the length of the head.
const LENGTH: usize = size_of::<u32>();

/// Whether responses were stored under the same configuration: others may not be sent any more.
pub(super) type Identity = [u8; SHA256_OUTPUT_LEN];

/// What is known of a record before its content is read.
#[derive(Debug)]
pub(super) struct RecordHead<'r> {
    pub(super) identity: &'r Identity,
    pub(super) key: &'r str,
    pub(super) head: Head,
}

/// The record of an entry; fails if its content is in a file that cannot be read.
pub(super) fn encode(identity: &Identity, key: &str, entry: &Entry) -> io::Result<Vec<u8>> {
    let Head {
        status,
        fields,
        times,
        reuse,
        lifetime,
        initial_age,
        selecting,
    } = &entry.head;
    let content = entry.content.read()?;
    let mut head = Writer(Vec::with_capacity(1024));
    head.0.extend_from_slice(identity);
    head.bytes(key.as_bytes());
    head.number(u64::from(status.as_u16()));
    head.time(times.requested);
    head.time(times.received);
    head.number(nanos(*lifetime));
    head.number(nanos(*initial_age));
    head.number(u64::from(reuse.no_cache));
    head.number(u64::from(reuse.must_revalidate));
    head.duration(reuse.stale_while_revalidate);
    head.duration(reuse.stale_if_error);
    head.fields(fields.sent());
    head.fields(fields.others());
    head.number(selecting.len() as u64);
    for (name, values) in selecting {
        head.bytes(name.as_str().as_bytes());
        head.number(values.len() as u64);
        for value in values {
            head.bytes(value);
        }
    }
    let Writer(head) = head;
    let length = MAGIC.len() + LENGTH + head.len() + content.len() + SHA256_OUTPUT_LEN;
    let mut record = Vec::with_capacity(length);
    record.extend_from_slice(MAGIC);
    record.extend_from_slice(&u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes());
    record.extend_from_slice(&head);
    record.extend_from_slice(&content);
    let sum = digest(&SHA256, &record);
    record.extend_from_slice(sum.as_ref());
    Ok(record)
}

/// Content that is longer stays in its file: what many clients read at once takes no memory for each of them.
pub(super) const MOST_IN_MEMORY: usize = 256 << 10;

/// Whether a record is all there, by its sum.
pub(super) fn is_whole(record: &[u8]) -> bool {
    let end = record.len().checked_sub(SHA256_OUTPUT_LEN);
    let parts = end.and_then(|end| record.split_at_checked(end));
    parts.is_some_and(|(whole, sum)| digest(&SHA256, whole).as_ref() == sum)
}

/// The entry of a record that is known to be whole; `None` if `record` ends before the head does, or is another's.
///
/// - `record`: the record, or its beginning; content that is not in it stays in the file.
/// - `length`: bytes of the whole record.
/// - `file`: has the record, and stays as it is.
/// - `identity`, `key`: under which configuration, and for which key, it was stored.
pub(super) fn decode(
    record: &[u8],
    length: usize,
    file: &Arc<File>,
    (identity, key): (&Identity, &str),
) -> Option<Entry> {
    let read = decode_head(record)?;
    if read.identity != identity || read.key != key {
        return None;
    }
    let begin = head_end(record)?;
    let end = length.checked_sub(SHA256_OUTPUT_LEN)?;
    let size = end.checked_sub(begin)?;
    let content = match record.get(begin..end) {
        // Without the rest of the record, which would stay in memory with it.
        Some(content) if size <= MOST_IN_MEMORY => Content::Memory(Bytes::copy_from_slice(content)),
        _ => Content::File(FilePart::new(Arc::clone(file), begin as u64, size as u64)),
    };
    let head = read.head;
    Some(Entry { head, content })
}

/// So many bytes of a record have its head; `None` if that is no record, or less is there.
pub(super) fn head_end(record: &[u8]) -> Option<usize> {
    let rest = record.strip_prefix(MAGIC)?;
    let length = u32::from_le_bytes(*rest.first_chunk()?);
    let end = (MAGIC.len() + LENGTH).checked_add(usize::try_from(length).ok()?)?;
    Some(end)
}

/// The bytes that say how long a head is.
pub(super) const PREFIX: usize = MAGIC.len() + LENGTH;

/// The head of a record, of which this is the beginning.
pub(super) fn decode_head(record: &[u8]) -> Option<RecordHead<'_>> {
    let end = head_end(record)?;
    let mut reader = Reader(record.get(PREFIX..end)?);
    let identity = reader.read_bytes(SHA256_OUTPUT_LEN)?.first_chunk()?;
    let key = std::str::from_utf8(reader.bytes()?).ok()?;
    let status = u16::try_from(reader.number()?).ok()?;
    let times = Times {
        requested: reader.time()?,
        received: reader.time()?,
    };
    let lifetime = Duration::from_nanos(reader.number()?);
    let initial_age = Duration::from_nanos(reader.number()?);
    let reuse = Reuse {
        no_cache: reader.number()? != 0,
        must_revalidate: reader.number()? != 0,
        stale_while_revalidate: reader.duration().ok()?,
        stale_if_error: reader.duration().ok()?,
    };
    let fields = StoredFields::restored(reader.fields()?, reader.fields()?);
    let mut selecting = Vec::new();
    for _ in 0..reader.number()? {
        let name = HeaderName::from_bytes(reader.bytes()?).ok()?;
        let mut values = Vec::new();
        for _ in 0..reader.number()? {
            values.push(reader.bytes()?.to_vec());
        }
        selecting.push((name, values));
    }
    reader.0.is_empty().then_some(())?;
    let head = Head {
        status: StatusCode::from_u16(status).ok()?,
        fields,
        times,
        reuse,
        lifetime,
        initial_age,
        selecting,
    };
    Some(RecordHead {
        identity,
        key,
        head,
    })
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn time(&mut self, time: SystemTime) {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        self.number(nanos(since.unwrap_or_default()));
    }

    /// None is the longest time.
    fn duration(&mut self, time: Option<Duration>) {
        self.number(time.map_or(u64::MAX, nanos));
    }

    fn fields(&mut self, fields: &FieldList) {
        self.number(fields.len() as u64);
        for (name, value) in fields {
            self.bytes(name);
            self.bytes(value);
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.0.extend_from_slice(&length.to_le_bytes());
        self.0.extend_from_slice(bytes);
    }
}

struct Reader<'r>(&'r [u8]);

/// The record ends before what is wanted.
struct Ended;

impl<'r> Reader<'r> {
    fn read_bytes(&mut self, count: usize) -> Option<&'r [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(
            *self.read_bytes(size_of::<u64>())?.first_chunk()?,
        ))
    }

    fn time(&mut self) -> Option<SystemTime> {
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(self.number()?))
    }

    /// A time that may not be given.
    fn duration(&mut self) -> Result<Option<Duration>, Ended> {
        let nanos = self.number().ok_or(Ended)?;
        Ok((nanos != u64::MAX).then(|| Duration::from_nanos(nanos)))
    }

    fn fields(&mut self) -> Option<FieldList> {
        let count = self.number()?;
        if count == 0 {
            return Some(FieldList::new());
        }
        // As most responses have them.
        let mut fields = FieldList::with_capacity(16, 512);
        for _ in 0..count {
            fields.push(self.bytes()?, self.bytes()?);
        }
        Some(fields)
    }

    fn bytes(&mut self) -> Option<&'r [u8]> {
        let length = u32::from_le_bytes(*self.read_bytes(size_of::<u32>())?.first_chunk()?);
        self.read_bytes(usize::try_from(length).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use http::header::HeaderValue;
    use proptest::prelude::*;

    use super::super::Lifetimes;
    use super::*;

    fn entry(content: &[u8], value: &[u8]) -> Entry {
        let mut fields = HeaderMap::new();
        let mut put = |name: &'static str, value: &[u8]| {
            let value = HeaderValue::from_bytes(value).unwrap();
            fields.append(HeaderName::from_static(name), value);
        };
        put("cache-control", b"max-age=60");
        put("vary", b"accept, x-a");
        put("x-value", value);
        put("x-value", b"second");
        let mut seen = FieldList::new();
        seen.push(b"Accept", value);
        let received = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789);
        let times = Times {
            requested: received - Duration::from_millis(3),
            received,
        };
        let content = Content::Memory(Bytes::copy_from_slice(content));
        let request = (&HeaderMap::new(), &seen);
        let defaults = Lifetimes::default();
        Entry::new(request, StatusCode::OK, &fields, content, times, &defaults).unwrap()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_nothing_else(
            content in prop::collection::vec(any::<u8>(), 0..300),
            value in "[ -~]{0,40}",
            key in "[ -~]{0,60}",
            at in any::<prop::sample::Index>(),
            bit in 0..8u32,
        ) {
            let written = entry(&content, value.trim().as_bytes());
            let file = Arc::new(tempfile::tempfile().unwrap());
            let record = encode(&[7; 32], &key, &written).unwrap();
            prop_assert!(is_whole(&record));
            let length = record.len();
            let wanted = (&[7; 32], &*key);
            let read = decode(&record, length, &file, wanted).unwrap();
            prop_assert_eq!(format!("{read:?}"), format!("{written:?}"));
            // It is no entry of another key, or of another configuration.
            let other = format!("{key}x");
            prop_assert!(decode(&record, length, &file, (&[7; 32], &other)).is_none());
            prop_assert!(decode(&record, length, &file, (&[8; 32], &key)).is_none());
            // Of its beginning alone, the content stays in the file; of less than its head there is no entry.
            let end = head_end(&record).unwrap();
            let read = decode(&record[..end], length, &file, wanted).unwrap();
            prop_assert_eq!(read.content.len(), content.len());
            prop_assert!(content.is_empty() || matches!(read.content, Content::File(_)));
            prop_assert!(decode(&record[..end - 1], length, &file, wanted).is_none());
            // Truncated records and records with a flipped bit are rejected.
            let cut = at.index(record.len());
            prop_assert!(!is_whole(&record[..cut]));
            let mut other = record;
            other[cut] ^= 1 << bit;
            prop_assert!(!is_whole(&other));
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let file = Arc::new(tempfile::tempfile().unwrap());
            let record = [MAGIC, &bytes].concat();
            decode_head(&record);
            decode(&record, record.len(), &file, (&[7; 32], "key"));
            prop_assert!(!is_whole(&record));
        }
    }
}
