//! A request with places for values, checked so that no value can make another request of it.

use std::io::Write;

use plimsoll_client::{Compressor, ContentCoding, Request};
use plimsoll_formats::{Generator, MissingVariable, Part, Template, is_target_byte};
use plimsoll_model::Protocol;
use plimsoll_wire::h1::HeadError;
use plimsoll_wire::h2;
use plimsoll_wire::h2::EncodedRequest;

use super::Feeder;
use super::generate::{self, Entropy};

/// A request with places for values.
#[derive(Debug)]
pub struct RequestTemplate {
    method: String,
    target: Text,
    /// Names and values, `host` among them.
    fields: Vec<(String, Text)>,
    body: Option<Text>,
    coding: Option<ContentCoding>,
    /// For each feeder, whether it has a place here.
    uses: Vec<bool>,
    needs_clock: bool,
}

/// Where the values of a template come from.
#[derive(Debug, Clone, Copy, Default)]
pub struct ValueSources<'a> {
    /// The feeders; of those that have a column of a name the first counts.
    pub feeders: &'a [Feeder],
    /// Values of responses, as they are written in templates.
    pub kept: &'a [String],
}

/// Options for the requests of a template.
#[derive(Debug, Clone, Copy)]
pub struct TemplateForm<'a> {
    /// The protocol that they are encoded for.
    pub protocol: Protocol,
    /// The scheme of the URL.
    pub scheme: &'a str,
    /// The coding of their bodies.
    pub coding: Option<ContentCoding>,
}

/// Why a template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateProblem {
    /// It would be no request.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// It would be no request of HTTP/2 or HTTP/3.
    #[error(transparent)]
    Http2Head(#[from] h2::HeadError),
    /// Nothing gives a variable its value.
    #[error(transparent)]
    Variable(#[from] MissingVariable),
    /// A value would end its header field.
    #[error(
        "row {row} of {feeder}: `{column}` contains a control character, which header `{header}` must not"
    )]
    Value {
        /// The feeder.
        feeder: String,
        /// Its row, counted from 1.
        row: usize,
        /// Its column.
        column: String,
        /// The field it would stand in.
        header: String,
    },
    /// A value would not be part of a host.
    #[error("row {row} of {feeder}: `{column}` is not part of a host and port")]
    Authority {
        /// The feeder.
        feeder: String,
        /// Its row, counted from 1.
        row: usize,
        /// Its column.
        column: String,
    },
}

/// A text with places, taken apart.
#[derive(Debug, Clone, Default)]
struct Text(Vec<TemplatePart>);

#[derive(Debug, Clone)]
enum TemplatePart {
    Fixed(Box<[u8]>),
    Column {
        feeder: usize,
        column: usize,
    },
    Generated(Generator),
    /// A value that the virtual user keeps, by its position.
    Kept(usize),
}

/// The values for one request.
pub(super) struct Values<'a> {
    pub(super) feeders: &'a [Feeder],
    /// The row of each feeder.
    pub(super) rows: &'a [usize],
    /// Values of responses.
    pub(super) kept: &'a [Vec<u8>],
    pub(super) entropy: Entropy<'a>,
    /// There is one if the template has a coding.
    pub(super) compressor: Option<&'a mut Compressor>,
}

/// Memory that is used again for each request.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    body: Vec<u8>,
    coded: Vec<u8>,
    value: Vec<u8>,
}

impl RequestTemplate {
    /// Compiles a request.
    ///
    /// - `target`, `host`, `headers`, `body`: as for [`Request::encode`]; variables in them are
    ///   columns of the feeders, of which the first that has one counts.
    /// - `sources`: where its values come from.
    ///
    /// Returns a request that it could make beside it.
    pub fn compile(
        method: &str,
        target: &Template,
        host: &str,
        headers: &[(String, Template)],
        body: Option<&Template>,
        sources: ValueSources<'_>,
        form: TemplateForm<'_>,
    ) -> Result<(Self, Request), TemplateProblem> {
        let feeders = sources.feeders;
        let TemplateForm {
            protocol,
            scheme,
            coding,
        } = form;
        let mut fields = Vec::new();
        if !headers.iter().any(|(name, _)| is_host(name)) {
            fields.push((
                "host".to_owned(),
                Text(vec![TemplatePart::Fixed(host.as_bytes().into())]),
            ));
        }
        for (name, value) in headers {
            let value = Text::compile(value, sources)?;
            value.check_for_field(name, feeders)?;
            if protocol != Protocol::Http1 && is_host(name) {
                value.check_for_authority(feeders)?;
            }
            fields.push((name.clone(), value));
        }
        let mut target = Text::compile(target, sources)?;
        for piece in &mut target.0 {
            if let TemplatePart::Fixed(text) = piece {
                let mut encoded = Vec::new();
                push_encoded(text, &mut encoded);
                *piece = TemplatePart::Fixed(encoded.into());
            }
        }
        let body = body.map(|body| Text::compile(body, sources)).transpose()?;
        let mut template = Self {
            method: method.to_owned(),
            target,
            fields,
            body,
            coding,
            uses: Vec::new(),
            needs_clock: false,
        };
        let needs_clock = template.texts().any(Text::needs_clock);
        template.needs_clock = needs_clock;
        template.uses = (0..feeders.len())
            .map(|feeder| template.texts().any(|text| text.uses(feeder)))
            .collect();
        let example = template.example(sources, protocol, scheme)?;
        Ok((template, example))
    }

