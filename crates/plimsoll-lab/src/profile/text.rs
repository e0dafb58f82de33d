//! A profile as text: threads, then functions.

use std::fmt::Write as _;

use plimsoll_model::grouped;

use super::{FunctionShare, Origin, Profile};

/// Lines for a terminal.
///
/// - `most`: functions that are shown at most.
/// - `width`: columns that there are.
pub fn table(profile: &Profile, most: usize, width: usize) -> String {
    let all = profile.samples();
    let mut text = format!(
        "{} samples in {:.1} s, {} a second of processor time and thread\n",
        grouped(all as f64),
        profile.duration.as_secs_f64(),
        profile.frequency,
    );
    if profile.lost > 0 {
        let lost = grouped(profile.lost as f64);
        writeln!(
            text,
            "{lost} more were lost: the machine was too busy to take them; a lower -F asks for fewer"
        )
        .expect(IN_MEMORY);
    }
    if profile.unwatched > 0 {
        let threads = profile.unwatched;
        writeln!(
            text,
            "{threads} threads could not be watched: they are somebody else's, or files or locked memory ran out"
        )
        .expect(IN_MEMORY);
    }
    if !profile.has_kernel {
        text.push_str("the kernel's functions are not in it: the system does not permit it\n");
    }
    if all == 0 {
        text.push_str("nothing ran: an idle process has no profile\n");
        return text;
    }
    text.push_str("\nthreads         samples        of all  process\n");
    for thread in profile.threads() {
        writeln!(
            text,
            "  {:<13} {:>7}  {:>10.1} %  {}",
            clipped(&thread.name, 13),
            thread.samples,
            percent(thread.samples, all),
            thread.pid,
        )
        .expect(IN_MEMORY);
    }
    text.push_str("\n     own    total  function\n");
    for function in profile.functions().iter().take(most) {
        writeln!(
            text,
            "{:>6.1} %  {:>5.1} %  {}",
            percent(function.own, all),
            percent(function.total, all),
            clipped(&name(function), width.saturating_sub(19)),
        )
        .expect(IN_MEMORY);
    }
    text
}

fn name(function: &FunctionShare) -> String {
    match function.frame.origin {
        Origin::User => function.frame.name.clone(),
        Origin::Kernel => format!("{} [kernel]", function.frame.name),
    }
}

fn percent(part: u64, all: u64) -> f64 {
    part as f64 * 100.0 / all as f64
}

/// The end of a long name says more than its beginning.
fn clipped(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let rest: String = name.chars().skip(length + 1 - width.max(1)).collect();
    format!("…{rest}")
}

const IN_MEMORY: &str = "writing to memory does not fail";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(clipped("abcdef", 6), "abcdef");
        assert_eq!(clipped("abcdefg", 6), "…cdefg");
    }

    #[test]
    fn an_idle_process_is_told() {
        assert!(table(&Profile::default(), 10, 80).contains("nothing ran"));
    }
}
