//! `pario_tmk.h`: programs written for TreadMarks, and parallel files under their memory.
//!
//! ```text
//!  shared memory:  letters | letters | heap: table, pages of Tmk_malloc
//!                  read after every other barrier
//! ```
//!
//! Invariants
//! - A process has one memory. Every `Tmk_` function that fails ends the process with a text, as a program without a result for failures needs it; `PIO_` functions
//!   answer -1 and set `errno`.
//! - What `Tmk_distribute` gives is at its place in all other processes when they leave the next barrier: it lies in shared memory meanwhile.
//!
//! Left to others: how pages are kept alike (`dsm`), files (`pio`).
#![allow(non_snake_case)] // the names of TreadMarks

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use client::{ConnectOptions, Status, Team};
use dsm::{Epoch, Heap, Options, PAGE_BYTES, SharedArray, SharedMemory, Wakes};
use parking_lot::{Mutex, RwLock};
use pio::{OpenMode, Pfd, Pio, PioOptions};

use crate::entry::{Failure, Outcome};
use crate::ffi::Text;

/// Words of the letters of one phase.
const LETTER_WORDS: usize = 8192;
/// Bytes of the heap unless the environment says otherwise.
const HEAP_BYTES: usize = 256 << 20;
/// Most processes that are started from here.
const MOST_PROCESSES: usize = 1024;
/// Numbers of locks and barriers are below; the others are the library's.
const OWN_NUMBERS: c_uint = 1 << 31;
/// The last barrier.
const EXIT: u32 = u32::MAX - 2;

/// What a process has after `Tmk_startup`.
struct Tmk {
    memory: &'static SharedMemory,
    /// Where it is, to be taken back.
    owned: AtomicPtr<SharedMemory>,
    files: Mutex<Option<Arc<Pio<'static>>>>,
    heap: Heap,
    letters: [SharedArray<u64>; 2],
    /// Barriers that this process has left.
    phase: AtomicU64,
    /// Processes that were started from here.
    children: Mutex<Vec<Child>>,
}

static TMK: RwLock<Option<Arc<Tmk>>> = RwLock::new(None);

fn here() -> Outcome<Arc<Tmk>> {
    TMK.read().clone().ok_or_else(|| {
        Failure::new(
            Status::InvalidArgument,
            "the shared memory is not there; call Tmk_startup first and Tmk_exit last",
        )
    })
}

fn of_memory(error: dsm::Error) -> Failure {
    Failure::new(Status::Io, error.to_string())
}

/// Runs a function that has no result for failures: they end the process.
fn must<T>(name: &'static str, work: impl FnOnce() -> Outcome<T>) -> T {
    match border::entry::outcome(name, work) {
        Ok(value) => value,
        Err(_) => {
            // SAFETY: a text of this thread that ends with a zero.
            let text = unsafe { CStr::from_ptr(border::entry::last_text()) };
            // In one piece: other processes may have something to say too.
            let line = format!("{}\n", text.to_string_lossy());
            eprint!("{line}");
            // SAFETY: ends the process; other threads of the library hold nothing that an exit handler needs.
            unsafe { libc::exit(1) }
        }
    }
}

/// Runs a function of files: -1, with `errno`, if it fails.
fn answer(name: &'static str, work: impl FnOnce() -> Outcome<c_int>) -> c_int {
    border::entry::outcome(name, work).unwrap_or_else(|status| {
        // SAFETY: the place of this thread's errno.
        unsafe { *libc::__errno_location() = status.errno() };
        -1
    })
}

fn of_files(error: &pio::Error) -> Failure {
    // The number of the system says what kind of failure it is.
    let status = Status::ALL
        .iter()
        .find(|status| status.errno() == error.errno());
    Failure::new(status.copied().unwrap_or(Status::Io), error.to_string())
}

fn number_of_environment(name: &'static str, most: usize) -> Outcome<Option<usize>> {
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => {
            let number = text.parse().ok().filter(|number| *number <= most);
            let wrong =
                || Failure::argument(name, format!("is '{text}'; give a number up to {most}"));
            number.map(Some).ok_or_else(wrong)
        }
        _ => Ok(None),
    }
}

