//! The search for the load line: which rates are tried, and what follows from what they came to.
//!
//! Pure: windows are measured by a function that the caller hands in, and chance comes from a seed.
//!
//! 1. *Rise*: the rate doubles until windows break.
//! 2. *Bisection* between the last rate that held and the first that broke.
//! 3. *Rounds*: a handful of rates about the boundary, each once a round, in random order, so that
//!    what drifts meets them alike. Only these windows enter the estimate: those before were chosen
//!    by what they came to. Between them are windows at rates well below, which give the curve, and
//!    which show if the service breaks at less load than it carries; then the search begins anew
//!    below that rate.
//! 4. *Confirmation*: a long window at the answer, which has to hold; the answer is lowered until one
//!    does.

use super::boundary::{Boundary, Tried};

/// Limits of the search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchPlan {
    /// The first rate, in arrivals per second; above zero.
    pub first: f64,
    /// No higher rate is tried.
    pub most: f64,
    /// Distance of the rates about the boundary, as a fraction such as 0.02.
    pub precision: f64,
    /// Windows at each of these rates; at least one.
    pub rounds: u32,
    /// Start of the random sequence.
    pub seed: u64,
    /// Connections to begin with.
    pub connections: usize,
    /// Connections at most: while they are all in use when a window breaks, they are doubled.
    pub most_connections: usize,
    /// Whether a long window has to hold at the answer.
    pub confirms: bool,
}

/// A window of load to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowPlan {
    /// Arrivals per second.
    pub rate: f64,
    /// Connections.
    pub connections: usize,
    /// Why.
    pub purpose: Purpose,
}

/// Why a window is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To find a rate that breaks, or one that holds.
    Bracket,
    /// To narrow the bracket.
    Bisect,
    /// For the estimate.
    Round,
    /// For the curve below the line.
    Below,
    /// A long one at the answer.
    Confirm,
}

impl Purpose {
    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bracket => "bracket",
            Self::Bisect => "bisect",
            Self::Round => "round",
            Self::Below => "below",
            Self::Confirm => "confirm",
        }
    }
}

/// The outcome of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowOutcome {
    /// Whether it kept every objective, and the rate.
    pub held: bool,
    /// Whether it broke because the generator was at its limit.
    pub generator_limited: bool,
    /// Whether all connections were in use.
    pub connections_full: bool,
}

/// Outcome of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SearchEnd {
    /// The line was found.
    Line(Boundary),
    /// The generator cannot make more load than the target carries.
    Generator {
        /// It was at its limit at this rate.
        rate: f64,
    },
    /// The highest rate that was allowed held.
    Most,
    /// Even the lowest rate broke.
    Nothing {
        /// That rate.
        lowest: f64,
    },
    /// The user stopped it before it was done.
    Interrupted,
}

/// The result of the search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchOutcome {
    /// The outcome.
    pub ended: SearchEnd,
    /// The highest rate at which, as at every lower one, every window held that counts.
    pub held_up_to: Option<f64>,
    /// The rate at which a long window held, if one was made and did.
    pub confirmed: Option<f64>,
    /// Rates at which the service broke although it held at higher ones.
    pub gaps: Vec<f64>,
    /// Connections in the end.
    pub connections: usize,
    /// Whether all of them were in use where windows broke, so that more might carry more.
    pub connections_full: bool,
}

impl SearchOutcome {
    /// The result of a search that was interrupted.
    ///
    /// - `windows`: each window that was made, and whether it held.
    pub fn so_far(windows: &[(WindowPlan, bool)]) -> Self {
        let broken = windows.iter().filter(|(_, held)| !held);
        let broken = broken
            .map(|(planned, _)| planned.rate)
            .fold(f64::INFINITY, f64::min);
        let held = windows
            .iter()
            .filter(|(planned, held)| *held && planned.rate < broken);
        Self {
            ended: SearchEnd::Interrupted,
            held_up_to: held.map(|(planned, _)| planned.rate).reduce(f64::max),
            confirmed: None,
            gaps: Vec::new(),
            connections: windows.last().map_or(0, |(planned, _)| planned.connections),
            connections_full: false,
        }
    }
}

