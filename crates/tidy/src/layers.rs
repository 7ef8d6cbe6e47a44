//! Crates depend downwards only, and every foreign crate has a reason.
//!
//! [`ALLOWED`] is the layer table of `ARCHITECTURE.md` in a form that a test can read: a member of
//! the workspace that is missing there is refused, so that a new crate has to take its place in the
//! table first. Development dependencies obey the same table, with the exceptions of [`IN_TESTS`]: a
//! test that needs a higher layer belongs to the higher layer.
//!
//! Manifests are read line by line. Of TOML that covers tables, `name = value`, dotted names and
//! trailing comments, which is all that the manifests here use.

use crate::{Complaint, File};

/// For each member of the workspace the members it may depend on.
///
/// ```text
///   pario-cli, bench, system-tests     may use all, used by none; bench and pario-cli not each other
///     |
///   calibrate -> console         what programs for people share
///     |
///   fortran                      modules on top of `c`, and how tests build programs with them
///     |
///   pario                        the library of Rust programs; the bindings `c`, `vipios` (both on `border`), `mpiio` and `python` beside it
///     |
///   pio -> dsm, streams          files of programs that share memory, that memory, a stream per virtual processor, all on client
///     |
///   embedded -> job              the only ones that know client and servers
///     |            |
///   client     metaserver  ioserver     on serving
///     |          meta  \     /  store
///   wire  <-  control        direct     client and ioserver meet in wire and direct
///     |                        |
///   advise -> plan -> kernels, layout -> falls
///
///   random         used by all, uses none
///   logging        used by programs and bindings, uses none
///   testkit        used by tests and bench only, may use falls
///   lossyfs        used by system-tests only
///   tidy           uses none, used by none
/// ```
pub const ALLOWED: &[(&str, &[&str])] = &[
    ("falls", &[]),
    ("layout", &["falls"]),
    ("hpf", &["layout"]),
    ("plan", &["falls", "kernels", "layout"]),
    ("advise", &["falls", "layout", "plan"]),
    ("kernels", &["falls"]),
    ("direct", &["kernels"]),
    ("lockfile", &[]),
    ("store", &["falls", "kernels", "lockfile"]),
    ("keeper", &["lockfile", "store"]),
    ("wire", &["falls", "kernels", "layout", "plan"]),
    ("control", &["advise", "falls", "layout", "plan", "wire"]),
    (
        "meta",
        &["advise", "control", "falls", "layout", "lockfile", "wire"],
    ),
    ("identity", &["control", "wire"]),
    ("certificates", &["identity", "lockfile"]),
    ("serving", &["control", "identity", "kernels", "wire"]),
    (
        "metaserver",
        &[
            "advise", "control", "direct", "falls", "identity", "layout", "lockfile", "meta",
            "serving", "wire",
        ],
    ),
    (
        "ioserver",
        &[
            "advise", "control", "direct", "falls", "identity", "keeper", "kernels", "layout",
            "lockfile", "plan", "serving", "store", "wire",
        ],
    ),
    (
        "client",
        &[
            "advise", "control", "direct", "falls", "identity", "kernels", "layout", "plan", "wire",
        ],
    ),
    (
        "job",
        &[
            "advise",
            "client",
            "identity",
            "ioserver",
            "layout",
            "lockfile",
            "metaserver",
            "serving",
            "wire",
        ],
    ),
    (
        "embedded",
        &[
            "client",
            "ioserver",
            "job",
            "lockfile",
            "metaserver",
            "serving",
            "wire",
        ],
    ),
    (
        "mpiio",
        &["client", "embedded", "falls", "layout", "logging"],
    ),
    ("border", &["client", "embedded", "layout"]),
    (
        "c",
        &[
            "border", "client", "dsm", "embedded", "falls", "layout", "logging", "pio", "streams",
        ],
    ),
    (
        "vipios",
        &["border", "client", "embedded", "falls", "layout", "logging"],
    ),
    ("fortran", &["layout", "system-tests", "testkit"]),
    (
        "python",
        &["client", "embedded", "falls", "layout", "logging"],
    ),
    ("pario", &["client", "embedded", "layout"]),
    ("streams", &["client", "falls", "layout", "random"]),
    ("dsm", &["client"]),
    ("pio", &["advise", "client", "dsm", "layout"]),
    ("console", &["client", "falls", "job", "layout"]),
    (
        "calibrate",
        &[
            "advise", "client", "console", "falls", "kernels", "layout", "plan",
        ],
    ),
    (
        "bench",
        &[
            "advise",
            "calibrate",
            "client",
            "console",
            "falls",
            "kernels",
            "layout",
            "logging",
            "plan",
            "streams",
            "testkit",
        ],
    ),
    (
        "pario-cli",
        &[
            "advise",
            "calibrate",
            "certificates",
            "client",
            "console",
            "control",
            "direct",
            "embedded",
            "falls",
            "hpf",
            "identity",
            "ioserver",
            "job",
            "keeper",
            "layout",
            "lockfile",
            "logging",
            "meta",
            "metaserver",
            "plan",
            "serving",
            "store",
            "streams",
            "wire",
        ],
    ),
    (
        "system-tests",
        &[
            "advise",
            "certificates",
            "client",
            "control",
            "direct",
            "embedded",
            "falls",
            "identity",
            "job",
            "keeper",
            "layout",
            "lossyfs",
            "serving",
            "testkit",
            "wire",
        ],
    ),
    ("logging", &[]),
    ("lossyfs", &[]),
    ("random", &[]),
    ("testkit", &["falls"]),
    ("tidy", &[]),
];