/// Starts the other processes: this program with its arguments.
fn start_others(arguments: &[&OsStr], size: usize, team: &str) -> Outcome<Vec<Child>> {
    let failed = |error: std::io::Error| {
        let text = format!("cannot start another process of this program: {error}");
        Failure::new(Status::from(&error), text)
    };
    let program = std::env::current_exe().map_err(failed)?;
    let start = |rank: usize| {
        Command::new(&program)
            .args(arguments.iter().skip(1))
            .env("PARIO_TMK_PROCESSES", size.to_string())
            .env("PARIO_TMK_RANK", rank.to_string())
            .env("PARIO_TMK_TEAM", team)
            .spawn()
            .map_err(failed)
    };
    (1..size).map(start).collect()
}

fn start(arguments: &[&OsStr]) -> Outcome<Tmk> {
    let options = ConnectOptions::from_env()?;
    let given = number_of_environment("PARIO_TMK_PROCESSES", MOST_PROCESSES)?;
    let team = std::env::var("PARIO_TMK_TEAM")
        .ok()
        .filter(|name| !name.is_empty());
    let mut children = Vec::new();
    let (rank, size, team) = match (given, options.rank) {
        (Some(0), _) => {
            return Err(Failure::argument(
                "PARIO_TMK_PROCESSES",
                "is 0; give at least 1",
            ));
        }
        (Some(size), _) => match number_of_environment("PARIO_TMK_RANK", size - 1)? {
            Some(rank) => (rank, size, team.unwrap_or_else(|| "tmk".to_owned())),
            None => {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                let name = format!(
                    "tmk-{}-{}",
                    std::process::id(),
                    now.unwrap_or_default().as_nanos()
                );
                let name = team.unwrap_or(name);
                children = start_others(arguments, size, &name)?;
                (0, size, name)
            }
        },
        (None, Some((rank, size))) => (
            rank as usize,
            size as usize,
            team.unwrap_or_else(|| "tmk".to_owned()),
        ),
        (None, None) => (0, 1, "tmk".to_owned()),
    };
    let options = options.with_rank(rank as u64, size as u64);
    let client = embedded::connect(
        &embedded::url_here()?,
        options,
        &embedded::Options::from_env(),
    )?;
    let team = match size {
        1 => Team::threads(1).remove(0),
        size => Team::processes(&client, &team, rank, size)?,
    };
    let mebibytes = number_of_environment("PARIO_TMK_MEBIBYTES", 1 << 20)?;
    let bytes = mebibytes.map_or(HEAP_BYTES, |mebibytes| mebibytes.max(1) << 20);
    let all = 2 * LETTER_WORDS * 8 + Heap::bytes_for(bytes);
    let (memory, epoch) = SharedMemory::start(team, &Options::new(all)).map_err(of_memory)?;
    let letters = [memory.array(LETTER_WORDS), memory.array(LETTER_WORDS)];
    let [first, second] = letters.map(|array| array.map_err(of_memory));
    let (letters, heap) = (
        [first?, second?],
        Heap::new(&memory, bytes).map_err(of_memory)?,
    );
    for letters in letters {
        // From here on they are here, so that looking for new ones after a barrier waits for nobody.
        memory.view(&epoch, letters).get(0);
    }
    let owned = Box::into_raw(Box::new(memory));
    // SAFETY: it lives until `leave` takes it back, when nothing that has this reference is left.
    let memory: &'static SharedMemory = unsafe { &*owned };
    let files =
        Pio::start(memory, &client, PioOptions::default()).map_err(|error| of_files(&error))?;
    Ok(Tmk {
        memory,
        owned: AtomicPtr::new(owned),
        files: Mutex::new(Some(Arc::new(files))),
        heap,
        letters,
        phase: AtomicU64::new(0),
        children: Mutex::new(children),
    })
}

/// Makes the shared memory; starts the other processes if the environment says how many there are and no launcher has.
#[unsafe(no_mangle)]
extern "C" fn Tmk_startup(argc: c_int, argv: *mut *mut c_char) {
    must("Tmk_startup", || {
        static LISTEN: std::sync::Once = std::sync::Once::new();
        LISTEN.call_once(|| logging::listen(""));
        let mut tmk = TMK.write();
        if tmk.is_some() {
            return Err(Failure::new(
                Status::InvalidArgument,
                "the shared memory is there already",
            ));
        }
        let count = if argv.is_null() {
            0
        } else {
            usize::try_from(argc).unwrap_or(0)
        };
        let mut arguments = Vec::new();
        for at in 0..count {
            // SAFETY: so many texts, as the program got them.
            let text = unsafe { *argv.add(at) };
            if text.is_null() {
                break;
            }
            // SAFETY: a text that ends with a zero.
            arguments.push(OsStr::from_bytes(
                unsafe { CStr::from_ptr(text) }.to_bytes(),
            ));
        }
        *tmk = Some(Arc::new(start(&arguments)?));
        Ok(())
    });
}

