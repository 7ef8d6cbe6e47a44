//! One program in all modes: without a service over a directory, with the servers of a job, and with a
//! service that was there before.

use system_tests::ServiceOptions;

use super::*;

const PROGRAM: &str = "mpiexec.mpich -n 2 $RANK program && $RANK summary";

#[test]
fn seed004_s14_the_same_program_gives_the_same_files_in_every_mode() {
    let site = Site::new();
    let in_job = good(&mut site.run(&[], PROGRAM));
    site.is_empty();

    let service = ServiceOptions::new(2).start();
    let mut command = site.command("sh");
    command.args(["-c", PROGRAM]);
    let in_service = good(command.env("PARIO_URL", service.url().to_string()));

    let dir = site.file("directory");
    let mut command = site.command("sh");
    command.args(["-c", PROGRAM]);
    let embedded = good(command.env("PARIO_URL", format!("dir:{}", dir.display())));
    // The process that the ranks have left to hold the directory goes when it is told.
    let note = fs::read_to_string(dir.join("holder")).unwrap_or_default();
    if let Some(pid) = note.lines().find_map(|l| l.strip_prefix("pid: ")) {
        // Unless nobody has used it for so long that it went by itself.
        let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        until("the end of the holder", || !dir.join("holder").exists());
    }
    assert!(
        in_job.contains("/ranks/1/renamed") && in_job.lines().count() >= 6,
        "{in_job}"
    );
    assert!(!in_job.contains("gone"), "{in_job}");
    assert_eq!(in_job, in_service);
    assert_eq!(in_job, embedded);
}
