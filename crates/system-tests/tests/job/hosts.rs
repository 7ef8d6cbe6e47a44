//! Jobs on several hosts: they meet through a directory or through the environment, and each serves its
//! own processes by a socket of its own.
//!
//! One machine plays all hosts: by the name in `PARIO_HOST`, and as root by network namespaces.

use super::*;

/// Ranks alternate between two hosts.
const ON_TWO_HOSTS: &str = "PARIO_HOST=host$((PMI_RANK % 2)) exec $RANK \"$@\"";

#[test]
fn seed001_s04_hosts_meet_in_a_directory_and_serve_together() {
    let site = Site::new();
    let shared = site.file("shared");
    fs::create_dir(&shared).unwrap();
    let (out, stop) = (site.file("out"), site.file("stop"));
    let mut command = launcher("mpiexec.mpich", &site, 4);
    command
        .args(["sh", "-c"])
        .arg(
            "PARIO_HOST=host$((PMI_RANK % 2)); export PARIO_HOST
             $RANK write /both 4000000 || exit 1
             exec $RANK hold /file-$PMI_RANK $0 >> $1",
        )
        .args([&stop, &out])
        .env("PARIO_JOB_DIR", &shared)
        .env("PARIO_JOB_ADDRESS", "127.0.0.1")
        .env("PARIO_SERVERS", "3");
    let mut job = Running::start(command.stderr(Stdio::null()));
    lines_of(&out, 4);
    assert_eq!(site.holders().len(), 2, "one on each host");
    let meeting = fs::read_dir(&shared)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&meeting), 0o700);
    for name in ["first", "host-host0", "host-host1"] {
        assert_eq!(mode(&meeting.join(name)), 0o600, "{name}");
    }
    // Both hosts' servers have a part of the file, and ranks go to those of their host directly.
    for host in ["host0", "host1"] {
        let keys = fs::read_dir(site.run_dir()).unwrap().flatten();
        let mut keys = keys.filter_map(|e| e.file_name().into_string().ok());
        let key = keys.find(|k| k.ends_with(&format!("@{host}"))).unwrap();
        let sockets = fs::read_dir(site.run_dir().join(&key)).unwrap().flatten();
        let sockets = sockets.filter(|e| e.file_name().to_string_lossy().starts_with("io-"));
        assert_eq!(sockets.count(), 3, "{key}");
    }
    let first = fs::read_to_string(meeting.join("first")).unwrap();
    let field = |name: &str| {
        let line = first.lines().find_map(|l| l.strip_prefix(name));
        line.unwrap().to_owned()
    };
    let (url, secret) = (field("manager: "), field("secret: "));
    let mut status = site.command(pario());
    status
        .args(["ls", "/"])
        .env("PARIO_URL", &url)
        .env("PARIO_TIMEOUT", "2");
    let refused = ended(&mut status);
    assert!(
        !refused.status.success(),
        "nobody gets in without the secret"
    );
    system_tests::service::write_private(&site.file("secret"), &secret);
    status
        .env("PARIO_SECRET", site.file("secret"))
        .env_remove("PARIO_TIMEOUT");
    assert!(good(&mut status).contains("both"));
    let mut layout = site.command(pario());
    layout
        .args(["status", "--json"])
        .env("PARIO_URL", &url)
        .env("PARIO_SECRET", site.file("secret"));
    let text = good(&mut layout);
    assert_eq!(text.matches("tcp:127.0.0.1:").count(), 7, "{text}");
    fs::write(stop, "").unwrap();
    assert!(job.0.wait().unwrap().success());
    site.is_empty();
    assert_eq!(
        fs::read_dir(&shared).unwrap().count(),
        0,
        "nothing is left there"
    );
}

