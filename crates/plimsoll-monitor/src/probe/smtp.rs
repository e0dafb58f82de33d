//! A login at a mail server that takes mail of its users (RFC 6409): over TLS alone, and without sending anything.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_client::Stream;
use plimsoll_model::{Clock, Failure, FailureKind, Phase, Secret};

use crate::probe::context::{ProbeContext, Reach, TcpTarget, timed};
use crate::probe::reading::Reading;
use crate::probe::starttls::{smtp, upgraded};
use crate::probe::{Probe, ProbeFuture};

/// A domain that no host has (RFC 2606): nothing is sent in its name.
const HELLO: &str = "EHLO plimsoll.invalid\r\n";

/// When a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailSecurity {
    /// After a greeting in the clear (RFC 3207).
    StartTls,
    /// From its start (RFC 8314, section 3.3).
    Tls,
}

/// Signs in at a mail server.
#[derive(Debug)]
pub struct SmtpProbe {
    /// Address of the target; its handshake comes first with `MailSecurity::Tls`.
    pub target: TcpTarget,
    /// When the connection is encrypted.
    pub security: MailSecurity,
    /// User and password; without them the check ends before the login.
    pub login: Option<(String, Secret)>,
    /// Connection options.
    pub reach: Reach,
}

impl Probe for SmtpProbe {
    fn kind(&self) -> &'static str {
        "smtp"
    }

    fn target(&self) -> String {
        self.target.text()
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.target.text().into())
    }

    fn check<'a>(&'a self, context: &'a ProbeContext) -> ProbeFuture<'a> {
        Box::pin(timed(self.reach.timeout, context, async |reading, _| {
            if let Err(failure) = self.sign_in(context, reading).await {
                reading.failure = Some(failure);
            }
        }))
    }
}

impl SmtpProbe {
    async fn sign_in(&self, context: &ProbeContext, reading: &mut Reading) -> Result<(), Failure> {
        let endpoint = self.target.endpoint();
        let Some(connection) = self.reach.connect(endpoint, context, reading).await else {
            return Ok(());
        };
        let mut stream = connection.stream;
        if let Some(session) = stream.tls_session() {
            reading.certificate = session.certificate;
        }
        let begun = context.clock.now();
        smtp(&mut stream, None, "220").await?;
        let mut extensions = smtp(&mut stream, Some(HELLO), "250").await?;
        let mut waited = context.clock.now().saturating_duration_since(begun);
        if self.security == MailSecurity::StartTls {
            smtp(&mut stream, Some("STARTTLS\r\n"), "220").await?;
            waited = context.clock.now().saturating_duration_since(begun);
            stream = upgraded(stream, endpoint, &self.reach, context, reading).await?;
        }
        let encrypted = context.clock.now();
        if self.security == MailSecurity::StartTls {
            // What it said in the clear may be another's (RFC 3207, section 4.2).
            extensions = smtp(&mut stream, Some(HELLO), "250").await?;
        }
        reading.body = extensions.concat().into_bytes();
        reading.size = reading.body.len() as u64;
        if let Some((user, password)) = &self.login {
            let mechanisms = mechanisms(&extensions);
            authenticate(&mut stream, &mechanisms, user, password.expose()).await?;
        }
        // Whether it says good-bye has no meaning for its users.
        smtp(&mut stream, Some("QUIT\r\n"), "221").await.ok();
        waited += context.clock.now().saturating_duration_since(encrypted);
        reading.phases.set(Phase::Wait, waited);
        Ok(())
    }
}

/// The mechanisms of the extension `AUTH` (RFC 4954), in upper case; older servers write `AUTH=` too.
fn mechanisms(extensions: &[String]) -> Vec<String> {
    let mut mechanisms = Vec::new();
    for line in extensions {
        let line = line.get(4..).unwrap_or_default().to_ascii_uppercase();
        let Some(rest) = line.strip_prefix("AUTH") else {
            continue;
        };
        if let Some(words) = rest.strip_prefix([' ', '=']) {
            mechanisms.extend(words.split_whitespace().map(str::to_owned));
        }
    }
    mechanisms
}

async fn authenticate(
    stream: &mut Stream,
    mechanisms: &[String],
    user: &str,
    password: &str,
) -> Result<(), Failure> {
    let has = |name: &str| mechanisms.iter().any(|known| known == name);
    let encoded = |text: &str| BASE64_STANDARD.encode(text);
    if has("PLAIN") {
        let login = encoded(&format!("\0{user}\0{password}"));
        smtp(stream, Some(&format!("AUTH PLAIN {login}\r\n")), "235").await?;
    } else if has("LOGIN") {
        smtp(stream, Some("AUTH LOGIN\r\n"), "334").await?;
        smtp(stream, Some(&format!("{}\r\n", encoded(user))), "334").await?;
        smtp(stream, Some(&format!("{}\r\n", encoded(password))), "235").await?;
    } else {
        let offered = match mechanisms {
            [] => "no login".to_owned(),
            some => format!("logins by {} alone", some.join(", ")),
        };
        let cause = format!("the mail server offers {offered}, and not PLAIN or LOGIN");
        return Err(Failure::new(Phase::Wait, FailureKind::UpgradeRefused).because(cause));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanisms_are_those_of_the_extension() {
        let reply = |lines: &[&str]| -> Vec<String> {
            lines.iter().map(|line| format!("{line}\r\n")).collect()
        };
        for (lines, expected) in [
            (
                &["250-mail", "250 AUTH PLAIN login"][..],
                &["PLAIN", "LOGIN"][..],
            ),
            (&["250-AUTH=LOGIN", "250 OK"], &["LOGIN"]),
            (&["250-AUTHOR PLAIN", "250 AUTH"], &[]),
            (&["250", "25"], &[]),
        ] {
            assert_eq!(mechanisms(&reply(lines)), expected, "{lines:?}");
        }
    }
}
