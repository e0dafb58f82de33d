//! The terminal view of a run.
//!
//! [`View`] holds what is known and draws it; it knows no terminal and no run. [`Screen`] gives it
//! one, on a thread of its own, and listens for keys.

mod agents;

use std::collections::VecDeque;
use std::io;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_load::{Interrupt, Standing};
use plimsoll_model::{
    AgentStanding, ByteSize, Cost, DurationText, ExchangeKind, ResourceSample, Unit, grouped,
    three_figures,
};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Gauge, Paragraph, Sparkline};
use ratatui::{DefaultTerminal, Frame};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// Seconds that are shown at most.
const PAST: usize = 400;

/// How long a key may wait, and the least time between two pictures.
const PATIENCE: Duration = Duration::from_millis(100);

/// Columns and rows below which there is no room for boxes.
const NARROW: u16 = 44;
const LOW: u16 = 9;

/// Columns of one list of figures, beyond which it is not stretched.
const WIDEST: usize = 28;

/// Figures of a run so far.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    title: String,
    /// Length of the run, warm-up included, if it is bounded by time.
    duration: Option<Duration>,
    /// Requests in all, if it is bounded by number.
    requests: Option<u64>,
    exchanges: ExchangeKind,
    elapsed: Duration,
    is_warm_up: bool,
    is_stopping: bool,
    done: u64,
    /// Exchanges begun and arrivals dropped: what errors are a share of.
    tried: u64,
    errors: u64,
    failed: u64,
    unmet: u64,
    failed_status: u64,
    dropped: u64,
    in_flight: u64,
    per_second: VecDeque<u64>,
    p99_micros: VecDeque<u64>,
    latency: Vec<(&'static str, Option<Duration>)>,
    statuses: Vec<(u16, u64)>,
    failures: Vec<(String, u64)>,
    target: Option<ResourceSample>,
    cost: Option<Cost>,
    agents: Vec<AgentStanding>,
    /// What has happened beside the figures.
    note: Option<String>,
}

impl View {
    /// Nothing has happened yet.
    ///
    /// - `duration`: length of the run, warm-up included, if it is bounded by time.
    /// - `requests`: requests in all, if it is bounded by number.
    /// - `exchanges`: what they are.
    pub(super) fn new(
        title: String,
        duration: Option<Duration>,
        requests: Option<u64>,
        exchanges: ExchangeKind,
    ) -> Self {
        Self {
            title,
            duration,
            requests,
            exchanges,
            ..Self::default()
        }
    }

