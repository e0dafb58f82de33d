//! `series.csv`: rows that add up to the counts of the run.

use super::{BUCKET, Figures, Ranges, Shown, exact};
use crate::Failure;

/// Columns whose rows outside of the warm-up add up to a figure.
const SUMS: [(&str, &str); 2] = [("ok", "ok"), ("failed", "failed")];

/// Columns of percentiles. That of the run is not below the lowest of a row, and not above the highest.
const PERCENTILES: [(&str, &str); 2] = [("p50", "p50_us"), ("p99", "p99_us")];

/// The file by its columns.
struct Series<'a> {
    head: Vec<&'a str>,
    rows: Vec<Vec<&'a str>>,
}

impl<'a> Series<'a> {
    fn read(text: &'a str) -> Self {
        let mut lines = text.lines().map(|line| line.split(',').collect());
        Self {
            head: lines.next().unwrap_or_default(),
            rows: lines.collect(),
        }
    }

    /// The fields of a column, all of them or those of rows outside of the warm-up.
    fn fields(&self, name: &str, with_warm_up: bool) -> Result<Vec<&'a str>, Failure> {
        let index = |name: &str| {
            let found = self.head.iter().position(|column| *column == name);
            found.ok_or_else(|| Failure(format!("series.csv has no column {name}")))
        };
        let (column, warm_up) = (index(name)?, index("warm_up")?);
        let rows = self.rows.iter();
        let rows = rows.filter(|row| with_warm_up || row.get(warm_up) == Some(&"false"));
        Ok(rows.filter_map(|row| row.get(column).copied()).collect())
    }

    fn numbers(&self, name: &str, with_warm_up: bool) -> Result<Vec<f64>, Failure> {
        let fields = self.fields(name, with_warm_up)?;
        Ok(fields
            .iter()
            .filter_map(|field| field.parse().ok())
            .collect())
    }
}

pub(super) fn figures(text: &str) -> Result<(Figures, Ranges), Failure> {
    let series = Series::read(text);
    let sum = |name: &str, with_warm_up: bool| -> Result<f64, Failure> {
        Ok(series.numbers(name, with_warm_up)?.iter().sum())
    };
    let mut figures = Figures::new();
    for (name, key) in SUMS {
        figures.insert(name, exact(sum(key, false)?));
    }
    let errors = sum("other_errors", false)? + sum("failed", false)?;
    figures.insert("errors", exact(errors));
    figures.insert("received", exact(sum("received_bytes", true)?));
    let censored = series.fields("censored", false)?;
    let longest = series.numbers("max_us", false)?;
    if let Some(longest) = longest.into_iter().reduce(f64::max) {
        let is_bound = |names: &&str| names.split(' ').any(|name| name == "max_us");
        figures.insert(
            "max",
            Shown {
                value: longest,
                is_bound: censored.iter().any(is_bound),
                rounding: BUCKET,
            },
        );
    }
    let mut ranges = Ranges::new();
    for (name, key) in PERCENTILES {
        let times = series.numbers(key, false)?;
        let low = times.iter().copied().reduce(f64::min);
        let high = times.iter().copied().reduce(f64::max);
        ranges.extend(low.zip(high).map(|range| (name, range)));
    }
    Ok((figures, ranges))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_without_the_warm_up() {
        let text = "at_us,warm_up,ok,failed,other_errors,received_bytes,p50_us,p99_us,max_us,censored\n\
            1,true,5,0,0,50,1,1,1,\n2,false,7,1,2,70,20,30,40,max_us\n3,false,8,0,1,80,10,,30,\n";
        let (figures, ranges) = figures(text).unwrap();
        let value = |name| figures.get(name).map(|shown: &Shown| shown.value);
        assert_eq!(value("ok"), Some(15.0));
        assert_eq!(value("errors"), Some(4.0));
        assert_eq!(value("received"), Some(200.0));
        assert_eq!(value("max"), Some(40.0));
        assert!(figures["max"].is_bound);
        assert_eq!(
            ranges,
            Ranges::from([("p50", (10.0, 20.0)), ("p99", (30.0, 30.0))])
        );
    }
}
