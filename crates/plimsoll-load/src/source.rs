//! Which request comes next, and what stands in it.
//!
//! Requests that are always the same are encoded before the run and sent as they are. One with places
//! for values is written anew for each exchange, into memory that its virtual user keeps.

mod feeder;

mod template;

mod generate;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_client::{Compressor, Request};
use plimsoll_model::{Clock, Protocol};
use plimsoll_wire::SystemClock;

pub use self::feeder::{Feeder, FeederOrder};
use self::generate::Entropy;
pub use self::template::{RequestTemplate, TemplateForm, TemplateProblem, ValueSources};
use self::template::{Scratch, Values};
use crate::plan::{KeptValue, Pick, RunPlan};
use crate::schedule::Share;

/// Keeps the random choices of requests apart from those of pauses, which have the same seed.
const SALT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Where the virtual users of one worker are, together.
#[derive(Debug)]
pub(crate) struct SharedSource {
    share: Share,
    /// Requests that were made from templates.
    made: Cell<u64>,
    /// Entries of a log that were sent without a schedule.
    sent: Cell<u64>,
    /// Rows that were taken, of each feeder.
    taken: Vec<Cell<u64>>,
    /// Sums of the weights up to and with each request.
    sums: Vec<u64>,
    /// Whether a feeder whose rows are used once has none left for this worker.
    has_run_out: Cell<bool>,
    /// Only where templates compress their bodies.
    compressor: RefCell<Option<Compressor>>,
}

impl SharedSource {
    /// Nothing has been taken yet.
    pub(crate) fn new(plan: &RunPlan, share: Share) -> Self {
        let mut sum = 0;
        let sums = plan.requests.iter().map(|request| {
            sum += u64::from(request.weight);
            sum
        });
        let coding = plan.requests.iter().find_map(|planned| {
            let template = planned.template.as_ref()?;
            template.coding()
        });
        let mut once = plan.feeders.iter();
        let has_none = once.any(|feeder| {
            feeder.order == FeederOrder::Sequential
                && feeder.table.rows() as u64 <= u64::from(share.index)
        });
        Self {
            share,
            has_run_out: Cell::new(has_none),
            made: Cell::new(0),
            sent: Cell::new(0),
            taken: plan.feeders.iter().map(|_| Cell::new(0)).collect(),
            sums: sums.collect(),
            compressor: RefCell::new(coding.map(Compressor::new)),
        }
    }

    /// The next number of those that are this worker's: no other worker has it.
    fn next_of(&self, taken: &Cell<u64>) -> u64 {
        self.over_all(taken.replace(taken.get() + 1))
    }

    /// The number over all workers of what is number `number` of this one.
    fn over_all(&self, number: u64) -> u64 {
        number * u64::from(self.share.of) + u64::from(self.share.index)
    }
}

/// The requests of one virtual user.
#[derive(Debug)]
pub(crate) struct RequestSource {
    shared: Rc<SharedSource>,
    index: usize,
    position: usize,
    next: usize,
    random: fastrand::Rng,
    /// Only where there are templates.
    made: Option<Box<MadeRequest>>,
}

/// The request that was made last, and what making one takes.
#[derive(Debug)]
struct MadeRequest {
    request: Request,
    /// That of its template.
    position: Option<usize>,
    rows: Vec<usize>,
    /// Values of responses.
    kept: Vec<Vec<u8>>,
    scratch: Scratch,
}

impl RequestSource {
    /// - `index`: the user's number in the run; users begin at different requests.
    pub(crate) fn new(shared: Rc<SharedSource>, plan: &RunPlan, index: usize) -> Self {
        let has_templates = plan
            .requests
            .iter()
            .any(|planned| planned.template.is_some());
        let made = has_templates.then(|| {
            Box::new(MadeRequest {
                request: plan.requests[0].request.clone(),
                position: None,
                rows: vec![0; plan.feeders.len()],
                kept: vec![Vec::new(); plan.kept.len()],
                scratch: Scratch::default(),
            })
        });
        Self {
            shared,
            index,
            position: 0,
            next: match plan.pick {
                Pick::Sequence => 0,
                _ => index % plan.requests.len(),
            },
            random: fastrand::Rng::with_seed((plan.seed ^ SALT).wrapping_add(index as u64)),
            made,
        }
    }

    /// Whether no row is left of a feeder whose rows are used once, so that the run should end for this worker.
    #[inline]
    pub(crate) fn has_run_out(&self) -> bool {
        self.shared.has_run_out.get()
    }

