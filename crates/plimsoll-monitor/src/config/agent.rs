//! `[[agent]]` and `from`: other places from which monitors are checked.

use plimsoll_model::document::{Table, Value, as_text};

use crate::token;

/// The region of the process that has the store, unless the file names it.
pub const DEFAULT_REGION: &str = "default";

/// Characters of a name.
const MOST: usize = 40;

/// An agent: a process elsewhere that checks monitors and sends what it finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPlan {
    /// Its name.
    pub name: String,
    /// The region in which it is, perhaps with others: its name if it is alone there.
    pub region: String,
    /// The SHA-256 of the tokens that it may send: two while one takes the place of the other.
    pub hashes: Vec<[u8; 32]>,
}

/// The regions of a file: that of this process first, then those of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Regions(pub(super) Vec<String>);

impl Default for Regions {
    fn default() -> Self {
        Self(vec![DEFAULT_REGION.to_owned()])
    }
}

impl Regions {
    /// The region of this process.
    pub(super) fn own(&self) -> &str {
        self.0.first().map_or(DEFAULT_REGION, String::as_str)
    }
}

/// `region`, the name of this process's own.
pub(super) fn own_region(root: &mut Table<'_>) -> Option<String> {
    let value = root.take_value("region")?;
    named(&value)
}

/// Every `[[agent]]`; their regions are added to `regions`.
pub(super) fn compile_all(tables: Vec<Table<'_>>, regions: &mut Regions) -> Vec<AgentPlan> {
    let mut agents: Vec<AgentPlan> = Vec::new();
    for table in tables {
        if let Some(agent) = compile(table, &agents, regions) {
            if !regions.0.contains(&agent.region) {
                regions.0.push(agent.region.clone());
            }
            agents.push(agent);
        }
    }
    agents
}

fn compile(mut table: Table<'_>, known: &[AgentPlan], regions: &Regions) -> Option<AgentPlan> {
    let own = regions.own();
    let mut is_whole = true;
    let name = if let Some(value) = table.take_value("name") {
        let name = named(&value);
        if let Some(name) = name.as_ref()
            && known.iter().any(|agent| agent.name == *name)
        {
            let hint =
                format!("agents of one region have names of their own, and `region = \"{name}\"`");
            value.wrong_with::<()>(format!("`{name}` is the name of another agent"), Some(hint));
            is_whole = false;
        }
        name.map(|name| (name, value))
    } else {
        table.missing("name", "the region of the agent, unless `region` names it");
        None
    };
    let given = table.take_value("region");
    let region = match (&given, &name) {
        (Some(value), _) => named(value),
        (None, named) => named.as_ref().map(|(name, _)| name.clone()),
    };
    if region.as_deref() == Some(own)
        && let Some(value) = given.as_ref().or(name.as_ref().map(|(_, value)| value))
    {
        value.wrong::<()>(format!("`{own}` is the region of this process"));
        is_whole = false;
    }
    let mut hashes = Some(Vec::new());
    if let Some(value) = table.take_value("sha256") {
        let parsed = value.elements().iter().map(token::parse).collect();
        hashes = parsed;
    } else {
        table.missing(
            "sha256",
            "`plimsoll monitor token NAME --agent` makes a token and its hash",
        );
    }
    table.finish();
    let agent = AgentPlan {
        name: name?.0,
        region: region?,
        hashes: hashes?,
    };
    is_whole.then_some(agent)
}

/// `from`: the regions that check a monitor.
pub(super) fn from(value: Value<'_>, regions: &Regions) -> Option<Vec<String>> {
    let values = value.elements();
    let mut from = Vec::with_capacity(values.len());
    let mut is_whole = !values.is_empty();
    for value in &values {
        let name = as_text(value)?;
        if !regions.0.iter().any(|region| region == name) {
            let hint = format!("regions are {}", regions.0.join(", "));
            value.wrong_with::<()>(format!("there is no region `{name}`"), Some(hint));
            is_whole = false;
        } else if !from.iter().any(|known| known == name) {
            from.push(name.to_owned());
        }
    }
    is_whole.then_some(from)
}

/// Names stand in URLs, metrics and logs.
fn named(value: &Value<'_>) -> Option<String> {
    let text = as_text(value)?;
    let is_name = (1..=MOST).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if is_name {
        Some(text.to_owned())
    } else {
        value.wrong(format!(
            "`{text}` is no name of a region: use up to {MOST} lower-case letters, digits and hyphens"
        ))
    }
}
