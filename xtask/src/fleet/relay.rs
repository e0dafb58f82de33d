//! `cargo xtask relay`: a relay of TCP whose both ways take a time, in place of a network that is long.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::Args;

use crate::clock::{now, wait_until};
use crate::{Failure, Outcome};

/// From where, to where, and how long it takes
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Address to listen on
    #[arg(long)]
    listen: SocketAddr,

    /// Address of the server
    #[arg(long)]
    to: SocketAddr,

    /// How much later bytes go on, each way, in milliseconds
    #[arg(long)]
    delay_ms: u64,
}

/// Relays until the process is ended.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let delay = Duration::from_millis(arguments.delay_ms);
    let listener = TcpListener::bind(arguments.listen);
    let listener = listener.map_err(|error| Failure(error.to_string()))?;
    for client in listener.incoming().flatten() {
        let to = arguments.to;
        // A connection that breaks has ended.
        thread::spawn(move || relay(&client, to, delay).ok());
    }
    Ok(())
}

fn relay(client: &TcpStream, to: SocketAddr, delay: Duration) -> io::Result<()> {
    let server = TcpStream::connect(to)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from, onward) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || copy(from, onward, delay));
    copy(server, client.try_clone()?, delay);
    Ok(())
}

/// Copies until one side ends, and then ends the other; each part that is read goes on after `delay`.
fn copy(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (sender, receiver) = mpsc::channel::<(std::time::Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let chunk = (now() + delay, buffer[..read].to_vec());
            if sender.send(chunk).is_err() {
                return;
            }
        }
    });
    for (due, chunk) in receiver {
        wait_until(due);
        if to.write_all(&chunk).is_err() {
            break;
        }
    }
    to.shutdown(Shutdown::Both).ok();
}
