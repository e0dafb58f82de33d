//! Shards of monitors, and how the processes that share a store divide them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::store::MonitorId;

/// Shards of an organisation: enough to divide them evenly among a few dozen processes.
pub const SHARDS: usize = 256;

/// A set of shards.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Shards([u8; SHARDS / 8]);

impl Shards {
    /// No shard.
    pub const NONE: Self = Self([0; SHARDS / 8]);

    /// All shards.
    pub const ALL: Self = Self([u8::MAX; SHARDS / 8]);

    /// The shard of a monitor. It stays when the monitor is renamed.
    pub fn shard_of(monitor: MonitorId) -> u8 {
        // Neighbours must not be together: ids count up, and each organisation has ids of its own.
        // Source: Sebastiano Vigna, splitmix64.c, the finaliser.
        let mut mixed = monitor.0.cast_unsigned();
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).to_be_bytes()[0]
    }

    /// Whether the shard of a monitor is in the set.
    pub fn has_monitor(&self, monitor: MonitorId) -> bool {
        self.contains(Self::shard_of(monitor))
    }

    /// Whether the set has a shard.
    pub fn contains(&self, shard: u8) -> bool {
        let (byte, bit) = place(shard);
        self.0[byte] & bit != 0
    }

    /// The number of shards in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|byte| byte.count_ones() as usize).sum()
    }

    /// Whether the set has no shard.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// The set as bytes: shard 0 is the lowest bit of the first one, as PostgreSQL's `get_bit` counts.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        self.0.to_vec()
    }

    /// Reads [`to_bytes`](Self::to_bytes); without shards if it has another length.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        bytes.try_into().map_or(Self::NONE, Self)
    }

    fn insert(&mut self, shard: u8) {
        let (byte, bit) = place(shard);
        self.0[byte] |= bit;
    }

    fn shards(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |shard| self.contains(*shard))
    }

    /// The shards that at least one of two sets has.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        let mut all = self;
        other.shards().for_each(|shard| all.insert(shard));
        all
    }

    /// The shards that another set does not have.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        let mut rest = Self::NONE;
        let shards = self.shards().filter(|shard| !other.contains(*shard));
        shards.for_each(|shard| rest.insert(shard));
        rest
    }

    /// The first shards of the set.
    fn first(self, most: usize) -> Self {
        let mut some = Self::NONE;
        self.shards()
            .take(most)
            .for_each(|shard| some.insert(shard));
        some
    }
}

/// The byte of a shard, and its bit.
fn place(shard: u8) -> (usize, u8) {
    (usize::from(shard / 8), 1 << (shard % 8))
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.shards()).finish()
    }
}

/// How the processes that share a store divide the checks of an organisation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Division {
    /// The shards of each process that is alive, by its name.
    pub shares: BTreeMap<String, Shards>,
    /// The process that has the lease, unless it checks everything itself.
    pub leader: Option<String>,
}

impl Division {
    /// The shards of a process.
    pub fn share_of(&self, process: &str) -> Shards {
        self.shares.get(process).copied().unwrap_or(Shards::NONE)
    }

    /// The shards that some process has.
    pub fn taken(&self) -> Shards {
        self.shares
            .values()
            .fold(Shards::NONE, |all, share| all.union(*share))
    }

    /// Whether each shard has a process, and no process has two shards more than another one.
    pub fn is_even(&self) -> bool {
        let counts = || self.shares.values().map(Shards::len);
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        self.taken() == Shards::ALL && most - least <= 1
    }

    /// The shards that a process should have now.
    ///
    /// It keeps as many of its own as it is entitled to, gives up the others, and takes free ones. Processes that do so one after
    /// the other have an even division after each has done so twice, and no shard moves between two that stay unless one of
    /// them has too many.
    pub fn claim(&self, process: &str) -> Shards {
        let own = self.share_of(process);
        let mut by_count: Vec<_> = self
            .shares
            .iter()
            .map(|(name, share)| (name.as_str(), share.len()))
            .collect();
        if !self.shares.contains_key(process) {
            by_count.push((process, 0));
        }
        // Those with the most keep what cannot be divided.
        by_count.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        let rank = by_count.iter().position(|(name, _)| *name == process);
        let entitled = SHARDS / by_count.len()
            + usize::from(rank.is_some_and(|rank| rank < SHARDS % by_count.len()));
        let kept = own.first(entitled);
        let free = Shards::ALL.without(self.taken());
        kept.union(free.first(entitled - kept.len()))
    }
}

