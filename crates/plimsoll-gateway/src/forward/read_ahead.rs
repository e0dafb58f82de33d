//! Content of a response that is read ahead of the client: a slow client does not keep the server at work.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use plimsoll_server::StreamError;
use tokio::task::JoinHandle;

/// What a frame takes besides its bytes, so that many small frames count too.
const FRAME: usize = 256;

/// Shorter pieces are copied: each may be a slice of a large read buffer, which it would keep alive.
const SHORT: usize = 4 * 1024;

/// The content; dropping it ends the reading too.
pub(super) struct ReadAhead {
    held: Rc<RefCell<Held>>,
    reading: JoinHandle<()>,
}

/// What was read, between the task that reads and the client.
#[derive(Default)]
struct Held {
    frames: VecDeque<Frame<Bytes>>,
    /// Bytes of the frames, each with [`FRAME`].
    bytes: usize,
    /// How the content ended, behind the frames.
    end: Option<Result<(), StreamError>>,
    /// Bytes that the client has not got yet, if that is known.
    left: Option<u64>,
    /// Waits for a frame.
    client: Option<Waker>,
    /// Waits for room.
    reader: Option<Waker>,
}

impl ReadAhead {
    /// Begins to read.
    ///
    /// - `most`: bytes that are held at a time, at least one frame.
    pub(super) fn new<B>(content: B, most: usize) -> Self
    where
        B: Body<Data = Bytes, Error = StreamError> + Unpin + 'static,
    {
        let held = Rc::new(RefCell::new(Held {
            left: content.size_hint().exact(),
            ..Held::default()
        }));
        let reading = tokio::task::spawn_local(read(content, Rc::clone(&held), most));
        Self { held, reading }
    }
}

/// Reads to the end, or until the task is ended.
async fn read<B>(mut content: B, held: Rc<RefCell<Held>>, most: usize)
where
    B: Body<Data = Bytes, Error = StreamError> + Unpin,
{
    loop {
        poll_fn(|context| held.borrow_mut().poll_room(context, most)).await;
        let frame = poll_fn(|context| Pin::new(&mut content).poll_frame(context)).await;
        let mut held = held.borrow_mut();
        let is_over = match frame {
            Some(Ok(frame)) => {
                let frame = with_own_memory(frame);
                held.bytes += cost(&frame);
                held.frames.push_back(frame);
                false
            }
            Some(Err(error)) => {
                held.end = Some(Err(error));
                true
            }
            None => {
                held.end = Some(Ok(()));
                true
            }
        };
        if let Some(client) = held.client.take() {
            client.wake();
        }
        if is_over {
            return;
        }
    }
}

impl Held {
    fn poll_room(&mut self, context: &mut Context<'_>, most: usize) -> Poll<()> {
        if self.bytes < most {
            return Poll::Ready(());
        }
        self.reader = Some(context.waker().clone());
        Poll::Pending
    }

    fn take_frame(&mut self) -> Option<Frame<Bytes>> {
        let frame = self.frames.pop_front()?;
        self.bytes -= cost(&frame);
        if let (Some(left), Some(data)) = (&mut self.left, frame.data_ref()) {
            *left = left.saturating_sub(data.len() as u64);
        }
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Some(frame)
    }
}

fn with_own_memory(frame: Frame<Bytes>) -> Frame<Bytes> {
    frame.map_data(|data| {
        if data.len() < SHORT {
            Bytes::copy_from_slice(&data)
        } else {
            data
        }
    })
}

fn cost(frame: &Frame<Bytes>) -> usize {
    FRAME + frame.data_ref().map_or(0, Bytes::len)
}

