//! Data-parallel streams: a stream of bytes for every virtual processor (VP), by all VPs of a member in one call.
//!
//! Left to others: single VPs inside elemental functions (`elemental`), and what streams are (`streams`).
//!
//! Invariants
//! - A member whose memory is refused takes part all the same, so that no other member waits for it.
//! - Operations beside the program run in the order of the calls, in the queue of the team.

use std::ffi::{c_char, c_int};
use std::io;
use std::sync::Arc;

use client::Status;
use libc::FILE;
use parking_lot::Mutex;
use streams::{
    Access, Context, Counts, Emulation, Mode, Shape, Stream, StreamOptions, Variable, VariableMut,
};

use crate::access::target_of;
use crate::connect::Connection;
use crate::entry::{Failure, Outcome, answer};
use crate::ffi::{Address, ConstAddress, In, List, Out, Text, set_struct};
use crate::requests::{OperationCount, OperationMark, Request, Subject, begin};
use crate::structs::*;
use crate::table::Handle;
use crate::teams::Member;

/// An open stream file of the program, at one member.
#[derive(Debug)]
pub(crate) struct OpenStream {
    stream: Mutex<Option<Stream>>,
    pub(crate) emulation: Emulation,
    pub(crate) access: Access,
    member: Arc<Member>,
    /// Operations that run beside the program.
    pub(crate) running: OperationCount,
}

impl OpenStream {
    /// Does something with the stream, if no other call does.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Stream) -> Outcome<R>) -> Outcome<R> {
        let mut stream = self.stream.try_lock().ok_or_else(|| {
            let text =
                "the stream is in use by another call, as it is inside an elemental function";
            Failure::new(Status::Busy, text)
        })?;
        match stream.as_mut() {
            Some(stream) => work(stream),
            None => Err(Failure::new(Status::BadHandle, "the stream is closed")),
        }
    }

    /// VPs of this member.
    fn count(&self) -> usize {
        self.emulation.count()
    }
}

/// Does something with a stream once what the team does beside the program is done.
pub(crate) fn with<R>(
    handle: Handle<OpenStream>,
    work: impl FnOnce(&mut Stream, &OpenStream) -> Outcome<R>,
) -> Outcome<R> {
    let opened = handle.get()?;
    opened.member.wait();
    opened.with(|stream| work(stream, &opened))
}

/// The context of a list with an entry for each VP of the member; everywhere without one.
pub(crate) fn context_of(active: List<u8>, count: usize) -> Outcome<Context> {
    if active.is_null() {
        return Ok(Context::everywhere());
    }
    let active = active.get("active", count)?;
    let mask: Vec<bool> = active.iter().map(|entry| *entry != 0).collect();
    Ok(Context::of_mask(mask))
}

/// What a number changes about the options of a stream.
type ChangeByNumber = fn(StreamOptions, u64) -> StreamOptions;

fn options_of(given: &pario_stream_options, access: Access) -> Outcome<StreamOptions> {
    let mut options = StreamOptions::new(access);
    let numbers: [(u64, ChangeByNumber); 6] = [
        (given.nb_block, StreamOptions::nb_block),
        (given.cb_block, StreamOptions::cb_block),
        (given.ib_block, StreamOptions::ib_block),
        (given.superblock, StreamOptions::superblock),
        (given.pointers, StreamOptions::pointers),
        (given.memory_bytes, StreamOptions::memory),
    ];
    for (number, apply) in numbers {
        if number > 0 {
            options = apply(options, number);
        }
    }
    if given.read_buffers > 0 {
        let most = 1 << 20;
        options = options.read_buffers(given.read_buffers.min(most) as usize);
    }
    options = options.at_least(match given.at_least {
        PARIO_NB => Mode::Nb,
        PARIO_CB => Mode::Cb,
        PARIO_IB => Mode::Ib,
        other => {
            let text = format!("is {other}; give PARIO_NB, PARIO_CB or PARIO_IB");
            return Err(Failure::argument("at_least", text));
        }
    });
    let pad = u8::try_from(given.pad)
        .map_err(|_| Failure::argument("pad", "is no byte; give 0 to 255"))?;
    options = options.pad(pad);
    if let Some(layout) = given.layout.get("layout")? {
        options = options.layout(layout);
    }
    Ok(options)
}

