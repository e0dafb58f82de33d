//! When the registration of a domain ends: by RDAP (RFC 9082, RFC 9083), else by WHOIS (RFC 3912).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::civil::Date;
use plimsoll_client::fetch::{Ask, FetchLimits};
use plimsoll_model::{Clock, Failure, FailureKind, Phase};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use url::Url;

use crate::probe::context::{ProbeContext, Reach, TcpTarget, timed};
use crate::probe::reading::Reading;
use crate::probe::tls::end_text;
use crate::probe::{Probe, ProbeFuture};
use crate::time::Timestamp;

/// URL of the list of registries of top-level domains (RFC 9224).
const BOOTSTRAP: &str = "https://data.iana.org/rdap/dns.json";

/// Says which server of WHOIS is for a top-level domain.
const ROOT_WHOIS: &str = "whois.iana.org:43";

/// Bytes of an answer.
const MOST_READ: u64 = 1024 * 1024;

/// While lookups fail, the last answer is believed for so long.
const STICKY: Duration = Duration::from_hours(7 * 24);

/// Names of the date in responses of WHOIS servers.
const NAMES: [&str; 10] = [
    "registry expiry date",
    "registrar registration expiration date",
    "expiry date",
    "expiration date",
    "expiration time",
    "expires on",
    "expires",
    "expire",
    "paid-till",
    "renewal date",
];

/// Finds when the registration of a domain ends.
#[derive(Debug)]
pub struct DomainProbe {
    /// As it is registered: `example.org`, not `www.example.org`.
    pub domain: String,
    /// The base URL of a server of RDAP; absent for that of the registry.
    pub rdap: Option<Url>,
    /// A server of WHOIS; absent for that of the registry.
    pub whois: Option<TcpTarget>,
    /// Degraded if it ends within this time.
    pub warn_within: Duration,
    /// Down if it ends within this time.
    pub critical_within: Duration,
    /// Connection options for servers.
    pub reach: Reach,
    /// The last answer, and when it came.
    pub last: Mutex<Option<(Timestamp, Timestamp)>>,
}

impl Probe for DomainProbe {
    fn kind(&self) -> &'static str {
        "domain"
    }

    fn target(&self) -> String {
        self.domain.clone()
    }

    fn host(&self) -> Option<Arc<str>> {
        None
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        let half = self.reach.timeout / 2;
        Box::pin(timed(
            self.reach.timeout,
            context,
            async move |reading, _| {
                let now = Timestamp::from_system(context.clock.wall());
                // Each gets half of the time.
                let found = match within(half, self.by_rdap()).await {
                    Ok(expires) => Ok(expires),
                    Err(first) => within(half, self.by_whois(context))
                        .await
                        .map_err(|second| LookupError::Both {
                            rdap: Box::new(first),
                            whois: Box::new(second),
                        }),
                };
                self.judge(found, now, reading);
            },
        ))
    }
}

/// Another probe, whose readings also have the date at which the registration of its domain ends.
///
/// Registries limit how often they answer, so the date is looked up once an hour, and after a failure every five minutes.
#[derive(Debug)]
pub struct WithDomain {
    probe: Arc<dyn Probe>,
    /// For the host of the target and the names above it, of which one is registered.
    lookups: Vec<DomainProbe>,
    /// The result of the last lookup, and its time.
    found: Mutex<Option<(Timestamp, Result<Timestamp, LookupError>)>>,
}

