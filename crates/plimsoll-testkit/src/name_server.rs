//! A name server with a table of its own (RFC 1035), over UDP only.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;

use crate::background::Background;

/// A name server on a free port that records its questions.
#[derive(Debug)]
pub struct NameServer {
    address: SocketAddr,
    questions: Arc<Mutex<Vec<String>>>,
    records: Arc<Mutex<Vec<Record>>>,
    _background: Background,
}

impl NameServer {
    /// One that knows no name.
    pub fn builder() -> NameServerBuilder {
        NameServerBuilder::default()
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on `name` has these addresses, to be kept for `ttl` seconds.
    pub fn set(&self, name: &str, addresses: &[IpAddr], ttl: u32) {
        let name = name.to_ascii_lowercase();
        let mut records = self.records.lock().expect("no holder panics");
        records.retain(|record| record.name != name);
        records.extend(addresses.iter().map(|&address| Record {
            name: name.clone(),
            data: RecordData::Address(address),
            ttl,
        }));
    }

    /// From now on `name` is a service of these servers (RFC 2782), to be kept for `ttl` seconds.
    pub fn set_services(&self, name: &str, services: &[NamedService<'_>], ttl: u32) {
        let name = name.to_ascii_lowercase();
        let mut records = self.records.lock().expect("no holder panics");
        records.retain(|record| record.name != name);
        records.extend(services.iter().map(|service| Record {
            name: name.clone(),
            data: RecordData::Service {
                numbers: [service.priority, service.weight, service.port],
                target: service.target.to_ascii_lowercase(),
            },
            ttl,
        }));
    }

    /// The questions until now, in order, such as `a.test A`.
    pub fn questions(&self) -> Vec<String> {
        self.questions.lock().expect("no holder panics").clone()
    }
}

/// A server of a service.
#[derive(Debug, Clone, Copy)]
pub struct NamedService<'a> {
    /// Lower ones come first.
    pub priority: u16,
    /// Its share.
    pub weight: u16,
    /// Its port.
    pub port: u16,
    /// Its name, without a dot at its end.
    pub target: &'a str,
}

/// A name server to be set up.
#[derive(Debug, Default)]
pub struct NameServerBuilder {
    records: Vec<Record>,
    is_silent: bool,
    validates: bool,
}

#[derive(Debug)]
struct Record {
    name: String,
    data: RecordData,
    ttl: u32,
}

#[derive(Debug)]
enum RecordData {
    Address(IpAddr),
    Service {
        /// Priority, weight and port.
        numbers: [u16; 3],
        target: String,
    },
}

impl NameServerBuilder {
    /// Answers that `name` (without a dot at its end) has `address`, to be kept for `ttl` seconds.
    #[must_use]
    pub fn record(mut self, name: &str, address: impl Into<IpAddr>, ttl: u32) -> Self {
        self.records.push(Record {
            name: name.to_ascii_lowercase(),
            data: RecordData::Address(address.into()),
            ttl,
        });
        self
    }

    /// Takes questions but never answers.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.is_silent = true;
        self
    }

    /// Reports that answers are validated by DNSSEC, to those that ask for it (the AD flag, RFC 6840, section 5.7).
    #[must_use]
    pub fn validating(mut self) -> Self {
        self.validates = true;
        self
    }