/// The VPs of this member: of the shape that is given, or of the file's own.
fn emulation_of(
    connection: &Connection,
    member: &Member,
    path: &str,
    given: &pario_stream_options,
) -> Outcome<Emulation> {
    let shape: Shape = match given.shape.get("shape")? {
        Some(text) => text.parse()?,
        None => match Stream::record(&connection.0, path)? {
            Some(record) => record.shape,
            None => {
                let text = format!("is not given, and {path} says nothing about it; give one");
                return Err(Failure::argument("shape", text));
            }
        },
    };
    let emulation = match given.distribution.get("distribution")? {
        Some(distribution) => Emulation::new(&shape, &distribution, &member.team)?,
        None => Emulation::block(&shape, &member.team)?,
    };
    Ok(emulation)
}

/// Takes part in an opening that this member refuses, so that all others hear of it.
fn refuse_to_open(connection: &Connection, member: &Member, path: &str) {
    let one = Shape::new(&[member.team.size() as u64]);
    let wrong = StreamOptions::new(Access::Read).pointers(0);
    if let Ok(emulation) = one.and_then(|one| Emulation::block(&one, &member.team)) {
        let _ = Stream::open(&connection.0, &member.team, path, &emulation, &wrong);
    }
}

/// Opens a stream file together with the other members of a team.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_open(
    client: Handle<Connection>,
    team: Handle<Member>,
    path: Text,
    access: Text,
    options: In<pario_stream_options>,
    stream: Out<Handle<OpenStream>>,
) -> c_int {
    answer("pario_stream_open", || {
        stream.required("stream")?.set(Handle::NULL);
        let (connection, member) = (client.get()?, team.get()?);
        member.wait();
        let path = path.required("path")?;
        let prepared = (|| {
            let given = options.get("options")?;
            let access = Access::of_text(&access.required("access")?)?;
            let options = options_of(&given, access)?;
            let emulation = emulation_of(&connection, &member, &path, &given)?;
            Ok((access, options, emulation))
        })();
        let (access, options, emulation) = match prepared {
            Ok(prepared) => prepared,
            Err(failure) => {
                refuse_to_open(&connection, &member, &path);
                return Err(failure);
            }
        };
        let opened = Stream::open(&connection.0, &member.team, &path, &emulation, &options)?;
        let opened = OpenStream {
            stream: Mutex::new(Some(opened)),
            emulation,
            access,
            member,
            running: OperationCount::default(),
        };
        stream.set(Handle::enter(opened, client)?);
        Ok(())
    })
}

/// Makes everything that was written so far what the file has; all members call.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_flush(stream: Handle<OpenStream>) -> c_int {
    answer("pario_stream_flush", || {
        with(stream, |stream, _| Ok(stream.flush().map(drop)?))
    })
}

/// Flushes and closes; all members call.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_close(stream: Handle<OpenStream>) -> c_int {
    answer("pario_stream_close", || {
        // A stream that is in use stays open.
        with(stream, |_, _| Ok(()))?;
        let opened = stream.close()?;
        opened.member.wait();
        let taken = opened.stream.lock().take();
        Ok(taken.map_or(Ok(()), Stream::close)?)
    })
}

/// What a file records about its streams; null texts for a file of another program.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_record(
    client: Handle<Connection>,
    path: Text,
    shape: TextOut,
    distribution: TextOut,
) -> c_int {
    answer("pario_stream_record", || {
        shape.set(std::ptr::null_mut());
        distribution.set(std::ptr::null_mut());
        let connection = client.get()?;
        let Some(record) = Stream::record(&connection.0, &path.required("path")?)? else {
            return Ok(());
        };
        if !shape.address().is_null() {
            shape.set_text(&record.shape.to_string())?;
        }
        match distribution.address().is_null() {
            true => Ok(()),
            false => distribution.set_text(&record.distribution),
        }
    })
}

