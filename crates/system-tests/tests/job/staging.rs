//! Files and trees moved in before a job works, and out afterwards.
//!
//! What could not be moved out is named and makes the run fail; everything else is saved.

use super::*;

fn tree(site: &Site) -> PathBuf {
    let dir = site.file("input");
    fs::create_dir_all(dir.join("deep/er")).unwrap();
    fs::write(dir.join("a"), b"first").unwrap();
    fs::write(dir.join("deep/er/b"), vec![7; 3_000_000]).unwrap();
    fs::write(dir.join("empty"), b"").unwrap();
    // Mostly a hole.
    let sparse = fs::File::create(dir.join("deep/sparse")).unwrap();
    sparse.set_len(40 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"end", (40 << 20) - 3).unwrap();
    dir
}

#[test]
fn trees_come_in_and_go_out_unchanged() {
    let site = Site::new();
    let input = tree(&site);
    let script = "$PARIO mv /input/a /input/renamed && $PARIO put -r input /second";
    let options = [
        "--stage-in",
        "input",
        "--stage-out",
        "output:/input",
        "--stage-out",
        "one/level/down:/input/deep/er/b",
    ];
    let output = ended(&mut site.run(&options, script));
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("staged in") && text.contains("4 files"),
        "{text}"
    );
    site.is_empty();
    fs::rename(site.file("output/renamed"), site.file("output/a")).unwrap();
    good(
        site.command("diff")
            .arg("-r")
            .args([&input, &site.file("output")]),
    );
    good(
        site.command("cmp")
            .args([&input.join("deep/er/b"), &site.file("one/level/down")]),
    );
    use std::os::unix::fs::MetadataExt;
    let sparse = fs::metadata(site.file("output/deep/sparse")).unwrap();
    assert!(sparse.blocks() * 512 < 4 << 20, "holes stay holes");
}

#[test]
fn what_a_failed_command_left_is_staged_out_too() {
    let site = Site::new();
    let output = ended(&mut site.run(&["--stage-out", "left"], "$RANK write /left 5000; exit 4"));
    let text = said(&output);
    assert_eq!(output.status.code(), Some(4), "{text}");
    assert!(text.contains("ended with code 4"), "{text}");
    assert_eq!(fs::metadata(site.file("left")).unwrap().len(), 5000);
    site.is_empty();
}

#[test]
fn what_cannot_be_staged_out_is_named_and_the_rest_is_saved() {
    let site = Site::new();
    fs::create_dir_all(site.file("results/b")).unwrap();
    // A directory where a file should go.
    let script = "$PARIO mkdir /results; for f in a b c; do $RANK write /results/$f 1000; done";
    let options = ["--stage-out", "results", "--stage-out", "none:/nowhere"];
    let output = ended(&mut site.run(&options, script));
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for word in [
        "not staged out: /results/b",
        "not staged out: /nowhere",
        "2 files",
    ] {
        assert!(text.contains(word), "{text}");
    }
    for name in ["a", "c"] {
        assert_eq!(
            fs::metadata(site.file("results").join(name)).unwrap().len(),
            1000
        );
    }
    site.is_empty();
}

#[test]
fn servers_can_be_kept_for_what_could_not_be_staged_out() {
    let site = Site::new();
    let log = site.file("log");
    let options = ["--stage-out", "gone/:/x/y", "--keep-seconds", "600"];
    let mut command = site.run(&options, "$RANK write /saved 1000");
    let mut run = Running::start(command.stderr(fs::File::create(&log).unwrap()));
    let url = || {
        let text = fs::read_to_string(&log).unwrap();
        let at = text.split_once("PARIO_URL=")?.1;
        at.split_once(' ').map(|(url, _)| url.to_owned())
    };
    until("the offer to fetch", || url().is_some());
    let mut get = site.command(pario());
    get.args(["get", "/saved", "saved"])
        .env("PARIO_URL", url().unwrap());
    good(&mut get);
    assert_eq!(fs::metadata(site.file("saved")).unwrap().len(), 1000);
    signal(run.pid(), rustix::process::Signal::TERM);
    assert_eq!(run.0.wait().unwrap().code(), Some(1));
    site.is_empty();
}

#[test]
fn input_that_is_not_there_stops_the_run_before_it_begins() {
    let site = Site::new();
    let output = ended(&mut site.run(&["--stage-in", "nothing"], "touch started"));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("--stage-in: cannot read"),
        "{}",
        said(&output)
    );
    assert!(!site.file("started").exists());
    // Found out only while it is moved.
    fs::create_dir(site.file("odd")).unwrap();
    good(site.command("mkfifo").arg(site.file("odd/pipe")));
    let output = ended(&mut site.run(&["--stage-in", "odd"], "touch started"));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("the command was not started"));
    assert!(!site.file("started").exists());
    site.is_empty();
}

#[test]
fn the_environment_stages_for_jobs_without_a_run() {
    let site = Site::new();
    fs::write(site.file("given"), b"given").unwrap();
    let mut command = launcher("mpiexec.mpich", &site, 2);
    command
        .args(["sh", "-c", "$PARIO get /given - && $RANK write /made 4000"])
        .env("PARIO_STAGE_IN", site.file("given"))
        .env(
            "PARIO_STAGE_OUT",
            format!(
                "{}:/made,{}:/given",
                site.file("made").display(),
                site.file("again").display()
            ),
        );
    let output = ended(&mut command);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("givengiven") || text.matches("given").count() >= 2,
        "{text}"
    );
    assert!(!text.contains("not staged out"), "{text}");
    // The launcher returned after the last byte was out.
    assert_eq!(fs::metadata(site.file("made")).unwrap().len(), 4000);
    assert_eq!(fs::read(site.file("again")).unwrap(), b"given");
    site.is_empty();
}
