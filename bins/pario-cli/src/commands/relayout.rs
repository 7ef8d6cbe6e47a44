//! `pario relayout`: moves a stored file into another layout while it is used, and follows, pauses, limits or
//! cancels a move that is under way. The service moves the file whether or not anybody follows.

use clap::Args;
use client::{Client, Kind, MoveState, Progress as MoveProgress, Relayout, Status};
use serde_json::json;

use super::connection::{self, refused};
use super::laid_out::check_layout;
use super::moving::{self, described, follow, shown_move, to_json};
use super::names::{absolute, last, shown};
use super::{Error, output};
use crate::progress::{self, Display, Progress};

/// Arguments of `pario relayout`.
#[derive(Args)]
#[command(after_help = "\
The file is read, written, grown, truncated and renamed as always while it moves. Ending the command does
not end the move, and neither does a restart of the service. A cancelled move brings everything back.

Examples:
  pario relayout /results/matrix --layout '(*, block) onto 4'
  pario relayout /results/log --layout 'striped(1MiB) over 8' --limit 200MiB/s --detach
  pario relayout /results/log --status
  pario relayout /results/log --limit none
  pario relayout /results/log --cancel")]
pub(crate) struct Arguments {
    /// The file
    path: String,

    /// The layout it gets
    #[arg(long, value_name = "LAYOUT", required_unless_present_any = ["pause", "resume", "cancel", "status", "follow", "limit"])]
    layout: Option<String>,

    /// Move so many bytes a second at most; alone, for the move that is under way
    #[arg(long, value_name = "RATE", value_parser = moving::rate)]
    limit: Option<u64>,

    /// Use as little extra space as possible: one lane and short windows, which takes longer
    #[arg(long, requires = "layout")]
    in_place: bool,

    /// Return when the move has begun
    #[arg(long)]
    detach: bool,

    /// Let the move rest; the file is used as it is
    #[arg(long, conflicts_with_all = ["layout", "resume", "cancel", "status", "follow"])]
    pause: bool,

    /// Let a paused move go on, and follow it
    #[arg(long, conflicts_with_all = ["layout", "cancel", "status", "follow"])]
    resume: bool,

    /// Move everything back, and follow that
    #[arg(long, conflicts_with_all = ["layout", "status", "follow"])]
    cancel: bool,

    /// Show how far the move is
    #[arg(long, conflicts_with_all = ["layout", "follow"])]
    status: bool,

    /// Follow the move that is under way
    #[arg(long, conflicts_with = "layout")]
    follow: bool,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// What is asked of a move that is under way.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Pause,
    Cancel,
    Limit(u64),
    Resume,
}

impl Step {
    /// What has become of the move then.
    fn word(self) -> &'static str {
        match self {
            Step::Pause => "paused",
            Step::Cancel => "cancelled",
            Step::Limit(_) => "limited",
            Step::Resume => "resumed",
        }
    }
}

/// Whether nothing can be asked of a move any more; one that has failed may go on.
fn has_ended(state: MoveState) -> bool {
    matches!(state, MoveState::Done | MoveState::Cancelled)
}

/// Moves a file, or says what becomes of its move.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    // What cannot be read is refused with the character, before anybody is asked.
    if let Some(layout) = &arguments.layout
        && let Err(error) = layout.parse::<layout::Layout>()
    {
        return Err(format!("--layout: {error}").into());
    }
    moving::catch_interrupts()?;
    let client = connection::connect_to_existing()?;
    match &arguments.layout {
        Some(layout) => arguments.begin(&client, layout),
        None => arguments.control(&client),
    }
}

impl Arguments {
    fn begin(&self, client: &Client, layout: &str) -> Result<(), Error> {
        let path = &self.path;
        let before = client.attributes(path).map_err(refused)?;
        let shown_path = shown(&absolute(path));
        if before.kind == Kind::Directory {
            return Err(
                format!("{shown_path} is a directory, which has no layout; name a file").into(),
            );
        }
        let array = before.array.as_deref().and_then(|text| text.parse().ok());
        check_layout(layout, array.as_ref())?;
        let options = moving::options(self.limit, self.in_place);
        let mut bar = self.bar();
        let mut moving = client
            .relayout_with(path, layout, &options)
            .map_err(refused)?;
        if self.detach {
            return self.say(&moving.progress().map_err(refused)?);
        }
        let end = self.followed(&mut bar, &mut moving)?;
        let time = bar.so_far().1;
        drop(bar);
        if end.state != MoveState::Done {
            return self.say(&end);
        }
        if self.json {
            let facts = json!({
                "path": absolute(path),
                "from": before.layout,
                "to": layout,
                "generation": end.generation,
                "bytes": end.total_bytes,
                "seconds": time.as_secs_f64(),
            });
            return output::print(&format!("{facts:#}\n"));
        }
        output::print(&format!(
            "{shown_path}: {} -> {layout}, {}\n",
            before.layout.as_deref().unwrap_or("none"),
            progress::summary(end.total_bytes, time)
        ))
    }

