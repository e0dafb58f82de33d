//! Handling of responses: redirects and decoding.

/// Handling of responses.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Response")]
pub(crate) struct ResponseArgs {
    /// Redirects that are followed at most
    // The default of curl: a longer chain is a loop.
    #[arg(long, value_name = "N", default_value_t = 50, requires = "location")]
    pub(crate) max_redirs: u32,

    /// Accept compressed content, and decode it for conditions
    #[arg(long)]
    pub(crate) compressed: bool,
}
