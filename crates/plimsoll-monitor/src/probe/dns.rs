//! DNS: one question to one name server, and what it answers.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

use hickory_proto::op::{Edns, Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use plimsoll_model::{Clock, Failure, FailureKind, Phase, Side};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::probe::context::{ProbeContext, Reach, TcpTarget, timed};
use crate::probe::reading::Reading;
use crate::probe::udp::{bound_for, resolve};
use crate::probe::{Probe, ProbeFuture};

/// A name and a type of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsRecord {
    name: Name,
    kind: RecordType,
}

/// Asks a name server.
#[derive(Debug)]
pub struct DnsProbe {
    /// The name server; absent for the first one of the system.
    pub server: Option<TcpTarget>,
    /// The question.
    pub record: DnsRecord,
    /// Whether the name server must say that it validated the answer (the AD flag of DNSSEC).
    pub requires_validation: bool,
    /// Whether an answer without such records, or with an error, is a failure; otherwise conditions decide.
    pub requires_answer: bool,
    /// Whether the body holds only the last record, as for Gatus.
    pub last_only: bool,
    /// Connection options for the name server.
    pub reach: Reach,
}

/// Why there is no such record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DnsRecordError {
    /// Its type is not one of those that are asked for.
    #[error("`{0}` is not a known type; known are A, AAAA, CNAME, MX, NS, TXT, SOA, PTR, CAA, SRV")]
    Type(String),
    /// Its name is none.
    #[error("`{name}` is not a name: {reason}")]
    Name {
        /// As it was given.
        name: String,
        /// Why.
        reason: String,
    },
}

impl DnsRecord {
    /// - `kind`: such as `A`, in any case.
    ///
    /// Fails if the name or the type is invalid. For PTR, `name` may be an address.
    pub fn parse(name: &str, kind: &str) -> Result<Self, DnsRecordError> {
        let kind = kind.to_ascii_uppercase();
        let known = [
            RecordType::A,
            RecordType::AAAA,
            RecordType::CNAME,
            RecordType::MX,
            RecordType::NS,
            RecordType::TXT,
            RecordType::SOA,
            RecordType::PTR,
            RecordType::CAA,
            RecordType::SRV,
        ];
        let kind = RecordType::from_str(&kind)
            .ok()
            .filter(|kind| known.contains(kind))
            .ok_or(DnsRecordError::Type(kind))?;
        let address = name.parse::<std::net::IpAddr>().ok();
        let name = match address {
            Some(address) if kind == RecordType::PTR => Name::from(address),
            _ => {
                let mut parsed = Name::from_utf8(name).map_err(|error| DnsRecordError::Name {
                    name: name.to_owned(),
                    reason: error.to_string(),
                })?;
                parsed.set_fqdn(true);
                parsed
            }
        };
        Ok(Self { name, kind })
    }
}

impl Probe for DnsProbe {
    fn kind(&self) -> &'static str {
        "dns"
    }

    fn target(&self) -> String {
        let server = self
            .server
            .as_ref()
            .map_or_else(|| "system".to_owned(), TcpTarget::text);
        format!("{} {} @{server}", self.record.name, self.record.kind)
    }

    fn host(&self) -> Option<Arc<str>> {
        self.server.as_ref().map(|server| server.text().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            if let Err(failure) = self.query(context, reading).await {
                reading.failure = Some(failure);
            }
        }))
    }
}

impl DnsProbe {
    async fn query(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Failure> {
        let server = match &self.server {
            Some(server) => resolve(server, &self.reach, context, reading).await?,
            None => system_server()?,
        };
        if !self.reach.allows(server) {
            let cause = format!("the name server {server} is not allowed");
            return Err(Failure::new(Phase::Dns, FailureKind::Refused)
                .on(Side::Config)
                .because(cause));
        }
        reading.peer = Some(server.ip());
        let mut question = Message::query();
        question.metadata.recursion_desired = true;
        question.metadata.authentic_data = self.requires_validation;
        question.add_query(Query::query(self.record.name.clone(), self.record.kind));
        let mut edns = Edns::new();
        edns.set_max_payload(1232).set_version(0);
        question.set_edns(edns);
        let bytes = question.to_vec().map_err(|error| malformed(&error))?;
        let begun = context.clock.now();
        let mut answer = over_udp(server, &bytes, question.metadata.id).await?;
        if answer.metadata.truncation {
            answer = over_tcp(server, &bytes).await?;
        }
        let waited = context.clock.now().saturating_duration_since(begun);
        reading.phases.set(Phase::Wait, waited);
        reading.connected = true;
        let code = answer.metadata.response_code;
        reading.dns_rcode = Some(rcode_name(code));
        let texts: Vec<_> = answer
            .answers
            .iter()
            .filter(|record| record.record_type() == self.record.kind)
            .map(text_of)
            .collect();
        if self.requires_answer {
            let name = &self.record.name;
            if code != ResponseCode::NoError {
                let cause = format!("{} for {name}", rcode_name(code));
                return Err(Failure::new(Phase::Dns, FailureKind::NameNotFound).because(cause));
            }
            if texts.is_empty() {
                let cause = format!("{name} has no {} record", self.record.kind);
                return Err(Failure::new(Phase::Dns, FailureKind::NameNotFound).because(cause));
            }
        }
        if self.requires_validation && !answer.metadata.authentic_data {
            let cause = "the name server did not validate the answer (no AD flag)";
            return Err(Failure::new(Phase::Dns, FailureKind::Protocol).because(cause));
        }
        let body = match texts.last() {
            Some(last) if self.last_only => last.clone(),
            _ => texts.join("\n"),
        };
        reading.size = body.len() as u64;
        reading.body = body.into_bytes();
        Ok(())
    }
}

fn malformed(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Phase::Dns, FailureKind::Protocol)
        .because(format!("the message of DNS is malformed: {error}"))
}

