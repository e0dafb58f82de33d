//! The same of definitions of every kind: channels hold credentials in the settings that are declared as such, pages the hash
//! of a password, rotations the secret of their calendar.

use std::collections::HashMap;

use toml::{Table, Value};

use crate::config::mask::{MASK, MaskError, mask, unmask};
use crate::notify::{CHANNELS, Channel};
use crate::store::DefinitionKind;

/// Replaces the credentials of a definition by masks.
pub fn mask_definition(kind: DefinitionKind, definition: &mut Table) {
    match kind {
        DefinitionKind::Monitor => mask(definition),
        _ => each(kind, definition, &mut |_, text| MASK.clone_into(text)),
    }
}

/// Puts the credentials of `present` in the places of masks.
///
/// Fails with the place of a mask that has none, and if the definition leads elsewhere than `present`.
pub(crate) fn unmask_definition(
    kind: DefinitionKind,
    definition: &mut Table,
    present: &Table,
) -> Result<(), MaskError> {
    if kind == DefinitionKind::Monitor {
        return unmask(definition, present);
    }
    let mut known = HashMap::new();
    each(kind, &mut present.clone(), &mut |place, text| {
        known.insert(place.to_owned(), text.clone());
    });
    let (mut is_restored, mut wrong) = (false, None);
    each(kind, definition, &mut |place, text| {
        if text != MASK {
            return;
        }
        match known.get(place) {
            Some(credential) => {
                text.clone_from(credential);
                is_restored = true;
            }
            None => wrong = Some(MaskError::NoValue(place.to_owned())),
        }
    });
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    // Who may not see a credential may not have it sent elsewhere either.
    match channel_of(kind, definition) {
        Some(channel) if is_restored && moves(channel, definition, present) => {
            Err(MaskError::LeadsElsewhere(channel.key.to_owned()))
        }
        _ => Ok(()),
    }
}

fn channel_of(kind: DefinitionKind, definition: &Table) -> Option<&'static Channel> {
    let mut channels = CHANNELS.iter().copied();
    match kind {
        DefinitionKind::Channel => channels.find(|it| definition.contains_key(it.key)),
        _ => None,
    }
}

/// Whether the settings of a channel lead to another server than before.
fn moves(channel: &Channel, definition: &Table, present: &Table) -> bool {
    let setting = |table: &Table, key: &str| -> Option<Value> {
        table.get(channel.key)?.as_table()?.get(key).cloned()
    };
    let mut leading = channel.fields.iter().filter(|field| field.leads());
    leading.any(|field| setting(definition, field.key) != setting(present, field.key))
}

/// Visits every credential with its place.
fn each(kind: DefinitionKind, definition: &mut Table, visit: &mut dyn FnMut(&str, &mut String)) {
    let whole = match kind {
        DefinitionKind::Page => Some("password_bcrypt"),
        DefinitionKind::OnCall => Some("token"),
        _ => None,
    };
    if let Some(key) = whole
        && let Some(Value::String(text)) = definition.get_mut(key)
    {
        visit(key, text);
    }
    let Some(channel) = channel_of(kind, definition) else {
        return;
    };
    let Some(Value::Table(settings)) = definition.get_mut(channel.key) else {
        return;
    };
    for field in channel.fields.iter().filter(|field| field.kind.is_secret()) {
        let place = format!("{}.{}", channel.key, field.key);
        match settings.get_mut(field.key) {
            Some(Value::String(text)) => visit(&place, text),
            // Such as header fields.
            Some(Value::Table(pairs)) => {
                for (name, value) in pairs.iter_mut() {
                    if let Value::String(text) = value {
                        visit(&format!("{place}.{}", name.to_ascii_lowercase()), text);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn credentials_of_every_kind_are_masked_and_come_back() {
        for (kind, text, secrets) in [
            (
                DefinitionKind::Channel,
                "name = \"ops\"\non = [\"opened\"]\n[slack]\nurl = \"https://hooks.slack.com/services/HIDDEN\"\n",
                1,
            ),
            (
                DefinitionKind::Channel,
                "name = \"hook\"\n[webhook]\nurl = \"https://a.example/HIDDEN\"\n[webhook.headers]\nAuthorization = \"Bearer HIDDEN\"\n",
                2,
            ),
            (
                DefinitionKind::Channel,
                "name = \"mail\"\n[email]\nhost = \"mx.example.org\"\nfrom = \"a@example.org\"\nto = \"b@example.org\"\nuser = \"a\"\npassword = \"HIDDEN\"\n",
                1,
            ),
            (
                DefinitionKind::Page,
                "slug = \"main\"\ntitle = \"Main\"\npassword_bcrypt = \"HIDDEN\"\n",
                1,
            ),
            (
                DefinitionKind::OnCall,
                "name = \"team\"\nmembers = [\"ann\"]\ntoken = \"HIDDEN\"\n",
                1,
            ),
            (
                DefinitionKind::Monitor,
                "name = \"a\"\n[http]\nurl = \"http://a/\"\nbearer = \"HIDDEN\"\n",
                1,
            ),
        ] {
            let stored = table(text);
            let mut shown = stored.clone();
            mask_definition(kind, &mut shown);
            let written = shown.to_string();
            assert!(!written.contains("HIDDEN"), "{written}");
            assert_eq!(written.matches(MASK).count(), secrets, "{written}");
            unmask_definition(kind, &mut shown, &stored).unwrap();
            assert_eq!(shown, stored, "{text}");
        }
    }

    #[test]
    fn a_credential_of_a_channel_goes_to_no_other_server() {
        let kind = DefinitionKind::Channel;
        let stored =
            table("name = \"a\"\n[gotify]\nurl = \"https://push.example.org\"\ntoken = \"t\"\n");
        let moved = "name = \"a\"\n[gotify]\nurl = \"https://evil.example\"\n";
        let mut masked = table(&format!("{moved}token = \"{MASK}\"\n"));
        let refused = unmask_definition(kind, &mut masked, &stored);
        assert_eq!(refused, Err(MaskError::LeadsElsewhere("gotify".to_owned())));
        let mut given = table(&format!("{moved}token = \"new\"\n"));
        unmask_definition(kind, &mut given, &stored).unwrap();
        assert_eq!(given["gotify"]["token"].as_str(), Some("new"));
    }

    #[test]
    fn a_mask_without_a_credential_behind_it_is_refused() {
        let stored = table("slug = \"main\"\ntitle = \"Main\"\n");
        let mut masked = stored.clone();
        masked.insert("password_bcrypt".to_owned(), MASK.into());
        let refused = unmask_definition(DefinitionKind::Page, &mut masked, &stored);
        let place = "password_bcrypt".to_owned();
        assert_eq!(refused, Err(MaskError::NoValue(place)));
    }
}
