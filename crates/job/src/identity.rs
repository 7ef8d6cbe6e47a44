//! Which job this process belongs to.
//!
//! | found | the job is | it lasts |
//! |---|---|---|
//! | `PARIO_JOB` | what `pario run` is around, or what a user named so | as long as `pario run`, or as processes with that name |
//! | `SLURM_JOB_ID`, `PBS_JOBID` | the batch allocation | as long as processes of it |
//! | what MPI launchers leave in the environment of a rank | one `mpiexec` | as long as its ranks |
//! | nothing of these | this process | as long as this process |
//!
//! The first row that applies counts. Ranks are told from their launcher by that environment: the
//! nearest ancestor without it has started them, so a shell between launcher and program does no harm.

use std::env::var;

use crate::error::Error;
use crate::process::Process;

/// What launchers leave in the environment of a rank.
pub const RANK_MARKS: &[&str] = &[
    "PMI_RANK",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "MPI_LOCALRANKID",
    "PALS_RANKID",
    "MV2_COMM_WORLD_RANK",
];

/// Set by `pario run`: the name of the job.
pub const JOB: &str = "PARIO_JOB";
/// Set by `pario run`: the host that it runs on.
pub const JOB_HOST: &str = "PARIO_JOB_HOST";
/// Set by `pario run --network`: where the metadata manager is reached from other hosts.
pub const JOB_MANAGER: &str = "PARIO_JOB_MANAGER";
/// Set by `pario run --network`: what its processes on other hosts have to know.
pub const JOB_SECRET: &str = "PARIO_JOB_SECRET";
/// A directory that all hosts of the job see.
pub const JOB_DIR: &str = "PARIO_JOB_DIR";
/// A name for this host, where one machine plays several.
pub const HOST: &str = "PARIO_HOST";

/// How long a job lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// As long as this process.
    Leader(Process),
    /// As long as there are ranks that this process has started.
    Ranks(Process),
    /// As long as there are processes with this in their environment.
    Marked(String, String),
    /// As long as the host where it began says.
    Elsewhere,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name on this host, which is a file name.
    pub key: String,
    /// Its name on all hosts.
    pub shared_key: String,
    /// How long it lasts.
    pub span: Span,
    /// Whether it is made of one `mpiexec` or process only, whose user may not know that data go with
    /// it.
    pub is_single: bool,
    /// Whether its servers are started by `pario run` only.
    pub is_run: bool,
    /// Whether it has processes on several hosts, as far as its environment says.
    pub has_hosts: bool,
}

impl Job {
    /// The job of this process.
    pub fn find() -> Result<Job, Error> {
        Job::find_with(&|name| var(name).ok().filter(|text| !text.is_empty()))
    }

    fn find_with(get: &dyn Fn(&str) -> Option<String>) -> Result<Job, Error> {
        let has_hosts = has_several_hosts(get);
        let host = match (get(HOST), get(JOB_HOST)) {
            (Some(host), _) => format!("@{host}"),
            // Hosts that share a file system in memory, as containers may.
            (None, Some(first)) if first != serving::local_host() => {
                format!("@{:08x}", hash(&serving::local_host()) >> 32)
            }
            _ => String::new(),
        };
        let make = |name: &str, span: Span| Job {
            key: file_name(&format!("{name}{host}")),
            shared_key: file_name(name),
            span,
            is_single: false,
            is_run: false,
            has_hosts,
        };
        if let Some(name) = get(JOB) {
            let is_run = get(JOB_HOST).is_some();
            let span = match is_run {
                true => Span::Elsewhere,
                false => Span::Marked(JOB.into(), name.clone()),
            };
            return Ok(Job {
                is_run,
                ..make(&name, span)
            });
        }
        if let Some(id) = get("SLURM_JOB_ID") {
            let cluster = get("SLURM_CLUSTER_NAME").map_or(String::new(), |c| format!("-{c}"));
            let span = Span::Marked("SLURM_JOB_ID".into(), id.clone());
            return Ok(make(&format!("slurm{cluster}-{id}"), span));
        }
        if let Some(id) = get("PBS_JOBID") {
            let span = Span::Marked("PBS_JOBID".into(), id.clone());
            return Ok(make(&format!("pbs-{id}"), span));
        }
        let this = Process::this();
        if RANK_MARKS.iter().any(|name| get(name).is_some()) {
            let launcher = launcher_of(this).ok_or(Error::NoLauncher)?;
            let name = format!("mpi-{}-{}", launcher.pid, launcher.started);
            let job = make(&name, Span::Ranks(launcher));
            // The launcher of another host has another number. Without a common name the
            // directory that the hosts share is what tells jobs apart.
            let common = get("PMIX_NAMESPACE").map_or("mpi".into(), |n| format!("mpi-{n}"));
            return Ok(Job {
                shared_key: file_name(&common),
                is_single: true,
                ..job
            });
        }
        let name = format!("process-{}-{}", this.pid, this.started);
        Ok(Job {
            is_single: true,
            ..make(&name, Span::Leader(this))
        })
    }