/// What tests of a member may use beyond the table: the client is tested against real servers, I/O
/// servers against a real metadata manager, the library against both and with all its features, and
/// forking, which takes unsafe code, where that may be.
pub const IN_TESTS: &[(&str, &[&str])] = &[
    ("direct", &["client", "system-tests"]),
    ("client", &["ioserver", "metaserver", "store"]),
    ("ioserver", &["lossyfs", "metaserver"]),
    ("c", &["system-tests"]),
    ("vipios", &["system-tests"]),
    ("hpf", &["system-tests"]),
    ("mpiio", &["system-tests"]),
    ("pario", &["ioserver", "metaserver", "pario"]),
    ("serving", &["certificates"]),
    ("streams", &["embedded"]),
    ("dsm", &["advise", "embedded"]),
    ("pio", &["embedded"]),
    ("system-tests", &["store"]),
    ("identity", &["certificates"]),
    ("certificates", &["lossyfs"]),
    ("metaserver", &["certificates", "lossyfs"]),
];

/// The member that tests of all others may use, and nothing that ships.
pub const FOR_TESTS: &str = "testkit";

/// The member that all others may use: numbers from a seed, below everything.
pub const FOR_ALL: &str = "random";

/// Members that ship without any foreign crate: plain integer arithmetic needs none, and whatever
/// is at the bottom is paid for by everybody above.
pub const SELF_CONTAINED: &[&str] = &["falls", "layout", "plan"];

/// One dependency as written in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Dependency<'a> {
    line: usize,
    table: &'a str,
    name: &'a str,
    value: &'a str,
    comment: &'a str,
}

impl Dependency<'_> {
    fn is_shipped(&self) -> bool {
        !self.table.ends_with("dev-dependencies")
    }
}

