//! Which of many beginnings a text has, without looking at each.

/// Beginnings with the numbers of those who ask for them.
#[derive(Debug, Default)]
pub(super) struct Affixes {
    /// Ascending.
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    beginning: Box<[u8]>,
    numbers: Vec<u32>,
    /// The longest other beginning that this one begins with.
    parent: Option<usize>,
}

impl Affixes {
    pub(super) fn new(mut pairs: Vec<(Vec<u8>, u32)>) -> Self {
        pairs.sort();
        let mut entries: Vec<Entry> = Vec::new();
        // Those that the last one begins with, the shortest first.
        let mut open: Vec<usize> = Vec::new();
        for (beginning, number) in pairs {
            if let Some(last) = entries.last_mut()
                && *last.beginning == *beginning
            {
                last.numbers.push(number);
                continue;
            }
            while let Some(at) = open.last()
                && !beginning.starts_with(&entries[*at].beginning)
            {
                open.pop();
            }
            entries.push(Entry {
                beginning: beginning.into(),
                numbers: vec![number],
                parent: open.last().copied(),
            });
            open.push(entries.len() - 1);
        }
        Self { entries }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Calls `report` with the numbers of all beginnings that `text` has.
    ///
    /// The greatest entry that is not greater than the text has all of them in its line of parents, since all that
    /// lies between one of them and the text begins with it too.
    #[inline]
    pub(super) fn each(&self, text: &[u8], mut report: impl FnMut(&[u32])) {
        if self.entries.is_empty() {
            return;
        }
        let after = self
            .entries
            .partition_point(|entry| *entry.beginning <= *text);
        let mut at = after.checked_sub(1);
        while let Some(entry) = at.map(|at| &self.entries[at]) {
            if text.starts_with(&entry.beginning) {
                report(&entry.numbers);
            }
            at = entry.parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_beginning_is_found(
            beginnings in proptest::collection::vec("[ab/]{0,4}", 0..12),
            text in "[ab/]{0,6}",
        ) {
            let pairs = beginnings.iter().zip(0..).map(|(it, number)| (it.clone().into_bytes(), number));
            let affixes = Affixes::new(pairs.collect());
            let mut found = Vec::new();
            affixes.each(text.as_bytes(), |numbers| found.extend_from_slice(numbers));
            found.sort_unstable();
            let expected = beginnings.iter().zip(0..).filter(|(it, _)| text.starts_with(*it));
            prop_assert_eq!(found, expected.map(|(_, number)| number).collect::<Vec<u32>>());
        }
    }
}
