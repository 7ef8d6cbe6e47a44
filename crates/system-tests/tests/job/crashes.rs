//! `kill -9` of what a job is made of: ranks, launchers, `pario run`, the holder itself.
//!
//! Whatever dies, the servers end, and no process, file or memory of them is left.

use rustix::process::Signal;

use super::*;

/// Starts ranks that hold the job until a file exists.
fn holding(site: &Site, name: &str, count: usize) -> (Running, Vec<u32>) {
    let (out, stop) = (site.file("out"), site.file("stop"));
    let script = "exec $RANK hold /file-$PMI_RANK$OMPI_COMM_WORLD_RANK $0 >> $1";
    let mut command = launcher(name, site, count);
    command.args(["sh", "-c", script]).args([&stop, &out]);
    let job = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    let pids = lines_of(&out, count);
    let pids = pids
        .iter()
        .map(|l| l.strip_prefix("ready ").unwrap().parse().unwrap());
    (job, pids.collect())
}

#[test]
fn seed001_s02_a_killed_rank_ends_the_job_and_its_servers() {
    for name in LAUNCHERS {
        let site = Site::new();
        let (mut job, ranks) = holding(&site, name, 3);
        assert_eq!(site.holders().len(), 1);
        signal(ranks[1], Signal::KILL);
        assert!(!job.0.wait().unwrap().success(), "{name}");
        site.is_empty();
    }
}

#[test]
fn seed001_s02_a_killed_launcher_ends_the_servers() {
    for name in LAUNCHERS {
        let site = Site::new();
        let (mut job, ranks) = holding(&site, name, 2);
        job.kill();
        // Ranks that outlive their launcher do not keep the servers.
        site.is_empty();
        for rank in ranks {
            kill_if_there(rank);
        }
    }
}

#[test]
fn seed001_s02_a_killed_pario_run_ends_the_servers() {
    let site = Site::new();
    let (out, stop) = (site.file("out"), site.file("stop"));
    let script = format!(
        "exec $RANK hold /file {} >> {}",
        stop.display(),
        out.display()
    );
    let mut run = Running::start(site.run(&[], &script).stderr(Stdio::null()));
    let line = lines_of(&out, 1).remove(0);
    assert_eq!(site.holders().len(), 1);
    run.kill();
    site.is_empty();
    kill_if_there(line.strip_prefix("ready ").unwrap().parse().unwrap());
}

#[test]
fn a_killed_holder_is_noticed_and_cleared_away_by_the_next_job() {
    let site = Site::new();
    let spill = site.file("spill");
    fs::create_dir(&spill).unwrap();
    let script = format!(
        "$RANK write /lost 100000 || exit 7
         kill -9 $(cat $PARIO_RUN_DIR/*/note | sed -n 's/holder: \\([0-9]*\\) .*/\\1/p')
         while PARIO_TIMEOUT=1 $PARIO ls / 2> {0}; do :; done
         cat {0} >&2
         exit 5",
        site.file("why").display()
    );
    let spilled = spill.display().to_string();
    let output = ended(&mut site.run(&["--spill", &spilled], &script));
    let text = said(&output);
    assert_eq!(output.status.code(), Some(5), "{text}");
    assert!(
        text.contains("have died") && text.contains("is lost"),
        "{text}"
    );
    assert!(site.run_dir().exists(), "nobody could remove it");
    assert_eq!(fs::read_dir(&spill).unwrap().count(), 1);
    // Any job of the same user does.
    good(site.run(&[], "true").stderr(Stdio::null()));
    site.is_empty();
    assert_eq!(fs::read_dir(&spill).unwrap().count(), 0);
}
