//! Words of a shell's command line, as browsers and people write them for curl.
//!
//! Quotes, escapes and continued lines are taken off (POSIX.1-2017, Shell Command Language, section
//! 2.2, and `$'…'` of bash). A variable of the shell becomes a place for a value of that name; what a
//! shell would compute otherwise is refused: its value is not in the file.

/// Stand around the name of a place within a word: characters for private use, which no request has.
pub(super) const PLACE: (char, char) = ('\u{e0f0}', '\u{e0f1}');

/// A command: its words, with the line on which each begins.
pub(super) type Command = Vec<(usize, String)>;

/// A shell feature that a file cannot express.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WordsError {
    #[error("a quote {0} is not closed")]
    Open(&'static str),
    #[error("the shell would put a value in the place of `{0}`; write the value")]
    Expansion(String),
    #[error(
        "a caret at the end of a line belongs to the Windows command line; copy the request as cURL (bash)"
    )]
    Caret,
}

/// Commands are separated by line ends, `;`, `&` and `|`; the words behind `|`, `>` and `<` up to
/// the next command are kept apart, for they are not the command's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Commands {
    pub(super) commands: Vec<Command>,
    /// Lines on which output was sent somewhere.
    pub(super) redirected: Vec<usize>,
}

/// Splits `text`; fails with the line of the mistake.
pub(super) fn split(text: &str) -> Result<Commands, (usize, WordsError)> {
    let mut reader = Reader {
        chars: text.chars().peekable(),
        line: 1,
    };
    let mut commands = Commands::default();
    let mut command = Command::new();
    let mut word: Option<(usize, String)> = None;
    // Behind a pipe or a redirection nothing is the command's.
    let mut is_aside = false;
    loop {
        let line = reader.line;
        let Some(c) = reader.next() else {
            break;
        };
        let is_blank = matches!(c, ' ' | '\t' | '\r');
        let ends_command = matches!(c, '\n' | ';' | '&');
        if is_blank || ends_command || matches!(c, '|' | '>' | '<') {
            let ended = word.take();
            match ended {
                // `2>/dev/null`: the number is the redirection's.
                Some((_, text)) if matches!(c, '>' | '<') && text.parse::<u8>().is_ok() => {}
                Some(ended) if !is_aside => command.push(ended),
                _ => {}
            }
        }
        if ends_command {
            if !command.is_empty() {
                commands.commands.push(std::mem::take(&mut command));
            }
            is_aside = false;
            continue;
        }
        if is_blank {
            continue;
        }
        match c {
            '|' | '>' | '<' => {
                if !is_aside {
                    commands.redirected.push(line);
                }
                is_aside = true;
                // `>&2` is one redirection, not the end of a command.
                reader.skip_if('&');
            }
            '#' if word.is_none() => reader.skip_line(),
            c => {
                let (_, text) = word.get_or_insert_with(|| (line, String::new()));
                reader.part(c, text).map_err(|error| (line, error))?;
                // A continued line before any character was no word.
                if c == '\\' && text.is_empty() {
                    word = None;
                }
            }
        }
    }
    if let Some(word) = word.filter(|_| !is_aside) {
        command.push(word);
    }
    if !command.is_empty() {
        commands.commands.push(command);
    }
    Ok(commands)
}

