//! Which requests a row is for.

use super::super::toml::Keys;
use super::paths::{PathMatch, Unclear};

/// Which requests; all of its conditions have to be met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::import) struct Matcher {
    /// Any of these; none is no condition.
    pub(in crate::import) paths: Vec<PathMatch>,
    /// Any of these, as texts of TOML; none is no condition.
    pub(in crate::import) methods: Vec<String>,
    /// `header` of a route, with names in small letters.
    pub(in crate::import) fields: Keys,
    /// `query` of a route.
    pub(in crate::import) query: Keys,
    /// `http` or `https`, as a text of TOML.
    pub(in crate::import) scheme: Option<String>,
    /// Places with their values as texts of TOML, each of them.
    pub(in crate::import) places: Vec<(String, String)>,
    /// Where clients have to be, each of them.
    pub(in crate::import) clients: Vec<Clients>,
    /// It is by an expression, whose groups have numbers.
    pub(in crate::import) has_groups: bool,
    /// Paths that it is not for.
    pub(in crate::import) excluded: Vec<PathMatch>,
}

/// Clients in networks, or all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::import) struct Clients {
    pub(in crate::import) networks: Vec<String>,
    pub(in crate::import) is_negated: bool,
}

impl Matcher {
    /// What both are for; `None` if that is nothing.
    pub(in crate::import) fn overlap(&self, other: &Self) -> Result<Option<Self>, Unclear> {
        let mut paths = Vec::new();
        match (self.paths.as_slice(), other.paths.as_slice()) {
            ([], some) | (some, []) => paths.extend_from_slice(some),
            (ones, others) => {
                let pairs = ones
                    .iter()
                    .flat_map(|one| others.iter().map(move |it| (one, it)));
                let mut is_unclear = false;
                for (one, other) in pairs {
                    match one.overlap(other) {
                        Ok(both) => paths.extend(both),
                        Err(Unclear) => is_unclear = true,
                    }
                }
                if is_unclear {
                    return Err(Unclear);
                }
                if paths.is_empty() {
                    return Ok(None);
                }
            }
        }
        let methods = match (self.methods.as_slice(), other.methods.as_slice()) {
            ([], some) | (some, []) => some.to_vec(),
            (ones, others) => {
                let both = ones.iter().filter(|it| others.contains(it));
                let both: Vec<_> = both.cloned().collect();
                if both.is_empty() {
                    return Ok(None);
                }
                both
            }
        };
        if self.scheme.is_some() && other.scheme.is_some() && self.scheme != other.scheme {
            return Ok(None);
        }
        let mut places = self.places.clone();
        for (place, value) in &other.places {
            match places.iter().find(|(known, _)| known == place) {
                Some((_, known)) if known != value => return Ok(None),
                Some(_) => {}
                None => places.push((place.clone(), value.clone())),
            }
        }
        let mut clients = self.clients.clone();
        for one in &other.clients {
            let opposite = Clients {
                is_negated: !one.is_negated,
                ..one.clone()
            };
            if clients.contains(&opposite) {
                return Ok(None);
            }
            if !clients.contains(one) {
                clients.push(one.clone());
            }
        }
        Ok(Some(Self {
            paths,
            methods,
            fields: both(&self.fields, &other.fields)?,
            query: both(&self.query, &other.query)?,
            scheme: self.scheme.clone().or_else(|| other.scheme.clone()),
            places,
            clients,
            has_groups: self.has_groups || other.has_groups,
            excluded: [self.excluded.clone(), other.excluded.clone()].concat(),
        }))
    }

    /// Whether every request of the other one is one of this; no if that is unclear.
    pub(in crate::import) fn covers(&self, other: &Self) -> bool {
        let is_path = |path| self.paths.iter().any(|it: &PathMatch| it.covers(path));
        let has_paths =
            self.paths.is_empty() || !other.paths.is_empty() && other.paths.iter().all(is_path);
        let has_methods = self.methods.is_empty()
            || !other.methods.is_empty()
                && other.methods.iter().all(|it| self.methods.contains(it));
        let has_values = |ours: &Keys, theirs: &Keys| {
            let mut pairs = ours.pairs();
            pairs.all(|(name, value)| theirs.get(name) == Some(value))
        };
        self.excluded.is_empty()
            && has_paths
            && has_methods
            && has_values(&self.fields, &other.fields)
            && has_values(&self.query, &other.query)
            && (self.scheme.is_none() || self.scheme == other.scheme)
            && self.places.iter().all(|it| other.places.contains(it))
            && self.clients.iter().all(|it| other.clients.contains(it))
    }

    /// Paths alone.
    pub(in crate::import) fn of_path(path: PathMatch) -> Self {
        Self {
            paths: vec![path],
            ..Self::default()
        }
    }
}

/// The values of both. A field may have two values at a time, which no route asks for.
fn both(ones: &Keys, others: &Keys) -> Result<Keys, Unclear> {
    let mut all = ones.clone();
    for (name, value) in others.pairs() {
        match ones.get(name) {
            None | Some("true") => all.set(name, value),
            Some(known) if known == value || value == "true" => {}
            Some(_) => return Err(Unclear),
        }
    }
    Ok(all)
}