fn io(error: &std::io::Error) -> Failure {
    Failure::from_io(Phase::Dns, error)
}

/// The answer with that number; others are passed over.
async fn over_udp(server: SocketAddr, question: &[u8], id: u16) -> Result<Message, Failure> {
    let socket = bound_for(server).await.map_err(|error| io(&error))?;
    socket.connect(server).await.map_err(|error| io(&error))?;
    socket.send(question).await.map_err(|error| io(&error))?;
    let mut buffer = vec![0; 4096];
    loop {
        let length = socket.recv(&mut buffer).await.map_err(|error| io(&error))?;
        let bytes = buffer.get(..length).unwrap_or_default();
        match Message::from_vec(bytes) {
            Ok(answer) if answer.metadata.id == id => return Ok(answer),
            Ok(_) => {}
            Err(error) => return Err(malformed(&error)),
        }
    }
}

async fn over_tcp(server: SocketAddr, question: &[u8]) -> Result<Message, Failure> {
    let exchange = async {
        let mut stream = TcpStream::connect(server).await?;
        let length = u16::try_from(question.len()).unwrap_or(u16::MAX);
        stream.write_all(&length.to_be_bytes()).await?;
        stream.write_all(question).await?;
        let mut answer = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = exchange.await.map_err(|error| io(&error))?;
    Message::from_vec(&answer).map_err(|error| malformed(&error))
}

/// The first name server of `/etc/resolv.conf`.
fn system_server() -> Result<SocketAddr, Failure> {
    let none = |cause: String| {
        Failure::new(Phase::Dns, FailureKind::NameNotFound)
            .on(Side::Ours)
            .because(cause)
    };
    let text = std::fs::read_to_string("/etc/resolv.conf")
        .map_err(|error| none(format!("cannot read /etc/resolv.conf: {error}")))?;
    let found = text.lines().find_map(|line| {
        let address = line.strip_prefix("nameserver")?.trim();
        Some(SocketAddr::new(address.parse().ok()?, 53))
    });
    found.ok_or_else(|| none("/etc/resolv.conf names no name server".to_owned()))
}

/// The data of a record as `dig +short` shows it, names without the dot at their end.
fn text_of(record: &Record) -> String {
    let plain = |name: &Name| name.to_utf8().trim_end_matches('.').to_owned();
    match &record.data {
        RData::A(address) => address.to_string(),
        RData::AAAA(address) => address.to_string(),
        RData::CNAME(name) => plain(&name.0),
        RData::NS(name) => plain(&name.0),
        RData::PTR(name) => plain(&name.0),
        RData::MX(mx) => plain(&mx.exchange),
        RData::SRV(srv) => format!("{}:{}", plain(&srv.target), srv.port),
        RData::TXT(text) => {
            let parts = text
                .txt_data
                .iter()
                .map(|part| String::from_utf8_lossy(part));
            parts.collect()
        }
        RData::SOA(soa) => format!("{} {} {}", plain(&soa.mname), plain(&soa.rname), soa.serial),
        other => other.to_string(),
    }
}

/// The name in RFC 1035 and 2136, such as `NXDOMAIN`.
fn rcode_name(code: ResponseCode) -> String {
    match code {
        ResponseCode::NoError => "NOERROR".to_owned(),
        ResponseCode::FormErr => "FORMERR".to_owned(),
        ResponseCode::ServFail => "SERVFAIL".to_owned(),
        ResponseCode::NXDomain => "NXDOMAIN".to_owned(),
        ResponseCode::NotImp => "NOTIMP".to_owned(),
        ResponseCode::Refused => "REFUSED".to_owned(),
        other => format!("RCODE{}", u16::from(other)),
    }
}
