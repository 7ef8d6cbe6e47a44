//! The memory of a job: its limit, what goes beyond it to a local disk, and that nothing else does.
//!
//! Looked at from outside: what the holder has open and has written, and what lies in directories.

use std::os::unix::fs::MetadataExt;

use super::*;

/// Bytes that files below a directory take on their disk.
fn disk_bytes(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => disk_bytes(&entry.path()),
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    });
    sizes.sum()
}

#[test]
fn seed001_s15_no_disk_sees_the_content_of_files() {
    let site = Site::new();
    let out = site.file("out");
    let script = format!(
        "$RANK write /big 60000000; exec $RANK hold /more {} >> {}",
        site.file("stop").display(),
        out.display()
    );
    let mut command = site.run(&["--memory", "256MiB"], &script);
    // Where servers are unless told otherwise.
    let mark = format!("s15-{}", std::process::id());
    command.env_remove("PARIO_RUN_DIR").env("S15", &mark);
    // What this test is run into may be a file on a disk, and is nobody's content.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = Running::start(&mut command);
    lines_of(&out, 1);
    let holder = holders_with("S15", &mark);
    assert_eq!(holder.len(), 1);
    // Every file that the holder has open or keeps: sockets, and memory that has no name.
    let fds = fs::read_dir(format!("/proc/{}/fd", holder[0])).unwrap();
    let mut kept = 0;
    for fd in fds.flatten() {
        let Ok(target) = fs::read_link(fd.path()) else {
            continue;
        };
        let found = fs::metadata(fd.path());
        let is_file = found.as_ref().is_ok_and(|f| f.is_file());
        let text = target.display().to_string();
        if text.starts_with("/memfd:") {
            kept += found.unwrap().blocks() * 512;
        } else if is_file {
            assert!(text.starts_with("/dev/shm/"), "{text} is on a disk");
            assert!(found.unwrap().len() < 8 << 20, "{text} is no catalogue");
        }
    }
    assert!(kept >= 61_000_000, "{kept} bytes are in memory");
    let io = fs::read_to_string(format!("/proc/{}/io", holder[0])).unwrap();
    let written = io.lines().find_map(|l| l.strip_prefix("write_bytes: "));
    assert!(written.unwrap().parse::<u64>().unwrap() < 1 << 20, "{io}");
    assert!(disk_bytes(site.temp.path()) < 1 << 20);
    fs::write(site.file("stop"), "").unwrap();
    assert!(run.0.wait().unwrap().success());
    until("its end", || holders_with("S15", &mark).is_empty());
    // Whoever has to take note of its end may do so a little later.
    until("its process", || {
        !Path::new(&format!("/proc/{}", holder[0])).exists()
    });
}

#[test]
fn writes_beyond_the_limit_name_the_remedies_and_the_job_goes_on() {
    let site = Site::new();
    let script = "\
        $RANK write /fits 20000000 || exit 1
        $RANK write /too-much 60000000 && exit 1
        $PARIO rm /too-much
        $RANK check /fits 20000000 || exit 1
        $PARIO rm /fits
        # Servers say now and then how much room they have; so it takes a moment.
        end=$(($(date +%s) + 60))
        until $RANK write /again 20000000 2> /dev/null; do
            test $(date +%s) -lt $end || exit 1
        done
        $RANK check /again 20000000";
    let output = ended(&mut site.run(&["--memory", "48MiB"], script));
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    for word in ["--memory", "--spill", "24MiB"] {
        assert!(text.contains(word), "{text}");
    }
    site.is_empty();
}

#[test]
fn what_does_not_fit_goes_to_the_spill_directory_and_goes_with_the_job() {
    let site = Site::new();
    let spill = site.file("spill");
    fs::create_dir(&spill).unwrap();
    let out = site.file("out");
    let script = format!(
        "$RANK write /large 120000000 && $RANK check /large 120000000 || exit 1
         exec $RANK hold /more {} >> {}",
        site.file("stop").display(),
        out.display()
    );
    let spilled = spill.display().to_string();
    let options = ["--memory", "32MiB", "--spill", &spilled];
    let mut run = Running::start(site.run(&options, &script).stdout(Stdio::null()));
    lines_of(&out, 1);
    // What is not in memory any more is there.
    assert!(disk_bytes(&spill) > 80_000_000, "{}", disk_bytes(&spill));
    assert_eq!(fs::read_dir(&spill).unwrap().count(), 1);
    fs::write(site.file("stop"), "").unwrap();
    assert!(run.0.wait().unwrap().success());
    site.is_empty();
    assert_eq!(fs::read_dir(&spill).unwrap().count(), 0);
}

#[test]
fn limits_that_cannot_be_met_are_refused() {
    let site = Site::new();
    for (options, word) in [
        (["--memory", "1MiB"], "8MiB"),
        (["--spill", "nowhere"], "no directory"),
        (["--backing", "nowhere"], "no directory"),
    ] {
        let output = ended(&mut site.run(&options, "true"));
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(word), "{}", said(&output));
    }
    site.is_empty();
}

#[test]
fn servers_of_a_job_have_memory_ready_within_their_limit() {
    let site = Site::new();
    let out = site.file("out");
    let script = format!(
        "until \"$PARIO\" status --json > {out} && ! grep -q '\"reserve_bytes\": 0' {out}; do sleep 0.05; done",
        out = out.display(),
    );
    let run = site.run(&["--memory", "64MiB"], &script).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    let status = fs::read_to_string(&out).unwrap();
    // One of each per server.
    let counts = |name: &str| -> Vec<u64> {
        let name = format!("\"{name}\": ");
        let lines = status.lines().filter_map(|l| l.trim().strip_prefix(&name));
        lines
            .map(|l| l.trim_end_matches(',').parse().unwrap())
            .collect()
    };
    let reserves = counts("reserve_bytes");
    assert!(!reserves.is_empty(), "{status}");
    let parts = ["memory_bytes", "warm_bytes", "ready_bytes"].map(counts);
    for (i, limit) in counts("memory_limit_bytes").into_iter().enumerate() {
        assert!(reserves[i] > 0, "{status}");
        let all: u64 = parts.iter().map(|part| part[i]).sum();
        assert!(all <= limit, "{status}");
    }
}
