//! Application schemas of ViPIOS: which programs `pario run --schema` starts, how often, and where.
//!
//! ```text
//!  # host     number  program, arguments         what follows # is left out
//!  localhost  0       /opt/vipios/vip_serv       servers: programs of this name, and as many I/O servers of the job
//!  localhost  4       ./vip_client data.in       clients
//! ```
//!
//! As in the source, where one process starts the others and is not counted, 0 is one process.
//!
//! Left to others: starting and watching (`run`). Clients that are ranks of MPI, and those of other hosts, are started by `mpiexec`
//! in place of a schema.

use std::ffi::OsString;
use std::path::Path;

use super::Error;
use super::names::shown;
use crate::service::addresses::host_name;

/// The program whose lines are servers.
const SERVER: &str = "vip_serv";

/// Most processes of a line.
const MOST: u16 = 512;

/// What a schema starts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Schema {
    /// I/O servers; none means that clients use the service that is there.
    pub(crate) servers: u16,
    /// Commands, each with its number of processes.
    clients: Vec<(u16, String)>,
}

impl Schema {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Schema, Error> {
        let name = shown(&path.display().to_string());
        let text = std::fs::read_to_string(path)
            .map_err(|e| format!("--schema: cannot read {name}: {e}"))?;
        Schema::parse(&text, &host_name()).map_err(|e| format!("{name}: {e}").into())
    }

    fn parse(text: &str, here: &str) -> Result<Schema, String> {
        let (mut servers, mut clients) = (0u16, Vec::new());
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default();
            let words: Vec<&str> = text.split_whitespace().collect();
            let [host, number, command @ ..] = &words[..] else {
                match words.is_empty() {
                    true => continue,
                    false => {
                        return Err(format!("line {line}: give a host, a number and a program"));
                    }
                }
            };
            let [program, ..] = command else {
                return Err(format!("line {line}: give a host, a number and a program"));
            };
            if !["local", "localhost", here].contains(host) {
                return Err(format!(
                    "line {line}: '{host}' is another host than {here}; start its programs with `pario run -- mpiexec`"
                ));
            }
            let number: u16 = number.parse().ok().filter(|n| *n <= MOST).ok_or_else(|| {
                format!("line {line}: '{number}' is no number of processes up to {MOST}")
            })?;
            let processes = number.max(1);
            match Path::new(program)
                .file_name()
                .is_some_and(|name| name == SERVER)
            {
                true => servers = (servers + processes).min(MOST),
                false => clients.push((processes, command.join(" "))),
            }
        }
        if clients.is_empty() {
            return Err(format!(
                "has no line for a client, a program with another name than {SERVER}"
            ));
        }
        Ok(Schema { servers, clients })
    }

    /// A command that starts all clients and waits for them. It fails as the last of them that failed does.
    pub(crate) fn command(&self) -> Vec<OsString> {
        let mut script = String::from("all= status=0\n");
        for (processes, command) in &self.clients {
            let words: Vec<String> = command.split(' ').map(quoted).collect();
            for _ in 0..*processes {
                script += &format!("{} & all=\"$all $!\"\n", words.join(" "));
            }
        }
        script += "for one in $all; do wait \"$one\" || status=$?; done\nexit $status\n";
        ["sh".into(), "-c".into(), script.into()].into()
    }
}

/// A word as a shell takes it, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_servers_and_clients() {
        let text = "# all of it\nnode1 0 /opt/vip_serv\nlocalhost 2 vip_serv # two more\n\nlocal 1 ./vip_client\nnode1 3 ./other a b\n";
        let schema = Schema::parse(text, "node1").unwrap();
        assert_eq!(schema.servers, 3);
        let clients = [
            (1, "./vip_client".to_owned()),
            (3, "./other a b".to_owned()),
        ];
        assert_eq!(schema.clients, clients);
        for (text, wrong) in [
            ("", "has no line for a client"),
            ("local 0 vip_serv", "has no line for a client"),
            ("local 0", "line 1: give a host"),
            ("\nlocal", "line 2: give a host"),
            ("node2 1 ./a", "line 1: 'node2' is another host than node1"),
            ("local x ./a", "line 1: 'x' is no number"),
            ("local 513 ./a", "line 1: '513' is no number"),
        ] {
            let said = Schema::parse(text, "node1").unwrap_err();
            assert!(said.starts_with(wrong), "{said}");
        }
    }

    #[test]
    fn all_clients_run_and_a_failure_is_told() {
        let schema = Schema {
            servers: 0,
            clients: vec![
                (3, "printf it's;\\n".into()),
                (1, "sh -c exit\u{20}".into()),
            ],
        };
        let run = |schema: &Schema| {
            let command = schema.command();
            std::process::Command::new(&command[0])
                .args(&command[1..])
                .output()
                .unwrap()
        };
        let output = run(&schema);
        assert!(output.status.success());
        assert_eq!(output.stdout, b"it's;\nit's;\nit's;\n");
        let failing = Schema {
            servers: 0,
            clients: vec![(2, "true".into()), (1, "false".into()), (1, "true".into())],
        };
        assert_eq!(run(&failing).status.code(), Some(1));
    }
}
