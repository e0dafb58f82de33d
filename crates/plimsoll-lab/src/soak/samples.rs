//! The samples of a scenario: columns over time, and the CSV file that grows with them.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use plimsoll_model::ResourceSample;

use super::series::{Kind, Series};

/// The sampled values of processes, in the order of their columns.
const OF_PROCESSES: [(&str, Kind); 4] = [
    ("anonymous_bytes", Kind::Memory),
    ("file_bytes", Kind::Memory),
    ("descriptors", Kind::Gauge),
    ("threads", Kind::Gauge),
];

/// Samples so far, kept in a file too.
#[derive(Debug)]
pub(super) struct Samples {
    path: PathBuf,
    file: File,
    times: Vec<f64>,
    /// Cores that were used since the sample before.
    cores: Vec<Option<f64>>,
    columns: Vec<Column>,
    last_cpu: Option<(f64, f64)>,
}

#[derive(Debug)]
struct Column {
    name: String,
    kind: Kind,
    /// As long as the times.
    values: Vec<Option<f64>>,
}

impl Samples {
    /// Begins the file.
    ///
    /// - `has_processes`: whether processes are sampled.
    pub(super) fn create(path: &Path, has_processes: bool) -> io::Result<Self> {
        let columns = OF_PROCESSES.iter().filter(|_| has_processes);
        let mut samples = Self {
            file: File::create(path)?,
            path: path.to_owned(),
            times: Vec::new(),
            cores: Vec::new(),
            columns: columns
                .map(|(name, kind)| Column {
                    name: (*name).to_owned(),
                    kind: *kind,
                    values: Vec::new(),
                })
                .collect(),
            last_cpu: None,
        };
        samples.write_all()?;
        Ok(samples)
    }

    /// Adds a sample and writes its row.
    ///
    /// - `at`: seconds since the start.
    /// - `metrics`: name, how it is judged, and value.
    pub(super) fn add(
        &mut self,
        at: f64,
        processes: Option<&ResourceSample>,
        metrics: Vec<(String, Kind, f64)>,
    ) -> io::Result<()> {
        let before = self.times.len();
        // To the millisecond, as the file has it.
        let at = (at * 1000.0).round() / 1000.0;
        self.times.push(at);
        let cpu = processes.map(|sample| sample.cpu.total().as_secs_f64());
        let cores = cpu.zip(self.last_cpu).and_then(|(cpu, (then, spent))| {
            let time = at - then;
            let cores = (cpu - spent).max(0.0) / time;
            (time > 0.0).then(|| (cores * 1000.0).round() / 1000.0)
        });
        self.cores.push(cores);
        self.last_cpu = cpu.map(|cpu| (at, cpu)).or(self.last_cpu);
        for column in &mut self.columns {
            column.values.push(None);
        }
        if let Some(sample) = processes {
            let values = [
                sample.memory.anonymous_bytes,
                sample.memory.file_bytes,
                sample.fds,
                sample.threads,
            ];
            for (column, value) in self.columns.iter_mut().zip(values) {
                column.values[before] = Some(value as f64);
            }
        }
        let columns = self.columns.len();
        for (name, kind, value) in metrics {
            let place = self.columns.iter().position(|column| column.name == name);
            let place = place.unwrap_or_else(|| {
                self.columns.push(Column {
                    name,
                    kind,
                    values: vec![None; before + 1],
                });
                self.columns.len() - 1
            });
            self.columns[place].values[before] = Some(value);
        }
        if self.columns.len() > columns {
            // A metric that appears later has a column from then on: the file is written anew.
            return self.write_all();
        }
        let row = self.row(before);
        write_rows(&mut self.file, std::iter::once(row))
    }

    fn write_all(&mut self) -> io::Result<()> {
        self.file = File::create(&self.path)?;
        let fixed = ["t_secs", "cores"].map(str::to_owned);
        let names = self.columns.iter().map(|column| column.name.clone());
        let head: Vec<String> = fixed.into_iter().chain(names).collect();
        let rows: Vec<_> = (0..self.times.len()).map(|at| self.row(at)).collect();
        write_rows(&mut self.file, std::iter::once(head).chain(rows))
    }