    /// Path and query with their places, for people.
    ///
    /// - `sources`: those that it was compiled with.
    pub(crate) fn shown_target(&self, sources: ValueSources<'_>) -> String {
        let pieces = self.target.0.iter().map(|piece| match piece {
            TemplatePart::Fixed(text) => String::from_utf8_lossy(text).into_owned(),
            TemplatePart::Column { feeder, column } => {
                format!(
                    "{{{{{}}}}}",
                    sources.feeders[*feeder].table.columns()[*column]
                )
            }
            TemplatePart::Generated(generator) => format!("{{{{{generator}}}}}"),
            TemplatePart::Kept(position) => format!("{{{{{}}}}}", sources.kept[*position]),
        });
        pieces.collect()
    }

    fn texts(&self) -> impl Iterator<Item = &Text> {
        let values = self.fields.iter().map(|(_, value)| value);
        std::iter::once(&self.target)
            .chain(values)
            .chain(&self.body)
    }

    pub(super) fn method(&self) -> &str {
        &self.method
    }

    /// Whether it has a place for a value of that feeder, by its position.
    pub fn uses(&self, feeder: usize) -> bool {
        self.uses.get(feeder).copied().unwrap_or(false)
    }

    /// The coding of its bodies.
    pub(super) fn coding(&self) -> Option<ContentCoding> {
        self.coding
    }

    pub(super) fn needs_clock(&self) -> bool {
        self.needs_clock
    }

    /// Makes `request` anew, which was made here before or is a clone of the example.
    pub(super) fn make(&self, values: Values<'_>, scratch: &mut Scratch, request: &mut Request) {
        if let Some(rewrite) = request.rewrite_fields() {
            self.rewrite(values, scratch, rewrite);
        } else {
            request.rewrite(|bytes| self.write(values, scratch, bytes));
        }
    }

    /// Writes a request of HTTP/1 into `out`, which is empty.
    pub(super) fn write(&self, mut values: Values<'_>, scratch: &mut Scratch, out: &mut Vec<u8>) {
        out.extend_from_slice(self.method.as_bytes());
        out.push(b' ');
        self.target.write_encoded(&mut values, scratch, out);
        out.extend_from_slice(b" HTTP/1.1\r\n");
        for (name, value) in &self.fields {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            value.write_field(&mut values, out);
            out.extend_from_slice(b"\r\n");
        }
        match &self.body {
            None => out.extend_from_slice(b"\r\n"),
            Some(body) => {
                scratch.coded.clear();
                body.write_coded(&mut values, &mut scratch.body, &mut scratch.coded);
                write!(out, "content-length: {}\r\n\r\n", scratch.coded.len())
                    .expect("memory takes what is written to it");
                out.extend_from_slice(&scratch.coded);
            }
        }
    }

    /// Writes the values of a request of HTTP/2 or HTTP/3 that are not always the same.
    fn rewrite(&self, mut values: Values<'_>, scratch: &mut Scratch, mut rewrite: h2::Rewrite<'_>) {
        if !self.target.is_fixed() {
            rewrite.field(EncodedRequest::PATH, |out| {
                self.target.write_encoded(&mut values, scratch, out);
            });
        }
        let mut position = EncodedRequest::FIRST_FIELD;
        for (name, value) in &self.fields {
            let at = if is_host(name) {
                EncodedRequest::AUTHORITY
            } else {
                position += 1;
                position - 1
            };
            if !value.is_fixed() {
                rewrite.field(at, |out| value.write_field(&mut values, out));
            }
        }
        if let Some(body) = &self.body
            && !body.is_fixed()
        {
            rewrite.body(|out| body.write_coded(&mut values, &mut scratch.body, out));
        }
    }