impl WithDomain {
    /// - `host`: of the target; its registration is that of itself or of a name above it.
    ///
    /// `None` for an address or a name without a dot, which has no registration.
    pub fn new(probe: Arc<dyn Probe>, host: &str, reach: &Reach) -> Option<Self> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_address = host.parse::<std::net::IpAddr>().is_ok() || host.contains(':');
        if is_address || !host.contains('.') {
            return None;
        }
        let labels: Vec<&str> = host.split('.').collect();
        let lookups = (0..labels.len() - 1).map(|from| DomainProbe {
            domain: labels.get(from..).unwrap_or_default().join("."),
            rdap: None,
            whois: None,
            warn_within: Duration::ZERO,
            critical_within: Duration::ZERO,
            reach: reach.clone(),
            last: Mutex::default(),
        });
        Some(Self {
            probe,
            lookups: lookups.collect(),
            found: Mutex::default(),
        })
    }

    async fn expiry(&self, context: &ProbeContext) -> Result<Timestamp, LookupError> {
        const FRESH: Duration = Duration::from_hours(1);
        const AGAIN: Duration = Duration::from_mins(5);

        let now = Timestamp::from_system(context.clock.wall());
        let known = self
            .found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some((at, found)) = known {
            let fresh = if found.is_ok() { FRESH } else { AGAIN };
            if now >= at && now.since(at) < fresh {
                return found;
            }
        }
        let mut found = Err(LookupError::NoDomain);
        // A name that is not registered is unknown to the registry; the one above it may not be.
        for lookup in &self.lookups {
            let reading = lookup.check(context).await;
            found = match (reading.domain_expires, reading.failure) {
                (Some(expires), _) => Ok(expires),
                (None, Some(failure)) => Err(LookupError::Failed(failure.to_string())),
                (None, None) => Err(LookupError::NotFound),
            };
            if found.is_ok() {
                break;
            }
        }
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, found.clone()));
        found
    }
}

impl Probe for WithDomain {
    fn kind(&self) -> &'static str {
        self.probe.kind()
    }

    fn target(&self) -> String {
        self.probe.target()
    }

    fn host(&self) -> Option<Arc<str>> {
        self.probe.host()
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(async move {
            let mut reading = self.probe.check(context).await;
            match self.expiry(context).await {
                Ok(expires) => reading.domain_expires = Some(expires),
                Err(why) if reading.failure.is_none() => {
                    let failure = Failure::new(Phase::Dns, FailureKind::Aborted);
                    let cause = format!("the registration of the domain is not known: {why}");
                    reading.failure = Some(failure.because(cause));
                }
                Err(_) => {}
            }
            reading
        })
    }
}

/// Why the date at which a registration ends is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum LookupError {
    #[error("there is no domain")]
    NoDomain,
    #[error("no date of expiration was found")]
    NotFound,
    /// A probe or a connection failed.
    #[error("{0}")]
    Failed(String),
    #[error("no answer within {0:?}")]
    NoAnswer(Duration),
    /// A URL or a server could not be used, or did not answer as it should.
    #[error("{server}: {reason}")]
    Server { server: String, reason: String },
    #[error("{url} answers {status}")]
    Status { url: Url, status: u16 },
    #[error("no registry is listed for the domain")]
    NoRegistry,
    #[error("the top-level domain has no server of WHOIS")]
    NoWhois,
    #[error("the answer has no date of expiration")]
    NoDate,
    #[error("`{0}` is not a known form of dates")]
    UnknownDate(String),
    #[error("RDAP: {rdap}; WHOIS: {whois}")]
    Both {
        rdap: Box<LookupError>,
        whois: Box<LookupError>,
    },
}

impl LookupError {
    fn at(server: &str, reason: &dyn fmt::Display) -> Self {
        Self::Server {
            server: server.to_owned(),
            reason: reason.to_string(),
        }
    }
}

async fn within<T>(
    time: Duration,
    lookup: impl Future<Output = Result<T, LookupError>>,
) -> Result<T, LookupError> {
    let looked = tokio::time::timeout(time, lookup).await;
    looked.unwrap_or_else(|_| Err(LookupError::NoAnswer(time)))
}

