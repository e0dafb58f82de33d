//! The agents of a fleet in the terminal view: side by side, between the plots and the figures of all.

use std::cmp::Reverse;

use plimsoll_model::AgentStanding;
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Row, Table};

use super::super::agents::AgentCells;
use super::{View, WIDEST};

impl View {
    /// Takes note of how the agents stand.
    pub(in super::super) fn update_agents(&mut self, agents: &[AgentStanding]) {
        self.agents.clear();
        self.agents.extend_from_slice(agents);
    }

    /// Agents that there is room for: half of what the plots would have, the fewest of them two.
    pub(super) fn agent_rows(&self, height: u16) -> u16 {
        const WITHOUT: u16 = 9 + 3 + 3;

        let room = height.saturating_sub(WITHOUT) / 2;
        let all = u16::try_from(self.agents.len()).unwrap_or(u16::MAX);
        if room < 2 { 0 } else { all.min(room) }
    }

    /// The agents side by side; those with a state or errors first where not all have room.
    pub(super) fn draw_agents(&self, frame: &mut Frame<'_>, area: Rect, rows: u16) {
        let mut agents: Vec<_> = self
            .agents
            .iter()
            .map(|agent| (agent, AgentCells::new(agent)))
            .collect();
        let shown = usize::from(rows);
        if agents.len() > shown {
            agents.sort_by_key(|(agent, cells)| (cells.state.is_empty(), Reverse(agent.errors)));
        }
        let header = ["", "rate/s", "errors", "p99", "busiest", "starts late", ""];
        let line = agents.iter().take(shown).map(|(agent, cells)| {
            let row = Row::new([
                Line::from(agent.name.as_str()),
                Line::from(cells.rate.as_str()).right_aligned(),
                Line::from(cells.errors.as_str()).right_aligned(),
                Line::from(cells.p99.as_str()).right_aligned(),
                Line::from(cells.busiest.as_str()).right_aligned(),
                Line::from(cells.lag.as_str()).right_aligned(),
                Line::from(cells.state),
            ]);
            match cells.state {
                "lost" => row.red(),
                "limit" | "starts late" => row.yellow(),
                _ => row,
            }
        });
        let name = agents.iter().map(|(agent, _)| agent.name.len());
        let name = name.max().unwrap_or_default().min(WIDEST);
        let widths = [
            Constraint::Length(u16::try_from(name).unwrap_or(0)),
            Constraint::Length(9),
            Constraint::Length(8),
            Constraint::Length(10),
            Constraint::Length(7),
            Constraint::Length(11),
            Constraint::Fill(1),
        ];
        let title = match agents.len() {
            all if all > shown => format!("agents, {shown} of {all}"),
            _ => "agents".to_owned(),
        };
        let block = Block::bordered()
            .title(title)
            .border_style(Style::new().dark_gray());
        let header = header.map(|it| Line::from(it).right_aligned());
        let table = Table::new(line, widths)
            .header(Row::new(header).dark_gray())
            .column_spacing(2)
            .block(block);
        frame.render_widget(table, area);
    }
}
