//! Parts that the pages of all experiments share: marks, cards, conditions.

use std::fmt::Write as _;

use plimsoll_model::{ByteSize, Conditions, escaped_html, shell_line};

const IN_MEMORY: &str = "writing to memory does not fail";

/// The warnings that a reader should see first.
pub(crate) fn write_marks(page: &mut String, marks: &[String]) {
    if marks.is_empty() {
        return;
    }
    page.push_str("<ul class=\"mark\">");
    for mark in marks {
        write!(page, "<li>{}</li>", escaped_html(mark)).expect(IN_MEMORY);
    }
    page.push_str("</ul>");
}

/// The machine, the load on it and the command.
pub(crate) fn write_conditions(page: &mut String, conditions: &Conditions) {
    let cores = |cores: &[usize]| {
        if cores.is_empty() {
            "any core".to_owned()
        } else {
            let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
            format!("core {}", cores.join(", "))
        }
    };
    let mut rows = vec![("plimsoll", conditions.plimsoll.clone())];
    let mut add = |label, text: Option<String>| rows.extend(text.map(|text| (label, text)));
    add("kernel", conditions.kernel.clone());
    add("processor", conditions.cpu_model.clone());
    add("cores", Some(conditions.cores.to_string()));
    add("governor", conditions.governor.clone());
    add(
        "memory",
        conditions
            .memory_bytes
            .map(|bytes| ByteSize(bytes).to_string()),
    );
    add(
        "cpu limit",
        conditions
            .limits
            .cpus
            .map(|cpus| format!("{cpus:.2} cores")),
    );
    add(
        "memory limit",
        conditions
            .limits
            .memory_bytes
            .map(|bytes| ByteSize(bytes).to_string()),
    );
    add(
        "local ports",
        conditions.local_ports.map(plimsoll_model::grouped),
    );
    add("congestion control", conditions.congestion_control.clone());
    add("generator on", Some(cores(&conditions.pinning.generator)));
    add("target on", Some(cores(&conditions.pinning.target)));
    add(
        "load before",
        conditions
            .load_before
            .map(|load| format!("{:.2}", load.one)),
    );
    add(
        "stolen time",
        conditions
            .steal_percent
            .map(|steal| format!("{steal:.1} %")),
    );
    page.push_str("<section class=\"t\"><h2>Conditions</h2><div class=\"wide\"><table>");
    for (label, text) in rows {
        write!(
            page,
            "<tr><th>{label}</th><td>{}</td></tr>",
            escaped_html(&text)
        )
        .expect(IN_MEMORY);
    }
    page.push_str("</table></div>");
    if !conditions.command.is_empty() {
        let command = shell_line(&conditions.command);
        write!(page, "<pre>{}</pre>", escaped_html(&command)).expect(IN_MEMORY);
    }
    page.push_str("</section>\n");
}
