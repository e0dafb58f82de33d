//! What hostile input costs: every parser and condition is fed inputs of two sizes, and neither processor time nor
//! memory may grow faster than the input.
//!
//! Processor time is that of the thread, the least of several runs, so other work on the machine changes little; the
//! factors are generous, since quadratic cost shows as a factor of 16. `cargo xtask cost` prints the table.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod codecs;

mod files;

mod rules;

use std::time::Duration;

use plimsoll_testkit::{CountingAllocator, peak_bytes_of};
use rustix::time::{ClockId, clock_gettime};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The larger input in terms of the smaller one.
const GROWTH: usize = 4;
/// Cost of the larger input in terms of the smaller one: linear is 4, quadratic 16.
const MOST_GROWTH: f64 = 9.0;
/// Memory that a parser may hold for each byte of input. A tree of small JSON values takes 40 to 80.
const MOST_BYTES_PER_BYTE: f64 = 400.0;
/// Shorter times are too close to page faults and interrupts of a busy machine to compare. Quadratic cost is far above: 64 KiB
/// at a tenth of a nanosecond per pair of bytes take 400 ms.
const SHORTEST: Duration = Duration::from_millis(1);
/// Less memory is that of fixed buffers.
const LEAST_BYTES: u64 = 256 << 10;
const RUNS: usize = 3;

/// One kind of hostile input for one parser.
struct Case {
    name: &'static str,
    /// Bytes of the smaller input.
    bytes: usize,
    /// An input of about that many bytes.
    make: fn(usize) -> Vec<u8>,
    run: fn(&[u8]),
}

/// A case with inputs of 16 and 64 KiB.
const fn case(name: &'static str, make: fn(usize) -> Vec<u8>, run: fn(&[u8])) -> Case {
    Case {
        name,
        bytes: 16 << 10,
        make,
        run,
    }
}

/// What one input took.
struct Cost {
    input_bytes: usize,
    cpu: Duration,
    peak_bytes: u64,
}

impl Cost {
    fn measure(case: &Case, bytes: usize) -> Self {
        let input = (case.make)(bytes);
        let mut cpu = Duration::MAX;
        let mut peak_bytes = u64::MAX;
        for _ in 0..RUNS {
            let begun = thread_time();
            let ((), peak) = peak_bytes_of(|| (case.run)(&input));
            cpu = cpu.min(thread_time().saturating_sub(begun));
            peak_bytes = peak_bytes.min(peak);
        }
        Self {
            input_bytes: input.len(),
            cpu,
            peak_bytes,
        }
    }

    fn nanoseconds_per_byte(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e9 / self.input_bytes as f64
    }

    fn held_per_byte(&self) -> f64 {
        self.peak_bytes as f64 / self.input_bytes as f64
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap();
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap())
}

/// What is wrong with the cost of a case, if anything is.
fn complaint(small: &Cost, large: &Cost) -> Option<&'static str> {
    let inputs = large.input_bytes as f64 / small.input_bytes as f64;
    let most = MOST_GROWTH / GROWTH as f64 * inputs;
    let cpu = large.cpu.as_secs_f64() / small.cpu.as_secs_f64().max(1e-9);
    let memory = large.peak_bytes as f64 / small.peak_bytes.max(1) as f64;
    if large.cpu > SHORTEST && cpu > most {
        return Some("CPU grows faster than the input");
    }
    if large.peak_bytes > LEAST_BYTES && memory > most {
        return Some("memory grows faster than the input");
    }
    (large.peak_bytes > LEAST_BYTES && large.held_per_byte() > MOST_BYTES_PER_BYTE)
        .then_some("too much memory for each byte")
}

#[test]
fn hostile_input_costs_no_more_than_its_size() {
    let cases = [codecs::CASES, files::CASES, rules::CASES];
    println!(
        "{:<46}{:>9}{:>22}{:>22}",
        "input", "bytes", "CPU ns per byte", "memory per byte"
    );
    let mut wrong = Vec::new();
    for case in cases.into_iter().flatten() {
        let small = Cost::measure(case, case.bytes);
        let mut large = Cost::measure(case, case.bytes * GROWTH);
        let mut complaint = complaint(&small, &large);
        for _ in 0..2 {
            if complaint.is_none() {
                break;
            }
            // A page fault or an interrupt at the wrong moment; what is real shows again.
            let small = Cost::measure(case, case.bytes);
            large = Cost::measure(case, case.bytes * GROWTH);
            complaint = self::complaint(&small, &large);
        }
        println!(
            "{:<46}{:>9}{:>11.1} → {:>8.1}{:>11.1} → {:>8.1}  {}",
            case.name,
            large.input_bytes,
            small.nanoseconds_per_byte(),
            large.nanoseconds_per_byte(),
            small.held_per_byte(),
            large.held_per_byte(),
            complaint.unwrap_or_default(),
        );
        if let Some(complaint) = complaint {
            wrong.push(format!("{}: {complaint}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_evaluation_of_xpath_holds_less_than_4_mib() {
    let wide =
        |bytes: usize| [b"<r>".to_vec(), repeat("<a>1</a>", bytes), b"</r>".to_vec()].concat();
    for (input, expressions) in [
        (
            nested("<a>", "</a>", 60 << 10),
            ["//a//a//b", "//a", "//a/ancestor::a"],
        ),
        (
            wide(900 << 10),
            ["//a", "//a/following-sibling::a", "//text()"],
        ),
    ] {
        let held = |expression: &str| {
            let condition = format!("request.body.xpath.\"{expression}\" = \"x\"");
            peak_bytes_of(|| rules::with_xml(&condition, &input)).1
        };
        // The request and its document are held either way.
        let document = held("/x");
        for expression in expressions {
            let evaluation = held(expression).saturating_sub(document);
            assert!(evaluation < 4 << 20, "{expression}: {evaluation}");
        }
    }
}

/// `unit` as often as it takes for `bytes` bytes.
fn repeat(unit: &str, bytes: usize) -> Vec<u8> {
    unit.repeat(bytes.div_ceil(unit.len())).into_bytes()
}

/// `before`, then `unit` with its number in place of `#` until there are `bytes` bytes, then `after`; units are
/// separated by `separator`.
fn numbered(before: &str, unit: &str, separator: &str, after: &str, bytes: usize) -> Vec<u8> {
    let mut text = before.to_owned();
    let mut number = 0;
    while text.len() < bytes {
        if number > 0 {
            text.push_str(separator);
        }
        text.push_str(&unit.replace('#', &number.to_string()));
        number += 1;
    }
    text.push_str(after);
    text.into_bytes()
}

/// `open` and `close` around nothing, nested until there are `bytes` bytes.
fn nested(open: &str, close: &str, bytes: usize) -> Vec<u8> {
    let depth = bytes / (open.len() + close.len());
    (open.repeat(depth) + &close.repeat(depth)).into_bytes()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
