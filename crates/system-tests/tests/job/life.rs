//! From the first process of a job to the last: brought up by one, found by the others, gone with them.
//!
//! A job is an `mpiexec`, a process, a batch allocation or a name; each lasts as long as it has to.

use super::*;

#[test]
fn seed001_s01_an_unprivileged_user_starts_one_or_more_servers_without_a_service() {
    use std::os::unix::fs::PermissionsExt;
    for servers in ["1", "3"] {
        let site = Site::new();
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(site.temp.path(), open).unwrap();
        // The programs may lie where others cannot look.
        for program in [pario(), rank()] {
            let copy = site.file(program.file_name().unwrap().to_str().unwrap());
            fs::copy(&program, &copy).unwrap();
        }
        let is_root = rustix::process::geteuid().is_root();
        let mut command = match is_root {
            true => {
                let mut command = site.job("setpriv");
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
                command.arg(site.file("rank"));
                command
            }
            false => site.job(site.file("rank")),
        };
        command
            .args(["write", "/file", "1000000"])
            .env("PARIO_PROGRAM", site.file("pario"))
            .env(
                "PARIO_STAGE_OUT",
                format!("{}:/file", site.file("out").display()),
            )
            .env("PARIO_SERVERS", servers);
        good(&mut command);
        site.is_empty();
        assert_eq!(fs::metadata(site.file("out")).unwrap().len(), 1_000_000);
    }
}

#[test]
fn seed001_s02_one_mpiexec_is_a_job_that_leaves_nothing_and_says_what_is_lost() {
    for name in LAUNCHERS {
        let site = Site::new();
        let script = "$RANK write /shared 3000000 && $RANK write /shared 3000000";
        let output = ended(launcher(name, &site, 3).args(["sh", "-c", script]));
        let text = said(&output);
        assert!(output.status.success(), "{name}: {text}");
        // The launcher has waited for the last word.
        assert!(
            text.contains("not staged out") && text.contains("/shared"),
            "{name}: {text}"
        );
        site.is_empty();
    }
}

#[test]
fn ranks_of_one_mpiexec_find_the_same_servers_and_none_serves_itself() {
    for name in LAUNCHERS {
        let site = Site::new();
        let (out, stop) = (site.file("out"), site.file("stop"));
        let script = "exec $RANK hold /file-$PMI_RANK$OMPI_COMM_WORLD_RANK $0 >> $1";
        let mut command = launcher(name, &site, 4);
        command.args(["sh", "-c", script]).args([&stop, &out]);
        let mut ranks = Running::start(command.stderr(Stdio::null()));
        let lines = lines_of(&out, 4);
        let holders = site.holders();
        assert_eq!(holders.len(), 1, "{name}: one holder");
        let pids: Vec<u32> = lines
            .iter()
            .map(|l| l.strip_prefix("ready ").unwrap().parse().unwrap())
            .collect();
        assert!(!pids.contains(&holders[0]));
        for pid in pids {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
            assert_eq!(tasks, 1, "a rank has no thread but its own");
        }
        fs::write(stop, "").unwrap();
        assert!(ranks.0.wait().unwrap().success());
        site.is_empty();
    }
}

#[test]
fn seed001_s03_two_jobs_side_by_side_do_not_meet() {
    let site = Site::new();
    let script = "$RANK write /same 500000; $RANK hold /mine-$0 $1 >> $2";
    let mut jobs = Vec::new();
    for which in ["a", "b"] {
        let (out, stop) = (site.file(&format!("out-{which}")), site.file("stop"));
        let mut command = launcher("mpiexec.mpich", &site, 2);
        command
            .args(["sh", "-c", script, which])
            .args([&stop, &out]);
        jobs.push((which, Running::start(command.stderr(Stdio::null())), out));
    }
    for (_, _, out) in &jobs {
        lines_of(out, 2);
    }
    assert_eq!(site.holders().len(), 2);
    // What each of them has: its own, and nothing of the other.
    for (which, job, _) in &jobs {
        let ranks = children_with_mark(job.pid());
        let environment = environment(ranks[0]);
        let mut ls = site.job(pario());
        ls.args(["ls", "/"]);
        // As a process of that mpiexec: the key is that of its launcher.
        let key = key_of(&site, job.pid());
        ls.arg("--url").arg(format!(
            "unix:{}",
            site.run_dir().join(key).join("meta.sock").display()
        ));
        let listed = good(&mut ls);
        assert_eq!(listed, format!("mine-{which}\nsame\n"));
        assert!(environment.contains_key("PMI_RANK"));
    }
    fs::write(site.file("stop"), "").unwrap();
    for (_, mut job, _) in jobs {
        assert!(job.0.wait().unwrap().success());
    }
    site.is_empty();
}

