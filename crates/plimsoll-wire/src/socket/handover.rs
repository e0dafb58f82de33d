//! Descriptors sent from one process to another over a socket in the file system (`SCM_RIGHTS`, unix(7)).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Descriptors of one message; the system allows 253.
const AT_ONCE: usize = 128;

/// Bytes of a text, at most.
const LONGEST: usize = 1 << 20;

/// Sends a text and the descriptors that it is about. A text of some 100 KB is taken without being waited for.
pub fn send_with_descriptors(
    stream: &UnixStream,
    text: &[u8],
    descriptors: &[OwnedFd],
) -> io::Result<()> {
    let numbers = [text.len(), descriptors.len()].map(|number| number as u64);
    let mut head = [0; 16];
    for (place, number) in head.chunks_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    send_all(stream, &head, &[])?;
    send_all(stream, text, &[])?;
    for some in descriptors.chunks(AT_ONCE) {
        // Descriptors travel with at least one byte.
        send_all(stream, &[0], some)?;
    }
    Ok(())
}

fn send_all(stream: &UnixStream, mut bytes: &[u8], descriptors: &[OwnedFd]) -> io::Result<()> {
    let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
    let mut rest = borrowed.as_slice();
    while !bytes.is_empty() {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(AT_ONCE))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !rest.is_empty() && !control.push(SendAncillaryMessage::ScmRights(rest)) {
            return Err(io::Error::other("too many descriptors"));
        }
        let sent = sendmsg(
            stream,
            &[IoSlice::new(bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        );
        match sent {
            Ok(count) => (bytes, rest) = (&bytes[count..], &[]),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Receives what [`send_with_descriptors`] has sent; nothing if the other process has ended the stream.
///
/// The descriptors are closed in programs that are started from here.
pub fn receive_with_descriptors(
    stream: &UnixStream,
) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut descriptors = Vec::new();
    let mut head = [0; 16];
    if !receive_all(stream, &mut head, &mut descriptors)? {
        return Ok(None);
    }
    let number = |place: &[u8]| {
        let bytes = place.try_into().unwrap_or_default();
        usize::try_from(u64::from_be_bytes(bytes)).unwrap_or(usize::MAX)
    };
    let (length, count) = (number(&head[..8]), number(&head[8..]));
    if length > LONGEST || count > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length];
    let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
    if !receive_all(stream, &mut text, &mut descriptors)? && length > 0 {
        return Err(ended());
    }
    while descriptors.len() < count {
        let before = descriptors.len();
        if !receive_all(stream, &mut [0], &mut descriptors)? {
            return Err(ended());
        }
        if descriptors.len() == before {
            return Err(io::Error::other(
                "a descriptor was lost: is the limit on open files reached?",
            ));
        }
    }
    Ok(Some((text, descriptors)))
}

/// Fills `bytes`; false if the stream ends before the first of them.
fn receive_all(
    stream: &UnixStream,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<bool> {
    let mut filled = 0;
    while filled < bytes.len() {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(AT_ONCE))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            stream,
            &mut [IoSliceMut::new(&mut bytes[filled..])],
            &mut control,
            CLOEXEC,
        );
        let count = match received {
            Ok(message) => message.bytes,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                descriptors.extend(received);
            }
        }
        if count == 0 {
            return match filled {
                0 => Ok(false),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
        filled += count;
    }
    Ok(true)
}

#[cfg(target_os = "linux")]
const CLOEXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;

#[cfg(not(target_os = "linux"))]
const CLOEXEC: RecvFlags = RecvFlags::empty();

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn descriptors_arrive_with_their_text_however_many() {
        let (from, to) = UnixStream::pair().unwrap();
        for count in [0, 1, 300] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let sent: Vec<_> = (0..count)
                .map(|_| OwnedFd::from(theirs.try_clone().unwrap()))
                .collect();
            drop(theirs);
            send_with_descriptors(&from, b"listeners", &sent).unwrap();
            drop(sent);
            let (text, descriptors) = receive_with_descriptors(&to).unwrap().unwrap();
            assert_eq!(
                (text.as_slice(), descriptors.len()),
                (&b"listeners"[..], count)
            );
            if let Some(last) = descriptors.last() {
                let last = UnixStream::from(last.try_clone().unwrap());
                rustix::io::write(&last, b"x").unwrap();
                (&ours).read_exact(&mut [0]).unwrap();
            }
        }
        drop(from);
        assert!(receive_with_descriptors(&to).unwrap().is_none());
    }
}