/// How many VPs there are and this member has, and what was counted.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_about(
    stream: Handle<OpenStream>,
    info: Out<pario_stream_info>,
) -> c_int {
    answer("pario_stream_about", || {
        with(stream, |stream, opened| {
            let counted = stream.statistics();
            let found = pario_stream_info {
                size: 0,
                vps: opened.emulation.shape().count(),
                mine: opened.count() as u64,
                nb: counted.nb,
                cb: counted.cb,
                ib: counted.ib,
                elemental: counted.elemental,
                reductions: counted.reductions,
                transfers: counted.transfers,
                superblock_writes: counted.superblock_writes,
                small_writes: counted.small_writes,
                reads: counted.reads,
                commits: counted.commits,
            };
            set_struct(info, "info", &found)
        })
    })
}

/// The numbers of this member's VPs.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_vps(stream: Handle<OpenStream>, numbers: Out<u64>) -> c_int {
    answer("pario_stream_vps", || {
        numbers.required("numbers")?;
        let opened = stream.get()?;
        (0..opened.count()).for_each(|local| numbers.set_at(local, opened.emulation.vp(local)));
        Ok(())
    })
}

/// How many bytes VPs move.
enum Amount {
    Alike(usize),
    Each(Vec<usize>),
}

impl Amount {
    fn most(&self) -> usize {
        match self {
            Amount::Alike(bytes) => *bytes,
            Amount::Each(all) => all.iter().copied().max().unwrap_or(0),
        }
    }

    /// The distance of VPs in memory, and the bytes from the first to behind the last.
    fn extent(&self, stride: usize, count: usize) -> Outcome<(usize, usize)> {
        let most = self.most();
        let stride = match (stride, self) {
            (0, Amount::Each(_)) if count > 1 => {
                let text = "is 0; give the distance of VPs, since their sizes may differ";
                return Err(Failure::argument("stride", text));
            }
            (0, _) => most,
            (stride, _) => stride,
        };
        if count == 0 || most == 0 {
            return Ok((stride, 0));
        }
        let len = (count - 1).checked_mul(stride);
        let len = len.and_then(|len| len.checked_add(most));
        let len = len.ok_or_else(|| Failure::argument("stride", "is more than memory has"))?;
        Ok((stride, len))
    }
}

/// Writes for the active VPs; a member that is refused takes part with nothing.
fn write(
    stream: &mut Stream,
    context: &Context,
    (memory, stride): (ConstAddress, usize),
    amount: &Amount,
) -> Outcome {
    let found = amount
        .extent(stride, stream.emulation().count())
        .and_then(|(stride, len)| Ok((memory.slice("memory", len)?, stride)));
    let (bytes, stride, refused) = match found {
        Ok((bytes, stride)) => (bytes, stride, None),
        // Memory that is too short, which the stream refuses and tells to the others.
        Err(failure) => (&[][..], amount.most().max(1), Some(failure)),
    };
    let variable = Variable::strided(bytes, 0, stride);
    let done = match amount {
        Amount::Alike(bytes) => stream.write(context, variable, *bytes),
        Amount::Each(sizes) => stream.write_each(context, variable, sizes),
    };
    refused.map_or(Ok(()), Err)?;
    Ok(done?)
}

/// Reads for the active VPs; the bytes of all.
fn read(
    stream: &mut Stream,
    context: &Context,
    (memory, stride): (Address, usize),
    amount: &Amount,
    counts: Out<u64>,
) -> Outcome<u64> {
    let count = stream.emulation().count();
    let found = amount
        .extent(stride, count)
        .and_then(|(stride, len)| Ok((memory.slice("memory", len)?, stride)));
    let (bytes, stride, refused) = match found {
        Ok((bytes, stride)) => (bytes, stride, None),
        Err(failure) => (&mut [][..], amount.most().max(1), Some(failure)),
    };
    let variable = VariableMut::strided(bytes, 0, stride);
    let done = match amount {
        Amount::Alike(bytes) => stream.read(context, variable, *bytes),
        Amount::Each(sizes) => stream.read_each(context, variable, sizes),
    };
    refused.map_or(Ok(()), Err)?;
    let done = done?;
    Ok(tell_counts(&done, context, counts, count))
}

