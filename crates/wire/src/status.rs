//! One table of status codes.
//!
//! Every refusal that crosses a connection is one of these numbers, and every face of the system
//! reads its own from a row here: errno for POSIX, C and (by it) Python's exceptions, the class for MPI, the kind for
//! `std::io`, exit codes for the shell. A code never changes its number; new ones are appended.

use std::{fmt, io};

/// Whether trying again may help, and what has to happen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Repeated as it is, the request will be refused again.
    Never,
    /// Repeated as it is, the request may succeed later.
    Later,
    /// After doing what the code says (fetch the layout, register the view, connect again).
    AfterRepair,
}

macro_rules! table {
    ($(#[doc = $meaning:literal] $name:ident = $code:literal, $word:literal, $errno:literal, $mpi:literal, $retry:ident;)*) => {
        /// The outcome of a request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        #[non_exhaustive]
        pub enum Status {
            $(#[doc = $meaning] $name = $code,)*
        }

        impl Status {
            /// All codes, in the order of their numbers.
            pub const ALL: &'static [Status] = &[$(Status::$name,)*];

            /// The status with this number; `None` if this version knows none.
            pub fn from_code(code: u16) -> Option<Status> {
                match code { $($code => Some(Status::$name),)* _ => None }
            }

            /// One lower-case word, stable: for logs and machine-readable output.
            pub fn word(self) -> &'static str {
                match self { $(Status::$name => $word,)* }
            }

            /// The errno a POSIX program sees; 0 for success.
            pub fn errno(self) -> i32 {
                match self { $(Status::$name => $errno,)* }
            }

            /// The class of errors of the MPI standard that an MPI program sees, by its name.
            pub fn mpi_class(self) -> &'static str {
                match self { $(Status::$name => $mpi,)* }
            }

            /// What it means, in one sentence.
            pub fn meaning(self) -> &'static str {
                match self { $(Status::$name => $meaning.trim_ascii(),)* }
            }

            /// Whether trying again may help.
            pub fn retry(self) -> Retry {
                match self { $(Status::$name => Retry::$retry,)* }
            }
        }
    };
}

table! {
    /// Done.
    Ok = 0, "ok", 0, "MPI_SUCCESS", Never;
    /// The peer speaks another version of the protocol.
    WrongVersion = 1, "wrong-version", 71, "MPI_ERR_IO", Never;
    /// The bytes are not a message.
    Malformed = 2, "malformed", 71, "MPI_ERR_IO", Never;
    /// A message or description is larger than the receiver takes.
    TooLarge = 3, "too-large", 7, "MPI_ERR_ARG", Never;
    /// An argument is out of its range.
    InvalidArgument = 4, "invalid-argument", 22, "MPI_ERR_ARG", Never;
    /// The operation is not supported here.
    Unsupported = 5, "unsupported", 95, "MPI_ERR_UNSUPPORTED_OPERATION", Never;
    /// No file or directory of that name.
    NotFound = 6, "not-found", 2, "MPI_ERR_NO_SUCH_FILE", Never;
    /// The name is taken.
    Exists = 7, "exists", 17, "MPI_ERR_FILE_EXISTS", Never;
    /// A component of the path is not a directory.
    NotDirectory = 8, "not-a-directory", 20, "MPI_ERR_BAD_FILE", Never;
    /// The path is a directory.
    IsDirectory = 9, "is-a-directory", 21, "MPI_ERR_BAD_FILE", Never;
    /// The directory has entries.
    NotEmpty = 10, "not-empty", 39, "MPI_ERR_BAD_FILE", Never;
    /// The caller may not do that.
    PermissionDenied = 11, "permission-denied", 13, "MPI_ERR_ACCESS", Never;
    /// The secret or the credentials are not accepted.
    Unauthenticated = 12, "unauthenticated", 1, "MPI_ERR_ACCESS", Never;
    /// The capability is forged, for another file, or has too few rights.
    BadCapability = 13, "bad-capability", 13, "MPI_ERR_ACCESS", AfterRepair;
    /// The capability has expired.
    ExpiredCapability = 14, "expired-capability", 13, "MPI_ERR_ACCESS", AfterRepair;
    /// The handle was closed or never existed.
    BadHandle = 15, "bad-handle", 9, "MPI_ERR_FILE", Never;
    /// The server does not know the view: register it again.
    UnknownView = 16, "unknown-view", 116, "MPI_ERR_IO", AfterRepair;
    /// The request was planned with an old layout; the answer has the new one.
    StaleLayout = 17, "stale-layout", 116, "MPI_ERR_IO", AfterRepair;
    /// The server has another incarnation than the layout says.
    WrongIncarnation = 18, "wrong-incarnation", 116, "MPI_ERR_IO", AfterRepair;
    /// The bytes were in the memory of a server that died.
    Lost = 19, "lost", 5, "MPI_ERR_IO", Never;
    /// No space on the device.
    NoSpace = 20, "no-space", 28, "MPI_ERR_NO_SPACE", Later;
    // For MPI memory of the servers is the space of their files.
    /// The memory limit is reached.
    NoMemory = 21, "no-memory", 12, "MPI_ERR_NO_SPACE", Later;
    /// A quota of this client is used up.
    QuotaExceeded = 22, "quota-exceeded", 122, "MPI_ERR_QUOTA", Later;
    /// The server is busy; back off.
    Busy = 23, "busy", 11, "MPI_ERR_IO", Later;
    /// Reading or writing the device failed.
    Io = 24, "io-error", 5, "MPI_ERR_IO", Never;
    /// A checksum does not match its block.
    Corrupt = 25, "corrupt", 5, "MPI_ERR_IO", Never;
    /// The server cannot be reached.
    Unreachable = 26, "unreachable", 113, "MPI_ERR_IO", Later;
    /// The peer did not answer in time.
    TimedOut = 27, "timed-out", 110, "MPI_ERR_IO", Later;
    /// The file or directory is in use in a way that excludes this.
    InUse = 28, "in-use", 16, "MPI_ERR_FILE_IN_USE", Later;
    /// The holder was declared dead and fenced.
    Fenced = 29, "fenced", 116, "MPI_ERR_IO", Never;
    /// The server is shutting down.
    ShuttingDown = 30, "shutting-down", 108, "MPI_ERR_IO", Later;
    /// A bug of the server; its log has more.
    Internal = 31, "internal", 5, "MPI_ERR_INTERN", Never;
    /// The file was truncated since; the answer has the new epoch and size.
    StaleEpoch = 32, "stale-epoch", 116, "MPI_ERR_IO", AfterRepair;
    /// The lease of an atomic handle is no longer valid: ask to be admitted again.
    StaleLease = 33, "stale-lease", 116, "MPI_ERR_IO", AfterRepair;
    /// Whether the request was done when it came before is not known any more; it was not done now.
    Forgotten = 34, "forgotten", 113, "MPI_ERR_IO", Never;
    /// Bytes were damaged on their way: the payload does not fit its checksum.
    Damaged = 35, "damaged", 74, "MPI_ERR_IO", Later;
}

