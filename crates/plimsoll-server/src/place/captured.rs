//! Values of places that are kept until the response, since the request is gone then.

use super::{Place, Source, Template, Values};

/// The values of some places, in one piece of memory: each with its length before it, [`ABSENT`] for none.
#[derive(Debug, Default)]
pub(crate) struct Captured(Vec<u8>);

const ABSENT: u32 = u32::MAX;
const HEAD: usize = size_of::<u32>();

/// The places with this source whose values these templates have, those of their maps included.
pub(crate) fn places_of<'t>(
    templates: impl IntoIterator<Item = &'t Template>,
    source: Source,
) -> Vec<Place> {
    let mut found = Vec::new();
    for template in templates {
        collect(template, source, &mut found);
    }
    found
}

fn collect(template: &Template, source: Source, found: &mut Vec<Place>) {
    for place in template.places() {
        match place {
            // A map with places of several sources is looked up once all are there.
            Place::Map(map) if map.source() != source => {
                for inner in map.templates() {
                    collect(inner, source, found);
                }
            }
            place if place.source() == source && !found.contains(place) => {
                found.push(place.clone());
            }
            _ => {}
        }
    }
}

impl Captured {
    /// Keeps the values that there are now.
    pub(crate) fn read(places: &[Place], values: &dyn Values) -> Self {
        let mut bytes = Vec::with_capacity(places.len() * 32);
        for place in places {
            let head = bytes.len();
            bytes.extend_from_slice(&ABSENT.to_le_bytes());
            if !values.write(place, &mut bytes) {
                bytes.truncate(head + HEAD);
                continue;
            }
            let length = u32::try_from(bytes.len() - head - HEAD).unwrap_or(ABSENT);
            if let Some(slot) = bytes.get_mut(head..head + HEAD) {
                slot.copy_from_slice(&length.to_le_bytes());
            }
        }
        Self(bytes)
    }

    /// With the places whose values they are.
    pub(crate) fn with<'a>(&'a self, places: &'a [Place]) -> CapturedValues<'a> {
        CapturedValues {
            places,
            bytes: &self.0,
        }
    }
}

/// Values that were kept, with their places.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CapturedValues<'a> {
    places: &'a [Place],
    bytes: &'a [u8],
}

impl CapturedValues<'_> {
    /// Whether the place is among those that were kept, with a value or not.
    pub(super) fn has(&self, place: &Place) -> bool {
        self.places.contains(place)
    }

    fn value(&self, place: &Place) -> Option<&[u8]> {
        let wanted = self.places.iter().position(|it| it == place)?;
        let mut rest = self.bytes;
        for _ in 0..wanted {
            (_, rest) = next(rest)?;
        }
        next(rest)?.0
    }
}

/// The first value, and what is behind it.
fn next(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    let length = u32::from_le_bytes(*head);
    if length == ABSENT {
        return Some((None, rest));
    }
    let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((Some(value), rest))
}

impl Values for CapturedValues<'_> {
    fn write(&self, place: &Place, out: &mut Vec<u8>) -> bool {
        let value = self.value(place);
        out.extend_from_slice(value.unwrap_or_default());
        value.is_some()
    }
}
