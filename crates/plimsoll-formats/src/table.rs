//! Rows of values for the places of templates, from CSV or JSON.

pub(crate) mod json5;

pub(crate) mod records;

use std::collections::HashSet;

use plimsoll_model::counted;
use serde_json::Value;

use crate::Remark;
use crate::template::is_variable;

/// Rows of values under named columns; at least one of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    columns: Vec<String>,
    cells: Vec<Box<str>>,
}

impl Table {
    /// Reads a file: JSON if it begins with a bracket or a brace, else CSV with a line of names
    /// (RFC 4180), or with tabs if the first line has one and no comma.
    ///
    /// JSON is an array of objects, or one object a line.
    pub fn parse(text: &str) -> Result<Self, Vec<Remark>> {
        let text = text.trim_start_matches('\u{feff}');
        let table = match text.trim_start().chars().next() {
            Some('[') => parse_array(text),
            Some('{') => parse_lines(text),
            _ => parse_csv(text),
        }?;
        if table.cells.is_empty() {
            return Err(vec![Remark::whole("holds no row of values")]);
        }
        let mut seen = HashSet::new();
        let wrong: Vec<Remark> = table
            .columns
            .iter()
            .filter_map(|name| {
                let message = if !seen.insert(name) {
                    format!("there are two columns `{name}`")
                } else if is_variable(name) {
                    return None;
                } else {
                    format!("column name `{name}` has other characters than letters, digits, `_`, `-` and `.`")
                };
                Some(Remark::whole(message))
            })
            .collect();
        if wrong.is_empty() {
            Ok(table)
        } else {
            Err(wrong)
        }
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Position of the column of that name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.cells.len() / self.columns.len()
    }

    /// The value in a row and a column, which must be there.
    pub fn value(&self, row: usize, column: usize) -> &str {
        &self.cells[row * self.columns.len() + column]
    }

    /// The values of a column, from the first row to the last.
    pub fn values(&self, column: usize) -> impl Iterator<Item = &str> {
        (0..self.rows()).map(move |row| self.value(row, column))
    }
}

fn parse_csv(text: &str) -> Result<Table, Vec<Remark>> {
    let first = text.lines().next().unwrap_or_default();
    let delimiter = match (
        first.contains(','),
        first.contains('\t'),
        first.contains(';'),
    ) {
        (true, _, _) => b',',
        (_, true, _) => b'\t',
        (_, _, true) => b';',
        _ => b',',
    };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .from_reader(text.as_bytes());
    let columns: Vec<String> = match reader.headers() {
        Ok(names) => names.iter().map(|name| name.trim().to_owned()).collect(),
        Err(error) => return Err(vec![of_csv(&error)]),
    };
    let mut cells = Vec::new();
    let mut problems = Vec::new();
    for record in reader.records() {
        match record {
            Ok(record) => cells.extend(record.iter().map(Box::from)),
            Err(error) => problems.push(of_csv(&error)),
        }
    }
    if problems.is_empty() {
        Ok(Table { columns, cells })
    } else {
        Err(problems)
    }
}

pub(crate) fn of_csv(error: &csv::Error) -> Remark {
    let line = error.position().map(csv::Position::line);
    let line = line.and_then(|line| usize::try_from(line).ok());
    let message = match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            let (expected_len, len) = (*expected_len, *len);
            let values = counted(len, "value");
            format!("has {values} for {}", counted(expected_len, "column"))
        }
        csv::ErrorKind::Utf8 { .. } => "is not UTF-8".to_owned(),
        _ => error.to_string(),
    };
    match line {
        Some(line) => Remark::line(line, message),
        None => Remark::whole(message),
    }
}

fn parse_array(text: &str) -> Result<Table, Vec<Remark>> {
    let rows: Vec<Value> = serde_json::from_str(text).map_err(|error| vec![of_json(&error, 0)])?;
    let rows = rows.into_iter().enumerate();
    from_rows(rows.map(|(index, row)| (crate::Place::Entry(index + 1), row)))
}

fn parse_lines(text: &str) -> Result<Table, Vec<Remark>> {
    let mut rows = Vec::new();
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(line) {
            Ok(row) => rows.push((crate::Place::Line(index + 1), row)),
            Err(error) => problems.push(of_json(&error, index)),
        }
    }
    if problems.is_empty() {
        from_rows(rows.into_iter())
    } else {
        Err(problems)
    }
}

fn of_json(error: &serde_json::Error, lines_before: usize) -> Remark {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    Remark::line(
        lines_before + error.line(),
        format!("is not JSON: {message}"),
    )
}

fn from_rows(rows: impl Iterator<Item = (crate::Place, Value)>) -> Result<Table, Vec<Remark>> {
    let mut columns: Vec<String> = Vec::new();
    let mut cells = Vec::new();
    let mut problems = Vec::new();
    for (place, row) in rows {
        let Value::Object(row) = row else {
            problems.push(Remark::new(
                place,
                "is not an object with a value for each column",
            ));
            continue;
        };
        if columns.is_empty() {
            columns = row.keys().cloned().collect();
        }
        for name in row.keys() {
            if !columns.contains(name) {
                let message = format!("has `{name}`, which the first row does not have");
                problems.push(Remark::new(place.clone(), message));
            }
        }
        for name in &columns {
            if let Some(value) = row.get(name) {
                cells.push(text_of(value).into());
            } else {
                let message = format!("has no `{name}`, which the first row has");
                problems.push(Remark::new(place.clone(), message));
            }
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    if columns.is_empty() {
        return Err(vec![Remark::whole("holds no row of values")]);
    }
    Ok(Table { columns, cells })
}

/// A string as it is, nothing for null, the rest as JSON.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests;
