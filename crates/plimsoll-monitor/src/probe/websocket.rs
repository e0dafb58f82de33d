//! WebSocket: the handshake, and optionally an answer to a message.

use std::sync::Arc;

use plimsoll_client::{Endpoint, Request, Upgrade, WebSocket};
use plimsoll_model::{Clock, Phase};
use plimsoll_wire::h1;
use plimsoll_wire::ws;

use crate::probe::context::{ProbeContext, Reach, timed};
use crate::probe::http::HttpProbeError;
use crate::probe::{Probe, ProbeFuture};

/// Opens a WebSocket.
#[derive(Debug)]
pub struct WebSocketProbe {
    endpoint: Endpoint,
    shown: String,
    upgrade: Upgrade,
    send: Option<Vec<u8>>,
    reach: Reach,
}

impl WebSocketProbe {
    /// - `url`: `ws://` or `wss://`.
    /// - `fields`: of the handshake, beside those that it needs.
    /// - `send`: a text message to which one must come back.
    pub fn new(
        url: &str,
        fields: &[(String, String)],
        send: Option<Vec<u8>>,
        reach: Reach,
    ) -> Result<Self, HttpProbeError> {
        let rest = |scheme: &str| url.strip_prefix(scheme);
        let http = match (rest("ws://"), rest("wss://")) {
            (Some(rest), _) => format!("http://{rest}"),
            (None, Some(rest)) => format!("https://{rest}"),
            (None, None) => url.to_owned(),
        };
        let endpoint = Endpoint::parse(&http)?;
        let mut all = fields.to_vec();
        for (name, value) in Upgrade::fields() {
            all.push((name.to_owned(), value));
        }
        let request = Request::encode(
            "GET",
            endpoint.path_and_query(),
            endpoint.authority(),
            &all,
            None,
        )?;
        let upgrade =
            Upgrade::new(&request).expect("a GET with all the fields of a handshake is one");
        Ok(Self {
            shown: endpoint.to_string().replacen("http", "ws", 1),
            endpoint,
            upgrade,
            send,
            reach,
        })
    }
}

impl Probe for WebSocketProbe {
    fn kind(&self) -> &'static str {
        "websocket"
    }

    fn target(&self) -> String {
        self.shown.clone()
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.endpoint.authority_with_port().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(
            self.reach.timeout,
            context,
            async |reading, deadline| {
                let Some(connection) = self.reach.connect(&self.endpoint, context, reading).await
                else {
                    return;
                };
                if let Some(session) = connection.stream.tls_session() {
                    reading.certificate = session.certificate;
                }
                let begun = context.clock.now();
                let nonce = fastrand::u128(..).to_ne_bytes();
                let limits = (h1::Limits::default(), ws::Limits::default());
                let (buffer, clock) = (&context.buffer, &context.clock);
                let opened = WebSocket::open(
                    connection.stream,
                    &self.upgrade,
                    nonce,
                    limits,
                    deadline,
                    buffer,
                    clock,
                )
                .await;
                let mut socket = match opened {
                    Ok(socket) => socket,
                    Err(failure) => {
                        reading.failure = Some(failure);
                        return;
                    }
                };
                let now = context.clock.now();
                reading.code = Some(101);
                reading
                    .phases
                    .set(Phase::Wait, now.saturating_duration_since(begun));
                let mask = fastrand::u32(..).to_ne_bytes();
                if let Some(send) = &self.send {
                    let kind = ws::MessageKind::Text;
                    let trip = socket
                        .round_trip(kind, send, mask, now, deadline, buffer, clock)
                        .await;
                    match trip {
                        Ok(trip) => reading.phases.add(&trip.phases),
                        Err(incomplete) => {
                            reading.failure = Some(incomplete.failure);
                            return;
                        }
                    }
                }
                let patience = std::time::Duration::from_millis(500);
                socket.close(mask, patience, buffer).await;
            },
        ))
    }
}