/// Complaints about one member's manifest: direction, and that versions are left to the workspace.
pub fn check_member(manifest: &File) -> Vec<Complaint> {
    let path = manifest.path.as_str();
    let member = path.rsplit('/').nth(1).unwrap_or("");
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == member) else {
        return vec![Complaint::about(
            path,
            format!(
                "crate `{member}` has no row in crates/tidy/src/layers.rs; give it its place there \
                 and in ARCHITECTURE.md"
            ),
        )];
    };
    let mut complaints = Vec::new();
    for dependency in dependencies(&manifest.text) {
        let Dependency { line, name, .. } = dependency;
        let ours = ALLOWED.iter().any(|(member, _)| *member == name);
        let excepted = IN_TESTS
            .iter()
            .any(|(m, list)| *m == member && list.contains(&name));
        let for_tests = (name == FOR_TESTS || excepted) && !dependency.is_shipped();
        if ours && name != FOR_ALL && !allowed.contains(&name) && !for_tests {
            complaints.push(Complaint::at(
                path,
                line,
                format!("`{member}` must not depend on `{name}`; it may use {allowed:?}"),
            ));
        }
        if !ours && dependency.is_shipped() && SELF_CONTAINED.contains(&member) {
            complaints.push(Complaint::at(
                path,
                line,
                format!("`{member}` ships without foreign crates, so not `{name}`"),
            ));
        }
        // A test that needs what needs this crate names it by its path alone: packages leave such lines out.
        let by_path = format!("{{ path = \"../{name}\" }}");
        let is_by_path = excepted && !dependency.is_shipped() && dependency.value == by_path;
        if !dependency.value.contains("workspace = true") && !is_by_path {
            complaints.push(Complaint::at(
                path,
                line,
                format!(
                    "write `{name}.workspace = true`; the version and the reason stand in the \
                     workspace manifest"
                ),
            ));
        }
    }
    if !manifest.text.contains("[lints]\nworkspace = true") {
        complaints.push(Complaint::about(
            path,
            "lacks `[lints]` with `workspace = true`",
        ));
    }
    complaints
}

/// Complaints about the workspace manifest: a foreign crate without its reason beside it.
pub fn check_reasons(manifest: &File) -> Vec<Complaint> {
    dependencies(&manifest.text)
        .iter()
        .filter(|d| d.table == "workspace.dependencies" && !d.value.contains("path ="))
        .filter(|d| d.comment.split_whitespace().count() < 2)
        .map(|d| {
            let what = format!(
                "`{}` needs its reason as a comment on the same line",
                d.name
            );
            Complaint::at(&manifest.path, d.line, what)
        })
        .collect()
}

/// All entries of all dependency tables of a manifest.
fn dependencies(text: &str) -> Vec<Dependency<'_>> {
    let mut table = "";
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (content, comment) = split_comment(line);
        let content = content.trim();
        if let Some(name) = content.strip_prefix('[').and_then(|c| c.strip_suffix(']')) {
            table = name;
            // `[dependencies.name]` is an entry by itself; its keys are not.
            if let Some((parent, name)) = name.rsplit_once('.').filter(|(p, _)| lists(p)) {
                found.push(Dependency {
                    line: index + 1,
                    table: parent,
                    name,
                    value: "",
                    comment,
                });
            }
        } else if let Some((key, value)) = content.split_once('=').filter(|_| lists(table)) {
            let key = key.trim().trim_matches('"');
            let (name, rest) = key.split_once('.').unwrap_or((key, ""));
            let value = if rest == "workspace" {
                "workspace = true"
            } else {
                value.trim()
            };
            found.push(Dependency {
                line: index + 1,
                table,
                name,
                value,
                comment,
            });
        }
    }
    found
}

/// Whether a table of this name lists dependencies.
fn lists(table: &str) -> bool {
    matches!(
        table.rsplit('.').next(),
        Some("dependencies" | "dev-dependencies" | "build-dependencies")
    )
}

