//! What the fuzz target `messages` does with its input, shared with plain tests that feed it golden
//! frames, damaged ones and noise (`hostile.rs`), so that `cargo test` exercises it too.
//!
//! The first two bytes choose a kind, as its number in a frame or else by counting. The rest goes
//! through every decoder that such bytes could reach. It panics when something is wrong: a decoder
//! that panics, or bytes that were accepted and are not what the encoder writes for their value.

use wire::frame::{HEADER_BYTES, Header};
use wire::message::access::{Access, AccessAnswer};
use wire::message::{self, KINDS, Kind, Refusal};
use wire::{DecodeError, LayoutState, Reader, StateVersion, describe};

/// Feeds one input.
pub(crate) fn messages(data: &[u8]) {
    let Some((choice, rest)) = data.split_first_chunk::<2>() else {
        return;
    };
    let kind = kind(u16::from_le_bytes(*choice));
    control(kind, rest);
    let Some((head, behind)) = rest.split_first_chunk::<HEADER_BYTES>() else {
        return;
    };
    if let Ok(header) = Header::decode(head) {
        frame(header, head, behind);
        control(kind, behind);
    }
}

/// The kind with this number, or some other.
fn kind(number: u16) -> &'static Kind {
    let known = KINDS.iter().find(|k| k.number == number);
    known.unwrap_or(&KINDS[usize::from(number) % KINDS.len()])
}

/// A header that was accepted, and what came behind it.
fn frame(header: Header, head: &[u8; HEADER_BYTES], behind: &[u8]) {
    let length = header.control_bytes as usize;
    if let Some(control) = behind.get(..length)
        && Header::verify(head, control).is_ok()
    {
        assert_eq!(&header.encode(control), head, "{header:?}");
    }
    let header = Header {
        control_bytes: behind.len() as u32,
        ..header
    };
    if header.check_bounds().is_ok() {
        let sealed = header.encode(behind);
        assert_eq!(Header::decode(&sealed), Ok(header));
        assert_eq!(Header::verify(&sealed, behind), Ok(()));
    }
}

/// Bytes as any control part.
pub(crate) fn control(kind: &Kind, bytes: &[u8]) {
    same(kind.name, bytes, (kind.recode_request)(bytes));
    same(kind.name, bytes, (kind.recode_answer)(bytes));
    assert_eq!(
        (kind.check_request)(bytes),
        (kind.recode_request)(bytes).map(drop)
    );
    let mut out = Vec::new();
    let access = Access::decode(bytes).map(|access| access.encode(&mut out));
    same("Access", bytes, access.map(|()| out));
    let mut out = Vec::new();
    let done = AccessAnswer::decode(bytes).map(|done| done.encode(&mut out));
    same("AccessAnswer", bytes, done.map(|()| out));
    let mut out = Vec::new();
    let refusal = message::decode::<Refusal>(bytes).map(|r| message::encode(&r, &mut out));
    same("Refusal", bytes, refusal.map(|()| out));
    descriptions(bytes);
}

/// Bytes as what stands inside control parts, and may have something behind it.
fn descriptions(bytes: &[u8]) {
    prefix(bytes, describe::set, describe::put_set);
    prefix(bytes, describe::view, describe::put_view);
    prefix(bytes, describe::partition, describe::put_partition);
    prefix(bytes, LayoutState::read, |out, state| state.put(out));
    prefix(bytes, StateVersion::read, |out, version| version.put(out));
    let skipped = StateVersion::skip(&mut Reader::new(bytes));
    let read = StateVersion::read(&mut Reader::new(bytes)).map(drop);
    assert_eq!(skipped, read, "a version is skipped as it is read");
}

fn prefix<T>(
    bytes: &[u8],
    read: impl Fn(&mut Reader<'_>) -> Result<T, DecodeError>,
    put: impl Fn(&mut Vec<u8>, &T),
) {
    let mut reader = Reader::new(bytes);
    if let Ok(value) = read(&mut reader) {
        let mut out = Vec::new();
        put(&mut out, &value);
        let used = bytes.len() - reader.left();
        assert_eq!(out, bytes[..used], "what was read is written differently");
    }
}

fn same(name: &str, bytes: &[u8], again: Result<Vec<u8>, DecodeError>) {
    if let Ok(again) = again {
        assert_eq!(again, bytes, "{name} is written differently");
    }
}
