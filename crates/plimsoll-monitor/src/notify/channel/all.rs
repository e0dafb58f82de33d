//! All channels: what a key of a configuration stands for.

use std::sync::Arc;

use plimsoll_model::document::Document;

use super::{
    Channel, ChannelError, Notifier, alertmanager, aws_sns, bark, dingtalk, discord, email, feishu,
    github, gitlab, google_chat, gotify, home_assistant, incident_io, jira, line, mailgun, matrix,
    mattermost, n8n, ntfy, opsgenie, pagerduty, pushbullet, pushover, rocket_chat, sendgrid, ses,
    signal, signl4, slack, splunk_on_call, teams, telegram, twilio, twilio_voice, webex, webhook,
    wecom, zapier, zulip,
};
use crate::notify::settings::Settings;

/// Every channel, by key.
pub static CHANNELS: [&Channel; 40] = [
    &alertmanager::CHANNEL,
    &aws_sns::CHANNEL,
    &bark::CHANNEL,
    &dingtalk::CHANNEL,
    &discord::CHANNEL,
    &email::CHANNEL,
    &feishu::CHANNEL,
    &github::CHANNEL,
    &gitlab::CHANNEL,
    &google_chat::CHANNEL,
    &gotify::CHANNEL,
    &home_assistant::CHANNEL,
    &incident_io::CHANNEL,
    &jira::CHANNEL,
    &line::CHANNEL,
    &mailgun::CHANNEL,
    &matrix::CHANNEL,
    &mattermost::CHANNEL,
    &n8n::CHANNEL,
    &ntfy::CHANNEL,
    &opsgenie::CHANNEL,
    &pagerduty::CHANNEL,
    &pushbullet::CHANNEL,
    &pushover::CHANNEL,
    &rocket_chat::CHANNEL,
    &sendgrid::CHANNEL,
    &ses::CHANNEL,
    &signal::CHANNEL,
    &signl4::CHANNEL,
    &slack::CHANNEL,
    &splunk_on_call::CHANNEL,
    &teams::CHANNEL,
    &telegram::CHANNEL,
    &twilio::CHANNEL,
    &twilio_voice::CHANNEL,
    &webex::CHANNEL,
    &webhook::CHANNEL,
    &wecom::CHANNEL,
    &zapier::CHANNEL,
    &zulip::CHANNEL,
];

/// The channel of a key.
pub fn channel(key: &str) -> Option<&'static Channel> {
    CHANNELS.iter().copied().find(|channel| channel.key == key)
}

/// A channel of settings that come from elsewhere than our files; fails with the first problem.
pub(crate) fn notifier_of(
    kind: &str,
    table: &toml::Table,
) -> Result<Arc<dyn Notifier>, ChannelError> {
    let text = table.to_string();
    let mut document = Document::parse(&text);
    let mut settings = Settings::new(document.root(), &|_| None);
    let notifier = channel(kind).and_then(|channel| channel.compile(&mut settings));
    settings.table.finish();
    let problem = document.into_problems().into_iter().next();
    match (notifier, problem) {
        (Some(notifier), None) => Ok(notifier),
        (_, Some(problem)) => Err(ChannelError::Setting(problem)),
        (None, None) => Err(ChannelError::Unknown(kind.to_owned())),
    }
}
