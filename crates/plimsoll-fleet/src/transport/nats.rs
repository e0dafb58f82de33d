//! NATS: live messages as they are, the log and the files of a run as streams of `JetStream`.
//!
//! One thread of its own runs the client, which connects again by itself when the broker was away. Streams are kept on disk by
//! the broker, so a run survives its restart, and lose their messages after a day if no coordinator deletes them.
//!
//! `JetStream` is used by its requests (`api.rs`). A log is read without a consumer, which a restart of the broker would end: each
//! message by its number, and what is published meanwhile wakes the reader.

mod api;

mod credentials;

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::{Client, ConnectOptions};
use futures_util::StreamExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use self::api::{Api, ApiError};
use self::credentials::{Credentials, Login};
use super::{Deliver, Delivered, FleetTransport, Subscription, TransportError};

/// How long the broker may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Attempts to append a message: the broker may be busy with itself.
const APPENDS: u32 = 6;

/// Interval of pings on an idle connection. After the third one without a pong the broker is away: a
/// network that is cut ends no connection.
const PING_EVERY: Duration = Duration::from_secs(2);

/// Time between two attempts.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Time between two looks at a log in which nothing happens.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Bytes of a part of a file. In an answer they are a third longer, and brokers allow messages of 1 MiB.
const CHUNK: usize = 256 << 10;

/// Messages that wait for a listener.
const CAPACITY: usize = 4096;

/// Streams of runs that ended without deleting them are deleted by a later one after this time: their messages are dropped
/// after a day.
const LEFT_AFTER: Duration = Duration::from_hours(25);

/// A run waits no longer for that.
const MOST_CLEANING: Duration = Duration::from_secs(2);

/// How a broker is reached.
#[derive(Debug, Clone, Default)]
pub struct NatsPlan {
    /// `nats://HOST:PORT` or `tls://HOST:PORT`, with `USER:PASSWORD@` or `TOKEN@` if the broker needs that.
    pub url: String,
    /// Authorities that are trusted beside those of the system, as PEM.
    pub authority: Option<PathBuf>,
    /// Credentials in a file: a user of an account (`.creds`) or a seed (nkey).
    pub credentials: Option<PathBuf>,
    /// Certificate and key of the client, both PEM, for brokers that want one.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Name of the connection, as the broker lists it.
    pub name: String,
}

/// A connection to a broker.
#[derive(Debug)]
pub struct NatsTransport {
    runtime: Option<Runtime>,
    client: Client,
    api: Api,
}

impl NatsTransport {
    /// Connects. Fails if the broker cannot be reached, or has no `JetStream`.
    pub fn connect(plan: &NatsPlan) -> Result<Self, TransportError> {
        const ACTION: &str = "connect to the broker";

        let fail = |error: &dyn std::fmt::Display| TransportError::new(ACTION, error);
        let (address, login) = credentials::login(&plan.url);
        let credentials = plan.credentials.as_deref().map(Credentials::read);
        let credentials = credentials.transpose().map_err(|error| fail(&error))?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("nats")
            .enable_all()
            .build()
            .map_err(|error| fail(&error))?;
        let client = runtime.block_on(async {
            let mut options = ConnectOptions::new()
                .name(&plan.name)
                .connection_timeout(PATIENCE)
                .ping_interval(PING_EVERY)
                .request_timeout(Some(PATIENCE))
                .subscription_capacity(CAPACITY);
            if let Some(path) = &plan.authority {
                options = options.add_root_certificates(path.clone());
            }
            if let Some((certificate, key)) = &plan.certificate {
                options = options.add_client_certificate(certificate.clone(), key.clone());
            }
            // The client leaves out what stands before the host.
            options = match login {
                Login::None => options,
                Login::Token(token) => options.token(token),
                Login::Password(user, password) => options.user_and_password(user, password),
            };
            match credentials {
                None => {}
                Some(Credentials::Seed(seed)) => options = options.nkey(seed),
                Some(Credentials::Token(text)) => {
                    options = options.credentials(&text).map_err(|error| fail(&error))?;
                }
            }
            let connected = options.connect(address.as_str()).await;
            connected.map_err(|error| fail(&error))
        })?;
        let api = Api::new(client.clone());
        runtime.block_on(api.check()).map_err(|error| {
            TransportError::new(
                "use JetStream",
                format!("{error} (start the broker with `nats-server -js`)"),
            )
        })?;
        Ok(Self {
            runtime: Some(runtime),
            client,
            api,
        })
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is there until the drop")
    }

