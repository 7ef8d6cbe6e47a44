//! How the servers of a job are run: what `pario run` and the environment say.
//!
//! | variable | meaning |
//! |---|---|
//! | `PARIO_SERVERS` | I/O servers on each host |
//! | `PARIO_MEMORY` | memory of the servers of a host together |
//! | `PARIO_SPILL` | a local directory for what does not fit |
//! | `PARIO_BACKING` | the directory behind the job |
//! | `PARIO_STAGE_IN`, `PARIO_STAGE_OUT` | `DIR_OR_FILE[:PATH]`, several with commas between |
//! | `PARIO_JOB_LINGER` | seconds that may pass between two programs of an allocation |
//! | `PARIO_JOB_ADDRESS` | what other hosts reach this one by |

use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use layout::ByteSize;

use crate::error::Error;
use crate::stage::Stage;

/// How servers of a job run on a host.
#[derive(Clone, Debug)]
pub struct Options {
    /// I/O servers.
    pub servers: usize,
    /// Memory of all of them together; half of what is free if `None`.
    pub memory_bytes: Option<u64>,
    /// Where bytes go that do not fit.
    pub spill: Option<PathBuf>,
    /// The directory behind the job.
    pub backing: Option<PathBuf>,
    /// What is moved in before anybody is served.
    pub stage_in: Vec<Stage>,
    /// What is moved out at the end.
    pub stage_out: Vec<Stage>,
    /// What other hosts reach this one by.
    pub address: Option<String>,
    /// Whether processes on other hosts take part.
    pub has_network: bool,
    /// How long a holder may take to say where it is.
    pub patience: Duration,
    /// Between two programs of a batch allocation so much time may pass.
    pub linger: Duration,
}

/// Servers that are started unasked.
const MOST_UNASKED: usize = 4;
/// Servers that may be asked for.
const MOST: usize = 512;
/// Less memory is of no use to a server.
const LEAST_MEMORY: u64 = 8 << 20;

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Options {
            servers: cores.min(MOST_UNASKED),
            memory_bytes: None,
            spill: None,
            backing: None,
            stage_in: Vec::new(),
            stage_out: Vec::new(),
            address: None,
            has_network: false,
            patience: Duration::from_secs(30),
            linger: Duration::from_secs(5),
        }
    }
}

impl Options {
    /// As the environment says.
    pub fn from_env() -> Result<Options, Error> {
        Options::with(&|name| std::env::var(name).ok().filter(|text| !text.is_empty()))
    }

    fn with(get: &dyn Fn(&str) -> Option<String>) -> Result<Options, Error> {
        let mut options = Options::default();
        if let Some(text) = get("PARIO_SERVERS") {
            options.servers = text
                .parse()
                .ok()
                .filter(|n| (1..=MOST).contains(n))
                .ok_or_else(|| wrong("PARIO_SERVERS", "give a number from 1 to 512"))?;
        }
        if let Some(text) = get("PARIO_MEMORY") {
            let ByteSize(bytes) = text
                .parse()
                .map_err(|_| wrong("PARIO_MEMORY", "give a size such as 512MiB"))?;
            options.memory_bytes = Some(bytes);
        }
        if let Some(bytes) = options.memory_bytes
            && bytes / (options.servers as u64) < LEAST_MEMORY
        {
            let text = format!(
                "{} for {} servers; each needs 8MiB at least",
                ByteSize(bytes),
                options.servers
            );
            return Err(wrong("PARIO_MEMORY", &text));
        }
        let directory = |name: &str| -> Result<Option<PathBuf>, Error> {
            let Some(text) = get(name) else {
                return Ok(None);
            };
            let path = absolute(&text).map_err(|e| Error::Io(PathBuf::from(&text), e))?;
            match path.is_dir() {
                true => Ok(Some(path)),
                false => Err(wrong(name, &format!("{text} is no directory; make it"))),
            }
        };
        options.spill = directory("PARIO_SPILL")?;
        options.backing = directory("PARIO_BACKING")?;
        for (name, list) in [
            ("PARIO_STAGE_IN", &mut options.stage_in),
            ("PARIO_STAGE_OUT", &mut options.stage_out),
        ] {
            let text = get(name).unwrap_or_default();
            for part in text.split(',').filter(|part| !part.is_empty()) {
                list.push(Stage::parse(part).map_err(|text| wrong(name, &text))?);
            }
        }
        options.address = get("PARIO_JOB_ADDRESS");
        if let Some(text) = get("PARIO_JOB_LINGER") {
            let seconds = text.parse().ok();
            options.linger = seconds
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .ok_or_else(|| wrong("PARIO_JOB_LINGER", "give a number of seconds"))?;
        }
        if let Some(seconds) = get("PARIO_TIMEOUT").and_then(|text| text.parse().ok())
            && let Ok(given) = Duration::try_from_secs_f64(seconds)
        {
            options.patience = options.patience.max(given);
        }
        Ok(options)
    }

    /// Memory of one server.
    pub(crate) fn memory_of_one(&self) -> u64 {
        let all = self.memory_bytes.unwrap_or_else(|| free_memory() / 2);
        (all / self.servers as u64).max(LEAST_MEMORY)
    }
}

fn wrong(name: &str, text: &str) -> Error {
    Error::Argument {
        name: name.into(),
        text: text.into(),
    }
}

/// Memory that nobody uses, as the kernel estimates it.
fn free_memory() -> u64 {
    let text = std::fs::read_to_string(Path::new("/proc/meminfo")).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.map_or(1 << 30, |n| n << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(environment: &[(&str, &str)]) -> Result<Options, String> {
        let get = |name: &str| {
            let found = environment.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| value.to_string())
        };
        Options::with(&get).map_err(|e| e.to_string())
    }

    #[test]
    fn the_environment_is_read_and_nonsense_named() {
        let options = with(&[
            ("PARIO_SERVERS", "3"),
            ("PARIO_MEMORY", "96MiB"),
            ("PARIO_SPILL", "/tmp"),
            ("PARIO_STAGE_IN", "a,b:/c"),
        ])
        .unwrap();
        assert_eq!((options.servers, options.memory_of_one()), (3, 32 << 20));
        assert_eq!(options.stage_in.len(), 2);
        for (name, value, word) in [
            ("PARIO_SERVERS", "0", "from 1 to 512"),
            ("PARIO_MEMORY", "much", "such as 512MiB"),
            ("PARIO_MEMORY", "1MiB", "8MiB at least"),
            ("PARIO_BACKING", "/nowhere/at/all", "make it"),
            ("PARIO_STAGE_OUT", "x:y", "begins with /"),
            ("PARIO_JOB_LINGER", "-1", "number of seconds"),
        ] {
            let error = with(&[(name, value)]).unwrap_err();
            assert!(error.contains(name) && error.contains(word), "{error}");
        }
        assert!(with(&[]).unwrap().memory_of_one() >= LEAST_MEMORY);
    }
}
