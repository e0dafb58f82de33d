//! Probes: one file per kind, each of which finds facts about a target and judges nothing.

pub(crate) mod known_secrets;

pub mod reading;

mod gatus_condition;

mod context;

mod capture;

mod http;

mod tcp;

mod udp;

mod dns;

mod domain;

mod icmp;

mod tls;

mod starttls;

mod websocket;

mod grpc;

mod database;

mod postgres;

mod mysql;

mod redis;

mod mqtt;

mod amqp;

mod big_endian;

mod kafka;

mod nats;

mod ber;

mod ldap;

mod smtp;

mod snmp;

mod ntp;

mod prometheus;

mod docker;

mod systemd;

mod ssh;

mod suite;

mod suite_context;

mod stopped;

mod talk;

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::AddressFilter;

use crate::probe::reading::Reading;

pub use crate::probe::amqp::AmqpProbe;
pub use crate::probe::context::{ProbeContext, Reach, ReachError, ReachOptions, TcpTarget};
pub use crate::probe::database::DatabaseUrlError;
pub use crate::probe::dns::{DnsProbe, DnsRecord, DnsRecordError};
pub use crate::probe::docker::{DockerHost, DockerProbe, is_container};
pub use crate::probe::domain::{DomainProbe, WithDomain};
pub use crate::probe::gatus_condition::{GatusCondition, GatusConditionError};
pub use crate::probe::grpc::{GrpcCall, GrpcCallError, GrpcProbe};
pub use crate::probe::http::{HttpOptions, HttpProbe, HttpProbeError};
pub use crate::probe::icmp::IcmpProbe;
pub use crate::probe::kafka::{KafkaMechanism, KafkaProbe};
pub use crate::probe::known_secrets::KnownSecrets;
pub use crate::probe::ldap::{LdapFilter, LdapFilterError, LdapProbe, LdapScope, LdapSearch};
pub use crate::probe::mqtt::MqttProbe;
pub use crate::probe::mysql::MysqlProbe;
pub use crate::probe::nats::NatsProbe;
pub use crate::probe::ntp::NtpProbe;
pub use crate::probe::postgres::PostgresProbe;
pub use crate::probe::prometheus::PrometheusProbe;
pub use crate::probe::redis::RedisProbe;
pub use crate::probe::smtp::{MailSecurity, SmtpProbe};
pub use crate::probe::snmp::{ObjectId, ObjectIdError, SnmpProbe};
pub use crate::probe::ssh::SshProbe;
pub use crate::probe::starttls::{MailProtocol, StartTlsProbe};
pub(crate) use crate::probe::suite::content;
pub use crate::probe::suite::{FilledRequest, StepProbe, SuiteProbe, SuiteStep};
pub use crate::probe::suite_context::SuiteContext;
pub(crate) use crate::probe::suite_context::has_places;
pub use crate::probe::systemd::{SystemdProbe, UnitState, is_unit};
pub use crate::probe::talk::{TalkProbe, TalkStep};
pub use crate::probe::tcp::TcpProbe;
pub use crate::probe::tls::TlsProbe;
pub use crate::probe::udp::UdpProbe;
pub use crate::probe::websocket::WebSocketProbe;

/// Parsers of datagrams and of the bus, for fuzzing: whatever the bytes are, each ends.
#[cfg(feature = "contract")]
pub mod parsers {
    use crate::probe::{ntp, snmp, systemd};

    /// An answer of NTP to a request of zeros.
    pub fn ntp(packet: &[u8]) {
        ntp::read(packet, [0; 8]);
    }

    /// A response of SNMP to the request of the number 1.
    pub fn snmp(message: &[u8]) {
        snmp::read(message, 1);
    }

    /// A message of D-Bus.
    pub fn bus(message: &[u8]) {
        systemd::read_anything(message);
    }
}

/// The reading of a probe, later.
pub type ProbeFuture<'a> = Pin<Box<dyn Future<Output = Reading> + 'a>>;

/// A kind of probe that another crate supplies, such as one that runs scripts.
///
/// Its key in `[[monitor]]` names a file of this machine, so that only the configuration file may use it, and no agent.
#[derive(Debug, Clone, Copy)]
pub struct SuppliedKind {
    /// The key, such as `script`.
    pub key: &'static str,
    /// Makes the probe of a file; fails with what is wrong with it.
    pub compile: CompileFile,
}

/// What is wrong with a probe's file, as the crate has it that supplies the kind.
pub type ProbeFileError = Box<dyn Error + Send + Sync>;

/// Makes the probe of a file with the timeout of its checks and the filter of all its connections; fails with what is wrong
/// with the file.
pub type CompileFile =
    fn(&Path, Duration, Option<AddressFilter>) -> Result<Arc<dyn Probe>, ProbeFileError>;

/// The kinds that the program supplies besides those of this crate.
pub type SuppliedKinds = &'static [SuppliedKind];

/// Finds facts about a target.
///
/// A probe opens a fresh connection each time, so that its phases are real; it keeps to its timeout, and to the address
/// filter on every connection that it makes.
pub trait Probe: fmt::Debug + Send + Sync {
    /// The kind, such as `http`.
    fn kind(&self) -> &'static str;

    /// The target for people and metrics, without credentials.
    fn target(&self) -> String;

    /// Host and port that it connects to, which limits on hosts count by; absent if it connects to no host.
    fn host(&self) -> Option<Arc<str>>;

    /// Checks once. Never fails: what goes wrong is in the reading.
    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a>;
}
