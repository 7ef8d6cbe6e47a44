//! `pario doctor`: all is well, bytes are lost, servers are missing, permissions are wrong. Each
//! finding has its kind and its remedy, and sets the exit code.

use std::os::unix::fs::PermissionsExt;

use client::OpenOptions;
use serde_json::Value;

use crate::scratch::{Foreground, Scratch, connect, wait_until};

/// The findings of an examination that fails.
fn findings(scratch: &Scratch, url: &str) -> Vec<(String, String)> {
    let mut command = scratch.pario(&["doctor", "--json"]);
    let output = command
        .env("PARIO_URL", url)
        .output()
        .expect("pario starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*errors), (Some(1), ""));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["is_well"], false);
    let list = report["findings"].as_array().expect("a list").clone();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    assert!(
        list.iter().all(|f| !text(&f["remedy"]).is_empty()),
        "{report}"
    );
    list.iter()
        .map(|f| (text(&f["kind"]), text(&f["what"])))
        .collect()
}

fn kinds(findings: &[(String, String)]) -> Vec<&str> {
    findings.iter().map(|(kind, _)| kind.as_str()).collect()
}

#[test]
fn service_without_flaws_is_well() {
    let scratch = Scratch::new("well");
    let up = scratch.up(&["--servers", "2"]);
    let client = connect(up["url"].as_str().expect("a URL"));
    client.mkdir("/d", None).expect("made");
    client.create("/d/f", &OpenOptions::new()).expect("made");
    let text = scratch.text(&["doctor"]);
    assert!(
        text.starts_with("all is well: 1 file in 2 directories"),
        "{text}"
    );
    let report = scratch.json(&["doctor", "--json"]);
    assert_eq!(
        (&report["is_well"], &report["files"]),
        (&true.into(), &1.into())
    );
    drop(client);
    // Whether the host gives large pages is said, and is no flaw.
    let setting = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let setting = std::fs::read_to_string(setting).unwrap_or_default();
    let is_given = ["[always]", "[within_size]", "[advise]", "[force]"]
        .iter()
        .any(|word| setting.contains(word));
    let small = report["with_small_pages"].as_array().expect("a list");
    // Where the host gives none the kernel may join them.
    assert!(
        small.is_empty() || small.len() == 2 && !is_given,
        "{small:?}"
    );
    let is_given = small.is_empty();
    assert_eq!(text.contains("large pages"), !is_given, "{text}");
    let status = scratch.text(&["status"]);
    let pages = if is_given {
        "large pages"
    } else {
        "usual pages"
    };
    assert!(status.contains("ready for new bytes"), "{status}");
    assert!(status.contains(pages), "{status}");
    scratch.text(&["down"]);
}

#[test]
fn bytes_lost_with_a_memory_server_are_named() {
    let scratch = Scratch::new("lost");
    let (_meta, url) = scratch.serve(&["meta", "--dir", "meta"]);
    let serve_io = || {
        scratch
            .serve(&[
                // Without one its memory is gone with its process.
                "io",
                "--no-keeper",
                "--meta",
                &url,
                "--memory",
                "64MiB",
                "--state",
                "s",
            ])
            .0
    };
    let mut io: Foreground = serve_io();
    connect(&url)
        .create("/gone", &OpenOptions::new())
        .expect("made");
    let found = {
        io.kill();
        wait_until("the death is noticed", || {
            let found = findings_or_none(&scratch, &url);
            // Until then it is one that does not answer.
            let is_dead = |(_, what): &(String, String)| what.contains("is dead");
            found.filter(|list| list.iter().any(is_dead))
        })
    };
    assert!(kinds(&found).contains(&"server"), "{found:?}");

    // The server comes back without what it had.
    let _io = serve_io();
    let found = findings(&scratch, &url);
    assert_eq!(kinds(&found), ["lost"], "{found:?}");
    assert!(found[0].1.contains("/gone"), "{found:?}");

    connect(&url).unlink("/gone").expect("removed");
    let mut command = scratch.pario(&["doctor"]);
    let output = command
        .env("PARIO_URL", &url)
        .output()
        .expect("pario starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
}

fn findings_or_none(scratch: &Scratch, url: &str) -> Option<Vec<(String, String)>> {
    let mut command = scratch.pario(&["doctor"]);
    let output = command
        .env("PARIO_URL", url)
        .output()
        .expect("pario starts");
    (output.status.code() == Some(1)).then(|| findings(scratch, url))
}

#[test]
fn permissions_that_let_others_in_are_named() {
    let scratch = Scratch::new("perm");
    let up = scratch.up(&["--servers", "1"]);
    let key = scratch.path(".pario/meta/key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).expect("set");
    let found = findings(&scratch, up["url"].as_str().expect("a URL"));
    assert_eq!(kinds(&found), ["files"], "{found:?}");
    assert!(found[0].1.contains("mode 644"), "{found:?}");
    scratch.text(&["down"]);
}

#[test]
fn damaged_blocks_are_found_by_a_scrub() {
    let scratch = Scratch::new("scrub");
    let up = scratch.up(&["--servers", "1"]);
    let url = up["url"].as_str().expect("a URL");
    let bytes: Vec<u8> = (0..100_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    {
        let client = connect(url);
        let options = OpenOptions::new().read().write().create();
        let file = client.open("/f", &options).expect("opened");
        file.write_at(0, &bytes).expect("written");
        file.sync().expect("synced");
        file.close().expect("closed");
    }
    let report = scratch.json(&["doctor", "--scrub", "--json"]);
    assert!(report["scrubbed_blocks"].as_u64() > Some(0), "{report}");
    scratch.text(&["down"]);

    let names = std::fs::read_dir(scratch.path(".pario/io-0")).expect("there");
    let is_data = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "sub");
    let path = names
        .flatten()
        .map(|e| e.path())
        .find(is_data)
        .expect("a data file");
    let mut image = std::fs::read(&path).expect("read");
    let part = &bytes[50_000..50_064];
    let at = image
        .windows(part.len())
        .position(|w| w == part)
        .expect("stored");
    image[at] ^= 1;
    std::fs::write(&path, image).expect("written");

    scratch.up(&[]);
    scratch.text(&["doctor"]);
    let output = scratch
        .pario(&["doctor", "--scrub"])
        .output()
        .expect("pario starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("damaged  1 block of /f does not fit the checksum"),
        "{text}"
    );
    scratch.text(&["down"]);
}
