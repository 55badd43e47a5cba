//! `acked show TOKEN`: the timeline of one run in the terminal.

use acked_reports::render::timeline::{Canvas, WIDTH_MAX, WIDTH_MIN, draw};
use clap::Args;

use super::options::TokenOptions;
use super::repro::meant;
use crate::exit::{Exit, Failure};
use crate::output::Sink;

/// Signs with --ascii: / leader, \ follower in sync, . follower out of sync, ! crash, ^ restart, ~ catching up
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    token: TokenOptions,
    /// Columns
    #[arg(long, value_name = "N", default_value_t = 80, env = "ACKED_WIDTH", value_parser = width)]
    width: usize,
    /// No character beyond ASCII
    #[arg(long, env = "ACKED_ASCII")]
    ascii: bool,
    /// The partition whose lanes are drawn, as in orders-0; without it one that lost a record, or the first
    #[arg(long, value_name = "TOPIC-N", env = "ACKED_PARTITION")]
    partition: Option<String>,
    /// Lists every append, acknowledgement and step of the high watermark too
    #[arg(long, env = "ACKED_ALL")]
    all: bool,
}

fn width(text: &str) -> Result<usize, String> {
    let range = WIDTH_MIN..=WIDTH_MAX;
    text.parse()
        .ok()
        .filter(|width| range.contains(width))
        .ok_or_else(|| format!("'{text}' is not a number from {WIDTH_MIN} to {WIDTH_MAX}"))
}

/// # Errors
/// A token that is none, or of another build or scenario; an output that fails.
pub fn run(arguments: &ShowArgs) -> Result<Exit, Failure> {
    let meant = meant(&arguments.token)?;
    let output = acked_sim::runner::run(&meant.cell.plan, meant.seed, &meant.cell.token(meant.seed), true);
    if let Some(partition) = &arguments.partition
        && output.timeline.iter().all(|moment| moment.partition.as_ref() != Some(partition))
    {
        return Err(Failure::usage(format!("nothing happened to a partition '{partition}'")));
    }
    let canvas = Canvas { width: arguments.width, ascii: arguments.ascii, everything: arguments.all };
    let text = draw(&output.result, &output.timeline, arguments.partition.as_deref(), canvas);
    Sink::stdout().write(&text)?;
    Ok(Exit::Held)
}