impl DomainProbe {
    fn judge(&self, found: Result<Timestamp, LookupError>, now: Timestamp, reading: &mut Reading) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let expires = match found {
            Ok(expires) => {
                *last = Some((now, expires));
                expires
            }
            Err(why) => match *last {
                Some((at, expires)) if now.since(at) <= STICKY => {
                    reading.warning = Some(format!("the last answer is from {at}: {why}"));
                    expires
                }
                _ => {
                    reading.failure = Some(
                        Failure::new(Phase::Wait, FailureKind::NameNotFound)
                            .because(why.to_string()),
                    );
                    return;
                }
            },
        };
        reading.connected = true;
        reading.domain_expires = Some(expires);
        let left = expires.since(now);
        let end = end_text(["ends", "ended"], expires, now);
        if left < self.critical_within {
            let cause = format!("the registration {end}");
            reading.failure =
                Some(Failure::new(Phase::Receive, FailureKind::CertificateOther).because(cause));
        } else if left < self.warn_within {
            reading.warning = Some(format!("the registration {end}"));
        }
    }

    async fn by_rdap(&self) -> Result<Timestamp, LookupError> {
        let fetcher = self.reach.fetcher(FetchLimits {
            timeout: self.reach.timeout / 2,
            bytes: MOST_READ,
            redirects: 5,
        });
        let get = async |url: Url| -> Result<Value, LookupError> {
            let answer = fetcher.get(&url, Ask::default()).await;
            let answer = answer.map_err(|error| LookupError::at(url.as_ref(), &error))?;
            if answer.status != 200 {
                return Err(LookupError::Status {
                    url,
                    status: answer.status,
                });
            }
            let content = serde_json::from_slice(&answer.content);
            content.map_err(|error| LookupError::at(url.as_ref(), &error))
        };
        let base = if let Some(base) = &self.rdap {
            base.clone()
        } else {
            let bootstrap = Url::parse(BOOTSTRAP);
            let bootstrap = bootstrap.map_err(|error| LookupError::at(BOOTSTRAP, &error))?;
            let listed = get(bootstrap).await?;
            registry(&listed, &self.domain).ok_or(LookupError::NoRegistry)?
        };
        let url = format!(
            "{}/domain/{}",
            base.as_str().trim_end_matches('/'),
            self.domain
        );
        let url = Url::parse(&url).map_err(|error| LookupError::at(url.as_ref(), &error))?;
        expiration(&get(url).await?).ok_or(LookupError::NoDate)
    }

    async fn by_whois(&self, context: &ProbeContext) -> Result<Timestamp, LookupError> {
        let server = if let Some(server) = &self.whois {
            server.clone()
        } else {
            let root = TcpTarget::parse(ROOT_WHOIS, false, 43);
            let root = root.map_err(|error| LookupError::at(ROOT_WHOIS, &error))?;
            let top = self.domain.rsplit('.').next().unwrap_or(&self.domain);
            let answer = self.ask(&root, top, context).await?;
            let named = field(&answer, &["whois"]).ok_or(LookupError::NoWhois)?;
            let named_server = TcpTarget::parse(named, false, 43);
            named_server.map_err(|error| LookupError::at(named, &error))?
        };
        let answer = self.ask(&server, &self.domain, context).await?;
        let text = field(&answer, &NAMES).ok_or(LookupError::NoDate)?;
        date(text).ok_or_else(|| LookupError::UnknownDate(text.to_owned()))
    }

    async fn ask(
        &self,
        server: &TcpTarget,
        question: &str,
        context: &ProbeContext,
    ) -> Result<String, LookupError> {
        let mut reading = Reading::default();
        let connection = self
            .reach
            .connect(server.endpoint(), context, &mut reading)
            .await;
        let Some(mut connection) = connection else {
            let failure = reading.failure.map(|failure| failure.to_string());
            return Err(LookupError::Failed(failure.unwrap_or_default()));
        };
        let mut answer = Vec::new();
        let exchange = async {
            connection
                .stream
                .write_all(format!("{question}\r\n").as_bytes())
                .await?;
            let mut buffer = vec![0; 8 * 1024];
            loop {
                let length = connection.stream.read(&mut buffer).await?;
                answer.extend_from_slice(buffer.get(..length).unwrap_or_default());
                if length == 0 || answer.len() as u64 > MOST_READ {
                    return Ok::<_, std::io::Error>(());
                }
            }
        };
        exchange
            .await
            .map_err(|error| LookupError::at(&server.text(), &error))?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

/// The server of a domain's registry: that with the longest matching name (RFC 9224, section 4).
fn registry(listed: &Value, domain: &str) -> Option<Url> {
    let domain = domain.to_ascii_lowercase();
    let services = listed.get("services")?.as_array()?.iter();
    let matching = services.flat_map(|service| {
        let names = service
            .get(0)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let urls = service.get(1).and_then(Value::as_array);
        let url = urls.and_then(|urls| {
            let mut texts = urls.iter().filter_map(Value::as_str);
            let secure = texts.clone().find(|url| url.starts_with("https:"));
            secure.or_else(|| texts.next())
        });
        names.filter_map(Value::as_str).zip(std::iter::repeat(url))
    });
    let is_of = |name: &str| {
        domain
            .strip_suffix(name)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let (_, url) = matching
        .filter(|(name, _)| is_of(name))
        .max_by_key(|(name, _)| name.len())?;
    Url::parse(url?).ok()
}

/// The date of the event `expiration` (RFC 9083, section 4.5).
fn expiration(answer: &Value) -> Option<Timestamp> {
    let events = answer.get("events")?.as_array()?;
    let event = events
        .iter()
        .find(|event| event.get("eventAction").and_then(Value::as_str) == Some("expiration"))?;
    date(event.get("eventDate")?.as_str()?)
}

/// The value of the first line with one of these names, in their order.
fn field<'a>(answer: &'a str, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| {
        answer.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            let key = key.trim().trim_end_matches('.').to_ascii_lowercase();
            let value = value.trim();
            (key == *name && !value.is_empty()).then_some(value)
        })
    })
}