/// Leaves the memory with all others. Whether processes that were started from here have ended well.
fn leave(tmk: Arc<Tmk>) -> Outcome<bool> {
    let epoch = tmk.memory.epoch_of_thread();
    let epoch = tmk.memory.barrier(EXIT, epoch).map_err(of_memory)?;
    drop(tmk.files.lock().take());
    let children = std::mem::take(&mut *tmk.children.lock());
    let owned = tmk.owned.swap(std::ptr::null_mut(), Ordering::AcqRel);
    drop(tmk);
    // SAFETY: made by `start` and taken back once; files are closed, and who else calls has left with the program's other threads.
    let memory = unsafe { Box::from_raw(owned) };
    memory.exit(epoch).map_err(of_memory)?;
    let mut is_well = true;
    for mut child in children {
        is_well &= child.wait().is_ok_and(|status| status.success());
    }
    Ok(is_well)
}

/// Leaves the memory together with all others, and ends the process.
#[unsafe(no_mangle)]
extern "C" fn Tmk_exit(status: c_int) {
    let is_well = must("Tmk_exit", || {
        let tmk = TMK.write().take();
        tmk.map_or(Ok(true), leave)
    });
    let status = if status == 0 && !is_well { 1 } else { status };
    // SAFETY: ends the process; no thread of the library is left.
    unsafe { libc::exit(status) }
}

/// The number of this process.
#[unsafe(no_mangle)]
extern "C" fn pario_tmk_proc_id() -> c_uint {
    must("Tmk_proc_id", || Ok(here()?.memory.rank() as c_uint))
}

/// How many processes there are.
#[unsafe(no_mangle)]
extern "C" fn pario_tmk_nprocs() -> c_uint {
    must("Tmk_nprocs", || Ok(here()?.memory.size() as c_uint))
}

fn own_number(name: &str, id: c_uint) -> Outcome<u32> {
    match id < OWN_NUMBERS {
        true => Ok(id),
        false => Err(Failure::argument(
            name,
            format!("is {id}; give a number below {OWN_NUMBERS}"),
        )),
    }
}

/// Waits for all processes.
#[unsafe(no_mangle)]
extern "C" fn Tmk_barrier(id: c_uint) {
    must("Tmk_barrier", || {
        let (tmk, id) = (here()?, own_number("id", id)?);
        let epoch = tmk.memory.epoch_of_thread();
        let epoch = tmk.memory.barrier(id, epoch).map_err(of_memory)?;
        tmk.take_letters(&epoch);
        Ok(())
    });
}

/// Waits for a lock.
#[unsafe(no_mangle)]
extern "C" fn Tmk_lock_acquire(id: c_uint) {
    must("Tmk_lock_acquire", || {
        let (tmk, id) = (here()?, own_number("id", id)?);
        let mut epoch = tmk.memory.epoch_of_thread();
        // Released by number.
        std::mem::forget(tmk.memory.lock(id, &mut epoch).map_err(of_memory)?);
        Ok(())
    });
}

/// Lets a lock go.
#[unsafe(no_mangle)]
extern "C" fn Tmk_lock_release(id: c_uint) {
    must("Tmk_lock_release", || {
        let (tmk, id) = (here()?, own_number("id", id)?);
        tmk.memory.release(id).map_err(of_memory)
    });
}

/// The number of a condition of a lock.
fn condition_of(lock: c_uint, condition: c_uint) -> Outcome<(u32, u32)> {
    let lock = own_number("lock", lock)?;
    if lock >= 1 << 16 || condition >= 1 << 16 {
        let text = format!("is {condition} of lock {lock}; both have to be below 65536");
        return Err(Failure::argument("condition", text));
    }
    Ok((lock, lock << 16 | condition))
}

/// Lets a lock go until a condition of it is signalled, and has it again.
#[unsafe(no_mangle)]
extern "C" fn Tmk_lock_cond_wait(lock: c_uint, condition: c_uint) {
    must("Tmk_lock_cond_wait", || {
        let (tmk, (lock, condition)) = (here()?, condition_of(lock, condition)?);
        tmk.memory.wait(lock, condition).map_err(of_memory)
    });
}