/// Stores a number for every VP, 0 for those that are not active; their sum.
fn tell_counts(found: &Counts, context: &Context, counts: Out<u64>, count: usize) -> u64 {
    if counts.address().is_null()
        && let (Counts::Uniform(n), true) = (found, context.is_everywhere())
    {
        return n * count as u64;
    }
    (0..count).fold(0, |sum, local| {
        let n = match context.is_active(local) {
            true => found.of(local),
            false => 0,
        };
        counts.set_at(local, n);
        sum + n
    })
}

/// Writes as many bytes of every active VP.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_write(
    stream: Handle<OpenStream>,
    active: List<u8>,
    memory: ConstAddress,
    stride: usize,
    bytes: usize,
) -> c_int {
    answer("pario_stream_write", || {
        with(stream, |stream, opened| {
            let context = context_of(active, opened.count())?;
            write(stream, &context, (memory, stride), &Amount::Alike(bytes))
        })
    })
}

/// Writes so many bytes of each active VP.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_write_each(
    stream: Handle<OpenStream>,
    active: List<u8>,
    memory: ConstAddress,
    stride: usize,
    bytes: List<usize>,
) -> c_int {
    answer("pario_stream_write_each", || {
        with(stream, |stream, opened| {
            let context = context_of(active, opened.count())?;
            let sizes = bytes.get("bytes", opened.count())?;
            write(stream, &context, (memory, stride), &Amount::Each(sizes))
        })
    })
}

/// Reads up to as many bytes for every active VP.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_read(
    stream: Handle<OpenStream>,
    active: List<u8>,
    memory: Address,
    stride: usize,
    bytes: usize,
    counts: Out<u64>,
) -> c_int {
    answer("pario_stream_read", || {
        with(stream, |stream, opened| {
            let context = context_of(active, opened.count())?;
            let amount = Amount::Alike(bytes);
            read(stream, &context, (memory, stride), &amount, counts).map(drop)
        })
    })
}

/// Reads up to so many bytes for each active VP.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_read_each(
    stream: Handle<OpenStream>,
    active: List<u8>,
    memory: Address,
    stride: usize,
    bytes: List<usize>,
    counts: Out<u64>,
) -> c_int {
    answer("pario_stream_read_each", || {
        with(stream, |stream, opened| {
            let context = context_of(active, opened.count())?;
            let amount = Amount::Each(bytes.get("bytes", opened.count())?);
            read(stream, &context, (memory, stride), &amount, counts).map(drop)
        })
    })
}

/// Where counts of an operation beside the program go.
struct LaterCounts(Out<u64>);

// SAFETY: it is a number until the operation stores there, and the program leaves the place alone until its request is complete.
unsafe impl Send for LaterCounts {}

impl LaterCounts {
    fn out(&self) -> Out<u64> {
        self.0
    }
}

/// Has something done with a stream beside the program.
fn beside(
    stream: Handle<OpenStream>,
    request: Out<Handle<Request>>,
    work: impl FnOnce(&mut Stream) -> Outcome<u64> + Send + 'static,
) -> Outcome {
    let (opened, counted) = stream.with(|opened| {
        let subject = Subject::Stream(Arc::clone(opened));
        let counted = OperationMark::new(subject, Some(&opened.member));
        Ok((Arc::clone(opened), counted))
    })?;
    let queue = opened.member.queue.clone();
    let work = Box::new(move || opened.with(work));
    begin(request, stream.owner()?, counted, &queue, work)
}