    /// A request that it could make, checked as one that is always the same is.
    fn example(
        &self,
        ValueSources { feeders, kept }: ValueSources<'_>,
        protocol: Protocol,
        scheme: &str,
    ) -> Result<Request, TemplateProblem> {
        let rows = vec![0; feeders.len()];
        // Any text that may stand everywhere.
        let kept = vec![b"0".to_vec(); kept.len()];
        let mut random = fastrand::Rng::with_seed(0);
        let mut values = Values {
            feeders,
            rows: &rows,
            kept: &kept,
            entropy: Entropy {
                number: 0,
                now: None,
                random: &mut random,
            },
            compressor: None,
        };
        let mut text = |text: &Text| {
            let mut bytes = Vec::new();
            text.write(&mut values, &mut bytes);
            bytes
        };
        let mut target = Vec::new();
        push_encoded(&text(&self.target), &mut target);
        let fields: Vec<_> = self
            .fields
            .iter()
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(&text(value)).into_owned();
                // As they are left out of values that are made.
                let value = match protocol {
                    Protocol::Http1 | Protocol::WebSocket => value.as_str(),
                    Protocol::Http2 | Protocol::Http3 => value.trim(),
                };
                (name.clone(), value.to_owned())
            })
            .collect();
        let body = self.body.as_ref().map(text);
        let body = body.map(|body| match self.coding {
            None => body,
            Some(coding) => {
                let mut coded = Vec::new();
                Compressor::new(coding).write(&body, &mut coded);
                coded
            }
        });
        let (method, body) = (&self.method, body.as_deref());
        let target = String::from_utf8_lossy(&target);
        Ok(match protocol {
            Protocol::Http1 | Protocol::WebSocket => {
                Request::encode(method, &target, "", &fields, body)?
            }
            Protocol::Http2 => Request::encode_http2(method, scheme, "", &target, &fields, body)?,
            Protocol::Http3 => Request::encode_http3(method, scheme, "", &target, &fields, body)?,
        })
    }
}

impl Text {
    fn compile(template: &Template, sources: ValueSources<'_>) -> Result<Self, MissingVariable> {
        let ValueSources { feeders, kept } = sources;
        let kept_value = |written: &str| {
            let position = kept.iter().position(|name| name == written);
            position.map(TemplatePart::Kept)
        };
        let pieces = template.parts().iter().map(|part| match part {
            Part::Text(text) => Ok(TemplatePart::Fixed(text.as_slice().into())),
            Part::Generator(generator) => Ok(TemplatePart::Generated(generator.clone())),
            Part::Response(value) => {
                let written = value.to_string();
                kept_value(&written).ok_or(MissingVariable::Unknown(written))
            }
            Part::Variable(name) => kept_value(name)
                .or_else(|| {
                    let mut feeders = feeders.iter().enumerate();
                    feeders.find_map(|(feeder, from)| {
                        let column = from.table.column(name)?;
                        Some(TemplatePart::Column { feeder, column })
                    })
                })
                .ok_or_else(|| MissingVariable::Unknown(name.clone())),
        });
        Ok(Self(pieces.collect::<Result<_, _>>()?))
    }

    fn uses(&self, feeder: usize) -> bool {
        self.0.iter().any(
            |piece| matches!(piece, TemplatePart::Column { feeder: used, .. } if *used == feeder),
        )
    }

    fn needs_clock(&self) -> bool {
        self.0
            .iter()
            .any(|piece| matches!(piece, TemplatePart::Generated(generator) if generate::needs_clock(generator)))
    }

