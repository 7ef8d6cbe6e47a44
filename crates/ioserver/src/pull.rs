//! Fetching the bytes of a new generation from the servers of the old one.
//!
//! The file is frozen. For each of its new subfiles this server registers a view that *is* the subfile
//! at all servers of the old generation and reads it in messages; what comes is spread over one
//! buffer by the same shares that the other side gathers with, and written in one run. Blocks
//! of zeros stay holes.

use std::sync::atomic::Ordering;

use falls::Periodic;
use kernels::{Share, SharedBytesMut};
use wire::ask::{AskError, decode_answer};
use wire::frame::Header;
use wire::link::Link;
use wire::message::Bytes;
use wire::message::access::{Access, Done, READ};
use wire::message::cluster::{FileState, Pull};
use wire::message::file::{SetView, SetViewPart};
use wire::{LayoutState, Piece, ServerId, StateVersion, Status, describe};

use crate::context::Context;
use crate::files::{Own, own_of};
use crate::links::Links;
use crate::refused::Refused;
use crate::statistics::add;

/// The view under which a pulling server registers.
const VIEW: u64 = 1;
/// Runs of zeros of this length are not written.
const HOLE: usize = 64 << 10;
/// Bytes of a description in one message.
const PART_BYTES: usize = 512 << 10;

/// One server of the old generation: what it shares with the new subfile.
struct Source {
    server: ServerId,
    links: std::sync::Arc<Links>,
    /// Shares with its old subfiles, ascending by index.
    shares: Vec<Share>,
}

/// Fetches everything of the new generation that belongs here.
///
/// A metadata manager that was started again gives moves up and lets their bytes be removed, perhaps while
/// they still arrive. So it is asked at the end whether the generation is still meant to be; it cannot
/// have become the only one before this is answered.
pub(crate) fn pull(context: &Context, request: &Pull) -> Result<(), Refused> {
    let [_, new] = &request.state.pieces[..] else {
        return Err(Refused::new(
            Status::InvalidArgument,
            "state: a pull needs an old and a new generation",
        ));
    };
    let pulled = pull_pieces(context, request, new);
    let file = request.file;
    let is_meant = match context.manager.ask(&FileState { file }) {
        Ok(state) => {
            let mut pieces = state.layout.pieces.iter();
            pieces.any(|piece| piece.generation == new.generation)
        }
        Err(AskError::Refused(Status::NotFound, _)) => false,
        // Whoever cannot be asked orders the removal later.
        Err(_) => true,
    };
    if is_meant {
        return pulled;
    }
    context.stored.remove(file, new.generation)?;
    pulled.and(Err(Refused::new(
        Status::Busy,
        "the move was given up meanwhile",
    )))
}

fn pull_pieces(context: &Context, request: &Pull, new: &Piece) -> Result<(), Refused> {
    let entry = context.entry(request.file);
    entry.pulled.store(0, Ordering::Relaxed);
    let version = StateVersion {
        step: request.state.step,
    };
    let mut version_bytes = Vec::new();
    version.put(&mut version_bytes);
    // Protection and note come with the state; the subfiles are those of the new piece.
    let entry_known = context.refresh(&entry)?;
    let target = LayoutState {
        pieces: vec![Piece {
            ranges: std::iter::once(0..u64::MAX).collect(),
            ..new.clone()
        }],
        ..request.state.clone()
    };
    let target = entry_known.with_layout(target, context.server);
    for own in own_of(target.layout(), 0, context.server) {
        let sources = sources(context, &request.state, &own)?;
        let subfile = target.make(&own, &context.stored, context.incarnation())?;
        subfile.truncate(0)?;
        let len = own.bytes.rank(request.size);
        let mut buffer = vec![0; context.message_bytes.min(len.max(1)) as usize];
        let mut at = 0;
        while at < len {
            let n = (len - at).min(buffer.len() as u64);
            let range = at..at + n;
            fetch(
                context,
                request,
                &own,
                &sources,
                range,
                &version_bytes,
                &mut buffer,
            )?;
            let mut offset = at;
            for part in buffer[..n as usize].chunks(HOLE) {
                if part.iter().any(|&b| b != 0) {
                    context.with_room(|| subfile.write_at(offset, part))?;
                }
                offset += part.len() as u64;
            }
            context.stored.wrote();
            add(&context.statistics.pulled_bytes, n);
            entry.pulled.fetch_add(n, Ordering::Relaxed);
            at += n;
        }
        subfile.sync()?;
    }
    Ok(())
}

