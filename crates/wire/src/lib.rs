//! What travels between clients and servers: frames, messages, descriptions, status codes.
//!
//! The crate owns the bytes and nothing of the behaviour: clients and servers meet here and
//! nowhere else. Framing is versioned and bounded, descriptions of sets and layouts are compact
//! (a few numbers per node, whatever the number of pieces), and everything that comes in is
//! validated by the constructors of the algebra before anybody computes with it. The page
//! `docs/formats/wire.md` has every byte.
//!
//! | module | owns |
//! |---|---|
//! | `frame`, `link`, `descriptors`, `seal` | frames, the connections that carry them, and what goes with them |
//! | `message` | the messages, and the table of their kinds |
//! | `ask` | one question and its answer |
//! | `describe`, `layout_state` | sets, views and the layout states of files as bytes |
//! | `id`, `rights`, `status`, `url` | numbers that name things, what is allowed, what became of a request, where a service is |
//! | `reader` | reading bytes that may be anything |
//!
//! Invariants
//! - Decoders accept any bytes: a typed error, never a panic, never an allocation beyond what the
//!   input itself pays for.
//! - Whatever encodes, decodes to an equal value, and whatever decodes, encodes to the same bytes; the
//!   golden frames in `testdata/wire-v5.txt` pin them.
//! - A change of meaning needs a new [`frame::VERSION`].
#![forbid(unsafe_code)]

pub mod ask;
pub mod describe;
mod descriptors;
pub mod frame;
mod id;
mod layout_state;
pub mod link;
pub mod message;
mod reader;
mod rights;
pub mod seal;
pub mod status;
pub mod url;

pub use descriptors::MOST_DESCRIPTORS;
pub use id::{ClientId, FileId, HandleId, ServerId, SizeState, Time};
pub use layout_state::{LayoutState, Piece, Place, StateVersion};
pub use reader::{DecodeError, Reader, put_number};
pub use rights::Rights;
pub use status::Status;
