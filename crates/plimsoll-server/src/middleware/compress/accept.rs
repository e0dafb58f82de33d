//! `accept-encoding`: which coding a client prefers (RFC 9110, section 12.5.3).

use crate::middleware::compress::Coding;

/// The one of `codings` that the client likes best, unless it likes the content as it is better.
///
/// - `values`: of all the fields, in their order. Members that are malformed are passed over.
pub(super) fn choose<'v>(
    codings: &[Coding],
    values: impl Iterator<Item = &'v [u8]>,
) -> Option<Coding> {
    let mut wishes = Wishes::default();
    for value in values {
        for member in value.split(|byte| *byte == b',') {
            wishes.note(member);
        }
    }
    let mut best: Option<(u16, Coding)> = None;
    for coding in codings {
        let weight = wishes.weight(*coding);
        if weight > 0 && best.is_none_or(|(most, _)| weight > most) {
            best = Some((weight, *coding));
        }
    }
    let as_it_is = wishes.identity.unwrap_or(0);
    best.filter(|(weight, _)| *weight >= as_it_is)
        .map(|(_, coding)| coding)
}

/// Weights in thousandths.
#[derive(Debug, Default)]
struct Wishes {
    zstd: Option<u16>,
    brotli: Option<u16>,
    gzip: Option<u16>,
    identity: Option<u16>,
    any: Option<u16>,
}

impl Wishes {
    fn note(&mut self, member: &[u8]) {
        let Ok(member) = std::str::from_utf8(member) else {
            return;
        };
        let mut parts = member.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let Some(weight) = parts.next().map_or(Some(1000), weight) else {
            return;
        };
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        let wish = if is("zstd") {
            &mut self.zstd
        } else if is("br") {
            &mut self.brotli
        } else if is("gzip") || is("x-gzip") {
            &mut self.gzip
        } else if is("identity") {
            &mut self.identity
        } else if name == "*" {
            &mut self.any
        } else {
            return;
        };
        *wish = Some(weight);
    }

    fn weight(&self, coding: Coding) -> u16 {
        let own = match coding {
            Coding::Zstd => self.zstd,
            Coding::Brotli => self.brotli,
            Coding::Gzip => self.gzip,
        };
        own.or(self.any).unwrap_or(0)
    }
}

/// `q=0.123` in thousandths.
fn weight(parameter: &str) -> Option<u16> {
    let (name, value) = parameter.split_once('=')?;
    let (whole, rest) = value.trim().split_once('.').unwrap_or((value.trim(), ""));
    let is_valid = name.trim().eq_ignore_ascii_case("q")
        && rest.len() <= 3
        && rest.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths = format!("{rest:0<3}").parse::<u16>().ok()?;
    match whole {
        "0" if is_valid => Some(thousandths),
        "1" if is_valid && thousandths == 0 => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_what_they_like_best() {
        for (value, expected) in [
            ("", None),
            ("gzip", Some(Coding::Gzip)),
            ("gzip, deflate, br, zstd", Some(Coding::Zstd)),
            ("GZIP;Q=0.5, br;q=0.8", Some(Coding::Brotli)),
            ("gzip;q=0.5,br;q=0.499", Some(Coding::Gzip)),
            ("*", Some(Coding::Zstd)),
            ("*;q=0.5, zstd;q=0", Some(Coding::Brotli)),
            ("zstd;q=0, br;q=0.0, gzip;q=0.000", None),
            ("gzip;q=0.5, identity", None),
            ("gzip, identity;q=0.5", Some(Coding::Gzip)),
            ("identity;q=0", None),
            ("gzip;q=2, br;q=0.1234, zstd;w=1", None),
            ("gzip ; q=1.000", Some(Coding::Gzip)),
            ("x-gzip", Some(Coding::Gzip)),
        ] {
            let chosen = choose(&Coding::ALL, [value.as_bytes()].into_iter());
            assert_eq!(chosen, expected, "{value}");
        }
        let fields = [&b"br;q=0.1"[..], b"gzip"];
        assert_eq!(choose(&Coding::ALL, fields.into_iter()), Some(Coding::Gzip));
        let only = [Coding::Gzip];
        assert_eq!(
            choose(&only, [&b"br, gzip;q=0.1"[..]].into_iter()),
            Some(Coding::Gzip)
        );
    }
}
