//! A job in front of a directory: files come when they are opened, go back when they are closed, and give
//! up their memory when others need it.

use super::*;

fn behind(site: &Site) -> PathBuf {
    let dir = site.file("behind");
    fs::create_dir_all(dir.join("sub")).unwrap();
    dir
}

#[test]
fn files_are_read_through_and_written_back() {
    let site = Site::new();
    let dir = behind(&site);
    fs::write(dir.join("sub/old"), vec![5; 300_000]).unwrap();
    fs::write(dir.join("gone"), b"to be removed").unwrap();
    fs::write(dir.join("moved"), b"to be moved").unwrap();
    let script = "\
        $PARIO ls / | tr '\\n' ' '
        $PARIO stat --json /sub/old | grep -q '\"size\": 300000' || exit 1
        $PARIO cat /sub/old | cmp - behind/sub/old || exit 1
        $PARIO rm /gone && $PARIO mv /moved /sub/there && $PARIO mkdir /new || exit 1
        mpiexec.mpich -n 3 $RANK write /new/made 900000 || exit 1
        $PARIO ls /gone 2> /dev/null && exit 1
        echo changed | $PARIO put - /sub/old";
    let text = good(&mut site.run(&["--backing", "behind"], script));
    assert_eq!(text, "gone moved sub/ ");
    site.is_empty();
    assert_eq!(fs::read(dir.join("sub/old")).unwrap(), b"changed\n");
    assert_eq!(fs::read(dir.join("sub/there")).unwrap(), b"to be moved");
    assert_eq!(fs::metadata(dir.join("new/made")).unwrap().len(), 900_000);
    assert!(!dir.join("gone").exists() && !dir.join("moved").exists());
    // The next job finds what the first one made.
    let script = "$RANK check /new/made 900000 && $PARIO cat /sub/old";
    let text = good(&mut site.run(&["--backing", "behind"], script));
    assert_eq!(text, "checked 2\nchanged\n");
    site.is_empty();
}

#[test]
fn bytes_are_written_back_in_the_background_and_when_the_run_is_killed() {
    let site = Site::new();
    let dir = behind(&site);
    let out = site.file("out");
    let script = format!(
        "$RANK write /early 500000; exec $RANK hold /late {} >> {}",
        site.file("stop").display(),
        out.display()
    );
    let mut run = Running::start(&mut site.run(&["--backing", "behind"], &script));
    let line = lines_of(&out, 1).remove(0);
    // Closed files are there while the job goes on.
    let has =
        |name: &str, len: u64| fs::metadata(dir.join(name)).is_ok_and(|found| found.len() == len);
    until("the file of the first program", || has("early", 500_000));
    until("the file that was closed", || has("late", 1 << 20));
    run.kill();
    site.is_empty();
    let left: Vec<_> = fs::read_dir(&dir).unwrap().flatten().collect();
    assert_eq!(left.len(), 3, "nothing half: {left:?}");
    kill_if_there(line.strip_prefix("ready ").unwrap().parse().unwrap());
}

#[test]
fn files_are_evicted_when_memory_is_short_and_fetched_again() {
    let site = Site::new();
    let dir = behind(&site);
    // Twelve files of 8 MB through 48 MiB of memory, several times over, by programs that come and go.
    let script = "\
        for i in 1 2 3 4 5 6 7 8 9 10 11 12; do $RANK write /f$i 8000000 || exit 1; done
        for i in 1 2 3 4 5 6 7 8 9 10 11 12; do $RANK check /f$i 8000000 || exit 1; done
        for i in 12 3 7; do $RANK check /f$i 8000000 || exit 1; done
        $PARIO stat --json /f1 | grep -q '\"size\": 8000000'";
    let output = ended(&mut site.run(&["--backing", "behind", "--memory", "48MiB"], script));
    assert!(output.status.success(), "{}", said(&output));
    site.is_empty();
    for i in 1..=12 {
        let found = fs::metadata(dir.join(format!("f{i}"))).unwrap();
        assert_eq!(found.len(), 8_000_000);
    }
    let first = fs::read(dir.join("f1")).unwrap();
    assert!((2..=12).all(|i| fs::read(dir.join(format!("f{i}"))).unwrap() == first));
}

#[test]
fn a_file_is_fetched_once_whoever_opens_it_first() {
    let site = Site::new();
    let dir = behind(&site);
    // Made by a job, so that ranks can check it.
    good(&mut site.run(
        &["--stage-out", "behind/shared:/shared"],
        "$RANK write /shared 6000000",
    ));
    let before = fs::metadata(dir.join("shared"))
        .unwrap()
        .modified()
        .unwrap();
    let script = "mpiexec.mpich -n 4 $RANK check /shared 6000000";
    let text = good(&mut site.run(&["--backing", "behind", "--memory", "32MiB"], script));
    assert_eq!(text.matches("checked").count(), 4);
    site.is_empty();
    let after = fs::metadata(dir.join("shared"))
        .unwrap()
        .modified()
        .unwrap();
    assert_eq!(before, after, "what was only read is not written back");
}

#[test]
fn what_cannot_be_written_back_is_named() {
    let site = Site::new();
    let dir = behind(&site);
    // A directory with something in it where the file should go, made after the file.
    let script = format!(
        "$RANK write /blocked 1000 || exit 1
         while ! test -f {0}/blocked; do :; done
         # It may come once more, if it was written back before all of it was there.
         until rm -f {0}/blocked && mkdir {0}/blocked 2> /dev/null; do :; done
         touch {0}/blocked/x
         $RANK write /blocked 2000",
        dir.display()
    );
    let output = ended(&mut site.run(&["--backing", "behind"], &script));
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("not kept: /blocked"), "{text}");
    site.is_empty();
}