    /// The job of a `pario run` that is this process.
    pub fn of_this_run() -> Job {
        let this = Process::this();
        let has_hosts = has_several_hosts(&|name| var(name).ok().filter(|text| !text.is_empty()));
        let key = format!("run-{}-{}", this.pid, this.started);
        Job {
            shared_key: key.clone(),
            key,
            span: Span::Leader(this),
            is_single: false,
            is_run: true,
            has_hosts,
        }
    }
}

/// Whether this process is a rank of an MPI job.
pub fn is_rank() -> bool {
    RANK_MARKS
        .iter()
        .any(|name| std::env::var_os(name).is_some())
}

/// Whether a process was started as a rank.
pub(crate) fn has_rank_mark(process: Process) -> bool {
    RANK_MARKS
        .iter()
        .any(|name| process.variable(name).is_some())
}

/// The nearest ancestor that is no rank.
fn launcher_of(rank: Process) -> Option<Process> {
    let mut process = rank.parent();
    while let Some(found) = process {
        if !has_rank_mark(found) {
            return Some(found);
        }
        process = found.parent();
    }
    None
}

fn has_several_hosts(get: &dyn Fn(&str) -> Option<String>) -> bool {
    let number = |name: &str| get(name).and_then(|text| text.trim().parse::<u64>().ok());
    let nodes = ["SLURM_JOB_NUM_NODES", "SLURM_NNODES", "PBS_NUM_NODES"];
    if let Some(count) = nodes.iter().find_map(|name| number(name)) {
        return count > 1;
    }
    if let Some(path) = get("PBS_NODEFILE")
        && let Ok(text) = std::fs::read_to_string(path)
    {
        let mut hosts = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = hosts.next();
        return hosts.any(|host| Some(host) != first);
    }
    let pairs = [
        ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        ("PMI_SIZE", "MPI_LOCALNRANKS"),
    ];
    pairs.iter().any(|(all, here)| {
        let (all, here) = (number(all), number(here));
        all.zip(here).is_some_and(|(all, here)| here < all)
    })
}

/// A name as a file can have it, short enough for sockets below it.
fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    let plain: String = name.chars().filter(|&c| is_plain(c)).take(40).collect();
    if plain == name && !plain.is_empty() && !plain.starts_with('.') {
        return plain;
    }
    let plain: String = plain.trim_start_matches('.').chars().take(20).collect();
    format!("{plain}-{:016x}", hash(name))
}

fn hash(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(environment: &[(&str, &str)]) -> Job {
        let get = |name: &str| {
            let found = environment.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| value.to_string())
        };
        Job::find_with(&get).unwrap()
    }

    #[test]
    fn the_widest_thing_that_is_named_is_the_job() {
        let mpi = [("PMI_RANK", "0"), ("PMI_SIZE", "2")];
        let slurm = [("SLURM_JOB_ID", "77"), ("PMI_RANK", "0")];
        let run = [("PARIO_JOB", "run-1-2"), ("SLURM_JOB_ID", "77")];
        assert_eq!(job(&run).key, "run-1-2");
        let batch = job(&slurm);
        assert_eq!(batch.key, "slurm-77");
        assert_eq!(batch.span, Span::Marked("SLURM_JOB_ID".into(), "77".into()));
        assert!(!batch.is_single);
        assert_eq!(job(&[("PBS_JOBID", "9.server")]).key, "pbs-9.server");
        let ranks = job(&mpi);
        assert!(ranks.is_single && matches!(ranks.span, Span::Ranks(_)));
        assert!(ranks.key.starts_with("mpi-") && ranks.shared_key == "mpi");
        let alone = job(&[]);
        assert_eq!(alone.span, Span::Leader(Process::this()));
        assert!(alone.is_single);
    }

    #[test]
    fn several_hosts_are_noticed() {
        let job = |extra: &[(&str, &str)]| job(extra).has_hosts;
        assert!(!job(&[]));
        assert!(job(&[("SLURM_JOB_ID", "7"), ("SLURM_NNODES", "2")]));
        assert!(!job(&[("SLURM_JOB_ID", "7"), ("SLURM_NNODES", "1")]));
        let rank = ("PMI_RANK", "0");
        assert!(job(&[rank, ("PMI_SIZE", "4"), ("MPI_LOCALNRANKS", "2")]));
        assert!(!job(&[rank, ("PMI_SIZE", "4"), ("MPI_LOCALNRANKS", "4")]));
        let size = ("OMPI_COMM_WORLD_SIZE", "4");
        assert!(job(&[rank, size, ("OMPI_COMM_WORLD_LOCAL_SIZE", "1")]));
    }

    #[test]
    fn names_are_file_names_and_stay_different() {
        assert_eq!(file_name("slurm-7"), "slurm-7");
        assert_ne!(file_name("a/b"), file_name("a b"));
        for odd in ["", "..", "/etc", "a\0b", &"x".repeat(300)] {
            let name = file_name(odd);
            let is_good = !name.contains(['/', '\0']) && !name.starts_with('.');
            assert!(is_good && name.len() < 60, "{name}");
        }
        let named = job(&[("PARIO_JOB", "x"), ("PARIO_HOST", "b")]);
        assert_eq!(
            (named.key.as_str(), named.shared_key.as_str()),
            ("x@b", "x")
        );
    }
}
