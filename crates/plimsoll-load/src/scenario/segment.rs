//! A part of a run, for load from several machines: which virtual users and iterations belong to it.
//!
//! Pure arithmetic. The instances of a run have segments of one sequence, such as `0,1/4,1/2,1`; together they make every virtual
//! user and every iteration once. A segment has stripes, not a block: of four equal segments, the second one has the numbers 1, 5, 9 …

use std::str::FromStr;

/// Larger common denominators are rejected: a table of that length is kept.
const MOST_STRIPES: u64 = 100_000;

/// Numerators and denominators above it are rejected.
const MOST_TERM: u64 = 1_000_000_000;

/// A fraction of the run, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fraction {
    numerator: u64,
    denominator: u64,
}

/// A segment of the run within the sequence of all segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The numbers of the first round that belong to it, ascending.
    offsets: Vec<u64>,
    /// Numbers in a round.
    round: u64,
    /// As they are written.
    texts: (String, String),
}

/// Why a segment cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// It is no fraction, decimal or percentage.
    #[error(
        "`{0}` is not a number from 0 to 1: write a fraction such as 1/4, a decimal or a percentage"
    )]
    Number(String),
    /// It ends before it starts.
    #[error("the segment `{0}` does not end behind its start")]
    Empty(String),
    /// The sequence is not ascending.
    #[error("the sequence `{0}` is not one of ascending numbers")]
    Order(String),
    /// The sequence has no such segment.
    #[error("the segment `{segment}` is not one of the sequence `{sequence}`")]
    Missing {
        /// The segment.
        segment: String,
        /// The sequence.
        sequence: String,
    },
    /// The fractions have too large a common denominator.
    #[error("the segments of `{0}` have no common denominator up to 100000: use rounder fractions")]
    Denominator(String),
}

impl FromStr for Fraction {
    type Err = SegmentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || SegmentError::Number(text.to_owned());
        let trimmed = text.trim();
        let (numerator, denominator) = if let Some((above, below)) = trimmed.split_once('/') {
            let term = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
            (term(above)?, term(below)?)
        } else {
            let (number, scale) = match trimmed.strip_suffix('%') {
                Some(percent) => (percent.trim(), 100),
                None => (trimmed, 1),
            };
            let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
            let places = u32::try_from(decimals.len()).map_err(|_| wrong())?;
            let below = 10_u64.checked_pow(places).ok_or_else(wrong)?;
            let is_number = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
            if number.is_empty() || !is_number(whole) || !is_number(decimals) {
                return Err(wrong());
            }
            let above = format!("0{whole}{decimals}").parse::<u64>();
            let below = below.checked_mul(scale).ok_or_else(wrong)?;
            (above.map_err(|_| wrong())?, below)
        };
        let is_valid = denominator > 0 && numerator <= denominator && denominator <= MOST_TERM;
        if !is_valid {
            return Err(wrong());
        }
        let divisor = greatest_divisor(numerator, denominator);
        Ok(Self {
            numerator: numerator / divisor,
            denominator: denominator / divisor,
        })
    }
}

impl Fraction {
    const ZERO: Self = Self {
        numerator: 0,
        denominator: 1,
    };

    const ONE: Self = Self {
        numerator: 1,
        denominator: 1,
    };

    fn is_less(self, other: Self) -> bool {
        self.numerator * other.denominator < other.numerator * self.denominator
    }

    /// As a number of parts of the whole.
    fn in_parts(self, parts: u64) -> u64 {
        self.numerator * (parts / self.denominator)
    }
}

impl Segment {
    /// The segment of an instance.
    ///
    /// - `segment`: `FROM:TO`, or `TO` from 0 on; empty for the first one of the sequence.
    /// - `sequence`: the bounds of all segments, separated by commas; empty for the segment alone with what is before and behind it.
    pub fn new(segment: &str, sequence: &str) -> Result<Self, SegmentError> {
        let bounds: Vec<Fraction> = sequence
            .split(',')
            .filter(|it| !it.trim().is_empty())
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        if !bounds.is_sorted_by(|one, other| one.is_less(*other)) || bounds.len() == 1 {
            return Err(SegmentError::Order(sequence.to_owned()));
        }
        let (from, to) = if segment.trim().is_empty() {
            match bounds.as_slice() {
                [first, second, ..] => (*first, *second),
                _ => (Fraction::ZERO, Fraction::ONE),
            }
        } else {
            match segment.split_once(':') {
                Some((from, to)) if from.trim().is_empty() => (Fraction::ZERO, to.parse()?),
                Some((from, to)) => (from.parse()?, to.parse()?),
                None => (Fraction::ZERO, segment.parse()?),
            }
        };
        if !from.is_less(to) {
            return Err(SegmentError::Empty(segment.to_owned()));
        }
        let mut all = if bounds.is_empty() {
            vec![from, to]
        } else {
            bounds
        };
        let is_part = all.windows(2).any(|pair| pair == [from, to]);
        if !is_part {
            return Err(SegmentError::Missing {
                segment: segment.to_owned(),
                sequence: sequence.to_owned(),
            });
        }
        // What is before and behind belongs to others.
        if all.first() != Some(&Fraction::ZERO) {
            all.insert(0, Fraction::ZERO);
        }
        if all.last() != Some(&Fraction::ONE) {
            all.push(Fraction::ONE);
        }
        let written = |it: &Fraction| match it.denominator {
            1 => it.numerator.to_string(),
            below => format!("{}/{below}", it.numerator),
        };
        let texts = (
            format!("{}:{}", written(&from), written(&to)),
            all.iter().map(written).collect::<Vec<_>>().join(","),
        );
        let too_fine = || SegmentError::Denominator(texts.1.clone());
        let mut round = 1_u64;
        for bound in &all {
            let factor = bound.denominator / greatest_divisor(round, bound.denominator);
            round = round.checked_mul(factor).ok_or_else(too_fine)?;
            if round > MOST_STRIPES {
                return Err(too_fine());
            }
        }
        let lengths = all.windows(2).map(|pair| match pair {
            [start, end] => (*start, end.in_parts(round) - start.in_parts(round)),
            _ => (Fraction::ZERO, 0),
        });
        Ok(Self {
            offsets: stripes(lengths.collect(), from, round),
            round,
            texts,
        })
    }