/// Wakes one that waits for a condition of a lock.
#[unsafe(no_mangle)]
extern "C" fn Tmk_lock_cond_signal(lock: c_uint, condition: c_uint) {
    must("Tmk_lock_cond_signal", || {
        let (tmk, (_, condition)) = (here()?, condition_of(lock, condition)?);
        tmk.memory.signal(condition, Wakes::One);
        Ok(())
    });
}

/// Wakes all that wait for a condition of a lock.
#[unsafe(no_mangle)]
extern "C" fn Tmk_lock_cond_broadcast(lock: c_uint, condition: c_uint) {
    must("Tmk_lock_cond_broadcast", || {
        let (tmk, (_, condition)) = (here()?, condition_of(lock, condition)?);
        tmk.memory.signal(condition, Wakes::All);
        Ok(())
    });
}

/// Allocates shared memory, from the beginning of a page on; a null pointer if there is no room.
#[unsafe(no_mangle)]
extern "C" fn Tmk_malloc(bytes: usize) -> *mut c_void {
    let allocated = must("Tmk_malloc", || {
        let tmk = here()?;
        let mut epoch = tmk.memory.epoch_of_thread();
        match tmk.heap.allocate(tmk.memory, bytes, &mut epoch) {
            Ok(array) => Ok(Some(tmk.memory.address() + array.start())),
            Err(dsm::Error::Full { .. }) => Ok(None),
            Err(error) => Err(of_memory(error)),
        }
    });
    match allocated {
        Some(address) => std::ptr::with_exposed_provenance_mut(address),
        None => {
            // SAFETY: the place of this thread's errno.
            unsafe { *libc::__errno_location() = libc::ENOMEM };
            std::ptr::null_mut()
        }
    }
}

/// Gives shared memory back.
#[unsafe(no_mangle)]
extern "C" fn Tmk_free(memory: *mut c_void) {
    must("Tmk_free", || {
        if memory.is_null() {
            return Ok(());
        }
        let tmk = here()?;
        let mut epoch = tmk.memory.epoch_of_thread();
        let place = (memory as usize).wrapping_sub(tmk.memory.address());
        match tmk
            .heap
            .free(tmk.memory, place, &mut epoch)
            .map_err(of_memory)?
        {
            true => Ok(()),
            false => Err(Failure::argument(
                "memory",
                "is not what Tmk_malloc gave, or was freed",
            )),
        }
    });
}

/// Copies a global variable of the program to all other processes, which have it when they leave the next barrier.
#[unsafe(no_mangle)]
extern "C" fn Tmk_distribute(variable: *mut c_void, bytes: c_int) {
    must("Tmk_distribute", || {
        let tmk = here()?;
        let bytes =
            usize::try_from(bytes).map_err(|_| Failure::argument("bytes", "are below 0"))?;
        let place = program::place_of(variable as usize, bytes).ok_or_else(|| {
            let text = "is no global variable of the program, and nowhere else do all processes have the same; \
                        put what is elsewhere into shared memory";
            Failure::argument("variable", text)
        })?;
        let mut copy = vec![0; bytes.next_multiple_of(8)];
        // SAFETY: so many bytes of a variable of the program, which no other thread writes while it is given.
        unsafe { std::ptr::copy_nonoverlapping(variable.cast::<u8>(), copy.as_mut_ptr(), bytes) };
        tmk.put_letter(place, bytes, &copy)
    });
}

impl Tmk {
    /// Puts a letter where all look after the next barrier.
    fn put_letter(&self, place: usize, bytes: usize, copy: &[u8]) -> Outcome {
        let phase = self.phase.load(Ordering::Acquire);
        let mut epoch = self.memory.epoch_of_thread();
        // A lock of the library's, managed by process 0.
        let size = self.memory.size() as u32;
        let guard = self.memory.lock((u32::MAX / size - 2) * size, &mut epoch);
        let guard = guard.map_err(of_memory)?;
        let view = self.memory.view(&guard, self.letters[phase as usize % 2]);
        // What was there is of two barriers ago, and was read by all.
        let used = match view.get(0) == phase + 1 {
            true => view.get(1) as usize,
            false => 2,
        };
        let words = copy.len() / 8;
        if used + 3 + words > LETTER_WORDS {
            let left = LETTER_WORDS.saturating_sub(used + 3) * 8;
            let text = format!(
                "{bytes} of them, but {left} are left until the next barrier; put them into shared memory"
            );
            return Err(Failure::argument("bytes", text));
        }
        view.set(used, self.memory.rank() as u64);
        view.set(used + 1, place as u64);
        view.set(used + 2, bytes as u64);
        for (at, word) in copy.as_chunks::<8>().0.iter().enumerate() {
            view.set(used + 3 + at, u64::from_ne_bytes(*word));
        }
        view.set(1, (used + 3 + words) as u64);
        view.set(0, phase + 1);
        Ok(())
    }