    /// Takes note of one more second.
    pub(super) fn update(&mut self, standing: &Standing<'_>) {
        let tick = standing.tick;
        self.elapsed = tick.at;
        self.is_warm_up = tick.warm_up;
        self.done = standing.counts.ok + standing.counts.failed;
        self.tried = standing.counts.started + standing.counts.dropped;
        self.errors = standing.counts.errors();
        self.failed = standing.counts.failed;
        self.unmet = standing.counts.unmet;
        self.failed_status = standing.counts.failed_status;
        self.dropped = standing.counts.dropped;
        self.in_flight = tick.in_flight;
        let seconds = tick.length.as_secs_f64();
        // A second that was cut short says little, and responses of the grace period are no throughput.
        if seconds > 0.2 && !tick.grace {
            // Streams are opened once; what comes on them is what goes on.
            let done = match self.exchanges {
                ExchangeKind::Stream => tick.events,
                ExchangeKind::Request | ExchangeKind::RoundTrip => tick.ok,
            };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a rate is not negative and far below 2^64"
            )]
            push(&mut self.per_second, (done as f64 / seconds) as u64);
            let p99 = tick.p99.map_or(0, |p99| p99.low().as_micros());
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
        if area.width < NARROW || area.height < LOW {
            self.draw_list(frame);
            return;
        }
        // Where there is little room the plots go first.
        let (plots, figures) = if area.height >= 16 {
            (Constraint::Fill(1), Constraint::Length(9))
        } else {
            (Constraint::Length(0), Constraint::Fill(1))
        };
        let rows = self.agent_rows(area.height);
        let [title, progress, plots, agents, figures, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            plots,
            Constraint::Length(if rows == 0 { 0 } else { rows + 3 }),
            figures,
            Constraint::Length(1),
        ])
        .areas(area);
        if rows > 0 {
            self.draw_agents(frame, agents, rows);
        }
        frame.render_widget(Line::from(self.title.as_str()).bold(), title);
        self.draw_progress(frame, progress);
        let [rate, latency] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(plots);
        let per_second = Course {
            name: match self.exchanges {
                ExchangeKind::Stream => "events/s",
                others => others.rate(),
            },
            past: &self.per_second,
            text: grouped,
            colour: Color::Blue,
        };
        let seconds = self.duration.map(|duration| duration.as_secs());
        per_second.draw(frame, rate, seconds);
        let p99 = Course {
            name: "latency p99",
            past: &self.p99_micros,
            text: |micros| DurationText(Duration::from_micros(micros)).to_string(),
            colour: Color::Yellow,
        };
        p99.draw(frame, latency, seconds);
        // Without a server to look at, its box would be empty.
        let boxes = if self.target.is_some() { 3 } else { 2 };
        let columns = Layout::horizontal(vec![Constraint::Fill(1); boxes]).split(figures);
        let width =
            |column: usize| usize::from(columns[column].width.saturating_sub(2)).min(WIDEST);
        let mut blocks = vec![
            ("latency", self.latency_lines(width(0))),
            (self.exchanges.plural(), self.response_lines(width(1))),
        ];
        if let Some(target) = &self.target {
            blocks.push(("server", self.server_lines(target, width(2))));
        }
        for (area, (title, lines)) in columns.iter().copied().zip(blocks) {
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
        let last = match &self.note {
            Some(note) if !self.is_stopping => Line::from(note.as_str()).yellow(),
            _ => Line::from(hint).dark_gray(),
        };
        frame.render_widget(last, keys);
    }

    /// On a terminal that is too small for boxes: the principal figures, one a line.
    fn draw_list(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let width = usize::from(area.width).min(WIDEST);
        let last = |past: &VecDeque<u64>| past.back().copied();
        let rate = last(&self.per_second).map_or("-".to_owned(), grouped);
        let mut lines = vec![
            entry("elapsed", &clock(self.elapsed), width),
            entry(self.exchanges.rate(), &rate, width).bold(),
        ];
        lines.extend(self.error_line(width));
        lines.extend(self.latency_lines(width));
        lines.push(entry("in flight", &grouped(self.in_flight), width));
        frame.render_widget(Paragraph::new(lines), area);
    }

    /// How many errors there were, with their share; nothing if there were none.
    fn error_line(&self, width: usize) -> Option<Line<'static>> {
        (self.errors > 0).then(|| {
            let share = self.errors as f64 / self.tried.max(1) as f64 * 100.0;
            let text = format!("{} ({} %)", grouped(self.errors), three_figures(share));
            entry("errors", &text, width).red().bold()
        })
    }

    fn draw_progress(&self, frame: &mut Frame<'_>, area: Rect) {
        let elapsed = clock(self.elapsed);
        let (share, label) = match (self.duration, self.requests) {
            (Some(duration), _) if !duration.is_zero() => (
                self.elapsed.as_secs_f64() / duration.as_secs_f64(),
                format!(
                    "{elapsed} of {}, {} left",
                    clock(duration),
                    clock(duration.saturating_sub(self.elapsed))
                ),
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
            .label(format!(" {label}{warm_up} "))
            .gauge_style(Style::new().blue().on_dark_gray());
        frame.render_widget(gauge, area);
    }

    fn latency_lines(&self, width: usize) -> Vec<Line<'static>> {
        self.latency
            .iter()
            .map(|(name, time)| {
                let time = time.map_or("-".to_owned(), |time| DurationText(time).to_string());
                entry(name, &time, width)
            })
            .collect()
    }

    /// Failures first: they are not to be cut off if the statuses are many.
    fn response_lines(&self, width: usize) -> Vec<Line<'static>> {
        let counted = |name: &str, count: u64| entry(name, &grouped(count), width);
        let mut lines = vec![entry("in flight", &grouped(self.in_flight), width)];
        lines.extend(self.error_line(width));
        for (name, count) in [
            ("failed", self.failed),
            ("unmet", self.unmet),
            ("failed status", self.failed_status),
            ("dropped", self.dropped),
        ] {
            if count > 0 {
                lines.push(counted(name, count).red());
            }
        }
        for (failure, count) in &self.failures {
            lines.push(counted(failure, *count).red());
        }
        lines.extend(self.statuses.iter().map(|(status, count)| {
            let line = counted(&status.to_string(), *count);
            if *status >= 400 { line.yellow() } else { line }
        }));
        lines
    }

    fn server_lines(&self, target: &ResourceSample, width: usize) -> Vec<Line<'static>> {
        let cost = self.cost.as_ref();
        let shown = |value: Option<f64>, unit: &str| {
            value.map_or("-".to_owned(), |value| {
                format!("{} {unit}", three_figures(value))
            })
        };
        [
            ("cpu", shown(cost.and_then(Cost::cpu_percent), "%")),
            (
                "cpu/req",
                cost.and_then(Cost::cpu_us_per_request)
                    .map_or("-".to_owned(), |micros| Unit::Microseconds.show(micros)),
            ),
            ("memory", ByteSize(target.memory.total_bytes()).to_string()),
            ("threads", grouped(target.threads)),
        ]
        .into_iter()
        .map(|(label, value)| entry(label, &value, width))
        .collect()
    }
}

