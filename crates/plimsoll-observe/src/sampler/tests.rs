use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_model::CpuTime;

use super::*;

fn work(interval: Duration) -> Work<fn() -> (u64, Moment)> {
    Work {
        target: None,
        generator: None,
        start: SystemClock.now(),
        interval,
        state: || (0, Moment::default()),
        latest: Arc::default(),
        due: VecDeque::new(),
        open_gap: None,
        samples: Samples::default(),
    }
}

/// Gives these samples one after the other, and then ends.
#[derive(Debug)]
struct Scripted(Vec<Result<u64, &'static str>>);

impl SampleSource for Scripted {
    fn sample(&mut self, at: Duration, completed: u64) -> Result<ResourceSample, SampleError> {
        if self.0.is_empty() {
            return Err(SampleError::Ended(crate::TargetEnded { pid: 7 }));
        }
        match self.0.remove(0) {
            Ok(fds) => Ok(ResourceSample {
                at,
                fds,
                completed,
                ..ResourceSample::default()
            }),
            Err(reason) => Err(SampleError::Gap {
                reason: reason.to_owned(),
            }),
        }
    }
}

#[test]
fn a_gap_is_no_sample_and_has_both_ends() {
    let mut work = work(Duration::from_millis(100));
    let script = [Ok(1), Err("no answer"), Err("refused"), Ok(4), Err("late")];
    work.target = Some(Box::new(Scripted(script.to_vec())));
    let millis = Duration::from_millis;
    let taken: Vec<_> = (1..=7).map(|at| work.target(millis(at), at)).collect();
    let fds: Vec<_> = taken.iter().map(|it| it.map(|it| it.fds)).collect();
    assert_eq!(fds, [Some(1), None, None, Some(4), None, None, None]);
    assert_eq!(work.samples.target_ended, Some(millis(6)));
    let samples = work.finish();
    assert_eq!(samples.target.len(), 2, "no zeros");
    let [first, last] = samples.gaps.as_slice() else {
        panic!("{:?}", samples.gaps);
    };
    assert_eq!(
        (first.from, first.to, first.reason.as_str()),
        (millis(1), millis(4), "no answer")
    );
    assert_eq!((last.from, last.reason.as_str()), (millis(4), "late"));
}

#[test]
fn marks_are_kept_in_order_also_without_a_sample() {
    let source = Scripted(vec![Ok(1), Ok(2), Err("away"), Ok(4)]);
    let start = SystemClock.now();
    let sampler = Sampler::start(Some(Box::new(source)), None, start, LONG, || {
        (0, Moment::default())
    });
    sampler.mark();
    sampler.mark();
    let now = sampler.sample_now().map(|it| it.fds);
    assert_eq!(now, Some(4));
    assert_eq!(sampler.take_latest().map(|it| it.fds), Some(4));
    assert_eq!(sampler.take_latest(), None, "it was taken");
    let marks = sampler.stop().marks;
    let marks: Vec<_> = marks.iter().map(|it| it.map(|it| it.fds)).collect();
    assert_eq!(marks, [Some(2), None]);
}

#[test]
fn marks_are_taken_when_they_are_due_and_not_long_after() {
    let millis = Duration::from_millis;
    let now = SystemClock.now();
    let long_ago = now.checked_sub(LATE).unwrap();
    let source = Scripted((1..=1_000).map(Ok).collect());
    let due = vec![long_ago, now + millis(50), now + LONG];
    let sampler =
        Sampler::start_with_marks(Some(Box::new(source)), None, now, millis(20), due, || {
            (0, Moment::default())
        });
    plimsoll_testkit::eventually(|| {
        sampler
            .sample_now()
            .is_some_and(|sample| sample.at > millis(100))
    });
    let taken = sampler.stop();
    let [first, second, third] = taken.marks.as_slice() else {
        panic!("{:?}", taken.marks);
    };
    assert_eq!(*first, None);
    assert!(second.unwrap().at >= millis(50), "{second:?}");
    assert_eq!(*third, taken.target.last().copied());
}

const LONG: Duration = Duration::from_hours(1);

#[test]
fn deadlines_lie_on_a_fixed_grid() {
    let work = work(Duration::from_millis(100));
    let next = |ms| {
        let now = work.start + Duration::from_millis(ms);
        (work.next_deadline(now) - work.start).as_millis()
    };
    assert_eq!(next(0), 100);
    assert_eq!(next(99), 100);
    assert_eq!(next(100), 200);
    assert_eq!(next(1_234), 1_300);
}

#[test]
fn a_long_run_is_thinned_out_and_not_cut_off() {
    let mut work = work(Duration::from_millis(100));
    let count = MOST_SAMPLES as u64 * 4;
    for number in 0..count {
        let sample = ResourceSample {
            completed: number,
            ..ResourceSample::default()
        };
        work.samples.target.push(sample);
        work.keep(Moment {
            target: Some(sample),
            ..Moment::default()
        });
    }
    assert_eq!(work.samples.moments.len(), work.samples.target.len());
    let kept = &work.samples.target;
    assert!(kept.len() <= MOST_SAMPLES && kept.len() >= MOST_SAMPLES / 2);
    assert_eq!(kept.first().unwrap().completed, 0);
    assert_eq!(kept.last().unwrap().completed, count - 1);
    assert!(kept.is_sorted_by_key(|sample| sample.completed));
    assert!(work.interval >= Duration::from_millis(400));
}

#[test]
#[cfg(target_os = "linux")]
fn the_window_is_bounded_by_samples_asked_for() {
    let completed = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&completed);
    let sampler = Sampler::start(
        Some(Box::new(ProcessTree::attach(std::process::id()).unwrap())),
        Some(ProcessTree::generator().unwrap()),
        SystemClock.now(),
        Duration::from_millis(5),
        move || (count.load(Ordering::Relaxed), Moment::default()),
    );
    let first = sampler.sample_now().unwrap();
    completed.store(1_000, Ordering::Relaxed);
    let last = sampler.sample_now().unwrap();
    assert_eq!((first.completed, last.completed), (0, 1_000));
    assert!(last.at > first.at);
    let all = sampler.stop();
    assert!(all.target.len() >= 4);
    assert!(all.target.contains(&first) && all.target.contains(&last));
    assert!(all.target.is_sorted_by_key(|sample| sample.at));
    assert_eq!(all.target_ended, None);
    assert!(
        all.generator_peak_memory_bytes
            .is_some_and(|bytes| bytes > 0)
    );
}

