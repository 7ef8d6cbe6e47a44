//! Parallel files of programs that share memory: one process calls, every process reads or writes the pages that are at home there.
//!
//! ```text
//!  calling process                 every process, in a thread beside its program
//!  read(file, array)  -- fill -->  pages change their home; whose page it is reads it from the file   -- how many --> calling process
//!  write(file, array) -- save -->  waits for changes that are under way; writes its pages              -- how many --> calling process
//!                     rename: the new file takes the place of the old one
//! ```
//!
//! No byte of a file goes from process to process. The source is S.-C. Mac and others, *Design and implementation of a parallel file subsystem on
//! TreadMarks*, whose portions are the subfiles of an ordinary file here: a block of the file is a page, and its layout is a block map
//! (`docs/adr/0053-parallel-files-under-shared-memory.md`).
//!
//! ```
//! use dsm::{Address, Options, SharedMemory};
//! use pio::{OpenMode, Pio, PioOptions};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = std::env::temp_dir().join(format!("pario-doc-pio-{}", std::process::id()));
//! # let url = format!("dir:{}", directory.display()).parse()?;
//! let client = embedded::connect(&url, client::ConnectOptions::default(), &embedded::Options::default())?;
//! let options = Options { address: Address::Any, ..Options::new(1 << 20) };
//! let (memory, mut epoch) = SharedMemory::start(client::Team::threads(1).remove(0), &options)?;
//! let pio = Pio::start(&memory, &client, PioOptions::default())?;
//!
//! let numbers = memory.array::<f64>(1000)?;
//! memory.view(&epoch, numbers).set(7, 0.5);
//! let file = pio.open("/numbers", OpenMode::Create, &mut epoch)?;
//! assert_eq!(pio.write(file, numbers, 8000, &mut epoch)?, 8000);
//! pio.close(file, &mut epoch)?;
//!
//! let again = memory.array::<f64>(1000)?;
//! let file = pio.open("/numbers", OpenMode::Read, &mut epoch)?;
//! assert_eq!(pio.read(file, again, 8000, &mut epoch)?, 8000);
//! assert_eq!(memory.view(&epoch, again).get(7), 0.5);
//! # pio.close(file, &mut epoch)?;
//! # drop(pio);
//! # memory.exit(epoch)?;
//! # drop(client);
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok(())
//! # }
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `call` | what processes ask each other, and how it travels |
//! | `serve` | one process's part of every call |
//! | `ops` | the calls, one file each |
//! | `homes` | which process has which block |
//! | `accesses` | who accessed which block, as a profile that the next run uses |
//! | `portion` | the metadata header of the source, and what portions have to be |
//! | `error` | why a call failed |
//!
//! Invariants
//! - Every page of a file is read once and written once, by its home; a count that differs fails the call.
//! - A file has the bytes of its last whole write or those before, never some of both: what is written has another name until it is complete.
//! - All processes have the same numbers of open files.
//!
//! Left to others: how pages are kept alike (`dsm`), how bytes travel between processes and servers (`client`).
#![forbid(unsafe_code)]

mod accesses;
mod call;
mod error;
mod homes;
mod ops;
mod portion;
mod serve;

pub use accesses::Accesses;
pub use error::{Error, Result};
pub use homes::Planner;
pub use ops::{OpenMode, Pfd, Pio, PioOptions};
pub use portion::{Portion, PortionError, owners_of_portions, portions_of_owners};