/// The directory of the job whose launcher descends from a process.
fn key_of(site: &Site, launcher: u32) -> String {
    let names = fs::read_dir(site.run_dir()).unwrap().flatten();
    let names = names.filter_map(|e| e.file_name().into_string().ok());
    let mut keys = names.filter(|name| !name.contains(".lock") && !name.contains(".start"));
    let is_below = |key: &String| {
        let pid: u32 = key.split('-').nth(1).unwrap().parse().unwrap();
        ancestors(pid).contains(&launcher)
    };
    keys.find(is_below).expect("the job has a directory")
}

fn ancestors(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    loop {
        let stat = fs::read_to_string(format!("/proc/{}/stat", found.last().unwrap()));
        let Ok(stat) = stat else { return found };
        let parent = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1);
        match parent.unwrap().parse() {
            Ok(pid) if pid > 1 => found.push(pid),
            _ => return found,
        }
    }
}

/// Processes below one that were started as ranks.
fn children_with_mark(ancestor: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| {
        environment(pid).contains_key("PMI_RANK") && ancestors(pid).contains(&ancestor)
    })
    .collect()
}

#[test]
fn a_process_alone_is_a_job() {
    let site = Site::new();
    let output = ended(site.job(rank()).args(["write", "/alone", "70000"]));
    assert!(output.status.success(), "{}", said(&output));
    site.is_empty();
    // The next one has nothing of it.
    let output = ended(site.job(rank()).args(["check", "/alone", "70000"]));
    assert!(said(&output).contains("no such"), "{}", said(&output));
    site.is_empty();
}

#[test]
fn an_allocation_keeps_data_from_one_mpiexec_to_the_next() {
    let openmpi = "mpiexec.openmpi --allow-run-as-root --oversubscribe";
    // Open MPI would ask Slurm for hosts.
    for (variable, second) in [
        ("SLURM_JOB_ID", "mpiexec.mpich"),
        ("PBS_JOBID", openmpi),
        ("PARIO_JOB", openmpi),
    ] {
        let site = Site::new();
        let script = format!(
            "mpiexec.mpich -n 2 $RANK write /kept 2000000 || exit 1
             {second} -n 2 $RANK check /kept 2000000 || exit 1
             $PARIO ls /"
        );
        let out = site.file("out").display().to_string();
        let mut command = site.job("sh");
        command
            .args(["-c", &script])
            .env("TMPDIR", site.temp.path())
            .env("PARIO_JOB_LINGER", "0.5")
            .env(variable, format!("4711.{}", std::process::id()))
            .env("PARIO_STAGE_OUT", format!("{out}:/kept"));
        let output = ended(&mut command);
        let text = said(&output);
        assert!(output.status.success(), "{variable}: {text}");
        assert!(text.contains("kept\n"), "{variable}: {text}");
        // The script's own standard error hears of the end.
        assert!(text.contains("staged out"), "{variable}: {text}");
        site.is_empty();
        assert_eq!(fs::metadata(out).unwrap().len(), 2_000_000);
    }
}

#[test]
fn a_job_on_several_hosts_without_a_way_to_meet_is_refused() {
    let site = Site::new();
    let mut command = site.job(rank());
    command
        .args(["write", "/x", "10"])
        .env("PMI_RANK", "0")
        .env("PMI_SIZE", "4")
        .env("MPI_LOCALNRANKS", "2");
    let text = said(&ended(&mut command));
    assert!(text.contains("PARIO_JOB_DIR"), "{text}");
    site.is_empty();
}

#[test]
fn another_user_cannot_get_into_a_job() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("only root can become another user; left out");
        return;
    }
    let site = Site::new();
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(site.temp.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::copy(pario(), site.file("pario")).unwrap();
    let script = "\
        $RANK write /secret 10 || exit 1
        socket=$(echo $PARIO_RUN_DIR/*/meta.sock)
        test -S $socket || exit 1
        # Nobody waits long for what is refused; the program above may take its time.
        export PARIO_TIMEOUT=1
        setpriv --reuid=65534 --regid=65534 --clear-groups \
            ./pario --url unix:$socket ls / && exit 1
        setpriv --reuid=65534 --regid=65534 --clear-groups ./pario --url job: ls / && exit 1
        true";
    let output = ended(&mut site.run(&[], script));
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("secret\n"), "{text}");
    site.is_empty();
}