    /// Binds and serves.
    pub fn start(self) -> NameServer {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        socket.set_nonblocking(true).expect("a socket can be set");
        let address = socket.local_addr().expect("a bound socket has an address");
        let questions = Arc::<Mutex<Vec<String>>>::default();
        let received = Arc::clone(&questions);
        let records = Arc::new(Mutex::new(self.records));
        let known = Arc::clone(&records);
        let background = Background::run("name server", async move {
            let socket = UdpSocket::from_std(socket).expect("it is non-blocking");
            let mut packet = [0; 1500];
            while let Ok((length, client)) = socket.recv_from(&mut packet).await {
                let Some(question) = Question::parse(&packet[..length]) else {
                    continue;
                };
                let text = format!("{} {}", question.name, question.type_name());
                received.lock().expect("no holder panics").push(text);
                if !self.is_silent {
                    let mut answer = answer(&question, &known.lock().expect("no holder panics"));
                    if self.validates && packet[3] & AUTHENTIC != 0 {
                        answer[3] |= AUTHENTIC;
                    }
                    socket.send_to(&answer, client).await.ok();
                }
            }
        });
        NameServer {
            address,
            questions,
            records,
            _background: background,
        }
    }
}

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
const TYPE_SRV: u16 = 33;
const HEADER: usize = 12;

/// The AD flag, in the second byte of flags.
const AUTHENTIC: u8 = 0x20;

struct Question<'a> {
    id: [u8; 2],
    name: String,
    record_type: u16,
    /// Name, type and class as they came.
    bytes: &'a [u8],
}

impl<'a> Question<'a> {
    /// The only question of `packet`; nothing if there is none.
    fn parse(packet: &'a [u8]) -> Option<Self> {
        let id = packet.get(..2)?.try_into().ok()?;
        let mut labels = Vec::new();
        let mut at = HEADER;
        loop {
            let length = usize::from(*packet.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            let label = packet.get(at..at + length)?;
            labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
            at += length;
        }
        let record_type = u16::from_be_bytes(packet.get(at..at + 2)?.try_into().ok()?);
        Some(Self {
            id,
            name: labels.join("."),
            record_type,
            bytes: packet.get(HEADER..at + 4)?,
        })
    }

    fn type_name(&self) -> String {
        match self.record_type {
            TYPE_A => "A".to_owned(),
            TYPE_AAAA => "AAAA".to_owned(),
            TYPE_SRV => "SRV".to_owned(),
            other => other.to_string(),
        }
    }

    fn is_answered_by(&self, record: &Record) -> bool {
        self.name == record.name
            && self.record_type
                == match record.data {
                    RecordData::Address(IpAddr::V4(_)) => TYPE_A,
                    RecordData::Address(IpAddr::V6(_)) => TYPE_AAAA,
                    RecordData::Service { .. } => TYPE_SRV,
                }
    }
}

fn answer(question: &Question<'_>, records: &[Record]) -> Vec<u8> {
    const NO_ERROR: u8 = 0;
    const NO_SUCH_NAME: u8 = 3;
    let is_known = records.iter().any(|record| record.name == question.name);
    let code = if is_known { NO_ERROR } else { NO_SUCH_NAME };
    let matching: Vec<&Record> = records
        .iter()
        .filter(|record| question.is_answered_by(record))
        .collect();
    let count = u8::try_from(matching.len()).expect("a test has few records");

    let mut packet = Vec::new();
    packet.extend(question.id);
    // A response, recursion desired and available; one question, `count` answers.
    packet.extend([0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]);
    packet.extend(question.bytes);
    for record in matching {
        // The name is the question's, by its place in the packet; class IN.
        packet.extend([0xc0, 12]);
        packet.extend(question.record_type.to_be_bytes());
        packet.extend([0, 1]);
        packet.extend(record.ttl.to_be_bytes());
        let mut data = Vec::new();
        match &record.data {
            RecordData::Address(IpAddr::V4(address)) => data.extend(address.octets()),
            RecordData::Address(IpAddr::V6(address)) => data.extend(address.octets()),
            RecordData::Service { numbers, target } => {
                data.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
                for label in target.split('.').filter(|label| !label.is_empty()) {
                    data.push(u8::try_from(label.len()).expect("a label is short"));
                    data.extend(label.as_bytes());
                }
                data.push(0);
            }
        }
        let length = u16::try_from(data.len()).expect("a record is short");
        packet.extend(length.to_be_bytes());
        packet.extend(data);
    }
    packet
}
