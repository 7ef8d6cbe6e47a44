//! A service under TLS, between hosts that do not trust each other: certificates made, shown, renewed by `pario cert`.
//!
//! Nobody has a secret here; whoever is somebody is so by his certificate.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use certificates::{Authority, CertificateRequest, Validity};
use identity::Holder;
use testkit::hosts::Hosts;

use crate::site::{Site, bad, good};

/// Makes certificates with the program, in directories of the site.
fn cert(site: &Site, arguments: &[&str]) -> String {
    let mut command = site.pario(0, &["cert"]);
    good(command.args(arguments))
}

/// The options of a server with the certificate in a directory.
fn options(dir: &str) -> Vec<String> {
    let file = |name: &str| format!("{dir}/{name}");
    [
        ["--tls-ca".into(), file("ca.pem")],
        ["--tls-cert".into(), file("server.pem")],
        ["--tls-key".into(), file("server.key")],
    ]
    .concat()
}

fn strs(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

#[test]
fn a_service_under_tls_knows_its_users_by_their_certificates() {
    let Some(mut site) = Site::new(2) else { return };
    let (a, b) = (Hosts::address(0), Hosts::address(1));
    cert(&site, &["authority", "--dir", "ca"]);
    cert(
        &site,
        &["server", "--authority", "ca", &a, "node1", "--out", "a"],
    );
    cert(&site, &["server", "--authority", "ca", &b, "--out", "b"]);
    let numbers = ["--uid", "4711", "--gid", "4712"];
    let ada = ["user", "--authority", "ca", "ada", "--out", "u"];
    cert(&site, &[&ada[..], &numbers].concat());
    let boss = [
        "user",
        "--authority",
        "ca",
        "boss",
        "--out",
        "u",
        "--uid",
        "0",
        "--gid",
        "0",
    ];
    cert(&site, &boss);
    let text = cert(&site, &["show", "u/ada.pem", "a/server.pem"]);
    for word in ["user ada (4711:4712)", "node1", &a, "days left"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let catalogue = site.dir.join("meta").display().to_string();
    let meta = ["meta", "--dir", &catalogue];
    let (of_a, of_b) = (options("a"), options("b"));
    let url = site.start(0, &[&meta[..], &strs(&of_a)].concat());
    let io = ["io", "--meta", &url, "--memory", "64MiB"];
    // The certificate of a user makes no server.
    let ada_files = [
        "--tls-ca",
        "u/ca.pem",
        "--tls-cert",
        "u/ada.pem",
        "--tls-key",
        "u/ada.key",
    ];
    let why = site
        .try_start(1, &[&io[..], &ada_files].concat())
        .unwrap_err();
    assert!(why.contains("pario cert server"), "{why}");
    // A key that others can read is none.
    let mode = |mode: u32| fs::Permissions::from_mode(mode);
    fs::set_permissions(site.dir.join("b/server.key"), mode(0o640)).unwrap();
    let why = site
        .try_start(1, &[&io[..], &strs(&of_b)].concat())
        .unwrap_err();
    assert!(why.contains("chmod 600"), "{why}");
    fs::set_permissions(site.dir.join("b/server.key"), mode(0o600)).unwrap();
    // By variables, as by options.
    let variables = [
        ("PARIO_TLS_CA", "b/ca.pem"),
        ("PARIO_TLS_CERT", "b/server.pem"),
        ("PARIO_TLS_KEY", "b/server.key"),
    ];
    site.try_start_with(1, &io, &variables).unwrap();
    site.start(0, &[&io[..], &strs(&of_a)].concat());

    let as_user = |name: &str, arguments: &[&str]| {
        let mut command = site.pario(1, arguments);
        let named = format!("{url}?ca=u/ca.pem&cert=u/{name}.pem&key=u/{name}.key");
        command.env("PARIO_URL", named);
        command
    };
    let input = site.dir.join("input");
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| (i >> 3) as u8).collect();
    fs::write(&input, &bytes).unwrap();
    good(&mut as_user("ada", &["put", "input", "/hers"]));
    let text = good(&mut as_user("ada", &["stat", "/hers"]));
    assert!(text.contains("4711"), "{text}");
    good(&mut as_user("ada", &["get", "/hers", "output"]));
    assert!(fs::read(site.dir.join("output")).unwrap() == bytes);
    let mut by_variables = site.pario(1, &["stat", "/hers"]);
    by_variables.env("PARIO_URL", &url);
    by_variables.env("PARIO_TLS_CA", "u/ca.pem");
    by_variables.env("PARIO_TLS_CERT", "u/ada.pem");
    by_variables.env("PARIO_TLS_KEY", "u/ada.key");
    let text = good(&mut by_variables);
    assert!(text.contains("4711"), "{text}");
    fs::set_permissions(site.dir.join("u/ada.key"), mode(0o644)).unwrap();
    for command in [&mut by_variables, &mut as_user("ada", &["ls"])] {
        let why = bad(command);
        assert!(
            why.contains("chmod 600") && why.contains("ada.key"),
            "{why}"
        );
    }
    fs::set_permissions(site.dir.join("u/ada.key"), mode(0o600)).unwrap();
    // She may not end the service, whatever her uid on her host is; root may.
    let why = bad(&mut as_user("ada", &["down"]));
    assert!(why.contains("4711"), "{why}");

    // Without a certificate, with one of another authority, or one that is over: nobody.
    let mut plain = site.pario(1, &["ls"]);
    let why = bad(plain.env("PARIO_URL", &url));
    assert!(why.contains("PARIO_TLS_CERT"), "{why}");
    cert(&site, &["authority", "--dir", "other"]);
    let forged = ["user", "--authority", "other", "ada", "--out", "x"];
    cert(&site, &[&forged[..], &numbers].concat());
    let mut stranger = site.pario(1, &["ls"]);
    let named = format!("{url}?ca=u/ca.pem&cert=x/ada.pem&key=x/ada.key");
    let why = bad(stranger.env("PARIO_URL", named));
    assert!(why.contains("authority"), "{why}");
    let authority = Authority::open(&site.dir.join("ca")).unwrap();
    let now = Validity::days(0).to;
    let old = CertificateRequest {
        holder: certificates::read(&site.dir.join("u/ada.pem"))
            .unwrap()
            .holder
            .unwrap(),
        hosts: Vec::new(),
        validity: Validity {
            from: now - 200_000,
            to: now - 100_000,
        },
    };
    let out: PathBuf = site.dir.join("u");
    authority.issue(&old, &out, "late").unwrap();
    let why = bad(&mut as_user("late", &["ls"]));
    assert!(
        why.contains("expired") && why.contains("pario cert renew"),
        "{why}"
    );
    // Renewed, it is good again.
    cert(&site, &["renew", "--authority", "ca", "u/late.pem"]);
    good(&mut as_user("late", &["ls"]));
    good(&mut as_user("boss", &["down"]));
}

#[test]
fn a_certificate_is_renewed_while_its_server_serves() {
    let Some(mut site) = Site::new(1) else { return };
    let a = Hosts::address(0);
    cert(&site, &["authority", "--dir", "ca"]);
    cert(
        &site,
        &[
            "user",
            "--authority",
            "ca",
            "boss",
            "--out",
            "u",
            "--uid",
            "0",
            "--gid",
            "0",
        ],
    );
    let authority = Authority::open(&site.dir.join("ca")).unwrap();
    let now = Validity::days(0).to;
    let old = CertificateRequest {
        holder: Holder::Server,
        hosts: vec![a],
        validity: Validity {
            from: now - 200_000,
            to: now - 100_000,
        },
    };
    authority
        .issue(&old, &site.dir.join("a"), "server")
        .unwrap();
    let catalogue = site.dir.join("meta").display().to_string();
    let meta = ["meta", "--dir", &catalogue];
    let of_a = options("a");
    let url = site.start(0, &[&meta[..], &strs(&of_a)].concat());
    let ls = || {
        let mut command = site.pario(0, &["ls"]);
        let named = format!("{url}?ca=u/ca.pem&cert=u/boss.pem&key=u/boss.key");
        command.env("PARIO_URL", named);
        command
    };
    let why = bad(&mut ls());
    assert!(why.contains("expired"), "{why}");
    cert(&site, &["renew", "--authority", "ca", "a/server.pem"]);
    good(&mut ls());
}
