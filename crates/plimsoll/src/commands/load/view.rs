//! What a terminal shows while a run goes on.
//!
//! [`View`] holds what is known and draws it; it knows no terminal and no run. [`Screen`] gives it
//! one, on a thread of its own, and listens for keys.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_load::{Interrupt, Standing};
use plimsoll_model::{ByteSize, Cost, DurationText, ResourceSample, grouped, three_figures};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Gauge, Paragraph, Sparkline};
use ratatui::{DefaultTerminal, Frame};

/// Seconds that are shown at most.
const PAST: usize = 400;

/// How long a key may wait.
const PATIENCE: Duration = Duration::from_millis(200);

/// What is known of a run that goes on.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    title: String,
    /// Length of the run, warm-up included, if it is bounded by time.
    duration: Option<Duration>,
    /// Requests in all, if it is bounded by number.
    requests: Option<u64>,
    elapsed: Duration,
    is_warm_up: bool,
    is_stopping: bool,
    done: u64,
    errors: u64,
    in_flight: u64,
    per_second: VecDeque<u64>,
    p99_micros: VecDeque<u64>,
    latency: Vec<(&'static str, Option<Duration>)>,
    statuses: Vec<(u16, u64)>,
    failures: Vec<(String, u64)>,
    target: Option<ResourceSample>,
    cost: Option<Cost>,
}

impl View {
    /// Nothing has happened yet.
    ///
    /// - `duration`: length of the run, warm-up included, if it is bounded by time.
    /// - `requests`: requests in all, if it is bounded by number.
    pub(super) fn new(title: String, duration: Option<Duration>, requests: Option<u64>) -> Self {
        Self {
            title,
            duration,
            requests,
            ..Self::default()
        }
    }

    /// Takes note of one more second.
    pub(super) fn update(&mut self, standing: &Standing<'_>) {
        let tick = standing.tick;
        self.elapsed = tick.at;
        self.is_warm_up = tick.warm_up;
        self.done = standing.counts.ok + standing.counts.failed;
        self.errors = standing.counts.errors();
        self.in_flight = tick.in_flight;
        let seconds = tick.length.as_secs_f64();
        // A second that was cut short tells little.
        if seconds > 0.2 {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a rate is not negative and far below 2^64"
            )]
            push(&mut self.per_second, (tick.ok as f64 / seconds) as u64);
            let p99 = tick.p99.unwrap_or_default().as_micros();
            push(&mut self.p99_micros, u64::try_from(p99).unwrap_or(u64::MAX));
        }
        let quantile = |fraction| standing.latency.quantile(fraction);
        self.latency = vec![
            ("p50", quantile(0.5)),
            ("p90", quantile(0.9)),
            ("p99", quantile(0.99)),
            ("p99.9", quantile(0.999)),
            ("max", standing.latency.max()),
        ];
        self.statuses.clone_from(&standing.statuses);
        self.failures = standing
            .failures
            .iter()
            .map(|failure| (format!("{} {}", failure.phase, failure.kind), failure.count))
            .collect();
        if let Some(sample) = standing.target {
            let before = self.target.as_ref();
            self.cost = before.map(|before| Cost::between(before, &sample));
            self.target = Some(sample);
        }
    }

    /// Draws everything that there is room for.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        // Where there is little room the plots go first.
        let (plots, figures) = if area.height >= 16 {
            (Constraint::Fill(1), Constraint::Length(9))
        } else {
            (Constraint::Length(0), Constraint::Fill(1))
        };
        let [title, progress, plots, figures, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            plots,
            figures,
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(Line::from(self.title.as_str()).bold(), title);
        self.draw_progress(frame, progress);
        let [rate, latency] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(plots);
        let now = |past: &VecDeque<u64>| past.back().copied().unwrap_or(0);
        draw_course(
            frame,
            rate,
            format!("requests/s  {}", grouped(now(&self.per_second))),
            &self.per_second,
            Color::Blue,
        );
        let p99 = Duration::from_micros(now(&self.p99_micros));
        draw_course(
            frame,
            latency,
            format!("latency p99  {}", DurationText(p99)),
            &self.p99_micros,
            Color::Yellow,
        );
        let columns = Layout::horizontal([Constraint::Fill(1); 3]).areas::<3>(figures);
        let blocks = [
            ("latency", self.latency_lines()),
            ("responses", self.response_lines()),
            ("server", self.server_lines()),
        ];
        for (area, (title, lines)) in columns.into_iter().zip(blocks) {
            let block = Block::bordered()
                .title(title)
                .border_style(Style::new().dark_gray());
            frame.render_widget(Paragraph::new(lines).block(block), area);
        }
        let hint = if self.is_stopping {
            "stopping: requests under way may finish; q again does not wait"
        } else {
            "q stops and prints the summary"
        };
        frame.render_widget(Line::from(hint).dark_gray(), keys);
    }

    fn draw_progress(&self, frame: &mut Frame<'_>, area: Rect) {
        let elapsed = clock(self.elapsed);
        let (share, label) = match (self.duration, self.requests) {
            (Some(duration), _) if !duration.is_zero() => (
                self.elapsed.as_secs_f64() / duration.as_secs_f64(),
                format!("{elapsed} of {}", clock(duration)),
            ),
            (_, Some(requests)) if requests > 0 => (
                self.done as f64 / requests as f64,
                format!("{} of {}, {elapsed}", grouped(self.done), grouped(requests)),
            ),
            _ => (0.0, elapsed),
        };
        let warm_up = if self.is_warm_up { ", warm-up" } else { "" };
        let gauge = Gauge::default()
            .ratio(share.clamp(0.0, 1.0))
            .label(format!("{label}{warm_up}"))
            .gauge_style(Style::new().blue().on_dark_gray());
        frame.render_widget(gauge, area);
    }

    fn latency_lines(&self) -> Vec<Line<'static>> {
        self.latency
            .iter()
            .map(|(name, time)| {
                let time = time.map_or("-".to_owned(), |time| DurationText(time).to_string());
                Line::from(format!("{name:<6} {time:>9}"))
            })
            .collect()
    }

    fn response_lines(&self) -> Vec<Line<'static>> {
        let mut lines: Vec<_> = self
            .statuses
            .iter()
            .map(|(status, count)| {
                let line = Line::from(format!("{status:<6} {:>12}", grouped(*count)));
                if *status >= 400 { line.yellow() } else { line }
            })
            .collect();
        for (failure, count) in &self.failures {
            lines.push(Line::from(format!("{:>6} {failure}", grouped(*count))).red());
        }
        // Last, where it is cut off first if the statuses are many.
        if self.errors > 0 {
            lines.push(Line::from(format!("errors {:>12}", grouped(self.errors))).red());
        }
        lines
    }

    fn server_lines(&self) -> Vec<Line<'static>> {
        let mut lines = vec![Line::from(format!(
            "in flight {:>12}",
            grouped(self.in_flight)
        ))];
        if let Some(target) = &self.target {
            let cost = self.cost.as_ref();
            let shown = |value: Option<f64>, unit: &str| {
                value.map_or("-".to_owned(), |value| {
                    format!("{} {unit}", three_figures(value))
                })
            };
            let percent = shown(cost.and_then(Cost::cpu_percent), "%");
            let micros = shown(cost.and_then(Cost::cpu_us_per_request), "µs");
            let memory = ByteSize(target.memory.total_bytes()).to_string();
            for (label, value) in [
                ("cpu", percent),
                ("cpu/req", micros),
                ("memory", memory),
                ("threads", grouped(target.threads)),
            ] {
                lines.push(Line::from(format!("{label:<9} {value:>12}")));
            }
        }
        lines
    }
}

