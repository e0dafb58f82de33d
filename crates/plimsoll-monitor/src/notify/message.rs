//! The content of a notice, before a channel gives it a form. The words are those of `words`; here they become a text without a channel, as of a mail.

use std::time::Duration;

use serde_json::{Value, json};

use crate::notify::words::full_name;
use crate::store::StoredNotice;
use crate::time::Timestamp;

/// The kinds of notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoticeKind {
    /// An incident opened.
    Opened,
    /// It is still open.
    Reminder,
    /// It is over.
    Resolved,
    /// Results stopped coming.
    NoData,
    /// Results come again.
    DataAgain,
    /// The error budget is used up too fast.
    BudgetBurning,
    /// It no longer is.
    BudgetSteady,
    /// An operator tries the channel.
    Test,
}

impl NoticeKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Opened,
        Self::Reminder,
        Self::Resolved,
        Self::NoData,
        Self::DataAgain,
        Self::BudgetBurning,
        Self::BudgetSteady,
        Self::Test,
    ];

    /// The name in configurations and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Reminder => "reminder",
            Self::Resolved => "resolved",
            Self::NoData => "no_data",
            Self::DataAgain => "data_again",
            Self::BudgetBurning => "budget_burning",
            Self::BudgetSteady => "budget_steady",
            Self::Test => "test",
        }
    }

    /// What the monitor is, in words.
    pub(crate) const fn state(self) -> &'static str {
        match self {
            Self::Opened => "down",
            Self::Reminder => "still down",
            Self::Resolved => "up again",
            Self::NoData => "without results",
            Self::DataAgain => "with results again",
            Self::BudgetBurning => "using its error budget up too fast",
            Self::BudgetSteady => "within its error budget again",
            Self::Test => "tested",
        }
    }

    /// Whether it reports trouble, rather than its end.
    pub const fn is_trouble(self) -> bool {
        matches!(
            self,
            Self::Opened | Self::Reminder | Self::NoData | Self::BudgetBurning
        )
    }

    /// The colour of messages that have one, as `0xrrggbb`.
    pub(crate) const fn color(self) -> u32 {
        match self {
            Self::Opened | Self::Reminder => 0x00d9_413d,
            Self::NoData | Self::BudgetBurning => 0x00ee_8a3c,
            Self::Resolved | Self::DataAgain | Self::BudgetSteady => 0x002d_a44e,
            Self::Test => 0x0057_94f2,
        }
    }

    pub(crate) const fn emoji(self) -> &'static str {
        match self {
            Self::Opened | Self::Reminder => "🔴",
            Self::NoData | Self::BudgetBurning => "🟠",
            Self::Resolved | Self::DataAgain | Self::BudgetSteady => "🟢",
            Self::Test => "🔵",
        }
    }
}

/// A notice of one monitor, or of several that were put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The kind of notice.
    pub kind: NoticeKind,
    /// One line.
    pub title: String,
    /// More; may be empty.
    pub text: String,
    /// The monitor's key; empty if it is about several.
    pub monitor: String,
    /// The monitor's name; empty if it is about several.
    pub name: String,
    /// The monitor's group; may be empty.
    pub group: String,
    /// Joins the notices of one incident, for receivers that open and close alerts.
    pub incident: String,
    /// When it happened.
    pub at: Timestamp,
    /// When the incident opened.
    pub since: Timestamp,
    /// URL with more details.
    pub link: Option<String>,
    /// URL by which the incident is acknowledged. The outbox does not have it: it is made when a message is sent.
    pub acknowledge: Option<String>,
    /// Whether it is sent only if the incident is not acknowledged before.
    pub is_escalated: bool,
}

