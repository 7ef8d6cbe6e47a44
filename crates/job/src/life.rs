//! Which processes a job has on this host, and whether it is over here.
//!
//! Looked up in `/proc` when the processes known so far have ended, not in between.

use crate::identity::{Span, has_rank_mark};
use crate::process::Process;

/// The processes that keep a job alive on this host. Holders are not among them: they are started
/// without the marks of the job.
pub(crate) fn living(span: &Span) -> Vec<Process> {
    match span {
        Span::Leader(leader) => leader.is_running().then_some(*leader).into_iter().collect(),
        Span::Ranks(launcher) if launcher.is_running() => Process::all_of_this_user()
            .into_iter()
            .filter(|p| has_rank_mark(*p) && descends_from(*p, *launcher))
            .collect(),
        Span::Marked(name, value) => Process::all_of_this_user()
            .into_iter()
            .filter(|p| p.variable(name).as_deref() == Some(value))
            .collect(),
        Span::Ranks(_) | Span::Elsewhere => Vec::new(),
    }
}

/// Whether nothing on this host belongs to the job any more.
pub(crate) fn is_over(span: &Span) -> bool {
    living(span).is_empty()
}

fn descends_from(process: Process, ancestor: Process) -> bool {
    let mut parent = process.parent();
    while let Some(found) = parent {
        if found == ancestor {
            return true;
        }
        parent = found.parent();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_processes_and_ranks_are_found_below_shells() {
        // Others run this test at the same time.
        let id = std::process::id();
        let job = format!("life-{id}-test");
        // A shell between the launcher and the program, as batch scripts have it.
        let mut child = std::process::Command::new("sh")
            .args(["-c", "cat; true"])
            .env("PARIO_JOB", &job)
            .env("PMI_RANK", "3")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let marked = Span::Marked("PARIO_JOB".into(), job.clone());
        let found = living(&marked);
        assert!(found.iter().any(|p| p.pid == child.id()), "{found:?}");
        let other = Span::Marked("PARIO_JOB".into(), format!("life-{id}"));
        assert!(is_over(&other));
        let ranks = living(&Span::Ranks(Process::this()));
        assert!(ranks.iter().any(|p| p.pid == child.id()), "{ranks:?}");
        assert!(!is_over(&Span::Leader(Process::this())));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(is_over(&marked));
    }
}