#[test]
fn hosts_find_each_other_by_the_environment_of_a_run() {
    let site = Site::new();
    let script = format!(
        "mpiexec.mpich -n 4 sh -c '{ON_TWO_HOSTS}' x write /wide 3000000 || exit 1
         mpiexec.mpich -n 2 sh -c '{ON_TWO_HOSTS}' x check /wide 3000000"
    );
    let mut command = site.run(&["--network", "--servers", "2"], &script);
    let text = good(command.env("PARIO_JOB_ADDRESS", "127.0.0.1"));
    // The host of the run, and the two that joined it.
    assert_eq!(text, "checked 6\nchecked 6\n");
    site.is_empty();
    // Without the network another host is not left with a file system of its own.
    let output = ended(&mut site.run(&[], "PARIO_HOST=other $RANK write /x 10"));
    assert!(said(&output).contains("--network"), "{}", said(&output));
    site.is_empty();
}

#[test]
fn the_first_host_waits_for_the_others_and_its_death_ends_them() {
    let site = Site::new();
    let shared = site.file("shared");
    fs::create_dir(&shared).unwrap();
    let (out, stop) = (site.file("out"), site.file("stop"));
    // The first rank ends at once; the other goes on to use what it left.
    let script = "\
        export PARIO_HOST=host$PMI_RANK
        if test $PMI_RANK = 0; then $RANK write /left 100000; touch $1.0; exit; fi
        while ! test -e $1.0; do :; done
        $RANK hold /second $0 >> $1 && $RANK write /left 100000 && echo end >> $1";
    let mut command = launcher("mpiexec.mpich", &site, 2);
    command
        .args(["sh", "-c", script])
        .args([&stop, &out])
        .env("PARIO_JOB_DIR", &shared)
        .env("PARIO_JOB_ADDRESS", "127.0.0.1");
    let mut job = Running::start(command.stderr(Stdio::null()));
    lines_of(&out, 1);
    assert_eq!(site.holders().len(), 2);
    fs::write(&stop, "").unwrap();
    assert!(job.0.wait().unwrap().success());
    assert_eq!(lines_of(&out, 2)[1], "end");
    site.is_empty();
    assert_eq!(fs::read_dir(&shared).unwrap().count(), 0);
}

/// Two network namespaces with a cable between them, removed when dropped.
struct Namespaces {
    names: [String; 2],
}

impl Namespaces {
    fn new(site: &Site) -> Namespaces {
        // Names are those of this process alone; addresses are of a network that nobody else sees.
        let names = ["a", "b"].map(|side| format!("pj{}{side}", std::process::id()));
        let made = Namespaces { names };
        let ip = |arguments: &[&str]| {
            good(site.command("ip").args(arguments));
        };
        let [a, b] = [&made.names[0], &made.names[1]];
        for name in [a, b] {
            ip(&["netns", "add", name]);
        }
        let (va, vb) = (format!("{a}v"), format!("{b}v"));
        ip(&[
            "link", "add", &va, "netns", a, "type", "veth", "peer", "name", &vb, "netns", b,
        ]);
        for (name, link, host) in [(a, &va, 1), (b, &vb, 2)] {
            let address = format!("{}/24", Namespaces::address(host));
            ip(&["-n", name, "addr", "add", &address, "dev", link]);
            ip(&["-n", name, "link", "set", link, "up"]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        made
    }

    /// The address of a side, which is 1 or 2.
    fn address(side: u32) -> String {
        format!("10.77.0.{side}")
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

#[test]
fn hosts_on_a_network_serve_each_other() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("only root can make network namespaces; left out");
        return;
    }
    let site = Site::new();
    let namespaces = Namespaces::new(&site);
    let [a, b] = &namespaces.names;
    let script = format!(
        "$RANK write /far 2000000 && ip netns exec {b} $RANK check /far 2000000 &&
         ip netns exec {b} $RANK write /back 2000000 && $RANK check /back 2000000 &&
         $PARIO status"
    );
    let mut command = site.command("ip");
    command
        .args(["netns", "exec", a])
        .arg(pario())
        .args(["run", "--network", "--", "sh", "-c", &script])
        .env("PARIO_JOB_ADDRESS", Namespaces::address(1));
    let text = good(&mut command);
    // Files made before the other host came lie on the first one only; later ones on both.
    assert!(text.contains("checked 4"), "{text}");
    let second = format!("tcp:{}:", Namespaces::address(2));
    assert_eq!(text.matches(&second).count(), 2, "{text}");
    drop(namespaces);
    site.is_empty();
}
