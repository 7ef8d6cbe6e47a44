//! `pario run`: the command it is around, its exit code, signals, and the services it can use.
//!
//! Data lives from one program of the command to the next, and goes with the last.

use rustix::process::Signal;
use system_tests::ServiceOptions;

use super::*;

#[test]
fn data_lives_from_one_mpiexec_to_the_next() {
    let site = Site::new();
    let script = "\
        mpiexec.mpich -n 2 $RANK write /data 2000000 || exit 1
        mpiexec.openmpi --allow-run-as-root --oversubscribe -n 3 $RANK check /data 2000000 || exit 1
        $RANK check /data 2000000 || exit 1
        $PARIO status";
    let text = good(
        site.run(&["--servers", "3"], script)
            .env("TMPDIR", site.temp.path()),
    );
    assert!(
        text.contains("checked 3") && text.contains("memory"),
        "{text}"
    );
    assert!(!text.contains("not staged out"), "{text}");
    site.is_empty();
}

#[test]
fn exit_codes_are_passed_on() {
    let site = Site::new();
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)] {
        let output = ended(&mut site.run(&["--quiet"], script));
        assert_eq!(
            output.status.code(),
            Some(code),
            "{script}: {}",
            said(&output)
        );
        assert_eq!(said(&output), "");
    }
    let mut command = site.command(pario());
    let output = ended(command.args(["run", "--", "no-such-program"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("cannot run no-such-program"));
    let output = ended(site.command(pario()).args(["run"]));
    assert_eq!(output.status.code(), Some(2));
    site.is_empty();
}

#[test]
fn signals_are_passed_on_and_the_servers_wait_for_the_command() {
    let site = Site::new();
    let out = site.file("out");
    let script = "\
        trap 'echo usr1 >> $OUT' USR1
        trap '$PARIO ls / >> $OUT; exit 9' TERM
        $RANK write /there 10; echo up >> $OUT
        # Nothing that blocks for good: a signal just before it would be heard only after it.
        while :; do sleep 0.05; done";
    let mut command = site.run(&[], script);
    command.env("OUT", &out);
    let mut run = Running::start(&mut command);
    lines_of(&out, 1);
    signal(run.pid(), Signal::USR1);
    assert_eq!(lines_of(&out, 2)[1], "usr1");
    signal(run.pid(), Signal::TERM);
    assert_eq!(run.0.wait().unwrap().code(), Some(9));
    assert_eq!(lines_of(&out, 3)[2], "there");
    site.is_empty();
}

#[test]
fn a_service_that_is_named_is_used_and_options_of_a_job_are_refused() {
    let site = Site::new();
    let service = ServiceOptions::new(2).start();
    let url = service.url().to_string();
    let mut command = site.run(&[], "$RANK write /in-service 1000; echo $PARIO_URL");
    let text = good(command.env("PARIO_URL", &url));
    assert_eq!(text.trim(), url);
    assert_eq!(service.client().stat("/in-service").unwrap().size, 1000);
    assert!(!site.run_dir().exists(), "no servers were started");
    let mut command = site.run(&["--memory", "64MiB"], "true");
    let output = ended(command.env("PARIO_URL", &url));
    assert!(said(&output).contains("add --job"), "{}", said(&output));
    // With --job it has servers of its own all the same.
    let mut command = site.run(&["--job"], "$RANK write /in-job 1000; $PARIO ls /");
    assert_eq!(good(command.env("PARIO_URL", &url)), "in-job\n");
    service.client().stat("/in-job").unwrap_err();
    site.is_empty();
}

#[test]
fn a_run_inside_a_run_uses_the_servers_that_are_there() {
    let site = Site::new();
    let script = "$RANK write /outer 100 && $PARIO run -- sh -c '$RANK check /outer 100'";
    assert_eq!(good(&mut site.run(&[], script)), "checked 2\n");
    site.is_empty();
}

#[test]
fn a_run_says_in_json_what_it_did() {
    let site = Site::new();
    fs::write(site.file("in"), b"12345").unwrap();
    let options = [
        "--json",
        "--quiet",
        "--stage-in",
        "in",
        "--stage-out",
        "out:/in",
    ];
    let text = good(&mut site.run(&options, "true"));
    for word in [
        r#""exit_code": 0"#,
        r#""files": 1"#,
        r#""bytes": 5"#,
        r#""job": "run-"#,
    ] {
        assert!(text.contains(word), "{text}");
    }
    site.is_empty();
}