/// Begins to write as many bytes of every active VP.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_iwrite(
    stream: Handle<OpenStream>,
    active: List<u8>,
    memory: ConstAddress,
    stride: usize,
    bytes: usize,
    request: Out<Handle<Request>>,
) -> c_int {
    answer("pario_stream_iwrite", || {
        request.required("request")?.set(Handle::NULL);
        let context = context_of(active, stream.get()?.count())?;
        beside(stream, request, move |stream| {
            write(stream, &context, (memory, stride), &Amount::Alike(bytes))?;
            let active = context.active(stream.emulation().count()).count();
            Ok((active * bytes) as u64)
        })
    })
}

/// Begins to read up to as many bytes for every active VP.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_iread(
    stream: Handle<OpenStream>,
    active: List<u8>,
    memory: Address,
    stride: usize,
    bytes: usize,
    counts: Out<u64>,
    request: Out<Handle<Request>>,
) -> c_int {
    answer("pario_stream_iread", || {
        request.required("request")?.set(Handle::NULL);
        let context = context_of(active, stream.get()?.count())?;
        let counts = LaterCounts(counts);
        beside(stream, request, move |stream| {
            let amount = Amount::Alike(bytes);
            read(stream, &context, (memory, stride), &amount, counts.out())
        })
    })
}

/// Moves the active VPs to one place, by one distance, or to one distance from the end of each.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_seek(
    stream: Handle<OpenStream>,
    active: List<u8>,
    offset: i64,
    whence: c_int,
) -> c_int {
    answer("pario_stream_seek", || {
        with(stream, |stream, opened| {
            let context = context_of(active, opened.count())?;
            Ok(stream.seek(&context, target_of(offset, whence)?)?)
        })
    })
}

/// Moves each active VP to a place of its own.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_seek_each(
    stream: Handle<OpenStream>,
    active: List<u8>,
    places: List<u64>,
) -> c_int {
    answer("pario_stream_seek_each", || {
        with(stream, |stream, opened| {
            let context = context_of(active, opened.count())?;
            let places = places.get("places", opened.count())?;
            Ok(stream.seek_each(&context, &places)?)
        })
    })
}

/// Moves all VPs to the beginning.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_rewind(stream: Handle<OpenStream>) -> c_int {
    answer("pario_stream_rewind", || {
        with(stream, |stream, _| Ok(stream.rewind()?))
    })
}

/// Where each VP is.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_tell(stream: Handle<OpenStream>, places: Out<u64>) -> c_int {
    answer("pario_stream_tell", || {
        with(stream, |stream, opened| {
            let found = stream.positions();
            let everywhere = Context::everywhere();
            tell_counts(
                &found,
                &everywhere,
                places.required("places")?,
                opened.count(),
            );
            Ok(())
        })
    })
}

/// How many bytes each VP has.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_lengths(stream: Handle<OpenStream>, lengths: Out<u64>) -> c_int {
    answer("pario_stream_lengths", || {
        with(stream, |stream, opened| {
            let found = stream.lengths()?;
            let everywhere = Context::everywhere();
            tell_counts(
                &found,
                &everywhere,
                lengths.required("lengths")?,
                opened.count(),
            );
            Ok(())
        })
    })
}

/// Which VPs have come to their end, and which had an operation that failed.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_state(
    stream: Handle<OpenStream>,
    at_end: Out<u8>,
    has_failed: Out<u8>,
) -> c_int {
    answer("pario_stream_state", || {
        with(stream, |stream, opened| {
            for local in 0..opened.count() {
                at_end.set_at(local, u8::from(stream.is_at_end(local)));
                has_failed.set_at(local, u8::from(stream.has_failed(local)));
            }
            Ok(())
        })
    })
}

unsafe extern "C" {
    fn open_memstream(text: *mut *mut c_char, bytes: *mut usize) -> *mut FILE;
}

/// A file of C in memory, into which programs print.
struct MemoryFile {
    file: *mut FILE,
    /// What the file of C changes: an allocation of its own, so that it stays where it is.
    text: *mut (*mut c_char, usize),
}