#[test]
fn without_a_target_there_are_no_samples() {
    let start = SystemClock.now();
    let sampler = Sampler::start(None, None, start, Duration::from_millis(5), || {
        (0, Moment::default())
    });
    assert_eq!(sampler.sample_now(), None);
    let taken = sampler.stop();
    assert_eq!(taken.target, []);
    assert!(!taken.moments.is_empty());
}

#[test]
fn the_cost_lies_between_two_samples_and_the_peak_anywhere() {
    let sample = |at, cpu, fds, completed| ResourceSample {
        at: Duration::from_secs(at),
        cpu: CpuTime {
            user: Duration::from_secs(cpu),
            system: Duration::ZERO,
        },
        fds,
        completed,
        ..ResourceSample::default()
    };
    let target = vec![
        sample(0, 1, 900, 0),
        sample(1, 2, 10, 1_000),
        sample(3, 3, 20, 101_000),
    ];
    let samples = Samples {
        target: target.clone(),
        ..Samples::default()
    };
    let cost = samples.cost("pid 7", &target[1], &target[2]);
    assert_eq!(cost.cost.cpu_us_per_request(), Some(10.0));
    assert_eq!(cost.cost.cpu_percent(), Some(50.0));
    assert_eq!((cost.fds, cost.peak_fds), (20, 900));
}
