//! What `io_uring` would give an HTTP/1.1 server for small answers: `uring_server PORT recv|multishot`.
//!
//! The twin of `bare_server` on a ring instead of epoll: one thread, one ring, connections accepted by one standing order,
//! one request and one answer at a time on each, and one system call for all that is ready. `recv` orders each read by
//! itself, into the connection's own buffer; `multishot` has one standing order for each connection, which takes buffers
//! from a ring that the kernel was given (Linux 6.0).

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::cqueue::{buffer_select, more};
use io_uring::types::{BufRingEntry, Fd};
use io_uring::{IoUring, opcode, squeue};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nhello world\n";

const USAGE: &str = "usage: uring_server PORT recv|multishot";
const RING_ENTRIES: u32 = 4096;
const REQUEST_BYTES: usize = 16 * 1024;

/// The kernel's buffers: a power of two, each large enough for the requests of a load test.
const BUFFERS: u16 = 1024;
const BUFFER_BYTES: usize = 4096;
const GROUP: u16 = 0;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, reading] = &arguments[..] else {
        return Err(USAGE.into());
    };
    let is_multishot = match reading.as_str() {
        "recv" => false,
        "multishot" => true,
        _ => return Err(USAGE.into()),
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse()?))?;
    plimsoll_wire::keep_from_pacing(&socket2::SockRef::from(&listener));
    let ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(RING_ENTRIES)?;
    let buffers = is_multishot
        .then(|| Buffers::registered(&ring))
        .transpose()?;
    let server = Server {
        ring,
        buffers,
        connections: Vec::new(),
        free: Vec::new(),
    };
    Ok(server.run(&listener)?)
}

/// What a completion is of; it travels through the kernel as a number.
#[derive(Clone, Copy)]
enum Order {
    Accept,
    Read(usize),
    Write(usize),
}

impl Order {
    fn number(self) -> u64 {
        match self {
            Self::Accept => 0,
            Self::Read(index) => 1 + 2 * index as u64,
            Self::Write(index) => 2 + 2 * index as u64,
        }
    }

    fn of_number(number: u64) -> Self {
        let index = (number.saturating_sub(1) / 2) as usize;
        match number {
            0 => Self::Accept,
            odd if odd % 2 == 1 => Self::Read(index),
            _ => Self::Write(index),
        }
    }
}

struct Connection {
    stream: TcpStream,
    buffer: Box<[u8]>,
    filled: usize,
    /// Orders that the kernel still holds.
    pending: u32,
    is_writing: bool,
    has_ended: bool,
}

struct Server {
    ring: IoUring,
    buffers: Option<Buffers>,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
}

impl Server {
    fn run(mut self, listener: &TcpListener) -> io::Result<()> {
        let accept = || opcode::AcceptMulti::new(Fd(listener.as_raw_fd())).build();
        self.order(accept(), Order::Accept)?;
        let mut completed = Vec::with_capacity(RING_ENTRIES as usize);
        loop {
            self.ring.submit_and_wait(1)?;
            completed.extend(
                self.ring
                    .completion()
                    .map(|entry| (entry.user_data(), entry.result(), entry.flags())),
            );
            for (number, result, flags) in completed.drain(..) {
                match Order::of_number(number) {
                    Order::Accept => {
                        if !more(flags) {
                            self.order(accept(), Order::Accept)?;
                        }
                        if result >= 0 {
                            self.accepted(result)?;
                        }
                    }
                    Order::Read(index) => self.read(index, result, flags)?,
                    Order::Write(index) => self.written(index, result)?,
                }
            }
        }
    }