/// Rates below the line that are tried once, as shares of it.
const BELOW: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];

/// Rates on either side of the centre of the rounds: five rates show a boundary between the third and the fourth as
/// well as a slope.
const SIDE: i32 = 2;

/// How often the rates of the rounds are extended on one side, each time twice as far: eight times the distance in
/// all.
const EXTENSIONS: i32 = 3;

/// How often the search begins anew, below a rate that broke or above one that held after all; a target that needs
/// more changes faster than it can be measured.
const RESTARTS: usize = 4;

/// Long windows at a rate, of which one has to hold.
const WINDOWS_TO_CONFIRM: usize = 2;

/// Rates that are tried to confirm the line, each lower than the one before.
const CONFIRMATIONS: usize = 8;

/// The lowest rate is this share of the first one.
const LOWEST: f64 = 1.0 / 256.0;

/// Searches the line of whatever `measure` puts load on.
///
/// - `measure`: makes a window and returns what it came to; its error ends the search.
pub fn search<E>(
    plan: &SearchPlan,
    measure: &mut dyn FnMut(WindowPlan) -> Result<WindowOutcome, E>,
) -> Result<SearchOutcome, E> {
    let mut searcher = Searcher {
        plan,
        measure,
        random: fastrand::Rng::with_seed(plan.seed),
        connections: plan.connections,
        seen: Vec::new(),
        full: false,
    };
    let mut gaps = Vec::new();
    let mut restarts = 0;
    let mut bracket = searcher.rise(plan.first.min(plan.most), None)?;
    let (ended, held_up_to) = loop {
        let (low, ceiling) = match bracket {
            Bracket::Between(low, ceiling) => (low, ceiling),
            Bracket::Ended(ended) => break (ended, searcher.highest_held(f64::INFINITY)),
        };
        let (low, ceiling) = searcher.bisect(low, ceiling)?;
        if let Ceiling::Generator(rate) = ceiling {
            break (SearchEnd::Generator { rate }, Some(low));
        }
        match searcher.rounds(low, ceiling.rate())? {
            Rounds::Generator(rate) => {
                break (SearchEnd::Generator { rate }, searcher.highest_held(rate));
            }
            Rounds::Boundary(boundary, held_up_to) => {
                break (SearchEnd::Line(boundary), held_up_to);
            }
            // A wrong turn is taken back, but not for ever.
            Rounds::Open(open, boundary, held_up_to) if restarts == RESTARTS => {
                gaps.extend(open.gap());
                break (SearchEnd::Line(boundary), held_up_to);
            }
            Rounds::Open(open, ..) => {
                restarts += 1;
                gaps.extend(open.gap());
                bracket = match open {
                    Open::Gap(rate) | Open::Below(rate) => searcher.fall(rate)?,
                    Open::Above(rate) => searcher.rise((rate * 2.0).min(plan.most), Some(rate))?,
                };
            }
        }
    };
    let (mut ended, mut held_up_to, mut confirmed) = (ended, held_up_to, None);
    if let (SearchEnd::Line(boundary), Some(held), true) = (&mut ended, held_up_to, plan.confirms) {
        (held_up_to, confirmed) = searcher.confirm(boundary, held)?;
    }
    Ok(SearchOutcome {
        ended,
        held_up_to,
        confirmed,
        gaps,
        connections: searcher.connections,
        connections_full: searcher.full,
    })
}

struct Searcher<'a, E> {
    plan: &'a SearchPlan,
    measure: &'a mut dyn FnMut(WindowPlan) -> Result<WindowOutcome, E>,
    random: fastrand::Rng,
    connections: usize,
    /// Every rate that was decided on, and whether it held.
    seen: Vec<(f64, bool)>,
    /// Whether all connections were in use in the last window that broke.
    full: bool,
}

/// The verdict of several windows at a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RateVerdict {
    Held,
    Broken,
    Generator,
}

/// A rate that does not hold, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ceiling {
    Broken(f64),
    Generator(f64),
}

