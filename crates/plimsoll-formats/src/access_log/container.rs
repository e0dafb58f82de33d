//! What engines of containers write around each line of output: containerd and CRI-O a time, the stream and whether the line
//! is whole (`TIME stdout F LINE`), Docker's `json-file` an object (`{"log": LINE, "stream": …, "time": …}`). Both cut lines of
//! more than 16 KiB into parts.

use serde_json::Value;

use super::time::Time;

/// What an engine wrote in one of its lines.
#[derive(Debug, PartialEq)]
pub(super) struct Output {
    pub(super) stream: Stream,
    pub(super) text: String,
    pub(super) written: Time,
    /// Whether the line of the program ends here.
    pub(super) is_end: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Error,
}

impl Stream {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "stdout" => Some(Self::Out),
            "stderr" => Some(Self::Error),
            _ => None,
        }
    }
}

impl Output {
    /// `None` for a line that no engine wrote.
    pub(super) fn parse(line: &str) -> Option<Self> {
        if line.starts_with('{') {
            Self::of_object(line)
        } else {
            Self::of_text(line)
        }
    }

    fn of_object(line: &str) -> Option<Self> {
        // Most objects are requests: they are not read twice.
        if !line.contains("\"log\"") || !line.contains("\"stream\"") {
            return None;
        }
        let object: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| object.get(key)?.as_str();
        let log = text("log")?;
        Some(Self {
            stream: Stream::parse(text("stream")?)?,
            text: log.trim_end_matches(['\r', '\n']).to_owned(),
            written: Time::parse(text("time")?)?,
            is_end: log.ends_with('\n'),
        })
    }

    fn of_text(line: &str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        let time = words.next()?;
        let stream = Stream::parse(words.next()?)?;
        // More tags may follow behind a colon.
        let tag = words.next()?.split(':').next()?;
        let is_end = match tag {
            "F" => true,
            "P" => false,
            _ => return None,
        };
        Some(Self {
            stream,
            text: words.next().unwrap_or_default().to_owned(),
            written: Time::parse(time)?,
            is_end,
        })
    }
}

/// Lines of a program, put together from the parts that an engine wrote.
#[derive(Debug, Default)]
pub(super) struct Parts {
    out: String,
    error: String,
}

impl Parts {
    /// The line that ends with this output, if one does.
    pub(super) fn add(&mut self, output: &Output) -> Option<String> {
        let before = match output.stream {
            Stream::Out => &mut self.out,
            Stream::Error => &mut self.error,
        };
        before.push_str(&output.text);
        output.is_end.then(|| std::mem::take(before))
    }
}