impl Message {
    /// As the outbox has it.
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "kind": self.kind.name(),
            "title": self.title,
            "text": self.text,
            "monitor": self.monitor,
            "name": self.name,
            "group": self.group,
            "incident": self.incident,
            "at": self.at.to_string(),
            "since": self.since.to_string(),
            "link": self.link,
        });
        if self.is_escalated {
            json["escalated"] = true.into();
        }
        json
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    pub fn from_json(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let field = |key: &str| value[key].as_str().map(str::to_owned);
        let name = field("kind")?;
        Some(Self {
            kind: NoticeKind::ALL
                .into_iter()
                .find(|kind| kind.name() == name)?,
            title: field("title")?,
            text: field("text")?,
            monitor: field("monitor")?,
            // Messages of older versions that wait have neither.
            name: field("name").unwrap_or_default(),
            group: field("group").unwrap_or_default(),
            incident: field("incident")?,
            at: Timestamp::parse(&field("at")?)?,
            since: Timestamp::parse(&field("since")?)?,
            link: field("link"),
            acknowledge: None,
            is_escalated: value["escalated"] == true,
        })
    }

    /// The message of a notice, with the incident that it is about.
    pub fn of_notice(notice: &StoredNotice) -> Option<Self> {
        let message = Self::from_json(&notice.message)?;
        Some(match &notice.incident {
            None => message,
            Some(incident) => Self {
                incident: incident.key.clone(),
                since: incident.opened,
                ..message
            },
        })
    }

    /// What forms and checks of templates show: a message about a monitor that is not there.
    pub fn sample(kind: NoticeKind) -> Self {
        let at = Timestamp(1_772_366_460_000);
        Self {
            kind,
            title: format!("Shop/API is {}", kind.state()),
            text: if kind.is_trouble() {
                "status 503, expected 200–299".to_owned()
            } else {
                String::new()
            },
            monitor: "shop_api".to_owned(),
            name: "API".to_owned(),
            group: "Shop".to_owned(),
            incident: "shop_api/1772366400000/42".to_owned(),
            at,
            since: Timestamp(1_772_366_400_000),
            link: Some("https://status.example.org".to_owned()),
            acknowledge: None,
            is_escalated: false,
        }
    }

    /// Title, text and link in lines.
    pub(crate) fn plain(&self) -> String {
        let mut plain = self.title.clone();
        for more in [Some(&self.text), self.link.as_ref()].into_iter().flatten() {
            if !more.is_empty() {
                plain.push('\n');
                plain.push_str(more);
            }
        }
        plain
    }

    /// The name of the monitor with that of its group; the title of a message about several.
    pub(crate) fn full_name(&self) -> String {
        if self.name.is_empty() {
            self.title.clone()
        } else {
            full_name(&self.group, &self.name)
        }
    }

    /// The text, or the title if there is none, for receivers that demand one.
    pub(crate) fn detail(&self) -> &str {
        if self.text.is_empty() {
            &self.title
        } else {
            &self.text
        }
    }

    /// The title in one line, for mails.
    pub(crate) fn subject(&self) -> String {
        self.title.replace(['\r', '\n'], " ")
    }

    /// The text of a mail.
    pub(crate) fn mail_text(&self) -> String {
        let (mut plain, since, at) = (self.plain(), self.since, self.at);
        if let Some(url) = &self.acknowledge {
            plain = format!("{plain}\n\nAcknowledge: {url}");
        }
        if since < at {
            format!("{plain}\n\nsince {since}\nreported {at}\n")
        } else {
            format!("{plain}\n\n{at}\n")
        }
    }

    /// Several of one kind as one.
    pub(crate) fn grouped(messages: &[Self]) -> Option<Self> {
        /// Titles that are listed.
        const MOST_LISTED: usize = 20;

        let first = messages.first()?;
        let count = messages.len();
        let title = match first.kind {
            NoticeKind::Opened => format!("{count} monitors are down"),
            NoticeKind::Reminder => format!("{count} monitors are still down"),
            NoticeKind::Resolved => format!("{count} monitors are up again"),
            NoticeKind::NoData => format!("{count} monitors have no results any more"),
            NoticeKind::DataAgain => format!("{count} monitors have results again"),
            NoticeKind::BudgetBurning => {
                format!("{count} monitors use their error budgets up too fast")
            }
            NoticeKind::BudgetSteady => {
                format!("{count} monitors no longer use their error budgets up too fast")
            }
            NoticeKind::Test => format!("{count} tests"),
        };
        let mut lines: Vec<_> = messages
            .iter()
            .take(MOST_LISTED)
            .map(|message| message.title.clone())
            .collect();
        if count > MOST_LISTED {
            lines.push(format!("and {} more", count - MOST_LISTED));
        }
        Some(Self {
            title,
            text: lines.join("\n"),
            monitor: String::new(),
            name: String::new(),
            group: String::new(),
            acknowledge: None,
            ..first.clone()
        })
    }
}

/// When the next attempt is, after so many: 10 s, doubled up to an hour.
pub fn backoff(attempts: u32) -> Duration {
    const FIRST: Duration = Duration::from_secs(10);
    const LONGEST: Duration = Duration::from_hours(1);

    FIRST
        .saturating_mul(2_u32.saturating_pow(attempts))
        .min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(title: &str) -> Message {
        Message {
            kind: NoticeKind::Opened,
            title: title.to_owned(),
            text: "a \"quoted\" reason\nwith lines".to_owned(),
            monitor: "core_web".to_owned(),
            name: "web".to_owned(),
            group: "core".to_owned(),
            incident: "core_web/1".to_owned(),
            at: Timestamp(1_772_366_400_123),
            since: Timestamp(1_772_366_400_000),
            link: Some("https://status.example.org".to_owned()),
            acknowledge: None,
            is_escalated: false,
        }
    }

    #[test]
    fn messages_survive_the_outbox() {
        for kind in NoticeKind::ALL {
            let message = Message {
                kind,
                ..message("web is down")
            };
            let text = message.to_json().to_string();
            assert_eq!(Message::from_json(&text), Some(message));
        }
        assert_eq!(Message::from_json("{}"), None);
    }

    #[test]
    fn many_become_one() {
        let many: Vec<_> = (0..25).map(|n| message(&format!("m{n} is down"))).collect();
        let one = Message::grouped(&many).unwrap();
        assert_eq!(one.title, "25 monitors are down");
        assert!(
            one.text.starts_with("m0 is down\nm1 is down\n"),
            "{}",
            one.text
        );
        assert!(
            one.text.ends_with("m19 is down\nand 5 more"),
            "{}",
            one.text
        );
        assert_eq!(Message::grouped(&[]), None);
    }

    #[test]
    fn attempts_are_further_and_further_apart() {
        let seconds = |attempts| backoff(attempts).as_secs();
        assert_eq!([seconds(0), seconds(1), seconds(4)], [10, 20, 160]);
        assert_eq!([seconds(9), seconds(40)], [3_600, 3_600]);
    }
}