struct Reader<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.next()?;
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn skip_if(&mut self, expected: char) {
        self.chars.next_if_eq(&expected);
    }

    fn skip_line(&mut self) {
        while self.chars.next_if(|c| *c != '\n').is_some() {}
    }

    /// Reads what `c` begins within a word.
    fn part(&mut self, c: char, text: &mut String) -> Result<(), WordsError> {
        match c {
            '\'' => self.single_quoted(text),
            '"' => self.double_quoted(text),
            '\\' => {
                match self.next() {
                    // A line break behind it makes one line of two.
                    Some('\n') => {}
                    Some('\r') => self.skip_line_break(),
                    Some(c) => text.push(c),
                    None => text.push('\\'),
                }
                Ok(())
            }
            '$' => match self.chars.peek() {
                Some('\'') => {
                    self.next();
                    self.ansi_quoted(text)
                }
                Some('"') => Ok(()),
                _ => self.dollar(text),
            },
            '`' => Err(WordsError::Expansion("`…`".to_owned())),
            '^' if matches!(self.chars.peek(), Some('\n' | '\r')) => Err(WordsError::Caret),
            c => {
                text.push(c);
                Ok(())
            }
        }
    }

    fn skip_line_break(&mut self) {
        if self.chars.peek() == Some(&'\n') {
            self.next();
        }
    }

    fn single_quoted(&mut self, text: &mut String) -> Result<(), WordsError> {
        loop {
            match self.next() {
                None => return Err(WordsError::Open("'")),
                Some('\'') => return Ok(()),
                Some(c) => text.push(c),
            }
        }
    }

    fn double_quoted(&mut self, text: &mut String) -> Result<(), WordsError> {
        loop {
            match self.next() {
                None => return Err(WordsError::Open("\"")),
                Some('"') => return Ok(()),
                Some('\\') => match self.next() {
                    None => return Err(WordsError::Open("\"")),
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => text.push(c),
                    Some(c) => text.extend(['\\', c]),
                },
                Some('$') => self.dollar(text)?,
                Some('`') => return Err(WordsError::Expansion("`…`".to_owned())),
                Some(c) => text.push(c),
            }
        }
    }

    /// A dollar sign is one unless a name, a number or a brace follows.
    fn dollar(&mut self, text: &mut String) -> Result<(), WordsError> {
        match self.chars.peek() {
            Some(c)
                if c.is_ascii_alphanumeric()
                    || matches!(c, '_' | '{' | '(' | '?' | '!' | '@' | '*') =>
            {
                let mut name = String::from("$");
                while let Some(c) = self.chars.next_if(|c| {
                    c.is_ascii_alphanumeric()
                        || matches!(c, '_' | '{' | '}' | '(' | ')' | '?' | '!' | '@' | '*')
                }) {
                    // `$TOKEN!` ends before the mark, `${TOKEN}` behind the brace.
                    name.push(c);
                    let next = self.chars.peek().copied();
                    let goes_on = next.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
                    if variable(&name).is_some() && !goes_on {
                        break;
                    }
                }
                let Some(variable) = variable(&name) else {
                    return Err(WordsError::Expansion(name));
                };
                text.push(PLACE.0);
                text.push_str(variable);
                text.push(PLACE.1);
                Ok(())
            }
            _ => {
                text.push('$');
                Ok(())
            }
        }
    }

    /// `$'…'`, with the escapes of C.
    fn ansi_quoted(&mut self, text: &mut String) -> Result<(), WordsError> {
        let mut bytes = Vec::new();
        loop {
            let open = Err(WordsError::Open("$'"));
            let Some(c) = self.next() else {
                return open;
            };
            match c {
                '\'' => break,
                '\\' => {
                    let Some(escaped) = self.next() else {
                        return open;
                    };
                    self.escape(escaped, &mut bytes);
                }
                c => push_char(&mut bytes, c),
            }
        }
        text.push_str(&String::from_utf8_lossy(&bytes));
        Ok(())
    }

    fn escape(&mut self, escaped: char, bytes: &mut Vec<u8>) {
        match escaped {
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'e' | 'E' => bytes.push(27),
            'f' => bytes.push(12),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(11),
            'x' => match self.digits(16, 2) {
                Some(number) => bytes.push(u8::try_from(number).unwrap_or_default()),
                None => bytes.extend_from_slice(b"\\x"),
            },
            'u' | 'U' => {
                let most = if escaped == 'u' { 4 } else { 8 };
                let c = self.digits(16, most).map(char::from_u32);
                push_char(bytes, c.flatten().unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            '0'..='7' => {
                let first = escaped.to_digit(8).unwrap_or_default();
                let number = (0..2).fold(first, |number, _| match self.digits(8, 1) {
                    Some(digit) => number * 8 + digit,
                    None => number,
                });
                bytes.push((number & 0xff) as u8);
            }
            '\n' => {}
            '\\' | '\'' | '"' | '?' => push_char(bytes, escaped),
            other => {
                bytes.push(b'\\');
                push_char(bytes, other);
            }
        }
    }

    fn digits(&mut self, radix: u32, most: u32) -> Option<u32> {
        let mut number = None;
        for _ in 0..most {
            let Some(c) = self.chars.next_if(|c| c.is_digit(radix)) else {
                break;
            };
            let digit = c.to_digit(radix)?;
            number = Some(
                number
                    .unwrap_or(0_u32)
                    .wrapping_mul(radix)
                    .wrapping_add(digit),
            );
        }
        number
    }
}

/// The name in `$NAME` or `${NAME}`.
fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let name = match name.strip_prefix('{') {
        Some(name) => name.strip_suffix('}')?,
        None => name,
    };
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some(name)
}

fn push_char(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}