    /// What is asked of a move that is under way.
    fn control(&self, client: &Client) -> Result<(), Error> {
        let mut bar = self.bar();
        client.attributes(&self.path).map_err(refused)?;
        let mut moving = client.follow_relayout(&self.path).map_err(|error| {
            let path = shown(&absolute(&self.path));
            match error.status() {
                Status::NotFound => format!(
                    "{path} has not been moved lately; begin with `pario relayout {path} --layout '...'`"
                )
                .into(),
                _ => refused(error),
            }
        })?;
        let mut now = moving.progress().map_err(refused)?;
        for step in self.steps() {
            now = self.take(step, &mut moving)?;
        }
        let is_followed = (self.resume || self.cancel || self.follow) && !self.detach;
        if is_followed && !now.state.is_over() {
            now = self.followed(&mut bar, &mut moving)?;
        }
        drop(bar);
        if self.status {
            // A move that has failed is an answer here, not a failure of the command.
            return self.print(&now);
        }
        self.say(&now)
    }

    /// What the flags ask for, in the order in which it is asked for: a user who wants a move held back wants that before
    /// it may go faster, and one who lets it go on wants it limited by then.
    fn steps(&self) -> impl Iterator<Item = Step> {
        let held = match (self.pause, self.cancel) {
            (true, _) => Some(Step::Pause),
            (_, true) => Some(Step::Cancel),
            _ => None,
        };
        let limit = self.limit.map(Step::Limit);
        let resume = self.resume.then_some(Step::Resume);
        [held, limit, resume].into_iter().flatten()
    }

    /// Asks for one step. A move ends when it likes, also just before it is asked.
    fn take(&self, step: Step, moving: &mut Relayout) -> Result<MoveProgress, Error> {
        let answer = match step {
            Step::Pause => moving.pause(),
            Step::Cancel => moving.cancel(),
            Step::Limit(limit) => moving.limit(limit),
            Step::Resume => moving.resume(),
        };
        let was_taken = answer.is_ok();
        let now = match answer {
            Ok(now) => now,
            Err(error) => match moving.progress().map_err(refused)? {
                end if has_ended(end.state) => end,
                _ => return Err(refused(error)),
            },
        };
        let is_late = has_ended(now.state)
            && match step {
                Step::Pause => true,
                Step::Cancel => now.state != MoveState::Cancelled,
                // A user who wants more than that is answered by the rest.
                Step::Limit(_) => !was_taken && !self.cancel && !self.follow && !self.status,
                Step::Resume => !was_taken,
            };
        match is_late {
            false => Ok(now),
            true => Err(format!(
                "the move of {} is over already ({}); nothing is left to be {}",
                shown(&absolute(&self.path)),
                moving::state_word(now.state),
                step.word()
            )
            .into()),
        }
    }

    fn bar(&self) -> Progress {
        let label = shown(last(&self.path).unwrap_or("/"));
        Progress::follow(&label, None, Display::unless(self.quiet || self.json))
    }

    fn followed(&self, bar: &mut Progress, moving: &mut Relayout) -> Result<MoveProgress, Error> {
        let label = shown(last(&self.path).unwrap_or("/"));
        let path = shown(&absolute(&self.path));
        let goes_on = format!(
            "the move of {path} goes on; `pario relayout {path} --follow` shows it, --pause and --cancel \
             stop it"
        );
        follow(&goes_on, || {
            let now = moving.progress().map_err(refused)?;
            Ok(shown_move(bar, &label, now))
        })
    }

    /// What became of the move; one that cannot go on by itself is a failure.
    fn say(&self, now: &MoveProgress) -> Result<(), Error> {
        let path = shown(&absolute(&self.path));
        match now.state {
            MoveState::Failed => Err(format!(
                "the move of {path} cannot go on: {}; `pario status` shows whether all servers are there",
                shown(&now.failure)
            )
            .into()),
            MoveState::Paused if self.is_awaited() && !now.failure.is_empty() => Err(format!(
                "the move of {path} is paused: {}; `pario relayout {path} --resume` lets it go on, --cancel \
                 takes it back",
                shown(&now.failure)
            )
            .into()),
            _ => self.print(now),
        }
    }

    /// Whether the command was to return when the move is over.
    fn is_awaited(&self) -> bool {
        (self.layout.is_some() || self.resume || self.cancel || self.follow) && !self.detach
    }

    fn print(&self, now: &MoveProgress) -> Result<(), Error> {
        let path = absolute(&self.path);
        match self.json {
            true => output::print(&format!("{:#}\n", to_json(&path, now))),
            false => output::print(&format!("{}\n", described(&path, now))),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn steps(flags: &[&str]) -> Vec<Step> {
        let line = ["relayout", "/m"].iter().chain(flags);
        Line::parse_from(line).arguments.steps().collect()
    }

    #[test]
    fn moves_are_held_back_before_a_limit_is_lifted_and_limited_before_they_go_on() {
        let unlimited = Step::Limit(0);
        let slow = Step::Limit(4096);
        assert_eq!(
            steps(&["--limit", "none", "--cancel"]),
            [Step::Cancel, unlimited]
        );
        assert_eq!(
            steps(&["--limit", "none", "--pause"]),
            [Step::Pause, unlimited]
        );
        assert_eq!(
            steps(&["--resume", "--limit", "4KiB"]),
            [slow, Step::Resume]
        );
        assert_eq!(steps(&["--limit", "4KiB", "--follow"]), [slow]);
        assert_eq!(steps(&["--status"]), []);
    }
}