    /// Takes what others have given before a barrier that was just left.
    fn take_letters(&self, epoch: &Epoch) {
        let phase = self.phase.fetch_add(1, Ordering::AcqRel);
        let view = self.memory.view(epoch, self.letters[phase as usize % 2]);
        if view.get(0) != phase + 1 {
            return;
        }
        let (mut at, end) = (2, view.get(1) as usize);
        while at < end {
            let [from, place, bytes] = [0, 1, 2].map(|field| view.get(at + field) as usize);
            let words = bytes.div_ceil(8);
            if from != self.memory.rank() {
                let mut copy = Vec::with_capacity(words * 8);
                for word in 0..words {
                    copy.extend(view.get(at + 3 + word).to_ne_bytes());
                }
                program::store(place, &copy[..bytes]);
            }
            at += 3 + words;
        }
    }
}

/// Global variables of the program, which lie at the same distance from its beginning in every process.
mod program {
    use std::ffi::{c_int, c_void};

    /// Where the program was loaded, and which of its memory may be written.
    struct Image {
        start: usize,
        writable: Vec<std::ops::Range<usize>>,
    }

    extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: what `loaded` gave.
        let loaded = unsafe { &mut *data.cast::<Image>() };
        // SAFETY: the loader gives a valid structure, for the program first.
        let info = unsafe { &*info };
        loaded.start = info.dlpi_addr as usize;
        for at in 0..usize::from(info.dlpi_phnum) {
            // SAFETY: one of so many headers.
            let header = unsafe { &*info.dlpi_phdr.add(at) };
            if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0 {
                let start = loaded.start + header.p_vaddr as usize;
                loaded.writable.push(start..start + header.p_memsz as usize);
            }
        }
        // Libraries are not looked at.
        1
    }

    fn loaded() -> Image {
        let mut loaded = Image {
            start: 0,
            writable: Vec::new(),
        };
        // SAFETY: the function is called before this returns, with what is given here.
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut loaded).cast()) };
        loaded
    }

    /// How far from the beginning of the program so many bytes of a variable lie; nothing if they are none.
    pub(super) fn place_of(address: usize, bytes: usize) -> Option<usize> {
        let loaded = loaded();
        let end = address.checked_add(bytes)?;
        let is_inside = |part: &std::ops::Range<usize>| part.start <= address && end <= part.end;
        loaded
            .writable
            .iter()
            .any(is_inside)
            .then(|| address - loaded.start)
    }

    /// Stores into a variable; nothing if there is none, in a program that is not the same.
    pub(super) fn store(place: usize, bytes: &[u8]) {
        let address = loaded().start.wrapping_add(place);
        if place_of(address, bytes.len()).is_none() {
            return;
        }
        // SAFETY: so many bytes of the program's writable variables. The program says by its barrier that it uses them afterwards.
        unsafe {
            let target = std::ptr::with_exposed_provenance_mut::<u8>(address);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
        }
    }
}

fn files() -> Outcome<(Arc<Tmk>, Arc<Pio<'static>>)> {
    let tmk = here()?;
    let files = tmk.files.lock().clone();
    let gone = || {
        Failure::new(
            Status::BadHandle,
            "the process is leaving the shared memory",
        )
    };
    Ok((tmk, files.ok_or_else(gone)?))
}

fn number_of(pfd: c_int) -> Outcome<Pfd> {
    let wrong = |_| {
        Failure::new(
            Status::BadHandle,
            format!("pfd: parallel file {pfd} is not open"),
        )
    };
    u32::try_from(pfd).map(Pfd).map_err(wrong)
}

