//! One question and its answer on a link, in the caller's thread.
//!
//! For everything but bulk data: the request is encoded, sent, and the answer with the same number
//! awaited. An answer that is not `Ok` becomes [`AskError::Refused`] with what the server said.

use crate::frame::Header;
use crate::link::{Link, LinkError};
use crate::message::{self, Field, Refusal, Request};
use crate::reader::DecodeError;
use crate::status::Status;

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The connection failed; the request may or may not have been done.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The server said no.
    #[error("{}", .1.text)]
    Refused(Status, Refusal),
    /// The answer cannot be read.
    #[error("the answer cannot be read: {0}")]
    Answer(DecodeError),
}

impl AskError {
    /// The status that tells a caller what happened.
    pub fn status(&self) -> Status {
        match self {
            AskError::Link(e) => e.status(),
            AskError::Refused(status, _) => *status,
            AskError::Answer(_) => Status::Malformed,
        }
    }
}

impl Link {
    /// Asks and waits. `number` ties the answer to the question; `out` is reused.
    pub fn ask<R: Request>(
        &mut self,
        number: u64,
        request: &R,
        out: &mut Vec<u8>,
    ) -> Result<R::Answer, AskError> {
        self.put_question(number, request, out)?;
        self.take_answer::<R>(number)
    }

    /// Sends a request whose answer is taken later with [`Link::take_answer`].
    pub fn put_question<R: Request>(
        &mut self,
        number: u64,
        request: &R,
        out: &mut Vec<u8>,
    ) -> Result<(), AskError> {
        message::encode(request, out);
        let header = Header {
            kind: R::KIND,
            status: Status::Ok,
            flags: 0,
            request: number,
            control_bytes: 0,
            payload_bytes: 0,
        };
        Ok(self.send(header, out, &[])?)
    }

    /// Waits for the answer to the question with this number, which is the next one.
    pub fn take_answer<R: Request>(&mut self, number: u64) -> Result<R::Answer, AskError> {
        let (header, control) = self.receive()?;
        // A server that cannot read a frame does not know what it was, and says why with kind 0.
        let is_answer = header.kind == R::KIND && header.request == number;
        let is_complaint = header.kind == 0 && !header.status.is_ok();
        if !is_answer && !is_complaint {
            return Err(AskError::Answer(DecodeError::BadTag(u64::from(
                header.kind,
            ))));
        }
        decode_answer(header.status, control)
    }
}

/// What the control part of an answer with this status says.
pub fn decode_answer<A: Field>(status: Status, control: &[u8]) -> Result<A, AskError> {
    if status.is_ok() {
        return message::decode(control).map_err(AskError::Answer);
    }
    match message::decode::<Refusal>(control) {
        Ok(refusal) => Err(AskError::Refused(status, refusal)),
        Err(e) => Err(AskError::Answer(e)),
    }
}
