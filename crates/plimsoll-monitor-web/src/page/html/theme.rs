//! Rules of themes, behind those of every page.

use plimsoll_monitor::config::page::{Bars, Font};

/// Less room between lines.
pub(super) const COMPACT: &str = include_str!("../assets/compact.css");

/// Fonts that systems have: a page loads none.
pub(super) const fn of_font(font: Font) -> &'static str {
    match font {
        Font::Sans => "",
        Font::Serif => "body{font-family:ui-serif,Georgia,Cambria,\"Times New Roman\",serif}\n",
        Font::Mono => "body{font-family:var(--mono);font-size:14px}\n",
        Font::Rounded => {
            "body{font-family:ui-rounded,\"Hiragino Maru Gothic ProN\",Quicksand,Nunito,\"Arial Rounded MT Bold\",var(--sans)}\n"
        }
    }
}

pub(super) const fn of_bars(bars: Bars) -> &'static str {
    match bars {
        Bars::Bars => "",
        Bars::Solid => ".strip{gap:0;overflow:hidden}.strip i{border-radius:0}\n",
        Bars::Round => ".strip i{border-radius:99px}\n",
        Bars::Dots => {
            ".strip{height:auto;min-height:14px;align-items:center}.strip i{aspect-ratio:1;border-radius:50%}@media(max-width:640px){.strip{gap:1px}}\n"
        }
    }
}
