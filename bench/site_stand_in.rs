//! Servers of a blog as they once were: `site_stand_in KIND PORT LIST-PORT DIR`, or `site_stand_in make DIR` for their files.
//!
//! One refetches its list of redirects for every path and reads whole files into memory, whose digest is their entity tag
//! (`refetching`); one looks for the file first (`whole`); one also streams it, by length and time of change
//! (`streaming`). A thread for each connection. They stand in for programs that cannot be installed, and answer nothing
//! but GET over HTTP/1.1 from whoever means well.

use std::collections::HashMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

const USAGE: &str =
    "usage: site_stand_in make DIR, or (refetching|whole|streaming) PORT LIST-PORT DIR";

/// Files of the blog; the nth has 35 n² bytes.
const FILES: usize = 170;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["make", directory] => make(Path::new(directory)),
        [kind, port, list, directory] => {
            let site = Site {
                kind: Kind::called(kind).ok_or(USAGE)?,
                list: list.parse()?,
                root: directory.into(),
            };
            make(&site.root)?;
            serve(site, port.parse()?)
        }
        _ => Err(USAGE.into()),
    }
}

/// Writes the files, unless they are there.
fn make(directory: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    for number in 1..=FILES {
        let file = directory.join(format!("{number}.bin"));
        let length = number * number * 35;
        if fs::metadata(&file).map_or(0, |it| it.len()) != length as u64 {
            fs::write(file, vec![b'x'; length])?;
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Refetching,
    Whole,
    Streaming,
}

impl Kind {
    fn called(name: &str) -> Option<Self> {
        match name {
            "refetching" => Some(Self::Refetching),
            "whole" => Some(Self::Whole),
            "streaming" => Some(Self::Streaming),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Site {
    kind: Kind,
    /// Where the list of redirects is.
    list: u16,
    root: PathBuf,
}

fn serve(site: Site, port: u16) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let site: &'static Site = Box::leak(Box::new(site));
    for stream in listener.incoming() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        // A client that goes away ends its thread.
        std::thread::spawn(move || connection(site, stream).ok());
    }
    Ok(())
}

fn connection(site: &Site, mut stream: TcpStream) -> io::Result<()> {
    let mut requests = BufReader::new(stream.try_clone()?);
    loop {
        let mut path = None;
        loop {
            let mut line = String::new();
            if requests.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            path = path.or_else(|| line.split(' ').nth(1).map(str::to_owned));
        }
        let path = path.unwrap_or_default();
        let name = path.trim_start_matches('/');
        // What leads elsewhere is not looked for.
        let file = (!name.is_empty() && !name.contains(['/', '\\'])).then(|| site.root.join(name));
        answer(site, name, file.as_deref(), &mut stream)?;
    }
}

#[inline(never)]
fn answer(site: &Site, name: &str, file: Option<&Path>, stream: &mut TcpStream) -> io::Result<()> {
    if site.kind == Kind::Refetching
        && let Some(url) = fetch_list(site.list)?.get(name)
    {
        return redirect(stream, url);
    }
    let sent = match (site.kind, file) {
        (_, None) => false,
        (Kind::Streaming, Some(file)) => stream_file(file, stream)?,
        (Kind::Refetching | Kind::Whole, Some(file)) => match read_whole(file)? {
            None => false,
            Some(content) => {
                let tag = digest(&content);
                head(stream, content.len() as u64, &tag)?;
                stream.write_all(&content)?;
                true
            }
        },
    };
    if sent {
        return Ok(());
    }
    match fetch_list(site.list)?.get(name) {
        Some(url) => redirect(stream, url),
        None => stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"),
    }
}

#[inline(never)]
fn fetch_list(port: u16) -> io::Result<HashMap<String, String>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.write_all(b"GET /links.txt HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.take(1 << 20).read_to_string(&mut text)?;
    let list = text.split_once("\r\n\r\n").map_or("", |(_, list)| list);
    let pairs = list.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs
        .map(|(alias, url)| (alias.to_owned(), url.to_owned()))
        .collect())
}

#[inline(never)]
fn read_whole(file: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(file) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[inline(never)]
fn digest(content: &[u8]) -> String {
    format!("{:x}", Sha256::digest(content))
}

/// Whether there is such a file.
#[inline(never)]
fn stream_file(file: &Path, stream: &mut TcpStream) -> io::Result<bool> {
    let mut file = match File::open(file) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    let changed = metadata.modified()?.duration_since(UNIX_EPOCH);
    let changed = changed.map_or(0, |since| since.as_nanos());
    head(
        stream,
        metadata.len(),
        &format!("{changed:x}-{:x}", metadata.len()),
    )?;
    io::copy(&mut file, stream)?;
    Ok(true)
}

fn head(stream: &mut TcpStream, length: u64, tag: &str) -> io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\netag: \"{tag}\"\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes())
}

fn redirect(stream: &mut TcpStream, url: &str) -> io::Result<()> {
    let head =
        format!("HTTP/1.1 301 Moved Permanently\r\nlocation: {url}\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(head.as_bytes())
}
