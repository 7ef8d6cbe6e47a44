//! Hints: what a program or user says in advance about a file or about the service, as a name and a value.
//!
//! Three kinds, as in ViPIOS: how a file is laid out ([`Kind::File`]), what comes next
//! ([`Kind::Prefetch`]) and what the service is made of ([`Kind::Administration`]). A *static* hint
//! holds for a whole run and may be given before it, at its start or in it; a *dynamic* one tells
//! what has just come about, and only a running program can know that.
//!
//! Invariants
//! - Hints are advice. A name that is not known is kept and has no effect; a value that makes no
//!   sense is passed over, with the reason, and the next one in the order of precedence counts.
//! - None changes what a program reads or writes.
//! - The order of precedence is [`Source`], and nothing else.
//!
//! ```text
//!  dynamic > program > connect > compiler > file > directory > profile > rule
//!                                                    nearest first
//! ```
//!
//! Left to others: carrying hints (`wire`), keeping those of files and directories (`meta`), and doing
//! what they say (`client`, `ioserver`, [`distribute`](crate::distribute)).

mod observed;
mod precedence;
mod sections;
mod style;
mod table;
mod values;

pub use observed::UseCounts;
pub use precedence::{HintVerdicts, Source, SourcedHint, Verdict, judge};
pub use sections::{Entry, Section, SectionError, matches, sections, split_pair};
pub use style::{AccessStyle, ReadAhead};
pub use table::{HintMeaning, Kind, Life, TABLE, canonical, check, known};
pub use values::{MOST_UPCOMING, UpcomingBytes, number, server_list, switch, upcoming};
