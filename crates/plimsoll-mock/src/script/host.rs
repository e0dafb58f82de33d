//! What scripts of a mock may ask: the store, chance and time.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use plimsoll_model::Clock as _;
use plimsoll_script::{Host, Level};
use plimsoll_server::{Notice, Severity};
use plimsoll_wire::SystemClock;
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::store::Store;
use crate::teller::Teller;
use crate::template::{Chance, uuid};

/// Answers the scripts of one thread.
#[derive(Debug)]
pub(super) struct MockHost {
    store: Store,
    teller: Arc<Teller>,
    /// Of the rule whose script runs, and what that script is called.
    current: RefCell<(Chance, String)>,
}

impl MockHost {
    pub(super) fn new(store: Store, teller: Arc<Teller>) -> Self {
        Self {
            store,
            teller,
            current: RefCell::default(),
        }
    }

    /// From now on that one runs.
    pub(super) fn begin(&self, chance: &Chance, name: &str) {
        *self.current.borrow_mut() = (chance.clone(), name.to_owned());
    }

    /// Tells the person who serves the mock.
    pub(super) fn tell(&self, severity: Severity, about: &str, message: &str) {
        let notice = Notice::new(severity, message);
        self.teller.tell(&if about.is_empty() {
            notice
        } else {
            notice.about(about)
        });
    }
}

impl Host for MockHost {
    fn ask(&self, name: &str, arguments: &str) -> Result<String, String> {
        let arguments: Vec<Value> = serde_json::from_str(arguments)
            .map_err(|error| format!("{name} takes no such values: {error}"))?;
        let text = |at: usize| match arguments.get(at) {
            Some(Value::String(text)) => Ok(text.as_str()),
            _ => Err(format!("value {} of {name} must be a text", at + 1)),
        };
        let number = |at: usize| {
            let number = arguments.get(at).and_then(Value::as_f64);
            number.ok_or_else(|| format!("value {} of {name} must be a number", at + 1))
        };
        let chance = || self.current.borrow().0.clone();
        Ok(match name {
            "get" => match self.store.value(text(0)?) {
                None => "[]".to_owned(),
                Some(value) => format!("[{value}]"),
            },
            "set" => {
                let value = arguments.get(1).unwrap_or(&Value::Null).to_string();
                let put = self.store.put(text(0)?, value);
                put.map_err(|error| error.to_string())?;
                "null".to_owned()
            }
            "add" => {
                let sum = self.store.add(text(0)?, number(1)?);
                json!(sum.map_err(|error| error.to_string())?).to_string()
            }
            "delete" => self.store.remove(text(0)?).to_string(),
            "keys" => json!(self.store.keys(text(0)?)).to_string(),
            "random" => json!(chance().with(fastrand::Rng::f64)).to_string(),
            "uuid" => json!(chance().with(uuid)).to_string(),
            "fake" => {
                let fake = Fake::named(text(0)?).ok_or_else(|| {
                    let known: Vec<_> = Fake::names().collect();
                    format!(
                        "there is no such thing to make up; known are {}",
                        known.join(", ")
                    )
                })?;
                json!(chance().with(|rng| fake.make(rng))).to_string()
            }
            "now" => {
                let since = SystemClock.wall().duration_since(UNIX_EPOCH);
                since.map_or(0, |since| since.as_millis()).to_string()
            }
            _ => return Err(format!("nobody answers {name}")),
        })
    }

    fn say(&self, level: Level, text: &str) {
        let severity = match level {
            Level::Note => Severity::Note,
            Level::Warning => Severity::Warning,
            Level::Error => Severity::Error,
        };
        let about = self.current.borrow().1.clone();
        self.tell(severity, &about, text);
    }
}