/// Opens a parallel file at all processes; its number.
#[unsafe(no_mangle)]
extern "C" fn PIO_open(pathname: Text, flag: c_int) -> c_int {
    answer("PIO_open", || {
        let (tmk, files) = files()?;
        let path = pathname.required("pathname")?;
        let mode = match flag & libc::O_ACCMODE {
            libc::O_RDONLY => OpenMode::Read,
            libc::O_WRONLY if flag & libc::O_TRUNC != 0 => OpenMode::Replace,
            libc::O_WRONLY if flag & libc::O_CREAT != 0 => OpenMode::Create,
            _ => {
                let text = "give O_RDONLY, O_WRONLY | O_CREAT for a new file or O_WRONLY | O_TRUNC to replace one: \
                            a parallel file is read or written as a whole";
                return Err(Failure::argument("flag", text));
            }
        };
        let mut epoch = tmk.memory.epoch_of_thread();
        let file = files.open(&path, mode, &mut epoch);
        Ok(file.map_err(|error| of_files(&error))?.0 as c_int)
    })
}

/// Closes a parallel file at all processes.
#[unsafe(no_mangle)]
extern "C" fn PIO_close(pfd: c_int) -> c_int {
    answer("PIO_close", || {
        let (tmk, files) = files()?;
        let mut epoch = tmk.memory.epoch_of_thread();
        let closed = files.close(number_of(pfd)?, &mut epoch);
        closed.map_err(|error| of_files(&error))?;
        Ok(0)
    })
}

/// The memory from an address of the program on, in pages of its own.
fn memory_at(tmk: &Tmk, buff: *mut c_char, nbytes: c_int) -> Outcome<(SharedArray<u8>, u64)> {
    let bytes = u64::try_from(nbytes).map_err(|_| Failure::argument("nbytes", "is below 0"))?;
    let mut epoch = tmk.memory.epoch_of_thread();
    let place = (buff as usize).wrapping_sub(tmk.memory.address());
    let array = tmk
        .heap
        .at(tmk.memory, place, &mut epoch)
        .map_err(of_memory)?;
    let array = array.ok_or_else(|| Failure::argument("buff", "is no memory of Tmk_malloc"))?;
    if !array.start().is_multiple_of(PAGE_BYTES) {
        let text = format!(
            "begins {} bytes behind a page; a block of a file is a page",
            array.start() % PAGE_BYTES
        );
        return Err(Failure::argument("buff", text));
    }
    Ok((array, bytes))
}

/// Reads a parallel file into shared memory: every process the pages that are at home there.
#[unsafe(no_mangle)]
extern "C" fn PIO_read(pfd: c_int, buff: *mut c_char, nbytes: c_int) -> c_int {
    answer("PIO_read", || {
        let (tmk, files) = files()?;
        let (array, bytes) = memory_at(&tmk, buff, nbytes)?;
        let mut epoch = tmk.memory.epoch_of_thread();
        let read = files.read(number_of(pfd)?, array, bytes, &mut epoch);
        Ok(read.map_err(|error| of_files(&error))? as c_int)
    })
}

/// Writes shared memory as a parallel file: every process the pages that are at home there.
#[unsafe(no_mangle)]
extern "C" fn PIO_write(pfd: c_int, buff: *mut c_char, nbytes: c_int) -> c_int {
    answer("PIO_write", || {
        let (tmk, files) = files()?;
        let (array, bytes) = memory_at(&tmk, buff, nbytes)?;
        let mut epoch = tmk.memory.epoch_of_thread();
        let written = files.write(number_of(pfd)?, array, bytes, &mut epoch);
        Ok(written.map_err(|error| of_files(&error))? as c_int)
    })
}

/// Keeps with a file which process accessed which of its blocks since it was read: the next run places them by that.
#[unsafe(no_mangle)]
extern "C" fn PIO_learn(pfd: c_int) -> c_int {
    answer("PIO_learn", || {
        let (tmk, files) = files()?;
        let file = number_of(pfd)?;
        let mut epoch = tmk.memory.epoch_of_thread();
        let learned = files.accesses(file, &mut epoch).and_then(|accesses| {
            let path = files.path_of(file)?;
            files.keep(&path, &accesses)
        });
        learned.map_err(|error| of_files(&error))?;
        Ok(0)
    })
}

/// Pages that this process has fetched from others so far.
#[unsafe(no_mangle)]
extern "C" fn pario_tmk_fetches() -> u64 {
    must("pario_tmk_fetches", || {
        Ok(here()?.memory.statistics().fetches)
    })
}