impl Status {
    /// The number on the wire.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// Whether the request was done.
    pub fn is_ok(self) -> bool {
        self == Status::Ok
    }

    /// Exit code of a command that failed with it: 0 for success, else 1.
    pub fn exit_code(self) -> i32 {
        i32::from(!self.is_ok())
    }
}

/// What the system says about a file of a host, in the words of the table.
impl From<&io::Error> for Status {
    fn from(error: &io::Error) -> Status {
        match error.kind() {
            io::ErrorKind::NotFound => Status::NotFound,
            io::ErrorKind::PermissionDenied => Status::PermissionDenied,
            io::ErrorKind::AlreadyExists => Status::Exists,
            io::ErrorKind::NotADirectory => Status::NotDirectory,
            io::ErrorKind::StorageFull => Status::NoSpace,
            _ => Status::Io,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.word().replace('-', " "))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_table_is_consistent() {
        let mut words = HashSet::new();
        for (i, &status) in Status::ALL.iter().enumerate() {
            assert_eq!(
                usize::from(status.code()),
                i,
                "codes are dense and in order"
            );
            assert_eq!(Status::from_code(status.code()), Some(status));
            assert!(words.insert(status.word()), "{} twice", status.word());
            assert_eq!(status.errno() == 0, status.is_ok());
            assert_eq!(status.exit_code() == 0, status.is_ok());
        }
        assert_eq!(Status::from_code(Status::ALL.len() as u16), None);
    }

    #[test]
    fn the_page_of_the_format_has_every_row() {
        let page = include_str!("../../../docs/formats/wire.md");
        for s in Status::ALL {
            let (code, class) = (s.code(), s.mpi_class());
            let (word, errno, meaning) = (s.word(), s.errno(), s.meaning());
            let row = format!("| {code} | `{word}` | {errno} | `{class}` | {meaning} |\n");
            assert!(page.contains(&row), "docs/formats/wire.md lacks: {row}");
        }
    }

    #[test]
    fn what_the_system_says_has_the_errno_of_its_status() {
        for errno in [2, 13, 17, 20, 28] {
            let error = io::Error::from_raw_os_error(errno);
            assert_eq!(Status::from(&error).errno(), errno);
        }
        assert_eq!(Status::from(&io::Error::from_raw_os_error(5)), Status::Io);
    }
}
