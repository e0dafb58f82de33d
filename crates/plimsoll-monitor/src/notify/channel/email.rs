//! E-mail, by SMTP.

use std::fmt::Write as _;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use lettre::message::Mailbox;
use lettre::message::header::{ContentType, HeaderName, HeaderValue, MIME_VERSION_1_0};
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use plimsoll_client::fetch::Fetcher;
use plimsoll_client::{Endpoint, EndpointError};
use plimsoll_model::Secret;
use ring::digest::{Context, SHA256};

use crate::notify::channel::settings_error::SettingsError;
use crate::notify::channel::{Channel, Compiled, Foreign, Notifier, Outgoing, made};
use crate::notify::field::{Field, Values};
use crate::notify::message::{Message, NoticeKind};
use crate::time::Timestamp;

/// For the connection to one of the addresses of a server.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Mail server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SmtpServer {
    host: String,
    port: u16,
    login: Option<(String, Secret)>,
    security: Security,
}

/// Encryption of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Security {
    /// TLS from the start (port 465).
    Tls,
    /// STARTTLS, which must succeed (port 587).
    StartTls,
    /// None: for a server on this machine.
    Plain,
}

/// A server with the sender that it sends for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mailer {
    server: SmtpServer,
    from: Mailbox,
}

const FIELDS: [Field; 7] = {
    let [host, from, security, port, username, password] = Mailer::FIELDS;
    let to = Field::addresses("to", "who receives it").required();
    [host, from, to, security, port, username, password]
};

pub(super) const CHANNEL: Channel = Channel {
    key: "email",
    name: "E-mail",
    about: "A mail by SMTP. Mails of one incident are a thread.",
    fields: &FIELDS,
    gatus: &[Foreign::new(
        "email",
        &[
            ("host", "host"),
            ("from", "from"),
            ("to", "to"),
            ("port", "port"),
            ("username", "username"),
            ("password", "password"),
        ],
    )
    .and(|_, table| {
        secure(table, false);
    })],
    kuma: &[Foreign::new(
        "smtp",
        &[
            ("smtpHost", "host"),
            ("smtpFrom", "from"),
            ("smtpTo", "to"),
            ("smtpPort", "port"),
            ("smtpUsername", "username"),
            ("smtpPassword", "password"),
        ],
    )
    .and(|theirs, table| {
        secure(table, theirs("smtpSecure").as_deref() == Some("true"));
    })],
    compile,
};

/// The encryption that other monitors mean by a port.
///
/// - `is_tls`: whether they say that it is TLS from the start.
fn secure(table: &mut toml::Table, is_tls: bool) {
    let port = table.entry("port").or_insert(587.into()).as_integer();
    let security = match (is_tls, port) {
        (true, _) | (false, Some(465)) => "tls",
        (false, Some(25)) => "none",
        (false, _) => "starttls",
    };
    table.insert("security".to_owned(), security.into());
}

#[derive(Debug)]
struct Email {
    mailer: Mailer,
    to: Vec<Mailbox>,
}

/// A mail with the server that it goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    server: SmtpServer,
    from: Mailbox,
    to: Vec<Mailbox>,
    pub(crate) subject: String,
    pub(crate) text: String,
    /// URL by which the receiver unsubscribes in one request (RFC 8058).
    unsubscribe: Option<String>,
    /// Its own name (RFC 5322, section 3.6.4), without the domain.
    id: String,
    /// The name of the mail that begins its thread, unless that is itself.
    thread: Option<String>,
}

impl Mailer {
    /// The settings of a server and a sender.
    pub(crate) const FIELDS: [Field; 6] = [
        Field::text("host", "name or address of the mail server").required(),
        Field::address("from", "sender, such as `Monitor <monitor@example.org>`").required(),
        Field::choice(
            "security",
            &["starttls", "tls", "none"],
            "encryption: of ports 587, 465 and 25",
        ),
        Field::number("port", (1, 65_535), "another port of the server"),
        Field::text("username", "user, if the server asks for one"),
        Field::secret("password", "its password"),
    ];

    pub(crate) fn of_values(values: &Values) -> Option<Self> {
        let security = match values.text("security").as_str() {
            "tls" => Security::Tls,
            "none" => Security::Plain,
            _ => Security::StartTls,
        };
        let port = values.number("port").and_then(|port| port.try_into().ok());
        let port = port.unwrap_or(match security {
            Security::Tls => 465,
            Security::StartTls => 587,
            Security::Plain => 25,
        });
        let user = values.maybe_text("username");
        Some(Self {
            server: SmtpServer {
                host: values.text("host"),
                port,
                login: user.zip(values.maybe_secret("password")),
                security,
            },
            from: values.text("from").parse().ok()?,
        })
    }

    /// A mail to one address; `None` if it is none.
    pub fn mail(
        &self,
        to: &str,
        subject: &str,
        text: String,
        unsubscribe: Option<String>,
    ) -> Option<Mail> {
        let to = Mailbox::new(None, to.parse().ok()?);
        Some(Mail {
            unsubscribe,
            ..self.mail_to(vec![to], subject, text)
        })
    }

    fn mail_to(&self, to: Vec<Mailbox>, subject: &str, text: String) -> Mail {
        Mail {
            server: self.server.clone(),
            from: self.from.clone(),
            to,
            subject: subject.replace(['\r', '\n'], " "),
            text,
            unsubscribe: None,
            id: format!("{:032x}", fastrand::u128(..)),
            thread: None,
        }
    }
}

