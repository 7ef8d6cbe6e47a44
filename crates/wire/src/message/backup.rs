//! The catalogue as one file: a client fetches its rows from the metadata manager, part by part.
//!
//! What a row means is not known here: keys and values travel as they are stored.

use super::field::Bytes;

record! {
    /// Asks for all rows of the catalogue, as they are at one moment. Only for the user who runs the service, and root.
    pub struct Backup {
        /// 0 begins; after that the number that the first answer gave.
        pub backup: u64,
        /// The key of the last row that has come; empty before the first.
        pub after: Bytes,
    }

    /// The next rows.
    pub struct BackupPart {
        /// The number of this backup. It is forgotten when nobody has asked for a minute.
        pub backup: u64,
        /// Version of the catalogue.
        pub catalogue_version: u64,
        /// When it began, in seconds since 1970.
        pub at_s: u64,
        /// Files with a name, or still open without one.
        pub files: u64,
        /// Directories, the root included.
        pub directories: u64,
        /// Rows in the order of their keys; none at the end.
        pub rows: Vec<CatalogueRow>,
    }

    /// A row of the catalogue, as it is stored.
    pub struct CatalogueRow {
        /// Its key.
        pub key: Bytes,
        /// Its value.
        pub value: Bytes,
    }
}
