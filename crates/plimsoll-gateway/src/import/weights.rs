//! Weights as `to` and `split` of a proxy.

use super::toml::Keys;

/// Upstreams that share requests.
pub(super) struct Split {
    /// The position of the one with the most, which gets what the others leave.
    pub(super) most: usize,
    /// The percentages of the others.
    pub(super) others: Keys,
    /// Percentages have no fractions, and none was needed.
    pub(super) is_exact: bool,
}

/// Splits by weights; `None` if none is above zero.
///
/// - `parts`: names or URLs of upstreams with their weights.
pub(super) fn split(parts: &[(String, i64)]) -> Option<Split> {
    let mut sums: Vec<(usize, i64)> = Vec::new();
    for (at, (to, weight)) in parts.iter().enumerate() {
        let weight = (*weight).clamp(0, 1_000_000);
        let mut known = sums.iter_mut();
        match known.find(|(first, _)| parts.get(*first).is_some_and(|(it, _)| it == to)) {
            Some((_, sum)) => *sum += weight,
            None => sums.push((at, weight)),
        }
    }
    let total: i64 = sums.iter().map(|(_, weight)| weight).sum();
    let most = sums.iter().max_by_key(|(_, weight)| *weight);
    let most = most.filter(|_| total > 0)?.0;
    let mut others = Keys::default();
    let mut is_exact = true;
    for (at, weight) in sums.iter().filter(|(at, _)| *at != most) {
        let share = (weight * 100 + total / 2) / total;
        is_exact &= share * total == weight * 100;
        if let Some((to, _)) = parts.get(*at) {
            others.set(to, share.to_string());
        }
    }
    Some(Split {
        most,
        others,
        is_exact,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_become_percentages() {
        let split = |parts: &[(&str, i64)]| {
            let parts = parts.iter().map(|(to, it)| ((*to).to_owned(), *it));
            let parts: Vec<_> = parts.collect();
            split(&parts).map(|it| (it.most, it.others.inline(), it.is_exact))
        };
        assert_eq!(
            split(&[("a", 9), ("b", 1)]),
            Some((0, "{ b = 10 }".to_owned(), true))
        );
        assert_eq!(
            split(&[("a", 1), ("b", 2)]),
            Some((1, "{ a = 33 }".to_owned(), false))
        );
        // One that is named twice has both of its weights.
        assert_eq!(
            split(&[("a", 1), ("b", 3), ("a", 4)]),
            Some((0, "{ b = 38 }".to_owned(), false))
        );
        assert_eq!(split(&[("a", 5)]), Some((0, "{  }".to_owned(), true)));
        assert_eq!(split(&[("a", 0)]), None);
        assert_eq!(split(&[]), None);
    }
}
