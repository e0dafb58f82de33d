//! Notices: what operators receive when a monitor goes down and comes back.
//!
//! A notice is written to the outbox of the store in the transaction of the change that it reports, and sent from there
//! at least once, however the program ends. `channel` gives it the form of a receiver, without sending; `deliver` sends,
//! tries again, puts mass failures together and gives up.

pub mod oncall;

mod channel;

mod plan;

mod words;

mod deliver;

mod message;

mod field;

mod preview;

mod link;

mod escalation;

mod settings;

pub(crate) use crate::notify::channel::all::notifier_of;
pub use crate::notify::channel::all::{CHANNELS, channel};
pub use crate::notify::channel::{
    Answers, Channel, HttpRequest, Mail, Mailer, Notifier, Outgoing, Question, placeholders,
};
pub(crate) use crate::notify::channel::{ChannelError, Foreign};
pub use crate::notify::deliver::send_test;
pub use crate::notify::escalation::{EscalationPlan, EscalationStep, EscalationTarget};
pub(crate) use crate::notify::field::Values;
pub use crate::notify::field::{Field, FieldKind};
pub use crate::notify::link::{AcknowledgePlan, Acknowledgement, LinkKey};
pub use crate::notify::message::{Message, NoticeKind};
pub use crate::notify::plan::NotifyPlan;
pub use crate::notify::preview::preview;

pub(crate) use crate::notify::deliver::{Delivery, run};
pub use crate::notify::deliver::{LIMITS, SendFailure, send};
pub use crate::notify::message::backoff;
pub(crate) use crate::notify::settings::Settings;
pub use crate::notify::words::Template;
pub(crate) use crate::notify::words::{Facts, full_name, title};

/// The name under which the outbox has messages to subscribers of pages; no channel may have it.
pub const SUBSCRIBERS: &str = "subscribers";
