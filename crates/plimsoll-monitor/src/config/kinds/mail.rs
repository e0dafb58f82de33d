//! Kinds for mail servers.

use plimsoll_model::Secret;
use plimsoll_model::document::{Value, as_text};

use crate::config::file::Context;
use crate::config::kinds::network::{expiry, tcp_target};
use crate::config::kinds::reach::reach;
use crate::config::kinds::{Kind, probe, target};
use crate::config::monitor::Defaults;
use crate::probe::{MailProtocol, MailSecurity, SmtpProbe, StartTlsProbe};

pub(super) fn starttls(
    value: Value<'_>,
    context: &mut Context,
    settings: &Defaults,
) -> Option<Kind> {
    let (place, mut table) = target(value, "to")?;
    let reach = reach(table.as_mut(), context, settings, "", &place);
    let expiry = expiry(table.as_mut());
    let mut protocol = Some(MailProtocol::Smtp);
    if let Some(mut table) = table {
        if let Some(value) = table.take_value("protocol") {
            protocol = match as_text(&value)? {
                "smtp" => Some(MailProtocol::Smtp),
                "imap" => Some(MailProtocol::Imap),
                other => value.wrong(format!("`{other}` is not \"smtp\" or \"imap\"")),
            };
        }
        table.finish();
    }
    let default = match protocol? {
        MailProtocol::Smtp => 25,
        MailProtocol::Imap => 143,
    };
    Some(probe(
        "starttls",
        StartTlsProbe {
            target: tcp_target(&place, false, Some(default))?,
            protocol: protocol?,
            warn_within: expiry.0,
            critical_within: expiry.1,
            reach: reach?,
        },
    ))
}

pub(super) fn smtp(value: Value<'_>, context: &mut Context, settings: &Defaults) -> Option<Kind> {
    let (place, mut table) = target(value, "to")?;
    let reach = reach(table.as_mut(), context, settings, "", &place);
    let (mut security, mut login) = (Some(MailSecurity::StartTls), Some(None));
    if let Some(mut table) = table {
        if let Some(value) = table.take_value("security") {
            security = match as_text(&value)? {
                "starttls" => Some(MailSecurity::StartTls),
                "tls" => Some(MailSecurity::Tls),
                other => value.wrong_with(
                    format!("`{other}` is not \"starttls\" or \"tls\""),
                    Some("a password is not sent without TLS".to_owned()),
                ),
            };
        }
        login = match (table.text("user"), table.text("password")) {
            (None, None) => Some(None),
            (Some(user), Some(password)) => Some(Some((user, Secret::new(password)))),
            (Some(_), None) => {
                table.missing("password", "the password of `user`");
                None
            }
            (None, Some(_)) => {
                table.missing("user", "the user whose `password` it is");
                None
            }
        };
        table.finish();
    }
    let (is_tls, default) = match security? {
        MailSecurity::StartTls => (false, 587),
        MailSecurity::Tls => (true, 465),
    };
    Some(probe(
        "smtp",
        SmtpProbe {
            target: tcp_target(&place, is_tls, Some(default))?,
            security: security?,
            login: login?,
            reach: reach?,
        },
    ))
}