    /// Goes on to the next request, and makes it where it is made from a template; returns the
    /// position of its endpoint.
    ///
    /// - `arrival`: the number of the arrival among those of the worker, on a schedule.
    #[inline]
    pub(crate) fn advance(&mut self, plan: &RunPlan, arrival: Option<u64>) -> usize {
        self.position = match &plan.pick {
            Pick::Turn | Pick::Sequence => {
                let position = self.next;
                self.next += 1;
                if self.next == plan.requests.len() {
                    self.next = 0;
                }
                position
            }
            Pick::Recorded(entries) => {
                let shared = &self.shared;
                let entry = match arrival {
                    Some(number) => shared.over_all(number),
                    None => shared.next_of(&shared.sent),
                };
                let entry = usize::try_from(entry).unwrap_or(0) % entries.len();
                entries[entry] as usize
            }
            Pick::Random => self.random.usize(..plan.requests.len()),
            Pick::Weighted => {
                let sums = &self.shared.sums;
                let drawn = self.random.u64(..sums.last().copied().unwrap_or(1));
                sums.partition_point(|sum| *sum <= drawn)
            }
        };
        if self.has_run_out() {
            self.position = self.without_rows(plan);
        }
        let planned = &plan.requests[self.position];
        if let Some(template) = &planned.template {
            self.make(plan, template);
        }
        planned.endpoint
    }

    /// The position of the request that [`advance`](Self::advance) went on to.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// The request that [`advance`](Self::advance) went on to.
    #[inline]
    pub(crate) fn current<'a>(&'a self, plan: &'a RunPlan) -> &'a Request {
        let planned = &plan.requests[self.position];
        match (&planned.template, &self.made) {
            (Some(_), Some(made)) => &made.request,
            _ => &planned.request,
        }
    }

    /// Values of the response to the present request that are to be kept.
    pub(crate) fn kept<'a>(&self, plan: &'a RunPlan) -> &'a [KeptValue] {
        &plan.requests[self.position].kept
    }

    /// Keeps a value for later requests.
    pub(crate) fn keep(&mut self, position: usize, value: Vec<u8>) {
        if let Some(made) = &mut self.made {
            made.kept[position] = value;
        }
    }

    /// Goes back to the first request.
    pub(crate) fn begin_again(&mut self) {
        self.next = 0;
    }

    /// The next request, from the present position on, that needs no row of a feeder whose rows are used once. Where
    /// all need one, the plan has no more exchanges than there are rows.
    #[cold]
    fn without_rows(&self, plan: &RunPlan) -> usize {
        let number = plan.requests.len();
        let mut positions = (0..number).map(|step| (self.position + step) % number);
        positions
            .find(|position| !plan.requests[*position].uses_rows_once(&plan.feeders))
            .unwrap_or(self.position)
    }

    fn make(&mut self, plan: &RunPlan, template: &RequestTemplate) {
        let Self {
            shared,
            random,
            made: Some(made),
            ..
        } = self
        else {
            return;
        };
        for (position, feeder) in plan.feeders.iter().enumerate() {
            if template.uses(position) {
                let rows = feeder.table.rows() as u64;
                let row = match feeder.order {
                    FeederOrder::Sequential => {
                        let row = shared.next_of(&shared.taken[position]);
                        if row + u64::from(shared.share.of) >= rows {
                            shared.has_run_out.set(true);
                        }
                        row % rows
                    }
                    FeederOrder::Cyclic => shared.next_of(&shared.taken[position]) % rows,
                    FeederOrder::Random => random.u64(..rows),
                    FeederOrder::PerUser => self.index as u64 % rows,
                };
                made.rows[position] = usize::try_from(row).expect("rows are in memory");
            }
        }
        let mut compressor = shared.compressor.borrow_mut();
        let values = Values {
            feeders: &plan.feeders,
            rows: &made.rows,
            kept: &made.kept,
            entropy: Entropy {
                number: shared.next_of(&shared.made),
                now: template.needs_clock().then(|| SystemClock.wall()),
                random,
            },
            compressor: template.coding().and(compressor.as_mut()),
        };
        // A request of another template may have another method and, where only values are written
        // anew, other fields.
        if made.position != Some(self.position) {
            made.position = Some(self.position);
            if plan.protocol() != Protocol::Http1 || made.request.method() != template.method() {
                made.request = plan.requests[self.position].request.clone();
            }
        }
        template.make(values, &mut made.scratch, &mut made.request);
    }
}

#[cfg(test)]
mod tests;