/// A line before and after its comment; `#` inside a string is no comment.
fn split_comment(line: &str) -> (&str, &str) {
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted => return (&line[..at], line[at + 1..].trim()),
            _ => {}
        }
    }
    (line, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINTS: &str = "[lints]\nworkspace = true\n";

    #[track_caller]
    fn member(name: &str, manifest: &str) -> Vec<String> {
        let file = File::new(
            format!("crates/{name}/Cargo.toml"),
            format!("{LINTS}{manifest}"),
        );
        check_member(&file)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn downward_dependency_passes() {
        let found = member(
            "plan",
            "[dependencies]\nfalls.workspace = true\nlayout = { workspace = true }\n\
             [dev-dependencies]\nproptest.workspace = true # laws\n",
        );
        assert_eq!(found, [] as [&str; 0]);
    }

    #[test]
    fn upward_dependency_is_refused() {
        let upward = "`falls` must not depend on `layout`; it may use []";
        for table in [
            "dependencies",
            "dev-dependencies",
            "build-dependencies",
            "target.'cfg(unix)'.dependencies",
        ] {
            let found = member("falls", &format!("[{table}]\nlayout.workspace = true\n"));
            assert_eq!(
                found,
                [format!("crates/falls/Cargo.toml:4: {upward}")],
                "{table}"
            );
        }
        let found = member("falls", "[dependencies.layout]\nworkspace = true\n");
        assert!(found[0].ends_with(upward), "{found:?}");
    }

    #[test]
    fn the_test_kit_does_not_ship() {
        let used = |table: &str| member("plan", &format!("[{table}]\ntestkit.workspace = true\n"));
        assert_eq!(used("dev-dependencies"), [] as [&str; 0]);
        assert!(used("dependencies")[0].contains("must not depend on `testkit`"));
    }

    #[test]
    fn servers_are_for_tests_of_the_client_only() {
        let entry = "ioserver.workspace = true\n[lints]\nworkspace = true\n";
        let ships = format!("[dependencies]\n{entry}");
        let tests = format!("[dev-dependencies]\n{entry}");
        assert_eq!(member("client", &ships).len(), 1);
        assert_eq!(member("client", &tests).len(), 0);
        assert_eq!(member("meta", &tests).len(), 1);
    }

    #[test]
    fn nothing_depends_on_the_program() {
        for name in ["falls", "layout", "plan", "kernels", "tidy"] {
            let found = member(name, "[dependencies]\npario-cli.workspace = true\n");
            assert!(
                found[0].contains("must not depend on `pario-cli`"),
                "{found:?}"
            );
        }
        assert!(
            ALLOWED
                .iter()
                .all(|(_, uses)| !uses.contains(&"pario-cli") && !uses.contains(&"tidy"))
        );
    }

    #[test]
    fn foreign_crate_at_the_bottom_is_refused() {
        let found = member("falls", "[dependencies]\nserde.workspace = true\n");
        assert_eq!(
            found,
            ["crates/falls/Cargo.toml:4: `falls` ships without foreign crates, so not `serde`"]
        );
    }

    #[test]
    fn version_outside_the_workspace_manifest_is_refused() {
        let found = member("kernels", "[dependencies]\nlibc = \"0.2\"\n");
        assert!(
            found[0].contains("write `libc.workspace = true`"),
            "{found:?}"
        );
    }

    #[test]
    fn only_a_test_that_reaches_up_names_a_member_by_its_path() {
        let line = "client = { path = \"../client\" }\n";
        let found = member("direct", &format!("[dev-dependencies]\n{line}"));
        assert!(found.is_empty(), "{found:?}");
        let found = member("direct", &format!("[dependencies]\n{line}"));
        assert!(found[1].contains("write `client.workspace"), "{found:?}");
        let versioned = "client = { path = \"../client\", version = \"1\" }\n";
        let found = member("direct", &format!("[dev-dependencies]\n{versioned}"));
        assert!(found[0].contains("write `client.workspace"), "{found:?}");
    }

    #[test]
    fn unknown_member_and_missing_lints_are_refused() {
        assert!(member("novel", "")[0].contains("crate `novel` has no row"));
        let bare = File::new("crates/falls/Cargo.toml", "[dependencies]\n");
        assert!(check_member(&bare)[0].what.contains("lacks `[lints]`"));
    }

    #[test]
    fn foreign_crate_without_reason_is_refused() {
        let text = "[workspace.dependencies]\nfalls = { path = \"crates/falls\" }\n\
                    clap = \"4\" # command line\nlibc = \"0.2\"\nodd = \"1#2\"\n";
        let found = check_reasons(&File::new("Cargo.toml", text));
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "Cargo.toml:4: `libc` needs its reason as a comment on the same line",
                "Cargo.toml:5: `odd` needs its reason as a comment on the same line"
            ]
        );
    }
}
