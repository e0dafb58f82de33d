//! The text of a template as it is written, within bounds: loops within loops, whose counts may be a client's, would
//! otherwise keep a worker for as long as they like.

use std::io;
use std::time::{Duration, Instant};

use handlebars::template::{Parameter, Template, TemplateElement};
use handlebars::{Context, Handlebars, Helper, HelperResult, Output, RenderContext};
use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;

/// Time for one template.
const MOST_TIME: Duration = Duration::from_secs(1);

/// Bytes that one template may write, or one block whose text is a value.
const MOST_BYTES: usize = 16 << 20;

/// Writes between two looks at the clock.
const WRITES_PER_LOOK: u32 = 64;

/// The helper behind each block; templates cannot name it.
const TURN: &str = "turn of a block";

/// Has each turn of a loop write something, nothing though it is, so that the output can end it.
pub(super) fn register_turns(registry: &mut Handlebars<'_>) {
    let turn = |_: &Helper<'_>,
                _: &Handlebars<'_>,
                _: &Context,
                _: &mut RenderContext<'_, '_>,
                output: &mut dyn Output|
     -> HelperResult { Ok(output.write("")?) };
    registry.register_helper(TURN, Box::new(turn));
}

/// Ends a block with the helper.
pub(super) fn end_turn(block: &mut Template) {
    let call = Template::compile("{{x}}").ok();
    let call = call.and_then(|mut template| template.elements.pop());
    if let Some(TemplateElement::Expression(mut call)) = call {
        call.name = Parameter::Name(TURN.to_owned());
        block.elements.push(TemplateElement::Expression(call));
    }
}

/// The text so far.
pub(super) struct BoundedOutput<'o> {
    text: String,
    bound: Bound<'o>,
}

enum Bound<'o> {
    /// Of the whole template.
    Until { end: Instant, writes: u32 },
    /// Of a block whose text is a value: the output around it knows when to end.
    Around(&'o mut dyn Output),
}

impl<'o> BoundedOutput<'o> {
    /// That of a whole template, which begins now.
    pub(super) fn new() -> Self {
        let end = SystemClock.now() + MOST_TIME;
        Self {
            text: String::new(),
            bound: Bound::Until { end, writes: 0 },
        }
    }

    /// That of a block within.
    pub(super) fn within(around: &'o mut dyn Output) -> Self {
        Self {
            text: String::new(),
            bound: Bound::Around(around),
        }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

impl Output for BoundedOutput<'_> {
    fn write(&mut self, text: &str) -> io::Result<()> {
        match &mut self.bound {
            Bound::Until { end, writes } => {
                *writes += 1;
                if writes.is_multiple_of(WRITES_PER_LOOK) && SystemClock.now() > *end {
                    let seconds = MOST_TIME.as_secs();
                    return Err(io::Error::other(format!(
                        "the template takes longer than {seconds} s"
                    )));
                }
            }
            Bound::Around(around) => around.write("")?,
        }
        if self.text.len() + text.len() > MOST_BYTES {
            let mebibytes = MOST_BYTES >> 20;
            return Err(io::Error::other(format!(
                "the template writes more than {mebibytes} MiB"
            )));
        }
        self.text.push_str(text);
        Ok(())
    }
}