impl MemoryFile {
    fn new() -> io::Result<MemoryFile> {
        let text = Box::into_raw(Box::new((std::ptr::null_mut(), 0)));
        // SAFETY: both places are in the allocation, which lives as long as the file.
        let file = unsafe { open_memstream(&raw mut (*text).0, &raw mut (*text).1) };
        if file.is_null() {
            let error = io::Error::last_os_error();
            // SAFETY: it came from a box above, and nothing else has it.
            drop(unsafe { Box::from_raw(text) });
            return Err(error);
        }
        Ok(MemoryFile { file, text })
    }

    /// Takes what was printed since the last time.
    fn take(&mut self, to: &mut Vec<u8>) -> io::Result<()> {
        // SAFETY: the file is open; after a flush the text has as many bytes as the file's place says.
        unsafe {
            let bytes = libc::ftello(self.file);
            if bytes < 0 || libc::fflush(self.file) != 0 {
                return Err(io::Error::last_os_error());
            }
            if bytes > 0 {
                let text = std::slice::from_raw_parts((*self.text).0.cast::<u8>(), bytes as usize);
                to.extend_from_slice(text);
            }
            libc::rewind(self.file);
        }
        Ok(())
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        // SAFETY: the file is open, its text is of C's allocator, and the places came from a box.
        unsafe {
            libc::fclose(self.file);
            let text = Box::from_raw(self.text);
            libc::free(text.0.cast());
        }
    }
}

/// Writes what a function of the program prints for every active VP.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_print(
    stream: Handle<OpenStream>,
    active: List<u8>,
    print: PrintCallback,
    user: Address,
) -> c_int {
    answer("pario_stream_print", || {
        with(stream, |stream, opened| {
            let context = context_of(active, opened.count())?;
            let print = print.ok_or_else(|| Failure::argument("print", "is a null pointer"))?;
            let mut memory = MemoryFile::new();
            let done = stream.print(&context, |local, text| {
                let memory = memory.as_mut().map_err(|e| io::Error::from(e.kind()))?;
                let vp = opened.emulation.vp(local);
                match print(vp, local, memory.file, user.pointer()) {
                    0 => memory.take(text),
                    code => Err(io::Error::other(format!("the function answered {code}"))),
                }
            });
            Ok(done?)
        })
    })
}

/// Gives a function of the program up to so many bytes of every active VP, which goes on behind those that the function took.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_scan(
    stream: Handle<OpenStream>,
    active: List<u8>,
    most: usize,
    scan: ScanCallback,
    user: Address,
    taken: Out<u64>,
) -> c_int {
    answer("pario_stream_scan", || {
        with(stream, |stream, opened| {
            let context = context_of(active, opened.count())?;
            let scan = scan.ok_or_else(|| Failure::argument("scan", "is a null pointer"))?;
            let mut text = Vec::new();
            let found = stream.scan(&context, most, |local, bytes| {
                text.clear();
                text.extend_from_slice(bytes);
                text.push(0);
                let vp = opened.emulation.vp(local);
                scan(vp, local, text.as_ptr().cast(), bytes.len(), user.pointer())
            })?;
            tell_counts(&found, &context, taken, opened.count());
            Ok(())
        })
    })
}

/// Reads a line of every active VP into `stride` bytes each, a zero behind it.
#[unsafe(no_mangle)]
extern "C" fn pario_stream_gets(
    stream: Handle<OpenStream>,
    active: List<u8>,
    lines: Address,
    stride: usize,
    counts: Out<u64>,
) -> c_int {
    answer("pario_stream_gets", || {
        with(stream, |stream, opened| {
            let count = opened.count();
            let context = context_of(active, count)?;
            let len = stride
                .checked_mul(count)
                .filter(|_| stride > 1)
                .ok_or_else(|| {
                    Failure::argument("stride", "leaves no room for a line; give 2 bytes or more")
                })?;
            let lines = lines.slice("lines", len)?;
            let found = stream.gets(&context, stride - 1)?;
            for local in context.active(count) {
                let line = found[local].as_deref().unwrap_or_default();
                let room = &mut lines[local * stride..][..stride];
                room[..line.len()].copy_from_slice(line);
                room[line.len()] = 0;
                counts.set_at(local, line.len() as u64);
            }
            Ok(())
        })
    })
}
