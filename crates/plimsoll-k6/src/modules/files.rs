//! k6/experimental/fs and k6/experimental/csv: files that `open()` reads, too.

use plimsoll_script::js::{self, Array, ArrayBuffer};

use super::Adder;
use crate::go_error::throw_error;

pub(super) fn add(adder: &Adder<'_, '_>) -> js::Result<()> {
    adder.add("openFile", |it, ctx, arguments| {
        let path = arguments.text(0)?;
        let bytes = it.user.shared.files.open(&path);
        let bytes = bytes.map_err(|error| throw_error(ctx, &error.to_string()))?;
        let made = Array::new(ctx.clone())?;
        made.set(0, path)?;
        made.set(1, bytes.len() as f64)?;
        Ok(made)
    })?;
    adder.add("readFile", |it, ctx, arguments| {
        // It was opened before, so it is kept.
        let bytes = it.user.shared.files.open(&arguments.text(0)?);
        let bytes = bytes.map_err(|error| throw_error(ctx, &error.to_string()))?;
        let start = arguments.index(1)?.min(bytes.len());
        let end = start.saturating_add(arguments.index(2)?).min(bytes.len());
        ArrayBuffer::new_copy(ctx.clone(), &bytes[start..end]).map(ArrayBuffer::into_value)
    })?;
    adder.add("parseCsv", |it, ctx, arguments| {
        let path = arguments.text(0)?;
        let bytes = it.user.shared.files.open(&path);
        let bytes = bytes.map_err(|error| throw_error(ctx, &error.to_string()))?;
        let delimiter = arguments.text(1)?;
        let &[delimiter] = delimiter.as_bytes() else {
            let message = "the delimiter of a CSV is one character of ASCII";
            return Err(throw_error(ctx, message));
        };
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(bytes.as_slice());
        let made = Array::new(ctx.clone())?;
        for (index, record) in reader.records().enumerate() {
            let record = record
                .map_err(|error| throw_error(ctx, &format!("cannot parse {path}: {error}")))?;
            let row = Array::new(ctx.clone())?;
            for (column, field) in record.iter().enumerate() {
                row.set(column, field)?;
            }
            made.set(index, row)?;
        }
        Ok(made)
    })
}
