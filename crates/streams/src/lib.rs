//! Data-parallel streams: every virtual processor of a program has a stream of bytes of its own, inside one parallel file.
//!
//! A data-parallel program has a [`Shape`] of virtual processors (VPs), possibly millions, which few members of a team emulate.
//! Each VP writes and reads its stream as a sequential program does its file; the run time finds by itself whether all VPs go
//! together (NB, CB: array transfers at the speed of the file) or each for itself (IB), which changes speed and never
//! meaning. The source is J. A. Moore's *High-Performance Data-Parallel Input/Output*, chapter 3.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = std::env::temp_dir().join(format!("pario-doc-streams-{}", std::process::id()));
//! # let url = format!("dir:{}", dir.display()).parse()?;
//! # let client = embedded::connect(&url, client::ConnectOptions::default(), &embedded::Options::default())?;
//! use std::io::{Read, Write};
//! use streams::{Access, Context, Emulation, Shape, Stream, StreamOptions};
//! let team = client::Team::alone(); // or one of threads, or of processes
//! let emulation = Emulation::block(&Shape::new(&[4])?, &team)?;
//! let all = Context::everywhere();
//!
//! let mut stream = Stream::open(&client, &team, "/s", &emulation, &StreamOptions::new(Access::Write))?;
//! stream.write(&all, &vec![7; 4 * 8], 8)?; // 8 bytes of every VP
//! let odd = all.narrowed(4, |vp| vp % 2 == 1);
//! stream.elemental(&odd, |vp| write!(vp, "VP {}", vp.number()))?; // and a text of some
//! stream.close()?;
//!
//! let mut stream = Stream::open(&client, &team, "/s", &emulation, &StreamOptions::new(Access::Read))?;
//! assert_eq!(stream.lengths()?.of(2), 8);
//! stream.elemental(&odd, |vp| {
//!     let mut text = String::new();
//!     std::io::Seek::seek(vp, std::io::SeekFrom::Start(8))?;
//!     vp.read_to_string(&mut text)?;
//!     assert_eq!(text, format!("VP {}", vp.number()));
//!     Ok(())
//! })?;
//! stream.close()?;
//! # drop(client);
//! # std::fs::remove_dir_all(&dir).ok();
//! # Ok(())
//! # }
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `shape`, `emulation`, `context`, `variable` | the program: VPs, who emulates them, which are active, where their bytes are |
//! | `options` | how a stream file is opened |
//! | `stream` | an open file: what its members have in common |
//! | `transfer` | collective reading and writing, and the mode of each part |
//! | `regular` | the NB and CB segments |
//! | `independent`, `pages`, `fetch` | the IB segment, superblocks in memory, reading for many VPs at once |
//! | `text`, `queue` | bytes, lines and formatted text; operations beside the program |
//! | `seek`, `elemental`, `scalar` | positions, single VPs, files of the front end |
//! | `inspect` | looking at stream files, plain arrays of them and them of plain arrays |
//! | `agreement`, `commit`, `root` | exchanges among members, becoming durable, what is recorded |
//!
//! Invariants
//! - A stream has the bytes that its VP wrote, whatever modes they went by, and on how many members it is read.
//! - At most one exchange per collective operation finds the mode, and none where the program's text settles it.
//! - The file is that of its last flush until the next one is complete (`docs/formats/stream.md`).
//!
//! Left to others: how bytes travel (`client`), what distributions mean (`layout`).
#![forbid(unsafe_code)]

mod agreement;
mod commit;
mod context;
mod elemental;
mod emulation;
mod fetch;
mod independent;
mod inspect;
mod options;
mod pages;
mod queue;
mod regular;
mod root;
mod scalar;
mod seek;
mod shape;
mod stream;
mod text;
mod transfer;
mod variable;

pub use context::Context;
pub use elemental::VpStream;
pub use emulation::Emulation;
pub use inspect::{
    Part, Report, convert, describe, keep_root_text, open_alone, read_stream, root_text,
};
pub use options::{Access, Mode, StreamOptions};
pub use queue::{StreamQueue, StreamRequest};
pub use root::RECORD;
pub use scalar::ScalarFile;
pub use shape::Shape;
pub use stream::{Record, Stream, StreamStatistics};
pub use transfer::Counts;
pub use variable::{Variable, VariableMut};
