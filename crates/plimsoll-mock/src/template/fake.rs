//! Names, addresses and words that are made up.

use fastrand::Rng;

/// The kinds of invented values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fake {
    /// `Ann`
    FirstName,
    /// `Baker`
    LastName,
    /// `Ann Baker`
    Name,
    /// `ann.baker@example.org`
    Email,
    /// `ann_baker7`
    User,
    /// `+1 555 0123456`, a number that is never assigned.
    Phone,
    /// `Mill Lane 12`
    Street,
    /// `Ashford`
    City,
    /// `Portugal`
    Country,
    /// `Baker & Stone Ltd`
    Company,
    /// `harbour`
    Word,
    /// Some words with a full stop.
    Sentence,
    /// An address of IPv4 for documentation (RFC 5737).
    Ipv4,
    /// `true` or `false`
    Boolean,
    /// Amounts such as `17.25`.
    Price,
    /// A date of the last ten years of the century before.
    Date,
}

const NAMES: [(&str, Fake); 16] = [
    ("first_name", Fake::FirstName),
    ("last_name", Fake::LastName),
    ("name", Fake::Name),
    ("email", Fake::Email),
    ("user", Fake::User),
    ("phone", Fake::Phone),
    ("street", Fake::Street),
    ("city", Fake::City),
    ("country", Fake::Country),
    ("company", Fake::Company),
    ("word", Fake::Word),
    ("sentence", Fake::Sentence),
    ("ipv4", Fake::Ipv4),
    ("boolean", Fake::Boolean),
    ("price", Fake::Price),
    ("date", Fake::Date),
];

const FIRST: [&str; 24] = [
    "Ann", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Hugo", "Ines", "Jack", "Kira",
    "Liam", "Maya", "Noah", "Olga", "Paul", "Quinn", "Rosa", "Sam", "Tara", "Uma", "Viktor",
    "Wanda", "Yusuf",
];
const LAST: [&str; 24] = [
    "Adams", "Baker", "Carter", "Diaz", "Evans", "Fischer", "Garcia", "Hughes", "Ivanov", "Jones",
    "Kim", "Lopez", "Meyer", "Novak", "Okafor", "Patel", "Quist", "Rossi", "Silva", "Tanaka",
    "Ueda", "Vega", "Weber", "Young",
];
const STREETS: [&str; 8] = [
    "Mill Lane",
    "High Street",
    "Station Road",
    "Park Avenue",
    "Church Street",
    "Harbour Way",
    "Elm Row",
    "Long Acre",
];
const CITIES: [&str; 12] = [
    "Ashford", "Bergen", "Cork", "Delft", "Evora", "Faro", "Ghent", "Hilo", "Izmir", "Jena",
    "Kyoto", "Leeds",
];
const COUNTRIES: [&str; 12] = [
    "Brazil", "Canada", "Denmark", "Estonia", "Finland", "Ghana", "India", "Japan", "Kenya",
    "Norway", "Portugal", "Spain",
];
const WORDS: [&str; 24] = [
    "amber", "basket", "candle", "drift", "ember", "fabric", "garden", "harbour", "island",
    "jacket", "kettle", "lantern", "meadow", "needle", "orchard", "paper", "quartz", "river",
    "saddle", "timber", "umbrella", "velvet", "window", "yarn",
];

impl Fake {
    /// The kind of that name, such as `first_name`.
    pub fn named(name: &str) -> Option<Self> {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, fake)| *fake)
    }

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// One of them.
    pub fn make(self, rng: &mut Rng) -> String {
        match self {
            Self::FirstName => one(&FIRST, rng).to_owned(),
            Self::LastName => one(&LAST, rng).to_owned(),
            Self::Name => format!("{} {}", one(&FIRST, rng), one(&LAST, rng)),
            Self::Email => {
                let (first, last) = (one(&FIRST, rng), one(&LAST, rng));
                format!("{first}.{last}@example.org").to_lowercase()
            }
            Self::User => {
                let (first, last) = (one(&FIRST, rng), one(&LAST, rng));
                format!("{first}_{last}{}", rng.u32(1..100)).to_lowercase()
            }
            Self::Phone => format!("+1 555 {:07}", rng.u32(100_000..200_000)),
            Self::Street => format!("{} {}", one(&STREETS, rng), rng.u32(1..200)),
            Self::City => one(&CITIES, rng).to_owned(),
            Self::Country => one(&COUNTRIES, rng).to_owned(),
            Self::Company => format!("{} & {} Ltd", one(&LAST, rng), one(&LAST, rng)),
            Self::Word => one(&WORDS, rng).to_owned(),
            Self::Sentence => {
                let count = rng.usize(4..10);
                let words: Vec<_> = (0..count).map(|_| one(&WORDS, rng)).collect();
                let text = words.join(" ");
                let (first, rest) = text.split_at(1);
                format!("{}{rest}.", first.to_uppercase())
            }
            Self::Ipv4 => format!("192.0.2.{}", rng.u32(1..255)),
            Self::Boolean => rng.bool().to_string(),
            Self::Price => format!("{}.{:02}", rng.u32(1..500), rng.u32(0..100)),
            Self::Date => {
                format!(
                    "{}-{:02}-{:02}",
                    rng.u32(1990..2000),
                    rng.u32(1..13),
                    rng.u32(1..29)
                )
            }
        }
    }
}

fn one(texts: &[&'static str], rng: &mut Rng) -> &'static str {
    texts[rng.usize(..texts.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_made_and_a_seed_makes_the_same() {
        let make = |seed| {
            let mut rng = Rng::with_seed(seed);
            let fakes = Fake::names().map(|name| Fake::named(name).unwrap().make(&mut rng));
            fakes.collect::<Vec<_>>()
        };
        assert!(make(1).iter().all(|text| !text.is_empty()));
        assert_eq!(make(7), make(7));
        assert_ne!(make(7), make(8));
        assert_eq!(Fake::named("fist_name"), None);
    }
}
