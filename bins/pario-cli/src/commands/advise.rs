//! `pario advise`: which layouts would suit what was observed of a file, with the predicted gain and the cost of moving;
//! `--apply` moves it into the best. Owns the table and its JSON; the decision is `advise`'s, the move the service's.

use std::fmt::Write;
use std::time::Duration;

use clap::Args;
use client::{Client, FileAdvice};
use serde_json::{Value, json};

use super::connection::{self, refused};
use super::names::{absolute, shown};
use super::output::{shortened, time};
use super::{Error, output};

/// Arguments of `pario advise`.
#[derive(Args)]
#[command(after_help = "\
Advice rests on the profile of the file (`pario profile`): run the program once, then ask. Times
are those of all that was observed, as the cost model predicts them; a layout is worth a move
when its gain, over all runs to come, is more than the cost of moving.

Examples:
  pario advise /results/matrix
  pario advise /results/matrix --json
  pario advise /results/matrix --apply")]
pub(crate) struct Arguments {
    /// The file
    path: String,

    /// Move the file into the best layout, if that saves more than it costs
    #[arg(long)]
    apply: bool,

    /// Move it also if that costs more than was saved so far
    #[arg(long, requires = "apply")]
    force: bool,

    /// Longest time to search, in seconds [default: 2, and never more than half of what could be saved]
    #[arg(long, value_name = "SECONDS")]
    budget: Option<f64>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Most layouts in the table.
const LISTED: usize = 12;

/// Ranks layouts for a file.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let budget = match arguments.budget {
        None => None,
        Some(seconds) => Some(
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| format!("--budget: {seconds} is no number of seconds"))?,
        ),
    };
    let client = connection::connect_to_existing()?;
    let path = &arguments.path;
    let advice = client.advise(path, budget).map_err(refused)?;
    let name = shown(&absolute(path));
    if advice.observed.profile.is_empty() {
        return Err(format!(
            "{name}: nothing was observed yet; run the program first, or import a template with `pario profile \
             {name} --import FILE`"
        )
        .into());
    }
    if arguments.json && !arguments.apply {
        return output::print(&format!("{:#}\n", to_json(&advice)));
    }
    let mut text = match arguments.json {
        true => String::new(),
        false => to_text(&name, &advice),
    };
    if arguments.apply {
        let (moved, said) = apply(&client, path, &advice, arguments.force)?;
        if arguments.json {
            let facts = json!({"moved": moved, "advice": to_json(&advice)});
            return output::print(&format!("{facts:#}\n"));
        }
        text += &format!("\n{said}");
    }
    output::print(&text)
}

/// Moves the file; the layout it has then, and a line about it.
fn apply(
    client: &Client,
    path: &str,
    advice: &FileAdvice,
    force: bool,
) -> Result<(Option<String>, String), Error> {
    let Some(best) = advice.advised.ranked.first() else {
        return Ok((None, "nothing to do\n".to_owned()));
    };
    if best.layout == advice.layout || best.gain_s <= 0.0 {
        return Ok((
            None,
            "the present layout is the best: nothing was moved\n".to_owned(),
        ));
    }
    if best.gain_s <= best.move_s && !force {
        return Ok((
            None,
            format!(
                "moving takes {} and would have saved {}: nothing was moved (--force moves it)\n",
                time(best.move_s),
                time(best.gain_s)
            ),
        ));
    }
    let moving = client.relayout(path, &best.layout).map_err(refused)?;
    moving.wait().map_err(refused)?;
    let said = format!("moved into {}\n", shown(&best.layout));
    Ok((Some(best.layout.clone()), said))
}

fn to_text(name: &str, advice: &FileAdvice) -> String {
    let ranked = &advice.advised.ranked;
    let mut out = format!(
        "{name}: {} layouts judged in {:.0} ms{}\n\n",
        advice.advised.judged,
        advice.searched.as_secs_f64() * 1000.0,
        if advice.advised.is_cut_short {
            ", then time was up"
        } else {
            ""
        }
    );
    let _ = writeln!(
        out,
        "  {:>12} {:>12} {:>12}  {:<8} layout",
        "predicted", "gain", "moving", "kind"
    );
    for advice in ranked.iter().take(LISTED) {
        let _ = writeln!(
            out,
            "  {:>12} {:>12} {:>12}  {:<8} {}",
            time(advice.seconds),
            time(advice.gain_s),
            time(advice.move_s),
            advice.kind.word(),
            shortened(&shown(&advice.layout), 60)
        );
    }
    if ranked.len() > LISTED {
        let _ = writeln!(out, "  … {} more (--json shows all)", ranked.len() - LISTED);
    }
    if let Some(compromise) = &advice.advised.compromise {
        let _ = writeln!(out, "\n  {}", shown(compromise));
    }
    out
}

/// The list of layouts, best first.
pub(crate) fn to_json(advice: &FileAdvice) -> Value {
    let ranked = &advice.advised.ranked;
    let current = ranked
        .iter()
        .find(|a| a.layout == advice.layout)
        .map(|a| a.seconds);
    let compromise = &advice.advised.compromise;
    let one = |(i, a): (usize, &advise::recommend::Advice)| {
        let mut facts = json!({
            "layout": a.layout,
            "kind": a.kind.word(),
            "predicted_s": a.seconds,
            "predicted_gain": a.gain_s,
            "speedup": current.map(|c| c / a.seconds.max(1e-12)),
            "move_cost_s": a.move_s,
            "phases_s": a.phases,
        });
        if let (0, Some(compromise)) = (i, compromise) {
            facts["compromise"] = json!(compromise);
        }
        facts
    };
    Value::Array(ranked.iter().enumerate().map(one).collect())
}