fn push(past: &mut VecDeque<u64>, value: u64) {
    if past.len() == PAST {
        past.pop_front();
    }
    past.push_back(value);
}

/// The last values that there is room for.
fn draw_course(
    frame: &mut Frame<'_>,
    area: Rect,
    title: String,
    past: &VecDeque<u64>,
    colour: Color,
) {
    let room = usize::from(area.width.saturating_sub(2));
    let data: Vec<u64> = past
        .iter()
        .skip(past.len().saturating_sub(room))
        .copied()
        .collect();
    let block = Block::bordered()
        .title(title)
        .border_style(Style::new().dark_gray());
    let sparkline = Sparkline::default()
        .data(data)
        .style(Style::new().fg(colour))
        .block(block);
    frame.render_widget(sparkline, area);
}

/// `12 s`, `3:07`, `1:02:09`.
fn clock(time: Duration) -> String {
    let seconds = (time + Duration::from_millis(500)).as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest} s"),
        (0, _) => format!("{minutes}:{rest:02}"),
        _ => format!("{hours}:{minutes:02}:{rest:02}"),
    }
}

/// A terminal that shows a [`View`] until it is closed.
pub(super) struct Screen {
    view: Arc<Mutex<View>>,
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Screen {
    /// Takes the terminal over; a panic gives it back.
    ///
    /// - `interrupt`: asked by `q` and Ctrl-C.
    pub(super) fn open(view: View, interrupt: Arc<Interrupt>) -> io::Result<Self> {
        let terminal = ratatui::try_init()?;
        let view = Arc::new(Mutex::new(view));
        let closed = Arc::new(AtomicBool::new(false));
        let work = {
            let (view, closed) = (Arc::clone(&view), Arc::clone(&closed));
            move || show(terminal, &view, &closed, &interrupt)
        };
        let thread = thread::Builder::new().name("view".to_owned()).spawn(work);
        Ok(Self {
            view,
            closed,
            thread: Some(thread.inspect_err(|_| ratatui::restore())?),
        })
    }

    /// Takes note of one more second.
    pub(super) fn update(&self, standing: &Standing<'_>) {
        lock(&self.view).update(standing);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It gives the terminal back even if it panicked.
            drop(thread.join());
        }
        ratatui::restore();
    }
}

fn show(
    mut terminal: DefaultTerminal,
    view: &Mutex<View>,
    closed: &AtomicBool,
    interrupt: &Interrupt,
) {
    while !closed.load(Ordering::Relaxed) {
        let mut shown = lock(view).clone();
        shown.is_stopping = interrupt.is_asked();
        // A terminal that has gone away is told by a signal.
        if terminal.draw(|frame| shown.draw(frame)).is_err() {
            return;
        }
        match event::poll(PATIENCE) {
            Ok(true) => match event::read() {
                Ok(event) if is_stop(&event) => interrupt.ask(),
                Ok(_) => {}
                Err(_) => return,
            },
            Ok(false) => {}
            Err(_) => return,
        }
    }
}

/// `q`, Escape, or Ctrl-C, which a terminal in this mode does not turn into a signal.
fn is_stop(event: &Event) -> bool {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
            KeyCode::Char('q') | KeyCode::Esc => true,
            KeyCode::Char('c') => key.modifiers.contains(KeyModifiers::CONTROL),
            _ => false,
        },
        _ => false,
    }
}

fn lock(view: &Mutex<View>) -> std::sync::MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