impl Ceiling {
    fn rate(self) -> f64 {
        match self {
            Self::Broken(rate) | Self::Generator(rate) => rate,
        }
    }
}

enum Bracket {
    Between(f64, Ceiling),
    Ended(SearchEnd),
}

enum Rounds {
    Boundary(Boundary, Option<f64>),
    Generator(f64),
    /// The line lies elsewhere; with what would have to do if nothing better is found.
    Open(Open, Boundary, Option<f64>),
}

/// Bounds of the line if it is not among the rates of the rounds.
#[derive(Debug, Clone, Copy)]
enum Open {
    /// Below this rate, which broke although higher ones hold.
    Gap(f64),
    /// Below this one, the lowest of the rounds.
    Below(f64),
    /// Above this one, the highest of the rounds.
    Above(f64),
}

impl Open {
    fn gap(self) -> Option<f64> {
        match self {
            Self::Gap(rate) => Some(rate),
            Self::Below(_) | Self::Above(_) => None,
        }
    }
}

impl<E> Searcher<'_, E> {
    /// Doubles the rate until it does not hold.
    ///
    /// - `low`: a rate that holds, whatever was seen of it before.
    fn rise(&mut self, mut rate: f64, mut low: Option<f64>) -> Result<Bracket, E> {
        if let Some(low) = low {
            self.seen.retain(|(rate, held)| *held || *rate > low);
        }
        loop {
            let ceiling = match self.decide(rate, Purpose::Bracket)? {
                RateVerdict::Held if rate >= self.plan.most => {
                    return Ok(Bracket::Ended(SearchEnd::Most));
                }
                RateVerdict::Held => {
                    low = Some(rate);
                    rate = (rate * 2.0).min(self.plan.most);
                    continue;
                }
                RateVerdict::Broken => Ceiling::Broken(rate),
                RateVerdict::Generator => Ceiling::Generator(rate),
            };
            return match low {
                Some(low) => Ok(Bracket::Between(low, ceiling)),
                None => self.fall(rate),
            };
        }
    }

    /// Below `high`, which broke: a rate that held, or halves of it until one does.
    fn fall(&mut self, high: f64) -> Result<Bracket, E> {
        self.seen.push((high, false));
        if let Some(low) = self.highest_held(high) {
            return Ok(Bracket::Between(low, Ceiling::Broken(high)));
        }
        let lowest = self.plan.first * LOWEST;
        let mut high = high;
        while high / 2.0 >= lowest {
            let rate = high / 2.0;
            if self.decide(rate, Purpose::Bracket)? == RateVerdict::Held {
                return Ok(Bracket::Between(rate, Ceiling::Broken(high)));
            }
            high = rate;
        }
        Ok(Bracket::Ended(SearchEnd::Nothing { lowest: high }))
    }

    /// Halves the bracket, by ratio, until its ends are two steps of the rounds apart.
    fn bisect(&mut self, mut low: f64, mut ceiling: Ceiling) -> Result<(f64, Ceiling), E> {
        while ceiling.rate() / low > 1.0 + 2.0 * self.plan.precision {
            let middle = (low * ceiling.rate()).sqrt();
            match self.decide(middle, Purpose::Bisect)? {
                RateVerdict::Held => low = middle,
                RateVerdict::Broken => ceiling = Ceiling::Broken(middle),
                RateVerdict::Generator => ceiling = Ceiling::Generator(middle),
            }
        }
        Ok((low, ceiling))
    }

    /// Tries the rates about the boundary in rounds, with those far below among them.
    fn rounds(&mut self, low: f64, high: f64) -> Result<Rounds, E> {
        let centre = (low * high).sqrt();
        let step = 1.0 + self.plan.precision;
        let mut tally: Vec<Tried> = (-SIDE..=SIDE)
            .map(|side| Tried {
                rate: centre * step.powi(side),
                held: 0,
                windows: 0,
            })
            .collect();
        let mut below = BELOW.map(|share| share * low).to_vec();
        self.random.shuffle(&mut below);
        let mut gap = None;
        'rounds: for round in (0..self.plan.rounds).rev() {
            let mut turns: Vec<Option<usize>> = (0..tally.len()).map(Some).collect();
            // All that is left of the lower rates goes into the last round.
            let extra = if round == 0 {
                below.len()
            } else {
                1.min(below.len())
            };
            turns.extend(std::iter::repeat_n(None, extra));
            self.random.shuffle(&mut turns);
            for turn in turns {
                if let Some(position) = turn {
                    self.count(&mut tally[position])?;
                    continue;
                }
                let Some(rate) = below.pop() else { continue };
                // Twice, because all that was found above it is given up for it.
                if self.decide(rate, Purpose::Below)? == RateVerdict::Broken
                    && self.decide(rate, Purpose::Below)? == RateVerdict::Broken
                {
                    gap = Some(rate);
                    break 'rounds;
                }
            }
        }
        if let Some(rate) = gap {
            let boundary = Boundary {
                rate,
                low: None,
                high: None,
            };
            return Ok(Rounds::Open(
                Open::Gap(rate),
                boundary,
                self.highest_held(rate),
            ));
        }
        for extension in 1..=EXTENSIONS {
            let factor = step.powi(1 << extension);
            if self.is_open(&tally[0], true) {
                let rate = tally[0].rate / factor;
                let tried = self.count_all(rate)?;
                tally.insert(0, tried);
            }
            let last = tally[tally.len() - 1];
            if self.is_open(&last, false) && last.rate < self.plan.most {
                let tried = self.count_all((last.rate * factor).min(self.plan.most))?;
                tally.push(tried);
            }
        }
        // Windows in which the generator was the limit are not counted; where few are left, it is the limit.
        let limited = tally
            .iter()
            .find(|tried| tried.windows * 2 < self.plan.rounds);
        if let Some(limited) = limited {
            return Ok(Rounds::Generator(limited.rate));
        }
        let boundary = Boundary::between(&tally).expect("there are rates");
        let held = tally.iter().take_while(|tried| tried.held == tried.windows);
        let held = held.last().map(|tried| tried.rate);
        let held = held.or_else(|| self.highest_held(tally[0].rate));
        let majority = |tried: &Tried| tried.held * 2 > tried.windows;
        let (first, last) = (&tally[0], &tally[tally.len() - 1]);
        Ok(if !majority(first) {
            Rounds::Open(Open::Below(first.rate), boundary, held)
        } else if majority(last) && last.rate < self.plan.most {
            Rounds::Open(Open::Above(last.rate), boundary, held)
        } else {
            Rounds::Boundary(boundary, held)
        })
    }

    /// Makes a long window at the highest rate that held, and lowers the line until one holds.
    ///
    /// Only a window that held confirms. A rate is given up for two long windows that break; if one of them broke
    /// because the generator was at its limit, the line is left as it is and not confirmed. Returns the highest rate that still holds
    /// as far as is known, and the one that was confirmed.
    fn confirm(
        &mut self,
        boundary: &mut Boundary,
        held: f64,
    ) -> Result<(Option<f64>, Option<f64>), E> {
        let mut rate = held;
        for _ in 0..CONFIRMATIONS {
            let mut is_limited = false;
            for _ in 0..WINDOWS_TO_CONFIRM {
                let seen = self.window(rate, Purpose::Confirm)?;
                if seen.held {
                    return Ok((Some(rate), Some(rate)));
                }
                is_limited |= seen.generator_limited;
            }
            if is_limited {
                // The generator's limit is no breach, and no window that held either.
                return Ok((Some(rate), None));
            }
            // A rate that does not hold for long is above the line.
            boundary.rate = boundary.rate.min(rate);
            boundary.low = boundary.low.filter(|low| *low < rate);
            boundary.high = boundary.high.map(|high| high.min(rate));
            rate /= 1.0 + self.plan.precision;
        }
        Ok((self.highest_held(rate), None))
    }

    /// Whether the outermost rate does not bound the line.
    fn is_open(&self, tried: &Tried, is_lowest: bool) -> bool {
        let bounds = |tried| {
            let boundary = Boundary::between(&[tried]);
            boundary.is_some_and(|boundary| {
                if is_lowest {
                    boundary.low.is_some()
                } else {
                    boundary.high.is_some()
                }
            })
        };
        let perfect = Tried {
            held: if is_lowest { self.plan.rounds } else { 0 },
            windows: self.plan.rounds,
            ..*tried
        };
        if tried.windows * 2 < self.plan.rounds {
            // The generator's limit, not the line's.
            false
        } else if bounds(perfect) {
            !bounds(*tried)
        } else {
            // With few rounds nothing bounds it; a majority has to do.
            (tried.held * 2 > tried.windows) != is_lowest
        }
    }

    fn count_all(&mut self, rate: f64) -> Result<Tried, E> {
        let mut tried = Tried {
            rate,
            held: 0,
            windows: 0,
        };
        for _ in 0..self.plan.rounds {
            self.count(&mut tried)?;
        }
        Ok(tried)
    }

    fn count(&mut self, tried: &mut Tried) -> Result<(), E> {
        let seen = self.window(tried.rate, Purpose::Round)?;
        if seen.held || !seen.generator_limited {
            tried.windows += 1;
            tried.held += u32::from(seen.held);
        }
        Ok(())
    }

    /// One window decides that a rate holds, two of three that it does not.
    fn decide(&mut self, rate: f64, purpose: Purpose) -> Result<RateVerdict, E> {
        let first = self.window(rate, purpose)?;
        let verdict = if first.held {
            RateVerdict::Held
        } else if first.connections_full && self.connections < self.plan.most_connections {
            self.decide_with_more(rate, purpose)?
        } else {
            self.decide_again(rate, purpose, first.generator_limited)?
        };
        self.seen.push((rate, verdict == RateVerdict::Held));
        Ok(verdict)
    }

    /// Two more windows, unless the first of them breaks as well.
    fn decide_again(
        &mut self,
        rate: f64,
        purpose: Purpose,
        limited: bool,
    ) -> Result<RateVerdict, E> {
        let second = self.window(rate, purpose)?;
        let mut limited = u32::from(limited);
        if second.held {
            let third = self.window(rate, purpose)?;
            if third.held {
                return Ok(RateVerdict::Held);
            }
            limited += u32::from(third.generator_limited);
        } else {
            limited += u32::from(second.generator_limited);
        }
        Ok(if limited == 2 {
            RateVerdict::Generator
        } else {
            RateVerdict::Broken
        })
    }

    /// All connections were in use: perhaps they were too few.
    fn decide_with_more(&mut self, rate: f64, purpose: Purpose) -> Result<RateVerdict, E> {
        let before = self.connections;
        let mut limited = true;
        while self.connections < self.plan.most_connections {
            self.connections = (self.connections * 2).min(self.plan.most_connections);
            let seen = self.window(rate, purpose)?;
            if seen.held {
                return Ok(RateVerdict::Held);
            }
            limited &= seen.generator_limited;
            if !seen.connections_full {
                break;
            }
        }
        self.connections = before;
        Ok(if limited {
            RateVerdict::Generator
        } else {
            RateVerdict::Broken
        })
    }

    fn window(&mut self, rate: f64, purpose: Purpose) -> Result<WindowOutcome, E> {
        let seen = (self.measure)(WindowPlan {
            rate,
            connections: self.connections,
            purpose,
        })?;
        if !seen.held {
            self.full = seen.connections_full;
        }
        Ok(seen)
    }

    /// The highest rate below `limit` that was found to hold, as long as all below it were too.
    fn highest_held(&self, limit: f64) -> Option<f64> {
        let broken = self.seen.iter().filter(|(_, held)| !held);
        let limit = broken.map(|(rate, _)| *rate).fold(limit, f64::min);
        let held = self
            .seen
            .iter()
            .filter(|(rate, held)| *held && *rate < limit);
        held.map(|(rate, _)| *rate).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests;
