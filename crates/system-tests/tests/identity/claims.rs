//! What somebody on another host may claim: to be a server, to be a user.
//!
//! The secret of users makes nobody a server, and no host's word makes anybody root unless the
//! administrator trusts its network.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::site::{Site, bad, good};

#[test]
fn a_claim_counts_as_far_as_the_administrator_says() {
    let Some(mut site) = Site::new(2) else { return };
    let user = site.secret("secret").display().to_string();
    let server = site.secret("server-secret").display().to_string();
    let catalogue = site.dir.join("meta").display().to_string();
    let secrets = ["--secret", &user, "--server-secret", &server];
    let meta = ["meta", "--dir", &catalogue];
    let url = site.start(0, &[&meta[..], &secrets].concat());

    // Only whoever has the secret of servers is one, and is told which option he lacks.
    let io = ["io", "--meta", &url, "--memory", "64MiB"];
    let why = site.try_start(1, &[&io[..], &["--secret", &user]].concat());
    assert!(why.unwrap_err().contains("--server-secret"));
    let other = site.secret("other").display().to_string();
    let wrong = ["--secret", &user, "--server-secret", &other];
    let why = site.try_start(1, &[&io[..], &wrong].concat()).unwrap_err();
    assert!(why.contains("PARIO_SERVER_SECRET"), "{why}");
    site.start(1, &[&io[..], &secrets].concat());
    site.start(0, &[&io[..], &secrets].concat());

    // Root of another host is nobody here.
    let input = site.dir.join("input");
    fs::write(&input, vec![7; 300_000]).unwrap();
    let input = input.display().to_string();
    let on = |host: usize, arguments: &[&str]| {
        let mut command = site.pario(host, arguments);
        command.env("PARIO_URL", &url).env("PARIO_SECRET", &user);
        command
    };
    good(&mut on(1, &["put", &input, "/far"]));
    let text = good(&mut on(1, &["stat", "/far"]));
    assert!(text.contains("65534"), "{text}");
    good(&mut on(0, &["put", &input, "/near"]));
    let secret = site.secret("secret");
    site.client(0, &url, &secret).ask("chmod\t/near\t600");
    let text = good(&mut on(0, &["stat", "/near"]));
    assert!(!text.contains("65534"), "{text}");
    let why = bad(&mut on(1, &["cat", "/near"]));
    assert!(
        why.contains("permission") || why.contains("denied"),
        "{why}"
    );
    let why = bad(&mut on(1, &["down"]));
    assert!(why.contains("--trust-uids"), "{why}");
    // What is on both servers is there for both.
    assert_eq!(good(&mut on(0, &["cat", "/far"])).len(), 300_000);

    // A file that others can read is no secret any more.
    fs::set_permissions(site.dir.join("other"), fs::Permissions::from_mode(0o640)).unwrap();
    let loose = ["--secret", &user, "--server-secret", &other];
    let why = site.try_start(1, &[&io[..], &loose].concat()).unwrap_err();
    assert!(why.contains("chmod 600"), "{why}");
    fs::set_permissions(site.dir.join("secret"), fs::Permissions::from_mode(0o644)).unwrap();
    let mut client = site.pario(1, &["ls"]);
    let why = bad(client.env("PARIO_URL", &url).env("PARIO_SECRET", &user));
    assert!(why.contains("chmod 600") && why.contains("0644"), "{why}");
}

#[test]
fn a_trusted_network_says_who_its_users_are() {
    let Some(mut site) = Site::new(2) else { return };
    let user = site.secret("secret").display().to_string();
    let catalogue = site.dir.join("meta").display().to_string();
    let meta = ["meta", "--dir", &catalogue, "--secret", &user];
    let trust = ["--trust-uids", "10.77.0.0/24"];
    let url = site.start(0, &[&meta[..], &trust].concat());
    let io = ["io", "--meta", &url, "--memory", "64MiB"];
    site.start(0, &[&io[..], &["--secret", &user]].concat());
    let on = |arguments: &[&str]| {
        let mut command = site.pario(1, arguments);
        command.env("PARIO_URL", &url).env("PARIO_SECRET", &user);
        command
    };
    good(&mut on(&[
        "create",
        "/root",
        "--layout",
        "striped(4KiB) over 1",
    ]));
    let text = good(&mut on(&["stat", "/root"]));
    assert!(!text.contains("65534"), "{text}");
    good(&mut on(&["down"]));
}