/// The servers of the old generation that have bytes of a new subfile.
fn sources(context: &Context, state: &LayoutState, own: &Own) -> Result<Vec<Source>, Refused> {
    let old = &state.pieces[0];
    let mut servers: Vec<ServerId> = old
        .places
        .iter()
        .filter_map(|places| places.first())
        .map(|place| ServerId(place.server))
        .collect();
    servers.sort_unstable();
    servers.dedup();
    let mut sources = Vec::new();
    for server in servers {
        let subfiles = own_of(state, 0, server);
        let shares: Vec<Share> = subfiles
            .iter()
            .map(|old| Share::new(&own.bytes, &old.bytes))
            .collect();
        if shares
            .iter()
            .all(|share| share.first(0..falls::MAX_OFFSET).is_none())
        {
            continue;
        }
        let member = context.member(server)?;
        sources.push(Source {
            server,
            links: context.peers.to(&member)?,
            shares,
        });
    }
    Ok(sources)
}

/// Reads a range of a new subfile from all old servers into `buffer`.
fn fetch(
    context: &Context,
    request: &Pull,
    own: &Own,
    sources: &[Source],
    range: std::ops::Range<u64>,
    version: &[u8],
    buffer: &mut [u8],
) -> Result<(), Refused> {
    let first = own.bytes.select(range.start);
    let last = own.bytes.select(range.end - 1);
    let (Some(first), Some(last)) = (first, last) else {
        return Err(Refused::new(
            Status::Internal,
            "a subfile reaches beyond 2^63",
        ));
    };
    let file = first..last + 1;
    let mut packet = Vec::new();
    for source in sources {
        let bytes: u64 = source.shares.iter().map(|s| s.count(file.clone())).sum();
        if bytes == 0 {
            continue;
        }
        let access = Access {
            view: VIEW,
            lo: range.start,
            hi: range.end,
            bytes,
            epoch: 0,
            number: 0,
            end: 0,
            version,
        };
        source
            .links
            .with(|link, number, out| {
                read_once(link, number, out, request, &own.bytes, &access, &mut packet)
            })
            .map_err(|e| refused_by(source.server, e))?;
        add(&context.peers.asked, 2);
        let mut packed = &packet[..];
        for share in &source.shares {
            let n = share.count(file.clone()) as usize;
            let (these, rest) = packed.split_at(n);
            let target = SharedBytesMut::from_slice(&mut *buffer);
            share
                .scatter_left(file.clone(), these, target, range.start)
                .map_err(|e| Refused::new(Status::Internal, e.to_string()))?;
            packed = rest;
        }
    }
    Ok(())
}

fn refused_by(server: ServerId, error: AskError) -> Refused {
    let mut refused = Refused::from(error);
    refused.refusal.text = format!("{server}: {}", refused.refusal.text);
    refused
}

/// Registers the view and reads through it, on one connection.
fn read_once(
    link: &mut Link,
    number: u64,
    out: &mut Vec<u8>,
    request: &Pull,
    view: &Periodic,
    access: &Access<'_>,
    packet: &mut Vec<u8>,
) -> Result<(), AskError> {
    let mut description = Vec::new();
    describe::put_periodic(&mut description, view);
    let head = description.len().min(PART_BYTES);
    let set_view = SetView {
        view: VIEW,
        file: request.file,
        capability: Bytes::default(),
        description_bytes: description.len() as u64,
        description: Bytes(description[..head].to_vec()),
    };
    link.ask(number, &set_view, out)?;
    for part in description[head..].chunks(PART_BYTES) {
        let part = SetViewPart {
            view: VIEW,
            part: Bytes(part.to_vec()),
        };
        link.ask(number, &part, out)?;
    }
    access.encode(out);
    let header = Header {
        kind: READ,
        status: Status::Ok,
        flags: 0,
        request: number,
        control_bytes: 0,
        payload_bytes: 0,
    };
    link.send(header, out, &[])?;
    let (header, control) = link.receive()?;
    if !header.status.is_ok() {
        return decode_answer::<()>(header.status, control);
    }
    Done::decode(control).map_err(AskError::Answer)?;
    if header.payload_bytes != access.bytes || header.kind != READ {
        return Err(AskError::Answer(wire::DecodeError::BadNumber));
    }
    packet.resize(access.bytes as usize, 0);
    Ok(link.receive_payload(packet)?)
}