/// A name on the left and its value on the right; of a name that is too long the end is left out.
fn entry(name: &str, value: &str, width: usize) -> Line<'static> {
    let room = width.saturating_sub(value.chars().count() + 1);
    let name: String = name.chars().take(room).collect();
    Line::from(format!("{name:<room$} {value}"))
}

fn push(past: &mut VecDeque<u64>, value: u64) {
    if past.len() == PAST {
        past.pop_front();
    }
    past.push_back(value);
}

/// A figure in each second.
struct Course<'a> {
    name: &'static str,
    past: &'a VecDeque<u64>,
    text: fn(u64) -> String,
    colour: Color,
}

impl Course<'_> {
    /// The last values that there is room for, with their scale on the left; the title says what the last
    /// and the highest are.
    ///
    /// - `seconds`: length of the run, if it is known: one that is short fills the width.
    fn draw(&self, frame: &mut Frame<'_>, area: Rect, seconds: Option<u64>) {
        let inside = usize::from(area.width.saturating_sub(2));
        let top = self.past.iter().copied().max().unwrap_or(0);
        let label = (self.text)(top);
        // The scale needs at least as much room again for what it measures.
        let gutter = match label.chars().count() + 1 {
            gutter if gutter * 2 <= inside && !self.past.is_empty() => gutter,
            _ => 0,
        };
        let room = inside - gutter;
        let shown = self.past.iter().copied();
        let data: Vec<u64> = shown.skip(self.past.len().saturating_sub(room)).collect();
        let value = |value: &u64| format!("  {}", (self.text)(*value));
        let last = data.last().map_or(String::new(), value);
        let highest = data.iter().max().map_or(String::new(), value);
        let mut title = format!("{}{last}  max{highest}", self.name);
        if data.is_empty() || title.chars().count() > room {
            title = format!("{}{last}", self.name);
        }
        let block = Block::bordered()
            .title(title)
            .border_style(Style::new().dark_gray());
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let columns = [
            Constraint::Length(u16::try_from(gutter).unwrap_or(0)),
            Constraint::Fill(1),
        ];
        let [scale, plot] = Layout::horizontal(columns).areas(inner);
        if gutter > 0 && scale.height > 0 {
            let width = gutter - 1;
            let mut lines = vec![Line::from(String::new()); usize::from(scale.height)];
            let middle = lines.len() / 2;
            lines[0] = Line::from(format!("{label:>width$}"));
            if lines.len() >= 5 {
                lines[middle] = Line::from(format!("{:>width$}", (self.text)(top / 2)));
            }
            if let Some(last) = lines.last_mut().filter(|_| scale.height > 1) {
                *last = Line::from(format!("{:>width$}", "0"));
            }
            frame.render_widget(Paragraph::new(lines).dark_gray(), scale);
        }
        // Each second of a short run is several columns wide.
        let all = seconds.and_then(|seconds| usize::try_from(seconds).ok());
        let columns = all.map_or(1, |all| (room / all.max(1)).max(1));
        let wide = data
            .iter()
            .flat_map(|value| std::iter::repeat_n(*value, columns))
            .collect::<Vec<u64>>();
        let from = wide.len().saturating_sub(room);
        let sparkline = Sparkline::default()
            .data(wide[from..].iter().copied())
            .max(top.max(1))
            .style(Style::new().fg(self.colour));
        frame.render_widget(sparkline, plot);
    }
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
    shared: Arc<ScreenState>,
    thread: Option<JoinHandle<()>>,
}