    /// No value may end the field and begin another one (RFC 9110, section 5.5).
    fn check_for_field(&self, header: &str, feeders: &[Feeder]) -> Result<(), TemplateProblem> {
        for piece in &self.0 {
            match piece {
                TemplatePart::Generated(Generator::Choice(texts)) => {
                    if texts.iter().any(|text| has_control(text)) {
                        return Err(HeadError::Value(header.to_owned()).into());
                    }
                }
                // Fixed text is checked with the whole, other generators write nothing of the kind, and it is left out of
                // values of responses.
                TemplatePart::Fixed(_) | TemplatePart::Generated(_) | TemplatePart::Kept(_) => {}
                TemplatePart::Column { feeder, column } => {
                    let Feeder { name, table, .. } = &feeders[*feeder];
                    if let Some(row) = table.values(*column).position(has_control) {
                        return Err(TemplateProblem::Value {
                            feeder: name.clone(),
                            row: row + 1,
                            column: table.columns()[*column].clone(),
                            header: header.to_owned(),
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// The same for what becomes `:authority` (RFC 9113, section 8.3.1).
    fn check_for_authority(&self, feeders: &[Feeder]) -> Result<(), TemplateProblem> {
        let is_part = |value: &str| {
            let is_wrong = |byte: u8| byte <= b' ' || byte == 0x7f || matches!(byte, b'@' | b'/');
            !value.is_empty() && !value.bytes().any(is_wrong)
        };
        for piece in &self.0 {
            match piece {
                TemplatePart::Generated(Generator::Choice(texts)) => {
                    if let Some(text) = texts.iter().find(|text| !is_part(text)) {
                        return Err(h2::HeadError::Authority((*text).clone()).into());
                    }
                }
                TemplatePart::Kept(_) => {
                    return Err(h2::HeadError::Authority("a value of a response".to_owned()).into());
                }
                TemplatePart::Fixed(_) | TemplatePart::Generated(_) => {}
                TemplatePart::Column { feeder, column } => {
                    let Feeder { name, table, .. } = &feeders[*feeder];
                    if let Some(row) = table.values(*column).position(|value| !is_part(value)) {
                        return Err(TemplateProblem::Authority {
                            feeder: name.clone(),
                            row: row + 1,
                            column: table.columns()[*column].clone(),
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether it is always the same.
    fn is_fixed(&self) -> bool {
        self.0
            .iter()
            .all(|piece| matches!(piece, TemplatePart::Fixed(_)))
    }

    /// Writes the value of a header field: nothing in it ends the field.
    fn write_field(&self, values: &mut Values<'_>, out: &mut Vec<u8>) {
        let has_kept = |piece: &TemplatePart| matches!(piece, TemplatePart::Kept(_));
        if !self.0.iter().any(has_kept) {
            return self.write(values, out);
        }
        let start = out.len();
        self.write(values, out);
        let mut end = start;
        for position in start..out.len() {
            if !is_control(out[position]) {
                out[end] = out[position];
                end += 1;
            }
        }
        out.truncate(end);
    }

    fn write(&self, values: &mut Values<'_>, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                TemplatePart::Fixed(text) => out.extend_from_slice(text),
                TemplatePart::Column { feeder, column } => {
                    out.extend_from_slice(values.value(*feeder, *column));
                }
                TemplatePart::Generated(generator) => {
                    generate::write(generator, &mut values.entropy, out);
                }
                TemplatePart::Kept(position) => out.extend_from_slice(&values.kept[*position]),
            }
        }
    }

    /// The same, compressed if there is something to do so.
    fn write_coded(&self, values: &mut Values<'_>, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        if values.compressor.is_none() {
            self.write(values, out);
            return;
        }
        scratch.clear();
        self.write(values, scratch);
        if let Some(compressor) = &mut values.compressor {
            compressor.write(scratch, out);
        }
    }

    /// The same with percent-encoded values.
    fn write_encoded(&self, values: &mut Values<'_>, scratch: &mut Scratch, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                TemplatePart::Fixed(text) => out.extend_from_slice(text),
                TemplatePart::Column { feeder, column } => {
                    push_encoded(values.value(*feeder, *column), out);
                }
                TemplatePart::Generated(generator) => {
                    scratch.value.clear();
                    generate::write(generator, &mut values.entropy, &mut scratch.value);
                    push_encoded(&scratch.value, out);
                }
                TemplatePart::Kept(position) => push_encoded(&values.kept[*position], out),
            }
        }
    }
}

impl Values<'_> {
    fn value(&self, feeder: usize, column: usize) -> &[u8] {
        self.feeders[feeder]
            .table
            .value(self.rows[feeder], column)
            .as_bytes()
    }
}

fn is_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("host")
}

fn has_control(value: &str) -> bool {
    value.bytes().any(is_control)
}

/// Whether it ends a header field, or makes it invalid.
const fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

/// Percent-encodes what may not stand in a request target.
fn push_encoded(text: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text {
        if is_target_byte(*byte) {
            out.push(*byte);
        } else {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 0xf));
            out.extend_from_slice(&[b'%', DIGITS[high], DIGITS[low]]);
        }
    }
}