    fn wait<T, E: std::fmt::Display>(
        &self,
        action: &'static str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, TransportError> {
        let work = self.runtime().block_on(work);
        work.map_err(|error| TransportError::new(action, error))
    }

    async fn listen(&self, subject: &str) -> Result<async_nats::Subscriber, ListenError> {
        let subscriber = self.client.subscribe(subject.to_owned()).await;
        let subscriber = subscriber.map_err(ListenError::Subscribe)?;
        // The broker handles a connection's commands in order: a response to this one means that it has the subscription.
        let answered = self.api.check().await;
        answered?;
        Ok(subscriber)
    }
}

impl Drop for NatsTransport {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // What was published last leaves before the connection ends.
            let last = runtime.block_on(async {
                tokio::time::timeout(Duration::from_secs(1), self.client.flush()).await
            });
            drop(last);
            runtime.shutdown_background();
        }
    }
}

/// Why messages of a subject or of a log do not come.
#[derive(Debug, thiserror::Error)]
enum ListenError {
    #[error(transparent)]
    Subscribe(async_nats::SubscribeError),
    #[error(transparent)]
    Broker(#[from] ApiError),
    #[error("it does not exist")]
    NoStream,
}

/// Ends a task when it is dropped.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl FleetTransport for NatsTransport {
    fn publish(&self, subject: &str, payload: Vec<u8>) -> Result<(), TransportError> {
        self.wait("publish", async {
            let published = self.client.publish(subject.to_owned(), payload.into());
            published.await.map_err(|error| error.to_string())?;
            match tokio::time::timeout(PATIENCE, self.client.flush()).await {
                Ok(flushed) => flushed.map_err(|error| error.to_string()),
                Err(_) => Err("the broker does not answer".to_owned()),
            }
        })
    }

    fn subscribe(
        &self,
        subject: &str,
        mut deliver: Deliver,
    ) -> Result<Subscription, TransportError> {
        let mut subscriber = self.wait("subscribe", self.listen(subject))?;
        let task = self.runtime().spawn(async move {
            while let Some(message) = subscriber.next().await {
                let message = Delivered {
                    subject: message.subject.to_string(),
                    payload: message.payload.into(),
                };
                if !deliver(message) {
                    break;
                }
            }
        });
        Ok(Subscription::new(AbortOnDrop(task)))
    }

    fn create_log(
        &self,
        log: &str,
        subjects: &[String],
        most_bytes: u64,
    ) -> Result<(), TransportError> {
        let most_bytes = i64::try_from(most_bytes).unwrap_or(i64::MAX);
        self.wait("create the log", async {
            // Others' leftovers are no reason not to run: an account may not be allowed to see them.
            let left = self.api.delete_left_streams(LEFT_AFTER);
            tokio::time::timeout(MOST_CLEANING, left).await.ok();
            if self.api.has_stream(log).await? {
                return Err(ApiError::Refused("it exists".to_owned()));
            }
            self.api.create_stream(log, subjects, most_bytes).await
        })
    }

    fn append(&self, subject: &str, id: &str, payload: Vec<u8>) -> Result<(), TransportError> {
        const ACTION: &str = "append to the log";

        self.runtime().block_on(async {
            let mut attempts = 0;
            loop {
                attempts += 1;
                match self.api.append(subject, id, payload.clone()).await {
                    Ok(()) => return Ok(()),
                    Err(error) if error.is_temporary() && !self.is_connected() => {
                        return Err(TransportError::away(ACTION, error));
                    }
                    // The broker may not have read its streams yet.
                    Err(error) if error.is_temporary() && attempts < APPENDS => {
                        tokio::time::sleep(RETRY_AFTER).await;
                    }
                    Err(error) => return Err(TransportError::new(ACTION, error)),
                }
            }
        })
    }

