//! TLS errors in the vocabulary of failures.

use std::io;

use plimsoll_model::{Failure, FailureKind, Phase};
use rustls::{AlertDescription, CertificateError, Error, OtherError};

use crate::tls::verify::SelfSigned;

/// The kind of failure that a TLS error is.
pub fn failure_kind(error: &Error) -> FailureKind {
    let Error::InvalidCertificate(certificate) = error else {
        return match error {
            Error::NoCertificatesPresented => FailureKind::CertificateOther,
            _ => FailureKind::Protocol,
        };
    };
    match certificate {
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => FailureKind::CertificateExpired,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            FailureKind::CertificateHostname
        }
        // A chain with a forged signature does not lead to the root it names.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            FailureKind::CertificateUntrusted
        }
        CertificateError::Other(OtherError(cause)) if cause.is::<SelfSigned>() => {
            FailureKind::CertificateSelfSigned
        }
        _ => FailureKind::CertificateOther,
    }
}

/// The failure that our own verdict on a server's certificate means where only the alert that went to the
/// server and a text are left of it, as in QUIC (RFC 9001, section 4.8).
///
/// - `reason`: how rustls puts it.
pub fn failure_of_alert(phase: Phase, alert: u8, reason: &str) -> Failure {
    // rustls reports errors of our verifier as `certificate_unknown`.
    let (kind, reason) = match AlertDescription::from(alert) {
        AlertDescription::CertificateUnknown => {
            (FailureKind::CertificateSelfSigned, SelfSigned.to_string())
        }
        AlertDescription::CertificateExpired => (FailureKind::CertificateExpired, reason.into()),
        AlertDescription::UnknownCA => (FailureKind::CertificateUntrusted, reason.into()),
        AlertDescription::DecryptError if reason.contains("BadSignature") => {
            (FailureKind::CertificateUntrusted, reason.into())
        }
        AlertDescription::BadCertificate if reason.contains("valid for name") => {
            (FailureKind::CertificateHostname, reason.into())
        }
        AlertDescription::BadCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::UnsupportedCertificate => {
            (FailureKind::CertificateOther, reason.into())
        }
        _ => (FailureKind::Protocol, reason.to_owned()),
    };
    Failure::new(phase, kind).because(reason)
}

/// The kind of failure that an I/O error of a TLS stream is, whether it came from TLS or from below.
pub fn failure_kind_of_io(error: &io::Error) -> FailureKind {
    match tls_error(error) {
        Some(error) => failure_kind(error),
        None => FailureKind::from_io(error),
    }
}

/// The failure that an I/O error of a clear or a TLS stream means when it comes up during `phase`.
///
/// Use it for everything read from or written to a TLS stream: under TLS 1.3 the server's verdict
/// on the client's certificate arrives only with the first read (RFC 8446, section 4.4.2.4).
pub fn failure(phase: Phase, error: &io::Error) -> Failure {
    match tls_error(error) {
        Some(tls) => Failure::new(phase, failure_kind(tls)).because(explain(tls)),
        None => Failure::from_io(phase, error),
    }
}

fn tls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

fn explain(error: &Error) -> String {
    match error {
        Error::InvalidMessage(_) => {
            format!("the answer is not TLS; does this port speak plain HTTP? ({error})")
        }
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            format!("the server speaks none of the protocols that were offered by ALPN ({error})")
        }
        Error::InvalidCertificate(CertificateError::Other(OtherError(cause)))
            if matches!(cause.downcast_ref(), Some(webpki::Error::UnsupportedCertVersion)) =>
        {
            "the certificate is of X.509 version 1, without names of hosts: the server needs one of version 3 with `subjectAltName`".to_owned()
        }
        // rustls prints the wrapper's Debug form here.
        Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) => cause.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn kinds_of_tls_errors() {
        use FailureKind::{
            CertificateExpired, CertificateHostname, CertificateOther, CertificateSelfSigned,
            CertificateUntrusted, Protocol,
        };
        let self_signed = CertificateError::Other(OtherError(Arc::new(SelfSigned)));
        for (error, kind) in [
            (CertificateError::Expired.into(), CertificateExpired),
            (CertificateError::NotValidYet.into(), CertificateExpired),
            (
                CertificateError::NotValidForName.into(),
                CertificateHostname,
            ),
            (CertificateError::UnknownIssuer.into(), CertificateUntrusted),
            (self_signed.into(), CertificateSelfSigned),
            (CertificateError::BadEncoding.into(), CertificateOther),
            (CertificateError::Revoked.into(), CertificateOther),
            (Error::NoCertificatesPresented, CertificateOther),
            (Error::DecryptError, Protocol),
        ] {
            assert_eq!(failure_kind(&error), kind, "{error}");
            let io = io::Error::new(io::ErrorKind::InvalidData, error);
            assert_eq!(failure_kind_of_io(&io), kind, "{io}");
        }
    }

    #[test]
    fn errors_from_below_tls_keep_their_meaning() {
        let error = io::Error::from(io::ErrorKind::ConnectionReset);
        assert_eq!(failure_kind_of_io(&error), FailureKind::Reset);
        assert_eq!(failure(Phase::Tls, &error).phase, Phase::Tls);
    }
}