impl Body for ReadAhead {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let mut held = self.held.borrow_mut();
        if let Some(frame) = held.take_frame() {
            return Poll::Ready(Some(Ok(frame)));
        }
        // Behind an error there is nothing more.
        match held.end.replace(Ok(())) {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => {
                held.end = None;
                held.client = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let held = self.held.borrow();
        held.frames.is_empty() && matches!(held.end, Some(Ok(())))
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.held.borrow().left;
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use http::HeaderMap;
    use tokio::task::{LocalSet, yield_now};

    use super::*;

    /// Content that is there at once.
    struct Source {
        rest: VecDeque<Result<Frame<Bytes>, &'static str>>,
        read: Rc<Cell<usize>>,
        is_dropped: Rc<Cell<bool>>,
    }

    impl Body for Source {
        type Data = Bytes;
        type Error = StreamError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
            let Some(next) = self.rest.pop_front() else {
                return Poll::Ready(None);
            };
            self.read.set(self.read.get() + 1);
            Poll::Ready(Some(next.map_err(Into::into)))
        }
    }

    impl Drop for Source {
        fn drop(&mut self) {
            self.is_dropped.set(true);
        }
    }

    /// Pieces of 1,000 bytes and what follows them.
    struct Setting {
        ahead: ReadAhead,
        read: Rc<Cell<usize>>,
        is_dropped: Rc<Cell<bool>>,
    }

    impl Setting {
        fn new(pieces: usize, last: Result<Frame<Bytes>, &'static str>, most: usize) -> Self {
            let piece = || Ok(Frame::data(Bytes::from(vec![b'a'; 1000])));
            let (read, is_dropped) = (Rc::default(), Rc::default());
            let source = Source {
                rest: (0..pieces).map(|_| piece()).chain([last]).collect(),
                read: Rc::clone(&read),
                is_dropped: Rc::clone(&is_dropped),
            };
            Self {
                ahead: ReadAhead::new(source, most),
                read,
                is_dropped,
            }
        }

        async fn next(&mut self) -> Option<Result<Frame<Bytes>, StreamError>> {
            poll_fn(|context| Pin::new(&mut self.ahead).poll_frame(context)).await
        }
    }

    async fn settle() {
        for _ in 0..100 {
            yield_now().await;
        }
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.build().unwrap();
        LocalSet::new().block_on(&runtime, test);
    }

    fn trailers() -> Frame<Bytes> {
        let mut fields = HeaderMap::new();
        fields.insert("x-end", "1".parse().unwrap());
        Frame::trailers(fields)
    }

    #[test]
    fn all_that_fits_is_read_while_the_client_takes_nothing() {
        run(async {
            let mut setting = Setting::new(20, Ok(trailers()), 1 << 20);
            settle().await;
            assert_eq!(setting.read.get(), 21);
            // The exchange is over for the server.
            assert!(setting.is_dropped.get());
            for _ in 0..20 {
                let data = setting.next().await.unwrap().unwrap().into_data().unwrap();
                assert_eq!(data.len(), 1000);
            }
            let last = setting.next().await.unwrap().unwrap();
            assert_eq!(last.into_trailers().unwrap()["x-end"], "1");
            assert!(setting.next().await.is_none());
            assert!(setting.next().await.is_none());
            assert!(setting.ahead.is_end_stream());
        });
    }

    #[test]
    fn more_than_that_waits_for_the_client() {
        run(async {
            let mut setting = Setting::new(20, Ok(trailers()), 5 * (1000 + FRAME));
            settle().await;
            assert_eq!(setting.read.get(), 5);
            settle().await;
            assert_eq!(setting.read.get(), 5);
            setting.next().await.unwrap().unwrap();
            settle().await;
            assert_eq!(setting.read.get(), 6);
            let mut bytes = 1000;
            while let Some(frame) = setting.next().await {
                bytes += frame.unwrap().data_ref().map_or(0, Bytes::len);
            }
            assert_eq!(bytes, 20_000);
        });
    }

    #[test]
    fn what_broke_off_is_sent_up_to_there() {
        run(async {
            let mut setting = Setting::new(2, Err("reset"), 1 << 20);
            settle().await;
            assert!(!setting.ahead.is_end_stream());
            assert!(setting.next().await.unwrap().is_ok());
            assert!(setting.next().await.unwrap().is_ok());
            let error = setting.next().await.unwrap().unwrap_err();
            assert_eq!(error.to_string(), "reset");
            assert!(setting.next().await.is_none());
        });
    }

    #[test]
    fn a_client_that_goes_ends_the_reading() {
        run(async {
            let setting = Setting::new(20, Ok(trailers()), 1000);
            settle().await;
            let Setting {
                ahead, is_dropped, ..
            } = setting;
            assert!(!is_dropped.get());
            drop(ahead);
            settle().await;
            assert!(is_dropped.get());
        });
    }
}