/// State that the run and the drawing thread share.
struct ScreenState {
    view: Mutex<View>,
    /// Whether the view is another than the one that is seen.
    is_stale: AtomicBool,
    is_closed: AtomicBool,
}

impl Screen {
    /// Takes the terminal over; a panic gives it back.
    ///
    /// - `interrupt`: set by `q` and Ctrl-C.
    pub(super) fn open(view: View, interrupt: Arc<Interrupt>) -> io::Result<Self> {
        let terminal = ratatui::try_init()?;
        let shared = Arc::new(ScreenState {
            view: Mutex::new(view),
            is_stale: AtomicBool::new(true),
            is_closed: AtomicBool::new(false),
        });
        close_on_panic(Arc::clone(&shared));
        let state = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("view".to_owned())
            .spawn(move || show(terminal, &state, &interrupt));
        Ok(Self {
            shared,
            thread: Some(thread.inspect_err(|_| ratatui::restore())?),
        })
    }

    /// Takes note of one more second.
    pub(super) fn update(&self, standing: &Standing<'_>, agents: &[AgentStanding]) {
        let mut view = lock(&self.shared.view);
        view.update(standing);
        view.update_agents(agents);
        drop(view);
        self.shared.is_stale.store(true, Ordering::Release);
    }

    /// Shows a line below the figures, in place of the one before.
    #[cfg(feature = "fleet")]
    pub(super) fn note(&self, note: Option<String>) {
        lock(&self.shared.view).note = note;
        self.shared.is_stale.store(true, Ordering::Release);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let was_closed = self.shared.is_closed.swap(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
        // A panic has given it back already; twice would put the cursor back onto the message.
        if !was_closed {
            ratatui::restore();
        }
    }
}

/// After a panic on any thread nothing is drawn any more: the hook of ratatui gives the terminal
/// back and prints the message, which is to stay legible.
fn close_on_panic(state: Arc<ScreenState>) {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        state.is_closed.store(true, Ordering::Relaxed);
        hook(info);
    }));
}

/// Draws what has changed, and listens for keys, until the screen is closed.
fn show(mut terminal: DefaultTerminal, state: &ScreenState, interrupt: &Interrupt) {
    let mut seen = None;
    while !state.is_closed.load(Ordering::Relaxed) {
        // It may be set by a signal as well as by a key.
        let is_stopping = interrupt.is_set();
        // A terminal that has gone away sends a signal.
        let Ok(size) = terminal.size() else { return };
        let is_stale = state.is_stale.swap(false, Ordering::Acquire);
        if is_stale || seen != Some((size, is_stopping)) {
            seen = Some((size, is_stopping));
            let mut shown = lock(&state.view).clone();
            shown.is_stopping = is_stopping;
            if terminal.draw(|frame| shown.draw(frame)).is_err() {
                return;
            }
        }
        match typed(PATIENCE) {
            Ok(keys) if asks_to_stop(&keys) => interrupt.ask(),
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

/// The keys that were typed at once, empty if there was none within `patience`.
///
/// Read here because crossterm, when the terminal is closed, tries to read for ever.
fn typed(patience: Duration) -> io::Result<Vec<u8>> {
    let stdin = rustix::stdio::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    let patience = Timespec::try_from(patience).expect("it is a fraction of a second");
    match rustix::event::poll(&mut watched, Some(&patience)) {
        Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut keys = vec![0; 64];
    match rustix::io::read(stdin, &mut keys)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => {
            keys.truncate(count);
            Ok(keys)
        }
    }
}

/// `q`, Escape, or Ctrl-C, which a terminal in this mode does not turn into a signal.
fn asks_to_stop(keys: &[u8]) -> bool {
    const ESCAPE: u8 = 0x1b;
    const CTRL_C: u8 = 0x03;
    match keys {
        [ESCAPE] => true,
        // Arrows and the like begin with it, too.
        [ESCAPE, ..] => false,
        keys => keys.iter().any(|key| matches!(key, b'q' | &CTRL_C)),
    }
}

fn lock(view: &Mutex<View>) -> std::sync::MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