    /// As options show them: the segment and its sequence.
    pub fn texts(&self) -> (&str, &str) {
        (&self.texts.0, &self.texts.1)
    }

    /// How many of the first `total` numbers belong to it.
    pub fn share(&self, total: u64) -> u64 {
        let rest = total % self.round;
        let of_rest = self.offsets.partition_point(|offset| *offset < rest);
        total / self.round * self.offsets.len() as u64 + of_rest as u64
    }

    /// The number in the whole run of its number `own`, both from 0.
    pub fn of_run(&self, own: u64) -> u64 {
        let length = (self.offsets.len() as u64).max(1);
        let offset = usize::try_from(own % length).unwrap_or_default();
        let offset = self.offsets.get(offset).copied().unwrap_or_default();
        (own / length)
            .saturating_mul(self.round)
            .saturating_add(offset)
    }

    pub(super) fn share_of_vus(&self, vus: u32) -> u32 {
        u32::try_from(self.share(vus.into())).unwrap_or(vus)
    }
}

/// The numbers of a round that belong to the segment which starts at `own`: each number goes to the segment that is furthest
/// behind its share, larger ones first.
fn stripes(mut lengths: Vec<(Fraction, u64)>, own: Fraction, round: u64) -> Vec<u64> {
    lengths.sort_by_key(|(_, length)| std::cmp::Reverse(*length));
    let mut taken = vec![0_u64; lengths.len()];
    let mut offsets = Vec::new();
    for number in 0..round {
        let due = lengths
            .iter()
            .zip(&mut taken)
            .find(|((_, length), taken)| *length > 0 && **taken * round <= number * *length);
        if let Some(((start, _), taken)) = due {
            *taken += 1;
            if *start == own {
                offsets.push(number);
            }
        }
    }
    offsets
}

fn greatest_divisor(one: u64, other: u64) -> u64 {
    if other == 0 {
        return one.max(1);
    }
    greatest_divisor(other, one % other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(segment: &str, sequence: &str) -> Segment {
        Segment::new(segment, sequence).unwrap()
    }

    #[test]
    fn equal_segments_take_turns() {
        let second = segment("1/4:1/2", "0,1/4,1/2,3/4,1");
        let numbers: Vec<_> = (0..4).map(|own| second.of_run(own)).collect();
        assert_eq!(numbers, [1, 5, 9, 13]);
        assert_eq!(
            [0, 1, 2, 5, 6].map(|total| second.share(total)),
            [0, 0, 1, 1, 2]
        );
        assert_eq!(second.texts(), ("1/4:1/2", "0,1/4,1/2,3/4,1"));
        let whole = segment("0:1", "");
        assert_eq!((whole.share(17), whole.of_run(5)), (17, 5));
        assert_eq!(segment("", "0,1/2,1"), segment("1/2", "0,1/2,1"));
        assert_eq!(segment(":50%", "0,0.5,1").of_run(3), 6);
    }

    #[test]
    fn segments_of_a_sequence_make_every_number_once() {
        for sequence in [
            "0,1/3,1",
            "0,1/4,1/2,1",
            "0,0.1,0.37,50%,3/4,1",
            "0,1/7,2/7,1/2,1",
            "0,1",
        ] {
            let bounds: Vec<_> = sequence.split(',').collect();
            let segments: Vec<_> = bounds
                .windows(2)
                .map(|pair| segment(&format!("{}:{}", pair[0], pair[1]), sequence))
                .collect();
            for total in [0_u64, 1, 2, 7, 100, 1001] {
                let mut numbers: Vec<_> = segments
                    .iter()
                    .flat_map(|it| (0..it.share(total)).map(|own| it.of_run(own)))
                    .collect();
                numbers.sort_unstable();
                assert_eq!(
                    numbers,
                    (0..total).collect::<Vec<_>>(),
                    "{sequence} {total}"
                );
            }
        }
    }

    #[test]
    fn a_segment_alone_has_others_around_it() {
        let middle = segment("1/4:3/4", "");
        assert_eq!(middle.texts(), ("1/4:3/4", "0,1/4,3/4,1"));
        assert_eq!(middle.share(100), 50);
    }

    #[test]
    fn nonsense_is_rejected() {
        for (segment, sequence, expected) in [
            ("x", "", "`x` is not a number"),
            ("3/2", "", "`3/2` is not a number"),
            ("1/0", "", "`1/0` is not a number"),
            ("-1", "", "`-1` is not a number"),
            ("", "0,1/2,x", "`x` is not a number"),
            ("1/2:1/2", "", "the segment `1/2:1/2` does not end"),
            (
                "1/2",
                "0,1/3,1",
                "the segment `1/2` is not one of the sequence",
            ),
            (
                "",
                "0,1/2,1/3",
                "the sequence `0,1/2,1/3` is not one of ascending",
            ),
            ("", "1", "the sequence `1` is not one of ascending"),
            ("1/999983:1/2", "", "the segments of"),
            (
                "1/99999999999999999999",
                "",
                "`1/99999999999999999999` is not",
            ),
            ("0.123456789012345678901234567890", "", "`0.12"),
        ] {
            let error = Segment::new(segment, sequence).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