/// A result for the process that has the lease, of one that checks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedResult {
    /// By which a result that is handed over again is known: higher for each later one of the process.
    pub number: i64,
    /// The monitor.
    pub monitor: MonitorId,
    /// What was found, as text that the store does not read.
    pub text: String,
}

/// A result that another process handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandedOver {
    /// The process.
    pub process: String,
    /// The number that the process gave it.
    pub number: i64,
    /// How long ago, by the clock of the store.
    pub age: Duration,
    /// What was found.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes that hold a lease on their shares: each renews it every few seconds, or stops to.
    #[derive(Default)]
    struct World {
        shares: BTreeMap<String, (Shards, u64)>,
        now: u64,
    }

    const LASTS: u64 = 10;

    impl World {
        fn division(&self) -> Division {
            let live = self
                .shares
                .iter()
                .filter(|(_, (_, until))| *until > self.now);
            Division {
                shares: live
                    .map(|(name, (share, _))| (name.clone(), *share))
                    .collect(),
                leader: None,
            }
        }

        fn renew(&mut self, name: &str) {
            let before = self.division();
            let claimed = before.claim(name);
            for (other, share) in &before.shares {
                let both = claimed.without(claimed.without(*share));
                assert!(
                    other == name || both.is_empty(),
                    "{name} takes {both:?} of {other}"
                );
            }
            self.shares
                .insert(name.to_owned(), (claimed, self.now + LASTS));
        }
    }

    /// Processes come, end and are killed at random; between two such events everything settles.
    #[test]
    fn shards_are_even_soon_after_processes_come_and_go_and_few_of_them_move() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut world = World::default();
            let mut alive: Vec<String> = Vec::new();
            for event in 0..12 {
                let before = world.division();
                let (comes, name) = if alive.len() < 2 || (random.bool() && alive.len() < 9) {
                    (true, format!("process-{event}"))
                } else {
                    (false, alive.swap_remove(random.usize(..alive.len())))
                };
                if comes {
                    alive.push(name.clone());
                } else if random.bool() {
                    // It ends by itself; otherwise its lease has to be over.
                    world.shares.remove(&name);
                }
                // Each renews at its own moments, in any order.
                for _ in 0..LASTS + 4 {
                    random.shuffle(&mut alive);
                    for one in &alive {
                        world.renew(one);
                    }
                    world.now += 1;
                }
                let after = world.division();
                assert!(after.is_even(), "seed {seed}, event {event}: {after:?}");
                assert_eq!(after.shares.len(), alive.len());
                for (other, share) in &after.shares {
                    // A process that came takes shards, and one that went leaves them; no others move, but for one of a rest.
                    let moved = share.without(before.share_of(other));
                    let lost = before.share_of(other).without(*share);
                    let most = if comes { (lost, moved) } else { (moved, lost) };
                    let stays = before.shares.contains_key(other);
                    assert!(
                        !stays || most.1.len() <= 1,
                        "seed {seed}, event {event}: {other} {moved:?} {lost:?}"
                    );
                    assert!(!stays || most.0.len() <= SHARDS / 2);
                }
            }
        }
    }

    #[test]
    fn monitors_are_spread_over_all_shards() {
        // Ids of an organisation may all be odd, since another one was filled beside it.
        for step in [1, 2, 256] {
            let mut count = [0; SHARDS];
            for number in 0..25_600 {
                let id = MonitorId(number * step + 1);
                count[usize::from(Shards::shard_of(id))] += 1;
            }
            assert!(
                count.iter().all(|count| (50..160).contains(count)),
                "{step}: {count:?}"
            );
        }
    }

    #[test]
    fn a_set_survives_the_way_to_the_store() {
        let mut some = Shards::NONE;
        for shard in [0, 7, 8, 130, 255] {
            some.insert(shard);
        }
        assert_eq!(Shards::from_bytes(&some.to_bytes()), some);
        assert_eq!(some.len(), 5);
        assert!(some.contains(130) && !some.contains(129));
        assert_eq!(Shards::from_bytes(b"?"), Shards::NONE);
        assert_eq!(Shards::ALL.without(some).len(), SHARDS - 5);
    }
}