    /// Cells of a row; what could not be read is empty.
    fn row(&self, at: usize) -> Vec<String> {
        let shown = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let fixed = [format!("{:.3}", self.times[at]), shown(self.cores[at])];
        let values = self.columns.iter().map(|column| shown(column.values[at]));
        fixed.into_iter().chain(values).collect()
    }

    /// Cores in use, at each sample.
    pub(super) fn cores(&self) -> Vec<(f64, Option<f64>)> {
        let cores = self.cores.iter().copied();
        self.times.iter().copied().zip(cores).collect()
    }

    /// The series to judge.
    pub(super) fn series(&self) -> Vec<Series> {
        self.columns
            .iter()
            .map(|column| Series {
                name: column.name.clone(),
                kind: column.kind,
                points: self
                    .times
                    .iter()
                    .copied()
                    .zip(column.values.iter().copied())
                    .collect(),
            })
            .collect()
    }
}

fn write_rows(file: &mut File, rows: impl Iterator<Item = Vec<String>>) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    for row in rows {
        csv.write_record(&row).map_err(io::Error::other)?;
    }
    let bytes = csv.into_inner().map_err(csv::IntoInnerError::into_error)?;
    file.write_all(&bytes)
}

/// Times and values of one series.
type Points = Vec<(f64, Option<f64>)>;

/// The series of a file that [`Samples`] has written, and the cores in use.
///
/// - `kind_of`: how a column is judged; those without an answer are left out.
pub(super) fn read(
    path: &Path,
    kind_of: impl Fn(&str) -> Option<Kind>,
) -> io::Result<(Vec<Series>, Points)> {
    let mut reader = csv::Reader::from_path(path).map_err(io::Error::other)?;
    let names: Vec<String> = reader
        .headers()
        .map_err(io::Error::other)?
        .iter()
        .map(str::to_owned)
        .collect();
    let mut columns: Vec<Points> = vec![Vec::new(); names.len()];
    for record in reader.records() {
        let record = record.map_err(io::Error::other)?;
        let Some(at) = record.get(0).and_then(|at| at.parse().ok()) else {
            continue;
        };
        for (column, cell) in columns.iter_mut().zip(record.iter()) {
            column.push((at, cell.parse().ok()));
        }
    }
    let mut columns = names.into_iter().zip(columns).skip(1);
    let cores = columns.next().map_or_else(Vec::new, |(_, points)| points);
    let series = columns.filter_map(|(name, points)| {
        let kind = kind_of(&name)?;
        Some(Series { name, kind, points })
    });
    Ok((series.collect(), cores))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_model::{CpuTime, Memory};

    use super::*;

    fn sample(anonymous_bytes: u64, cpu: u64) -> ResourceSample {
        ResourceSample {
            at: Duration::ZERO,
            cpu: CpuTime {
                user: Duration::from_secs(cpu),
                system: Duration::ZERO,
            },
            memory: Memory {
                anonymous_bytes,
                file_bytes: 1,
            },
            fds: 7,
            threads: 3,
            processes: 1,
            ..ResourceSample::default()
        }
    }

    #[test]
    fn what_is_written_is_read_again_with_gaps_and_late_columns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        let mut samples = Samples::create(&path, true).unwrap();
        samples.add(0.0, Some(&sample(100, 1)), Vec::new()).unwrap();
        let late = ("open{a=\"b,c\"}".to_owned(), Kind::Gauge, 4.0);
        samples
            .add(10.0, Some(&sample(200, 6)), vec![late.clone()])
            .unwrap();
        samples.add(20.0, None, Vec::new()).unwrap();
        samples
            .add(30.0, Some(&sample(300, 16)), vec![late])
            .unwrap();
        let series = samples.series();
        assert_eq!(series.len(), 5);
        assert_eq!(
            series[0].points,
            [
                (0.0, Some(100.0)),
                (10.0, Some(200.0)),
                (20.0, None),
                (30.0, Some(300.0))
            ]
        );
        let (read, cores) = read(&path, |name| {
            let known = series.iter().find(|series| series.name == name);
            known.map(|series| series.kind)
        })
        .unwrap();
        assert_eq!(read, series);
        assert_eq!(cores, samples.cores());
        assert_eq!(
            cores,
            [
                (0.0, None),
                (10.0, Some(0.5)),
                (20.0, None),
                (30.0, Some(0.5))
            ]
        );
    }
}
