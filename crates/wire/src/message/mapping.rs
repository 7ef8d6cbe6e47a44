//! Talking through one server: which one, and requests that it splits.
//!
//! ```text
//!  client  READ | WHOLE  -->  gateway  READ | FORWARDED  -->  each owner of bytes that the gateway lacks
//!          WholeAnswer   <--           AccessAnswer + bytes   <--
//! ```
//!
//! A client that talks through one server per file sends it all bytes of a request, in the order of its
//! view ([`WHOLE`](super::access::WHOLE)). The gateway takes its own part from its store and asks every other
//! owner once ([`FORWARDED`](super::access::FORWARDED)), through a view that it registers there with the
//! capability of the client. A forwarded request is never forwarded again.
//!
//! The answer may name another server, to be used from the next operation on, and the history of accesses
//! that goes there with the client.
//!
//! Decoding of [`Whole`] and [`WholeAnswer`] borrows from the frame.

use super::access::{Access, AccessAnswer};
use super::field::{Bytes, Field};
use crate::reader::{DecodeError, Reader, put_number};
use crate::{ClientId, ServerId};

choice! {
    /// By what a server chooses the next one for a client.
    pub enum Choose {
        /// It does not.
        Keep = 0,
        /// By what the history of accesses predicts.
        ByHistory = 1,
        /// By what the client says it will access.
        ByHint = 2,
    }

    /// What a client wants from the metadata manager for a file.
    pub enum Assignment {
        /// The next server in turn.
        RoundRobin = 0,
        /// The server that all clients get.
        Master = 1,
    }
}

record! {
    /// A client, to the I/O server it uses for a file: which one should it be? After a file was opened, a
    /// view set, or a hint given.
    pub struct ChooseServer {
        /// The registered view.
        pub view: u64,
        /// By what.
        pub by: Choose,
        /// File bytes that can be accessed; the largest offset for a writer.
        pub size: u64,
        /// What comes next, in view space.
        pub upcoming: Option<Upcoming>,
        /// The history, if another server had it.
        pub history: Bytes,
    }

    /// An access that is to come, in view space.
    #[derive(Copy)]
    pub struct Upcoming {
        /// First byte.
        pub offset: u64,
        /// Bytes.
        pub size: u64,
    }

    /// The server to use from the next operation on.
    pub struct ServerChoice {
        /// Which.
        pub server: ServerId,
        /// The history, if it is another one than the one that answers.
        pub history: Bytes,
    }

    /// A client, to the metadata manager: which server for one more file?
    pub struct Assign {
        /// By what.
        pub by: Assignment,
    }

    /// A client, to the metadata manager: who is my buddy?
    pub struct Buddy {
        /// A server that the user named.
        pub wanted: Option<ServerId>,
    }

    /// The buddy of a client.
    pub struct BuddyIs {
        /// The client.
        pub client: ClientId,
        /// Its buddy.
        pub server: ServerId,
        /// Whether it runs on the client's host.
        pub is_same_host: bool,
        /// How far it says it is.
        pub distance: u64,
        /// How many clients have it as their buddy.
        pub clients: u64,
    }
}

/// A request that the server is to split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole<'a> {
    /// By what the next server is chosen.
    pub by: Choose,
    /// File bytes that can be accessed; the largest offset for a writer.
    pub size: u64,
    /// The operation that ends with this message: what a predictor observes.
    pub ends: Option<Upcoming>,
    /// What the client says it will access next.
    pub upcoming: Option<Upcoming>,
    /// The history, if another server had it; empty otherwise.
    pub history: &'a [u8],
    /// The request; its bytes are all of its range.
    pub access: Access<'a>,
}

/// How a request was split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WholeAnswer<'a> {
    /// How it went at the gateway.
    pub done: AccessAnswer,
    /// The server to use from the next operation on, if it is another one.
    pub next: Option<u64>,
    /// The history to take there; empty otherwise.
    pub history: &'a [u8],
    /// Directed requests to other servers.
    pub internal: u64,
    /// Bytes that travelled between servers.
    pub between: u64,
    /// Bytes that the gateway has itself.
    pub own: u64,
    /// Servers that have taken bytes, with their starts and verifiers, as they arrived; see
    /// [`WholeAnswer::written`].
    pub list: &'a [u8],
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn take_bytes<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let n = r.length(1)?;
    r.take(n)
}

impl<'a> Whole<'a> {
    /// Replaces `out` by the request.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        self.by.put(out);
        put_number(out, self.size);
        self.ends.put(out);
        self.upcoming.put(out);
        put_bytes(out, self.history);
        self.access.put(out);
    }

    /// Reads a request.
    pub fn decode(control: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(control);
        Ok(Whole {
            by: Field::read(&mut r)?,
            size: r.number()?,
            ends: Field::read(&mut r)?,
            upcoming: Field::read(&mut r)?,
            history: take_bytes(&mut r)?,
            access: Access::read(&mut r)?,
        })
    }
}

impl<'a> WholeAnswer<'a> {
    /// Replaces `out` by the answer. `written` names servers with their starts and verifiers.
    pub fn encode(&self, written: &[(u64, u64, u64)], out: &mut Vec<u8>) {
        out.clear();
        self.done.put(out);
        self.next.put(out);
        put_bytes(out, self.history);
        for n in [self.internal, self.between, self.own, written.len() as u64] {
            put_number(out, n);
        }
        for (server, start, verifier) in written {
            for n in [server, start, verifier] {
                put_number(out, *n);
            }
        }
    }

    /// Reads an answer.
    pub fn decode(control: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(control);
        let mut routed = WholeAnswer {
            done: AccessAnswer::read(&mut r)?,
            next: Field::read(&mut r)?,
            history: take_bytes(&mut r)?,
            internal: r.number()?,
            between: r.number()?,
            own: r.number()?,
            list: &[],
        };
        let written = r.length(3)?;
        let start = control.len() - r.left();
        for _ in 0..3 * written {
            r.number()?;
        }
        routed.list = &control[start..control.len() - r.left()];
        r.finish()?;
        Ok(routed)
    }

    /// Servers that have taken bytes, with their starts and verifiers.
    pub fn written(&self) -> impl Iterator<Item = (u64, u64, u64)> + 'a {
        let mut r = Reader::new(self.list);
        std::iter::from_fn(move || Some((r.number().ok()?, r.number().ok()?, r.number().ok()?)))
    }
}
