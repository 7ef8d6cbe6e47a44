//! The log of a service in the background, which does not grow for ever.
//!
//! Supervisor and servers append to one file that they inherited, and the supervisor cannot give them another one: what is in it is
//! copied to `log.1`, in place of what was there, and the file is cut. A line that comes between the two is lost.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Its name in the directory of the service.
pub(crate) const NAME: &str = "log";
const BEFORE: &str = "log.1";
/// So long it may get.
const MOST_BYTES: u64 = 64 << 20;
/// Between two looks at its length.
pub(crate) const LOOK: Duration = Duration::from_secs(2);

/// Begins the log anew if it is long.
pub(crate) fn turn(dir: &Path) -> io::Result<()> {
    turn_above(dir, MOST_BYTES)
}

fn turn_above(dir: &Path, most_bytes: u64) -> io::Result<()> {
    let path = dir.join(NAME);
    match fs::metadata(&path) {
        Ok(found) if found.len() > most_bytes => {}
        Ok(_) => return Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    }
    let mut log = OpenOptions::new().read(true).write(true).open(&path)?;
    io::copy(&mut log, &mut File::create(dir.join(BEFORE))?)?;
    log.set_len(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn long_log_is_kept_once_and_writers_begin_at_its_start() {
        let dir = testkit::TempDir::new();
        let text = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default();
        turn_above(dir.path(), 8).unwrap();
        let mut options = OpenOptions::new();
        let mut log = options
            .append(true)
            .create(true)
            .open(dir.join(NAME))
            .unwrap();
        for line in ["first", "second", "third"] {
            writeln!(log, "{line}").unwrap();
            turn_above(dir.path(), 8).unwrap();
        }
        assert_eq!(
            (text(BEFORE), text(NAME)),
            ("first\nsecond\n".into(), "third\n".into())
        );
        writeln!(log, "fourth").unwrap();
        turn_above(dir.path(), 8).unwrap();
        assert_eq!(
            (text(BEFORE), text(NAME)),
            ("third\nfourth\n".into(), String::new())
        );
    }
}
