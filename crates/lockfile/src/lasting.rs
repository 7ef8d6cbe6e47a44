//! Names that are there after a power cut.
//!
//! A new name is durable when its directory was synced, and a directory is no better than its own name:
//! a process that makes a directory for durable things syncs every directory above that it made, and the one
//! in which the first of them lies. Otherwise a power cut takes everything, however well it was synced.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes a directory, and those above that are missing, with this mode; all their names are durable when
/// this returns. One that is there already may be what a start left that died before it could sync,
/// so its name is made durable too.
pub fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    // From the top: a directory is made only after the name of the one above is durable.
    if let Some(above) = above(path)
        && !above.is_dir()
    {
        make_directory(above, mode)?;
    }
    match DirBuilder::new().mode(mode).create(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {
            // Who may use a directory but not read the one above did not make it.
            match sync_name(path) {
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
                synced => synced,
            }
        }
        Err(e) => Err(e),
        Ok(()) => sync_name(path),
    }
}

/// Makes the name of a file or directory durable: syncs the directory it lies in.
pub fn sync_name(path: &Path) -> io::Result<()> {
    match above(path) {
        Some(above) => match File::open(above)?.sync_all() {
            // The file system knows no such thing; names are as durable as it makes them.
            Err(e) if is_unknown(&e) => Ok(()),
            synced => synced,
        },
        None => Ok(()),
    }
}

fn is_unknown(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS))
}

/// The directory that a path lies in; nothing for `/`.
fn above(path: &Path) -> Option<&Path> {
    match path.parent() {
        Some(above) if above.as_os_str().is_empty() => Some(Path::new(".")),
        above => above,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn missing_directories_are_made_and_files_in_the_way_refused() {
        let top = std::env::temp_dir().join(format!("lasting-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&top);
        let path = top.join("a/b");
        make_directory(&path, 0o700).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
        make_directory(&path, 0o700).unwrap();
        std::fs::write(path.join("file"), "").unwrap();
        for wrong in ["file", "file/c"] {
            assert!(make_directory(&path.join(wrong), 0o700).is_err(), "{wrong}");
        }
        make_directory(Path::new("/"), 0o700).unwrap();
        std::fs::remove_dir_all(&top).unwrap();
    }
}