/// The name of a mail that is the same for the same texts.
fn name_of(parts: &[&str]) -> String {
    let mut hash = Context::new(&SHA256);
    for part in parts {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let bytes = hash.finish();
    let mut name = String::with_capacity(32);
    for byte in bytes.as_ref().iter().take(16) {
        write!(name, "{byte:02x}").expect("text can be written to memory");
    }
    name
}

fn compile(values: &Values) -> Compiled {
    let to = values.texts("to");
    let to: Option<_> = to.iter().map(|text| text.parse().ok()).collect();
    let mailer = Mailer::of_values(values);
    match mailer.zip(to) {
        Some((mailer, to)) => made(Email { mailer, to }),
        None => Err(SettingsError::MailAddress),
    }
}

impl Notifier for Email {
    fn outgoing(&self, message: &Message, now: Timestamp) -> Outgoing {
        let mut mail = self
            .mailer
            .mail_to(self.to.clone(), &message.title, message.mail_text());
        // Notices of one incident are one thread, which its first mail begins. One that was put together of several is none,
        // and neither is a test.
        let is_thread = !message.monitor.is_empty() && message.kind != NoticeKind::Test;
        if is_thread {
            let begins = matches!(
                message.kind,
                NoticeKind::Opened | NoticeKind::NoData | NoticeKind::BudgetBurning
            );
            let date = match message.kind {
                NoticeKind::Reminder => now,
                _ => message.at,
            };
            let date = date.to_string();
            let later = (!begins).then_some([message.kind.name(), date.as_str()]);
            mail = mail.in_thread(&[&message.incident, &message.since.to_string()], later);
        }
        Outgoing::Mail(Box::new(mail))
    }
}

impl Mail {
    /// Makes it one of a thread. A mail that is sent again has the same name.
    ///
    /// - `thread`: texts that no other thread has.
    /// - `later`: the kind and the date of a mail that does not begin the thread.
    #[must_use]
    pub fn in_thread(mut self, thread: &[&str], later: Option<[&str; 2]>) -> Self {
        let root = name_of(thread);
        match later {
            None => self.id = root,
            Some([kind, date]) => {
                self.id = name_of(&[&root, kind, date]);
                self.thread = Some(root);
            }
        }
        self
    }

    /// The mail as it is sent (RFC 5322).
    pub(crate) fn formatted(&self) -> Result<lettre::Message, lettre::error::Error> {
        let domain = self.from.email.domain();
        let name = |id: &str| format!("<{id}@{domain}>");
        let mut mail = lettre::Message::builder()
            .from(self.from.clone())
            .subject(&self.subject)
            .message_id(Some(name(&self.id)))
            .header(MIME_VERSION_1_0)
            .header(ContentType::TEXT_PLAIN);
        if let Some(thread) = &self.thread {
            mail = mail.in_reply_to(name(thread)).references(name(thread));
        }
        for to in &self.to {
            mail = mail.to(to.clone());
        }
        if let Some(url) = &self.unsubscribe {
            let fields = [
                ("List-Unsubscribe", format!("<{url}>")),
                (
                    "List-Unsubscribe-Post",
                    "List-Unsubscribe=One-Click".to_owned(),
                ),
            ];
            for (name, value) in fields {
                if let Ok(name) = HeaderName::new_from_ascii(name.to_owned()) {
                    mail = mail.raw_header(HeaderValue::new(name, value));
                }
            }
        }
        mail.body(self.text.clone())
    }

    /// Sends it; the error says whether the server refused it for good.
    ///
    /// - `fetcher`: finds the addresses that may be connected to.
    pub(crate) async fn send(&self, fetcher: &Fetcher) -> Result<(), (bool, String)> {
        let mail = self
            .formatted()
            .map_err(|error| (true, error.to_string()))?;
        let temporary = |error: String| (false, error);
        let target = self.server.endpoint();
        let target = target.map_err(|error| (true, error.to_string()))?;
        let addresses = fetcher.addresses(&target).await;
        let addresses = addresses.map_err(|error| temporary(error.to_string()))?;
        let delivered = self.server.deliver(&addresses, &mail).await;
        delivered.map_err(|error| (error.is_permanent(), error.to_string()))
    }
}

impl SmtpServer {
    fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        let host = match self.host.parse::<Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => self.host.clone(),
        };
        Endpoint::parse(&format!("http://{host}:{}", self.port))
    }

    /// Hands a mail over at one of its addresses.
    async fn deliver(
        &self,
        addresses: &[SocketAddr],
        mail: &lettre::Message,
    ) -> Result<(), lettre::transport::smtp::Error> {
        let hello = ClientId::default();
        let parameters = || TlsParameters::new(self.host.clone());
        let wrapper = match self.security {
            Security::Tls => Some(parameters()?),
            Security::StartTls | Security::Plain => None,
        };
        let mut connection =
            AsyncSmtpConnection::connect_tokio1(addresses, Some(TIMEOUT), &hello, wrapper, None)
                .await?;
        if self.security == Security::StartTls {
            connection.starttls(parameters()?, &hello).await?;
        }
        if let Some((user, password)) = &self.login {
            let password = password.expose().to_owned();
            let credentials = Credentials::new(user.clone(), password);
            connection.auth(DEFAULT_MECHANISMS, &credentials).await?;
        }
        connection.send(mail.envelope(), &mail.formatted()).await?;
        // The mail is with the server, whatever becomes of the connection.
        connection.quit().await.ok();
        Ok(())
    }
}
