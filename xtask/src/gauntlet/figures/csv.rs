//! `series.csv`: rows that add up to the counts of the run.

use super::{Figures, exact};
use crate::Failure;

/// Columns whose rows outside of the warm-up add up to a figure.
const SUMS: [(&str, &str); 2] = [("ok", "ok"), ("failed", "failed")];

pub(super) fn figures(text: &str) -> Result<Figures, Failure> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| {
        let found = head.iter().position(|column| *column == name);
        found.ok_or_else(|| format!("series.csv has no column {name}"))
    };
    let warm_up = column("warm_up")?;
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let sum = |column: usize, with_warm_up: bool| -> f64 {
        let rows = rows.iter();
        let rows = rows.filter(|row| with_warm_up || row.get(warm_up) == Some(&"false"));
        rows.filter_map(|row| row.get(column)?.parse::<f64>().ok())
            .sum()
    };
    let mut figures = Figures::new();
    for (name, key) in SUMS {
        figures.insert(name, exact(sum(column(key)?, false)));
    }
    let others = sum(column("other_errors")?, false);
    let failed = sum(column("failed")?, false);
    figures.insert("errors", exact(others + failed));
    figures.insert("received", exact(sum(column("received_bytes")?, true)));
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_without_the_warm_up() {
        let text = "at_us,warm_up,ok,failed,other_errors,received_bytes\n\
            1,true,5,0,0,50\n2,false,7,1,2,70\n3,false,8,0,1,80\n";
        let figures = figures(text).unwrap();
        let value = |name| {
            figures
                .get(name)
                .map(|shown: &super::super::Shown| shown.value)
        };
        assert_eq!(value("ok"), Some(15.0));
        assert_eq!(value("errors"), Some(4.0));
        assert_eq!(value("received"), Some(200.0));
    }
}