    fn order(&mut self, entry: squeue::Entry, order: Order) -> io::Result<()> {
        let entry = entry.user_data(order.number());
        loop {
            #[expect(
                unsafe_code,
                reason = "the buffers that an order names live until it has completed: a connection is \
                          kept as long as orders of it are pending, and the answer is static"
            )]
            // SAFETY: see the reason above.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            if pushed.is_ok() {
                return Ok(());
            }
            self.ring.submit()?;
        }
    }

    fn accepted(&mut self, descriptor: i32) -> io::Result<()> {
        #[expect(
            unsafe_code,
            reason = "the kernel hands the new descriptor over by its number"
        )]
        // SAFETY: it is open, and nothing else knows it.
        let stream = unsafe { TcpStream::from_raw_fd(descriptor) };
        stream.set_nodelay(true)?;
        let connection = Connection {
            stream,
            buffer: vec![0; REQUEST_BYTES].into_boxed_slice(),
            filled: 0,
            pending: 0,
            is_writing: false,
            has_ended: false,
        };
        let index = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        self.connections[index] = Some(connection);
        self.order_read(index)
    }

    fn order_read(&mut self, index: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[index] else {
            return Ok(());
        };
        connection.pending += 1;
        let fd = Fd(connection.stream.as_raw_fd());
        let entry = if self.buffers.is_some() {
            opcode::RecvMulti::new(fd, GROUP).build()
        } else {
            let rest = &mut connection.buffer[connection.filled..];
            opcode::Recv::new(fd, rest.as_mut_ptr(), bytes_in(rest)).build()
        };
        self.order(entry, Order::Read(index))
    }

    fn read(&mut self, index: usize, result: i32, flags: u32) -> io::Result<()> {
        let is_over = !more(flags);
        let taken = buffer_select(flags);
        let Some(connection) = &mut self.connections[index] else {
            return Ok(());
        };
        if is_over {
            connection.pending -= 1;
        }
        let read = usize::try_from(result).unwrap_or(0);
        if let (Some(taken), Some(buffers)) = (taken, &mut self.buffers) {
            let content = buffers.content(taken, read);
            match connection
                .buffer
                .get_mut(connection.filled..connection.filled + read)
            {
                Some(rest) => rest.copy_from_slice(content),
                None => connection.has_ended = true,
            }
            buffers.give_back(taken);
        }
        // Only a want of buffers does not end a connection.
        let out_of_buffers = result == -rustix::io::Errno::NOBUFS.raw_os_error();
        if read == 0 && !out_of_buffers {
            connection.has_ended = true;
        }
        connection.filled += read;
        self.answer(index)?;
        let wants_more = self.connections[index]
            .as_ref()
            .is_some_and(|connection| !connection.has_ended);
        match (is_over && wants_more, self.buffers.is_some()) {
            (true, true) => self.order_read(index),
            _ => self.end(index),
        }
    }

    /// Answers the first request, if it is there and no answer is on its way; else reads on.
    fn answer(&mut self, index: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[index] else {
            return Ok(());
        };
        if connection.has_ended || connection.is_writing {
            return Ok(());
        }
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&connection.buffer[..connection.filled]) {
            Ok(httparse::Status::Complete(length)) => {
                connection.buffer.copy_within(length..connection.filled, 0);
                connection.filled -= length;
                connection.is_writing = true;
                connection.pending += 1;
                let fd = Fd(connection.stream.as_raw_fd());
                let send = opcode::Send::new(fd, ANSWER.as_ptr(), bytes_in(ANSWER)).build();
                self.order(send, Order::Write(index))
            }
            Ok(httparse::Status::Partial) if self.buffers.is_none() => self.order_read(index),
            Ok(httparse::Status::Partial) => Ok(()),
            Err(_) => {
                connection.has_ended = true;
                Ok(())
            }
        }
    }

    fn written(&mut self, index: usize, result: i32) -> io::Result<()> {
        if let Some(connection) = &mut self.connections[index] {
            connection.pending -= 1;
            connection.is_writing = false;
            // An answer of this size goes out as a whole, or the peer is gone.
            connection.has_ended |= usize::try_from(result) != Ok(ANSWER.len());
        }
        self.answer(index)?;
        self.end(index)
    }

    /// Closes a connection that has ended, once the kernel holds none of its memory.
    fn end(&mut self, index: usize) -> io::Result<()> {
        let Some(connection) = &self.connections[index] else {
            return Ok(());
        };
        if !connection.has_ended {
            return Ok(());
        }
        if connection.pending == 0 {
            self.connections[index] = None;
            self.free.push(index);
            return Ok(());
        }
        // Has a standing order complete.
        connection
            .stream
            .shutdown(std::net::Shutdown::Both)
            .or(Ok(()))
    }
}

/// As the kernel takes it.
fn bytes_in(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("no buffer here is that large")
}

/// Buffers that the kernel takes by itself and names in completions.
struct Buffers {
    ring: NonNull<BufRingEntry>,
    storage: Box<[u8]>,
    tail: u16,
}

impl Buffers {
    fn registered(ring: &IoUring) -> io::Result<Self> {
        let bytes = usize::from(BUFFERS) * size_of::<BufRingEntry>();
        let layout = Layout::from_size_align(bytes, 4096).map_err(io::Error::other)?;
        #[expect(
            unsafe_code,
            reason = "the kernel wants a page of its own for the ring"
        )]
        // SAFETY: the layout is not empty; zeroes are entries.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(entries) = NonNull::new(memory.cast()) else {
            handle_alloc_error(layout);
        };
        let mut buffers = Self {
            ring: entries,
            storage: vec![0; usize::from(BUFFERS) * BUFFER_BYTES].into_boxed_slice(),
            tail: 0,
        };
        for number in 0..BUFFERS {
            buffers.give_back(number);
        }
        #[expect(unsafe_code, reason = "the kernel is given the ring by its address")]
        // SAFETY: it is as large as said, and lives as long as the process.
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(memory as u64, BUFFERS, GROUP, 0)?;
        }
        Ok(buffers)
    }

    fn content(&self, number: u16, length: usize) -> &[u8] {
        let begin = usize::from(number) * BUFFER_BYTES;
        &self.storage[begin..begin + length]
    }

    fn give_back(&mut self, number: u16) {
        let begin = usize::from(number) * BUFFER_BYTES;
        let address = self.storage[begin..].as_mut_ptr() as u64;
        let place = usize::from(self.tail % BUFFERS);
        self.tail = self.tail.wrapping_add(1);
        #[expect(
            unsafe_code,
            reason = "the kernel reads the ring's entries and its tail"
        )]
        // SAFETY: the place is within the ring, which only this thread writes; the tail is aligned, lies in the first entry
        // beside what `set_*` write, and is told only once the entry is written.
        unsafe {
            let entry = self.ring.add(place).as_mut();
            entry.set_addr(address);
            entry.set_len(bytes_in(&self.storage[begin..begin + BUFFER_BYTES]));
            entry.set_bid(number);
            let tail = BufRingEntry::tail(self.ring.as_ptr());
            AtomicU16::from_ptr(tail.cast_mut()).store(self.tail, Ordering::Release);
        }
    }
}
