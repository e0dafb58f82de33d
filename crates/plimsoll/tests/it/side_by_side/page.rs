//! A page such as docs/from-nginx.md as tasks: what the other program is given, what plimsoll is given, and which requests get which
//! responses.
//!
//! - Each `## ` heading with blocks is a task. A block of the other's language and one of `toml` are a pair; a second pair is what the
//!   first is reloaded to.
//! - A block before the first heading goes before those of all tasks.
//! - A table whose first column is `request` belongs to the pair above it. The other columns are named by the programs that they are
//!   about, `both respond` for all, and `the server gets` and `the log has`.
//! - A line `Import: …` says what becomes of the task in `plimsoll gateway import`.

/// Who responds to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    /// The program that the page is about.
    Peer,
    /// plimsoll, by the block of the page.
    Ours,
    /// plimsoll, by what the import makes of the block of the other program.
    Imported,
}

/// A whole page.
#[derive(Debug)]
pub(super) struct Page {
    /// Its file, for what goes wrong.
    pub(super) file: String,
    /// As it is named in tables.
    pub(super) peer: String,
    pub(super) tasks: Vec<Task>,
}

/// A task.
#[derive(Debug, Default)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) pairs: Vec<Pair>,
    /// What is behind `Import: `.
    pub(super) import: Option<String>,
}

/// Two configurations for the same, and the requests.
#[derive(Debug, Default)]
pub(super) struct Pair {
    pub(super) peer: String,
    pub(super) ours: String,
    pub(super) rows: Vec<Row>,
}

/// A request with its responses.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Its line on the page.
    pub(super) line: usize,
    pub(super) request: String,
    /// By the names of their columns.
    cells: Vec<(String, String)>,
}

impl Page {
    /// - `language`: of the blocks of the other program.
    /// - `separator`: between the block of all tasks and that of one.
    pub(super) fn read(
        file: &str,
        text: &str,
        peer: &str,
        language: &str,
        separator: &str,
    ) -> Self {
        let mut tasks: Vec<Task> = Vec::new();
        let mut shared = String::new();
        let mut columns: Option<Vec<String>> = None;
        let mut lines = text.lines().enumerate();
        while let Some((at, line)) = lines.next() {
            if let Some(found) = line.strip_prefix("```") {
                let block: Vec<&str> = lines
                    .by_ref()
                    .map(|(_, line)| line)
                    .take_while(|line| !line.starts_with("```"))
                    .collect();
                let block = block.join("\n") + "\n";
                match tasks.last_mut() {
                    None if found == language => shared = block + separator,
                    Some(task) if found == language => task.pairs.push(Pair {
                        peer: format!("{shared}{block}"),
                        ..Pair::default()
                    }),
                    Some(task) if found == "toml" => {
                        let pair = task.pairs.last_mut().unwrap();
                        pair.ours = block;
                    }
                    _ => {}
                }
            } else if let Some(name) = line.strip_prefix("## ") {
                tasks.push(Task {
                    name: name.to_owned(),
                    ..Task::default()
                });
            } else if let Some(import) = line.strip_prefix("Import: ") {
                tasks.last_mut().unwrap().import = Some(import.to_owned());
            } else if !line.starts_with('|') {
                columns = None;
            } else if !line.starts_with("|--") {
                let cells = cells(line);
                match &columns {
                    None => columns = Some(cells),
                    Some(columns) if columns[0] == "request" => {
                        let named = columns.iter().cloned().zip(cells).collect::<Vec<_>>();
                        let pair = tasks.last_mut().and_then(|it| it.pairs.last_mut());
                        pair.unwrap().rows.push(Row {
                            line: at + 1,
                            request: named[0].1.clone(),
                            cells: named,
                        });
                    }
                    Some(_) => {}
                }
            }
        }
        tasks.retain(|it| !it.pairs.is_empty());
        Self {
            file: file.to_owned(),
            peer: peer.to_owned(),
            tasks,
        }
    }
}

impl Row {
    /// What a program responds with; `None` if the row is not about it.
    ///
    /// - `peer`: the name of the other program in the heads of tables.
    pub(super) fn response(&self, system: System, peer: &str) -> Option<&str> {
        let has = |column: &str, name: &str| column.split(", ").any(|it| it == name);
        let column = |name: &str| {
            let mut cells = self.cells.iter().skip(1);
            cells.find(|(column, _)| has(column, name))
        };
        let found = match system {
            System::Peer => column(peer),
            System::Ours => column("plimsoll"),
            System::Imported => column("imported").or_else(|| column("plimsoll")),
        };
        let found = found.or_else(|| column("both respond"));
        let is_about_all = || {
            let names = ["plimsoll", "imported", peer];
            names.iter().all(|it| column(it).is_none())
        };
        match found {
            Some((_, cell)) => Some(cell.as_str()),
            None => is_about_all().then_some(""),
        }
    }

    /// A column that is about all programs.
    pub(super) fn cell(&self, column: &str) -> &str {
        let mut cells = self.cells.iter();
        cells.find(|it| it.0 == column).map_or("", |it| &it.1)
    }
}

/// The cells of a line of a table.
fn cells(line: &str) -> Vec<String> {
    let inner = line.strip_prefix("| ").unwrap();
    let inner = inner.strip_suffix('|').unwrap();
    inner.split(" | ").map(|it| it.trim().to_owned()).collect()
}

#[test]
fn a_page_is_read_as_tasks() {
    let text = "# A\n\n```x\nall\n```\n\n## One\n\n```x\na\n```\n\n```toml\nb\n```\n\n\
        | request | both respond | the server gets |\n|---|---|---|\n| `GET /` | `200` | |\n\n\
        | request | plimsoll | X, imported |\n|---|---|---|\n| `GET /a` | `201` | `202` |\n\n\
        | request | X |\n|---|---|\n| `GET /b` | `203` |\n\nImport: carried over.\n\n## Words\n\n| a | b |\n|---|---|\n| c | d |\n";
    let page = Page::read("a.md", text, "X", "x", "--\n");
    let [task] = page.tasks.as_slice() else {
        panic!("{page:?}");
    };
    assert_eq!(task.name, "One");
    assert_eq!(task.import.as_deref(), Some("carried over."));
    let [pair] = task.pairs.as_slice() else {
        panic!("{page:?}");
    };
    assert_eq!((&*pair.peer, &*pair.ours), ("all\n--\na\n", "b\n"));
    let systems = [System::Peer, System::Ours, System::Imported];
    let responses = |row: &Row| systems.map(|it| row.response(it, "X").map(str::to_owned));
    let all = |texts: [Option<&str>; 3]| texts.map(|it| it.map(str::to_owned));
    assert_eq!(responses(&pair.rows[0]), all([Some("`200`"); 3]));
    assert_eq!(
        responses(&pair.rows[1]),
        all([Some("`202`"), Some("`201`"), Some("`202`")])
    );
    assert_eq!(responses(&pair.rows[2]), all([Some("`203`"), None, None]));
    assert_eq!(pair.rows[0].cell("the server gets"), "");
}