    fn follow_log(
        &self,
        log: &str,
        subject: &str,
        mut deliver: Deliver,
    ) -> Result<Subscription, TransportError> {
        let mut news = self.wait("read the log", async {
            // Before the first look, so that nothing is missed between them.
            let news = self.listen(subject).await?;
            match self.api.has_stream(log).await {
                Ok(true) => Ok(news),
                Ok(false) => Err(ListenError::NoStream),
                Err(error) => Err(ListenError::Broker(error)),
            }
        })?;
        let (api, log, subject) = (self.api.clone(), log.to_owned(), subject.to_owned());
        let task = self.runtime().spawn(async move {
            let mut next = 1;
            loop {
                if let Ok(Some(stored)) = api.message_from(&log, &subject, next).await {
                    next = stored.number + 1;
                    let message = Delivered {
                        subject: subject.clone(),
                        payload: stored.payload,
                    };
                    if !deliver(message) {
                        break;
                    }
                    continue;
                }
                // What is not there yet, or cannot be read now, is looked for again.
                let woken = tokio::time::timeout(LOOK_EVERY, news.next()).await;
                if let Ok(None) = woken {
                    break;
                }
            }
        });
        Ok(Subscription::new(AbortOnDrop(task)))
    }

    fn put_blob(&self, bucket: &str, name: &str, content: Vec<u8>) -> Result<(), TransportError> {
        self.wait("store a file", async {
            let stream = files_of(bucket);
            if !self.api.has_stream(&stream).await? {
                let subjects = [format!("plimsoll.files.{bucket}.>")];
                self.api.create_stream(&stream, &subjects, -1).await?;
            }
            let mut chunks = 0;
            for chunk in content.chunks(CHUNK) {
                let subject = chunk_of(bucket, name, chunks);
                self.api.append(&subject, &subject, chunk.to_vec()).await?;
                chunks += 1;
            }
            // With the end the file is whole.
            let end = end_of(bucket, name);
            let length = format!("{chunks} {}", content.len());
            self.api.append(&end, &end, length.into_bytes()).await
        })
    }

    fn blob(&self, bucket: &str, name: &str, most: usize) -> Result<Vec<u8>, TransportError> {
        self.wait("read a file", async {
            let stream = files_of(bucket);
            let read = |subject: String| {
                let stream = &stream;
                async move {
                    let stored = self.api.message_from(stream, &subject, 1).await;
                    let stored = stored.map_err(|error| error.to_string())?;
                    let stored = stored.ok_or_else(|| "a part of it does not exist".to_owned())?;
                    Ok::<_, String>(stored.payload)
                }
            };
            let end = read(end_of(bucket, name)).await?;
            let end = String::from_utf8_lossy(&end).into_owned();
            let numbers = end.split_once(' ');
            let numbers = numbers.and_then(|(chunks, length)| {
                Some((chunks.parse::<usize>().ok()?, length.parse::<usize>().ok()?))
            });
            let (chunks, length) = numbers.ok_or_else(|| "it has no length".to_owned())?;
            if length > most {
                return Err(format!("it is larger than {most} bytes"));
            }
            let mut content = Vec::new();
            for number in 0..chunks {
                content.extend(read(chunk_of(bucket, name, number)).await?);
                if content.len() > length {
                    break;
                }
            }
            if content.len() == length {
                Ok(content)
            } else {
                Err("it has another length than it should".to_owned())
            }
        })
    }

    fn delete(&self, log: &str, bucket: &str) -> Result<(), TransportError> {
        self.wait("delete the log", async {
            self.api.delete_stream(log).await?;
            self.api.delete_stream(&files_of(bucket)).await
        })
    }

    fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }
}

/// The stream of a bucket.
fn files_of(bucket: &str) -> String {
    format!("{bucket}-files")
}

/// A name as a word of a subject.
fn word(name: &str) -> String {
    crate::order::hexadecimal(name.as_bytes())
}

fn chunk_of(bucket: &str, name: &str, number: usize) -> String {
    format!("plimsoll.files.{bucket}.{}.{number}", word(name))
}

fn end_of(bucket: &str, name: &str) -> String {
    format!("plimsoll.files.{bucket}.{}.end", word(name))
}

#[cfg(test)]
mod tests;
