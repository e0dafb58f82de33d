//! `summary.json` and `components.json` of Statuspage: components become manual monitors.

use serde_json::Value;

use crate::config::import::{Imported, text_of};

pub(super) fn import(components: &[Value]) -> Imported {
    let mut imported = Imported::default();
    let mut taken = Vec::new();
    let is_group = |component: &&Value| component.get("group") == Some(&Value::Bool(true));
    let groups: Vec<_> = components
        .iter()
        .filter(is_group)
        .filter_map(|component| Some((text_of(component, "id")?, text_of(component, "name")?)))
        .collect();
    for component in components.iter().filter(|component| !is_group(component)) {
        let Some(name) = text_of(component, "name") else {
            continue;
        };
        let group = text_of(component, "group_id");
        let group = groups
            .iter()
            .find(|(id, _)| Some(*id) == group)
            .map_or("", |(_, name)| name);
        let name = imported.begin(name, group, &mut taken);
        imported.pair("manual", "true");
        if let Some(status) = text_of(component, "status").filter(|status| *status != "operational")
        {
            imported.remark(
                &name,
                format_args!("is `{status}` there; its state is not taken over"),
            );
        }
    }
    imported
}
