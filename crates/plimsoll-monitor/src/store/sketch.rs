//! A histogram of durations that merges and takes few bytes: buckets whose borders grow by 5 %.

/// Counts by logarithmic buckets; percentiles are within 2.5 % of the exact ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sketch {
    /// Bucket and count, ascending; no count is 0.
    buckets: Vec<(u16, u64)>,
    sum: u64,
}

/// The natural logarithm of the growth of buckets.
const GROWTH: f64 = 0.048_790_164_169_432;

impl Sketch {
    /// Adds a value, such as microseconds.
    pub fn add(&mut self, value: u64) {
        self.add_many(bucket_of(value), 1);
        self.sum = self.sum.saturating_add(value);
    }

    /// The bucket that counts a value.
    pub(crate) fn bucket(value: u64) -> u16 {
        bucket_of(value)
    }

    /// From buckets with their counts, and the sum of all values.
    pub(crate) fn of_buckets(buckets: impl IntoIterator<Item = (u16, u64)>, sum: u64) -> Self {
        let mut sketch = Self {
            sum,
            ..Self::default()
        };
        for (bucket, count) in buckets.into_iter().filter(|(_, count)| *count > 0) {
            sketch.add_many(bucket, count);
        }
        sketch
    }

    /// Values that were added.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// The mean of the values, exactly; `None` without any.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum as f64 / count as f64)
    }

    /// The value at fraction `q` of `0.0..=1.0`, by the nearest rank; `None` without any.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let count = self.count();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and the count"
        )]
        let rank = ((count as f64 * q.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut seen = 0;
        self.buckets.iter().find_map(|(bucket, count)| {
            seen += count;
            (seen >= rank).then(|| value_of(*bucket))
        })
    }

    /// Adds the values of another.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.buckets {
            self.add_many(*bucket, *count);
        }
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// As bytes: the sum, then differences of buckets and their counts, each a variable-length number.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 + 2 * self.buckets.len());
        write_number(&mut bytes, self.sum);
        let mut last = 0;
        for (bucket, count) in &self.buckets {
            write_number(&mut bytes, u64::from(bucket - last));
            write_number(&mut bytes, *count);
            last = *bucket;
        }
        bytes
    }

    /// From bytes; `None` if they are no sketch.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let sum = read_number(&mut bytes)?;
        let mut sketch = Self {
            // A bucket takes two bytes or a few more.
            buckets: Vec::with_capacity(bytes.len() / 2),
            sum,
        };
        let mut bucket: u16 = 0;
        while !bytes.is_empty() {
            let step = u16::try_from(read_number(&mut bytes)?).ok()?;
            bucket = bucket.checked_add(step)?;
            let count = read_number(&mut bytes)?;
            let is_next = sketch.buckets.last().is_none_or(|(last, _)| bucket > *last);
            if count == 0 || !is_next {
                return None;
            }
            sketch.buckets.push((bucket, count));
        }
        Some(sketch)
    }

    fn add_many(&mut self, bucket: u16, count: u64) {
        match self.buckets.binary_search_by_key(&bucket, |(it, _)| *it) {
            Ok(position) => self.buckets[position].1 += count,
            Err(position) => self.buckets.insert(position, (bucket, count)),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the logarithm of the largest value is bucket 910"
)]
fn bucket_of(value: u64) -> u16 {
    if value == 0 {
        return 0;
    }
    ((value as f64).ln() / GROWTH).round() as u16 + 1
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and is not negative"
)]
fn value_of(bucket: u16) -> u64 {
    match bucket.checked_sub(1) {
        None => 0,
        Some(power) => (f64::from(power) * GROWTH).exp().round() as u64,
    }
}

fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.extend(u8::try_from(number & 0x7f).map(|low| low | 0x80));
        number >>= 7;
    }
    bytes.extend(u8::try_from(number));
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentiles_are_close() {
        let mut sketch = Sketch::default();
        for value in 1..=10_000 {
            sketch.add(value);
        }
        for (q, exact) in [
            (0.5, 5_000.0),
            (0.95, 9_500.0),
            (0.99, 9_900.0),
            (1.0, 10_000.0),
        ] {
            let found = sketch.quantile(q).unwrap() as f64;
            assert!((found / exact - 1.0).abs() < 0.025, "{q}: {found}");
        }
        assert_eq!(sketch.mean(), Some(5_000.5));
        assert_eq!(Sketch::default().quantile(0.5), None);
        assert_eq!(Sketch::default().mean(), None);
    }

    proptest! {
        #[test]
        fn bytes_come_back_and_merging_is_adding(
            one in prop::collection::vec(any::<u64>(), 0..50),
            other in prop::collection::vec(0_u64..5_000_000, 0..50),
        ) {
            let of = |values: &[u64]| {
                let mut sketch = Sketch::default();
                for value in values {
                    sketch.add(*value);
                }
                sketch
            };
            let mut merged = of(&one);
            merged.merge(&of(&other));
            prop_assert_eq!(Sketch::decode(&merged.encode()), Some(merged.clone()));
            prop_assert_eq!(merged, of(&[one, other].concat()));
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(sketch) = Sketch::decode(&bytes) {
                prop_assert_eq!(Sketch::decode(&sketch.encode()), Some(sketch));
            }
        }
    }
}