/// A date in one of the forms that registries write: RFC 3339, `2027-03-01`, `2027.03.01`, `2027/03/01`, `01-Mar-2027`,
/// `01.03.2027`, with or without a time behind it, which is then left out.
fn date(text: &str) -> Option<Timestamp> {
    if let Some(exact) = Timestamp::parse(text) {
        return Some(exact);
    }
    let day = text.split([' ', 'T']).next()?;
    let parts: Vec<&str> = day.split(['-', '.', '/']).collect();
    let [first, second, third] = parts[..] else {
        return None;
    };
    let (year, month, day) = if first.len() == 4 {
        (first, second, third)
    } else {
        (third, second, first)
    };
    let by_name = |text: &str| {
        let names = [
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ];
        let text = text.to_ascii_lowercase();
        let position = names.iter().position(|name| text.starts_with(name))?;
        i8::try_from(position + 1).ok()
    };
    let month = month.parse().ok().or_else(|| by_name(month))?;
    let date = Date::new(year.parse().ok()?, month, day.parse().ok()?).ok()?;
    let start = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(Timestamp(start.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_the_forms_of_registries() {
        let expected = Timestamp::parse("2027-03-01T00:00:00Z");
        for text in [
            "2027-03-01T00:00:00Z",
            "2027-03-01",
            "2027-03-01 10:11:12",
            "2027.03.01",
            "2027/03/01",
            "01-Mar-2027",
            "01-march-2027 12:00:00 UTC",
            "1.3.2027",
        ] {
            assert_eq!(date(text), expected, "{text}");
        }
        for text in ["", "soon", "2027-13-01", "March 1", "1-2"] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    #[test]
    fn the_longest_name_finds_the_registry() {
        let listed = serde_json::json!({ "services": [
            [["uk", "org"], ["http://plain.example/", "https://one.example/"]],
            [["co.uk"], ["https://two.example/"]],
        ]});
        let found = |domain| registry(&listed, domain).map(|url| url.to_string());
        assert_eq!(
            found("example.org").as_deref(),
            Some("https://one.example/")
        );
        assert_eq!(
            found("Example.CO.UK").as_deref(),
            Some("https://two.example/")
        );
        assert_eq!(found("exampleorg"), None);
        assert_eq!(found("example.test"), None);
    }

    #[test]
    fn the_first_known_name_counts() {
        let answer = "Domain Name: A\r\n  Updated Date: 2026-01-01\r\nExpires: never\r\nRegistry Expiry Date: 2027-03-01T00:00:00Z\r\n";
        assert_eq!(field(answer, &NAMES), Some("2027-03-01T00:00:00Z"));
        assert_eq!(
            field("expires............: 2027-03-01", &NAMES),
            Some("2027-03-01")
        );
        assert_eq!(field("nothing", &NAMES), None);
    }
}
