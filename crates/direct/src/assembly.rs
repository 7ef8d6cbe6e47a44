//! An assembly of processes of one host: bytes that all of them exchange through one small shared file.
//!
//! ```text
//!  header | member 0 | member 1 | ..   | slots of member 0: even, odd | slots of member 1 | ..
//!           who, posted, sleepers         what it gives in a step
//! ```
//!
//! A *step*: every member writes its slot, then raises its `posted` to the number of the step; who has seen
//! that of all others reads their slots. Slots alternate between even and odd steps: a member that has
//! posted step n has read everything of step n - 1, so nobody overwrites what is still read, and no step
//! needs a second round. What does not fit a slot takes more steps; how many is said in the first.
//!
//! Invariants
//! - Nobody spins: a wait is a futex wait, which ends after a time to look whether the others live.
//! - No limit of time while all members live; one that has ended, died or been replaced by another
//!   process of the same number ends the wait of all others with an error.
//! - Words that others write are checked before they are used as lengths; bytes are copied, never
//!   referred to.
//! - The file belongs to one user, is made anew, has all its space before it is used, and has no name
//!   once all have met.
//!
//! An assembly that is made for data has lanes besides (`lanes`), through which bytes flow without steps.
//!
//! Left to others: what the bytes mean, telling the name, which member is which.

mod lanes;

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kernels::{SharedBytes, SharedBytesMut};
use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::thread::futex;

use crate::commons::BorrowedMemory;
use crate::mapping::Mapping;

pub use lanes::{Cargo, Run, SAID_WORDS, Ticket};

const MAGIC: u64 = 0x3254_454d_4f49_5241;
const HEADER_BYTES: usize = 64;
/// Every member's words lie in lines of their own.
const MEMBER_BYTES: usize = 128;
const PAGE_BYTES: usize = 4096;
/// Words of a member.
const PID: usize = 0;
const BEGAN: usize = 8;
const POSTED: usize = 16;
const SLEEPERS: usize = 20;
const LEFT: usize = 24;
/// What `LEFT` says: it has ended, or it has given up because of a member.
const GONE: u64 = 1;
const GAVE_UP: u64 = 2;
/// In front of the bytes of a slot: steps of the round, bytes in all.
const SLOT_HEADER: usize = 16;

/// A slot, if there are few members.
const SLOT_BYTES: usize = 256 << 10;
/// All slots together.
const AREA_BYTES: usize = 16 << 20;
/// Members that an assembly can have: each has a page for a slot at least.
pub const MOST_MEMBERS: usize = 2048;

/// Longest wait before the others are looked at.
const WATCH: Duration = Duration::from_millis(100);
/// Waits between two calls of the driver: the first, and the longest.
const FIRST_DRIVE: Duration = Duration::from_micros(50);
const LAST_DRIVE: Duration = Duration::from_millis(1);
/// Calls of the driver at a time.
const DRIVES: usize = 3;

/// Why an assembly has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// This member left in order, before the round was over.
    Left(usize),
    /// The process of this member is dead.
    Died(usize),
    /// The time that was given is over, and this member is not there.
    Late(usize),
    /// This member said something that cannot be.
    Nonsense(usize),
    /// This process is a child of the member.
    Forked,
}

/// What is called between waits.
pub type Drive<'a> = Option<&'a dyn Fn()>;

/// A member of an assembly.
#[derive(Debug)]
pub struct Assembly {
    mapping: Mapping,
    rank: usize,
    size: usize,
    slot_bytes: usize,
    /// A ring of the lanes; 0 without them.
    ring_bytes: usize,
    /// The number of the last run.
    runs: AtomicU64,
    /// Memory of others by rank and number; nothing where it was refused.
    borrowed: Mutex<Vec<BorrowedOf>>,
    /// The name of the file, for the member that made it.
    name: Mutex<Option<PathBuf>>,
    pid: u32,
    /// The number of the next step. Held by the thread that is in a round; no thread waits for it without
    /// looking at it again.
    step: Mutex<u32>,
}

/// Memory of a member, with the number that it has there.
type BorrowedOf = ((usize, u64), Option<Arc<BorrowedMemory>>);

/// The slots of so many members.
fn slot_bytes(size: usize) -> usize {
    let most = (AREA_BYTES / (2 * size)).clamp(PAGE_BYTES, SLOT_BYTES);
    most - most % PAGE_BYTES
}

fn members_at(size: usize) -> usize {
    (HEADER_BYTES + size * MEMBER_BYTES).next_multiple_of(PAGE_BYTES)
}

fn area_bytes(size: usize, ring: usize) -> usize {
    members_at(size) + 2 * size * slot_bytes(size) + lanes::lanes_bytes(size, ring)
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text.to_owned())
}

impl Assembly {
    /// Makes the file and is member 0. The name is for the others to attach with.
    pub fn create(size: usize) -> io::Result<(Assembly, String)> {
        Assembly::create_in(Path::new("/dev/shm"), size, 0)
    }

    /// Makes an assembly with lanes, if it has not too many members for them: some 16 MiB of memory more.
    pub fn create_with_lanes(size: usize) -> io::Result<(Assembly, String)> {
        let ring = lanes::ring_bytes(size.min(MOST_MEMBERS));
        Assembly::create_in(Path::new("/dev/shm"), size, ring)
    }

    fn create_in(dir: &Path, size: usize, ring: usize) -> io::Result<(Assembly, String)> {
        if size == 0 || size > MOST_MEMBERS {
            return Err(invalid("an assembly has 1 to 2048 members"));
        }
        let mut random = [0u8; 16];
        let flags = rustix::rand::GetRandomFlags::empty();
        if rustix::rand::getrandom(&mut random[..], flags)? != random.len() {
            return Err(io::Error::other("the system gave no random bytes"));
        }
        let word: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = dir.join(format!("pario-team-{word}"));
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
        let made = (|| {
            let len = area_bytes(size, ring) as u64;
            // All space now: later it would be missing with a signal.
            rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, len)?;
            let mapping = Mapping::map(file.as_fd(), len, true)?;
            mapping.word(8).store(size as u64, Ordering::Relaxed);
            mapping.word(16).store(ring as u64, Ordering::Relaxed);
            mapping.word(0).store(MAGIC, Ordering::Release);
            Ok::<_, io::Error>(mapping)
        })();
        match made {
            Ok(mapping) => {
                let name = path.to_string_lossy().into_owned();
                let assembly = Assembly::begin(mapping, (0, size), ring, Some(path))?;
                Ok((assembly, name))
            }
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Is a member of an assembly that was made by another process of the same user. Waits for nobody.
    pub fn attach(name: &str, rank: usize, size: usize) -> io::Result<Assembly> {
        if rank == 0 || rank >= size {
            return Err(invalid(
                "member 0 makes the assembly, the others are 1 to size - 1",
            ));
        }
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
        if !is_ours || stat.st_mode & 0o777 != 0o600 {
            return Err(invalid("the file of the assembly is not this user's alone"));
        }
        if size > MOST_MEMBERS {
            return Err(invalid("an assembly has 1 to 2048 members"));
        }
        let possible = [0, lanes::ring_bytes(size)];
        let len = u64::try_from(stat.st_size).unwrap_or(0);
        let mut rings = possible.into_iter();
        let Some(ring) = rings.find(|ring| area_bytes(size, *ring) as u64 == len) else {
            return Err(invalid("the assembly is of another size"));
        };
        let mapping = Mapping::map(file.as_fd(), len, true)?;
        let is_assembly = mapping.word(0).load(Ordering::Acquire) == MAGIC
            && mapping.word(8).load(Ordering::Relaxed) == size as u64
            && mapping.word(16).load(Ordering::Relaxed) == ring as u64;
        if !is_assembly {
            return Err(invalid("the file is no assembly of this size"));
        }
        Assembly::begin(mapping, (rank, size), ring, None)
    }

    fn begin(
        mapping: Mapping,
        (rank, size): (usize, usize),
        ring_bytes: usize,
        name: Option<PathBuf>,
    ) -> io::Result<Assembly> {
        let pid = std::process::id();
        let assembly = Assembly {
            mapping,
            rank,
            size,
            slot_bytes: slot_bytes(size),
            ring_bytes,
            runs: AtomicU64::new(0),
            borrowed: Mutex::new(Vec::new()),
            name: Mutex::new(name),
            pid,
            step: Mutex::new(1),
        };
        let began =
            began(pid).ok_or_else(|| io::Error::other("/proc says nothing about processes"))?;
        let at = assembly.member(rank);
        let number = u64::from(pid);
        let taken = assembly.mapping.word(at + PID).compare_exchange(
            0,
            number,
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        if taken.is_err() {
            return Err(invalid("another process is this member already"));
        }
        assembly
            .mapping
            .word(at + BEGAN)
            .store(began, Ordering::SeqCst);
        Ok(assembly)
    }

    /// The number of this member.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Members in all.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether every member that has come is a living process as this one sees processes.
    pub fn sees_all(&self) -> bool {
        (0..self.size).all(|rank| self.lives(rank))
    }

    /// Takes the name away; only the member that made it has it.
    pub fn forget_name(&self) {
        if let Some(path) = self.name.lock().take() {
            let _ = std::fs::remove_file(path);
        }
    }

    fn member(&self, rank: usize) -> usize {
        HEADER_BYTES + rank * MEMBER_BYTES
    }

    fn slot(&self, rank: usize, step: u32) -> usize {
        members_at(self.size) + (2 * rank + (step % 2) as usize) * self.slot_bytes
    }

    fn posted(&self, rank: usize) -> &AtomicU32 {
        self.mapping.half_word(self.member(rank) + POSTED)
    }

    fn sleepers(&self, rank: usize) -> &AtomicU32 {
        self.mapping.half_word(self.member(rank) + SLEEPERS)
    }

    fn word(&self, rank: usize, word: usize) -> &AtomicU64 {
        self.mapping.word(self.member(rank) + word)
    }

    fn lives(&self, rank: usize) -> bool {
        let pid = self.word(rank, PID).load(Ordering::SeqCst);
        let since = self.word(rank, BEGAN).load(Ordering::SeqCst);
        match u32::try_from(pid) {
            Ok(0) | Err(_) => false,
            Ok(pid) => since == 0 || began(pid) == Some(since),
        }
    }

    /// Gives bytes, and gets those of all by rank. After a failure nothing is exchanged any more, and the
    /// others are told.
    pub fn allgather(
        &self,
        bytes: &[u8],
        drive: Drive<'_>,
        limit: Option<Duration>,
    ) -> Result<Vec<Vec<u8>>, Apart> {
        self.or_leave(self.gather(bytes, drive, limit))
    }

    fn or_leave<T>(&self, done: Result<T, Apart>) -> Result<T, Apart> {
        match done {
            Err(
                Apart::Left(rank) | Apart::Died(rank) | Apart::Late(rank) | Apart::Nonsense(rank),
            ) => {
                self.leave(GAVE_UP + rank as u64);
            }
            Ok(_) | Err(Apart::Forked) => {}
        }
        done
    }

    fn gather(
        &self,
        bytes: &[u8],
        drive: Drive<'_>,
        limit: Option<Duration>,
    ) -> Result<Vec<Vec<u8>>, Apart> {
        let room = self.slot_bytes - SLOT_HEADER;
        let steps = bytes.len().div_ceil(room).max(1) as u64;
        let mut round = self.round(drive, limit)?;
        let mut got = vec![Vec::new(); self.size];
        let mut all = steps;
        let mut done = 0;
        while done < all {
            let from = (done as usize * room).min(bytes.len());
            let part = &bytes[from..bytes.len().min(from + room)];
            let slot = self.slot(self.rank, *round.step);
            self.put_header(slot, steps, bytes.len() as u64);
            self.write(slot + SLOT_HEADER, part);
            round.post();
            for (rank, got) in got.iter_mut().enumerate() {
                if rank == self.rank {
                    continue;
                }
                round.wait(rank)?;
                let slot = self.slot(rank, *round.step);
                let (steps, len) = self.header(slot);
                let len = usize::try_from(len).map_err(|_| Apart::Nonsense(rank))?;
                if len.div_ceil(room).max(1) as u64 != steps || got.len() > len {
                    return Err(Apart::Nonsense(rank));
                }
                all = all.max(steps);
                self.read(slot + SLOT_HEADER, (len - got.len()).min(room), got);
            }
            round.next();
            done += 1;
        }
        got[self.rank] = bytes.to_vec();
        Ok(got)
    }

    /// Gives each member its part, and gets what each has for this one, by rank.
    ///
    /// # Panics
    /// If there are not as many parts as members.
    pub fn exchange(
        &self,
        parts: &[&[u8]],
        drive: Drive<'_>,
        limit: Option<Duration>,
    ) -> Result<Vec<Vec<u8>>, Apart> {
        let mut got = Vec::new();
        self.exchange_into(parts, &mut got, drive, limit)?;
        Ok(got)
    }

    /// Exchanges into memory that the caller keeps: what was there is replaced, and new memory is needed only where more
    /// comes than ever before.
    ///
    /// # Panics
    /// If there are not as many parts as members.
    pub fn exchange_into(
        &self,
        parts: &[&[u8]],
        got: &mut Vec<Vec<u8>>,
        drive: Drive<'_>,
        limit: Option<Duration>,
    ) -> Result<(), Apart> {
        self.or_leave(self.swap(parts, got, drive, limit))
    }

    fn swap(
        &self,
        parts: &[&[u8]],
        got: &mut Vec<Vec<u8>>,
        drive: Drive<'_>,
        limit: Option<Duration>,
    ) -> Result<(), Apart> {
        assert_eq!(parts.len(), self.size, "a part for every member");
        // A compartment for each member: what is there for it in all, and as much as fits.
        let compartment = ((self.slot_bytes - SLOT_HEADER) / self.size) & !7;
        let room = compartment.saturating_sub(8);
        if room == 0 {
            *got = self.exchange_by_all(parts, drive, limit)?;
            return Ok(());
        }
        let longest = parts.iter().map(|part| part.len()).max().unwrap_or(0);
        let steps = longest.div_ceil(room).max(1) as u64;
        let mut round = self.round(drive, limit)?;
        got.resize_with(self.size, Vec::new);
        got.iter_mut().for_each(Vec::clear);
        let mut all = steps;
        let mut done = 0;
        while done < all {
            let slot = self.slot(self.rank, *round.step);
            self.put_header(slot, steps, 0);
            for (rank, part) in parts.iter().enumerate() {
                if rank == self.rank {
                    continue;
                }
                let at = slot + SLOT_HEADER + rank * compartment;
                self.mapping
                    .word(at)
                    .store(part.len() as u64, Ordering::Relaxed);
                let from = (done as usize * room).min(part.len());
                self.write(at + 8, &part[from..part.len().min(from + room)]);
            }
            round.post();
            for (rank, got) in got.iter_mut().enumerate() {
                if rank == self.rank {
                    continue;
                }
                round.wait(rank)?;
                let slot = self.slot(rank, *round.step);
                all = all.max(self.header(slot).0);
                let at = slot + SLOT_HEADER + self.rank * compartment;
                let len = self.mapping.word(at).load(Ordering::Relaxed);
                let len = usize::try_from(len).map_err(|_| Apart::Nonsense(rank))?;
                if len < got.len() || len.div_ceil(room) as u64 > all {
                    return Err(Apart::Nonsense(rank));
                }
                self.read(at + 8, (len - got.len()).min(room), got);
            }
            round.next();
            done += 1;
        }
        got[self.rank].extend_from_slice(parts[self.rank]);
        Ok(())
    }

    /// So many members that slots have no room for compartments: everybody gets everything.
    fn exchange_by_all(
        &self,
        parts: &[&[u8]],
        drive: Drive<'_>,
        limit: Option<Duration>,
    ) -> Result<Vec<Vec<u8>>, Apart> {
        let mut mine = Vec::new();
        for part in parts {
            mine.extend((part.len() as u64).to_le_bytes());
        }
        mine.extend(parts.concat());
        let all = self.gather(&mine, drive, limit)?;
        let take = |rank: usize, bytes: &[u8]| {
            let len = |i: usize| {
                let bytes: [u8; 8] = bytes.get(8 * i..8 * i + 8)?.try_into().ok()?;
                usize::try_from(u64::from_le_bytes(bytes)).ok()
            };
            let mut at = 8 * self.size;
            for i in 0..self.rank {
                at = at.checked_add(len(i)?)?;
            }
            Some(bytes.get(at..at.checked_add(len(self.rank)?)?)?.to_vec())
                .filter(|_| rank < self.size)
        };
        let taken = all.iter().enumerate();
        taken
            .map(|(rank, bytes)| take(rank, bytes).ok_or(Apart::Nonsense(rank)))
            .collect()
    }

    fn put_header(&self, slot: usize, steps: u64, bytes: u64) {
        self.mapping.word(slot).store(steps, Ordering::Relaxed);
        self.mapping.word(slot + 8).store(bytes, Ordering::Relaxed);
    }

    fn header(&self, slot: usize) -> (u64, u64) {
        let of = |at| self.mapping.word(at).load(Ordering::Relaxed);
        (of(slot), of(slot + 8))
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        let address = self.mapping.address(at, bytes.len());
        // SAFETY: inside the mapping, which is writable; only this member writes its slots, and the others
        // read a slot between its posting and their own.
        let target = unsafe { SharedBytesMut::new(address.as_ptr(), bytes.len()) };
        target.copy_from(SharedBytes::from_slice(bytes));
    }

    fn read(&self, at: usize, len: usize, into: &mut Vec<u8>) {
        let address = self.mapping.address(at, len);
        // SAFETY: inside the mapping. It is another process that writes it; what that does changes the bytes
        // that are copied and nothing else.
        let source = unsafe { SharedBytes::new(address.as_ptr(), len) };
        into.reserve(len);
        let before = into.len();
        let free = into.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        // SAFETY: so much is reserved behind the bytes, and nobody else knows of it.
        let target = unsafe { SharedBytesMut::new(free, len) };
        target.copy_from(source);
        // SAFETY: these bytes were just written.
        unsafe { into.set_len(before + len) };
    }

    /// Begins a round, once no other thread of this member is in one.
    fn round<'a>(&'a self, drive: Drive<'a>, limit: Option<Duration>) -> Result<Round<'a>, Apart> {
        if std::process::id() != self.pid {
            return Err(Apart::Forked);
        }
        let mut waiting = MemberWait::new(drive, limit);
        waiting.pause = FIRST_DRIVE;
        let step = loop {
            if let Some(step) = self.step.try_lock() {
                break step;
            }
            // Another thread of this member, which is looked for again and again, ever more slowly.
            let seen = self.posted(self.rank).load(Ordering::SeqCst);
            self.sleep(self.rank, seen, &mut waiting)?;
        };
        if let Some(cause) = self.cause(self.rank) {
            return Err(cause);
        }
        Ok(Round {
            assembly: self,
            step,
            waiting: MemberWait::new(drive, limit),
        })
    }

    /// Why a member takes part in nothing any more.
    fn cause(&self, rank: usize) -> Option<Apart> {
        match self.word(rank, LEFT).load(Ordering::SeqCst) {
            0 => None,
            GONE => Some(Apart::Left(rank)),
            word => {
                let because = usize::try_from(word - GAVE_UP).unwrap_or(usize::MAX);
                Some(match because {
                    because if because >= self.size || because == rank => Apart::Left(rank),
                    because if self.lives(because) => Apart::Left(because),
                    because => Apart::Died(because),
                })
            }
        }
    }

    /// Takes part in nothing any more, and wakes members that wait for this one.
    fn leave(&self, word: u64) {
        let left = self.word(self.rank, LEFT);
        let _ = left.compare_exchange(0, word, Ordering::SeqCst, Ordering::SeqCst);
        self.wake_all();
    }

    /// Wakes members that wait for this one, in steps and in runs.
    fn wake_all(&self) {
        let most = i32::MAX as u32;
        let _ = futex::wake(self.posted(self.rank), futex::Flags::empty(), most);
        if self.has_lanes() {
            let others = (0..self.size).filter(|rank| *rank != self.rank);
            others.for_each(|rank| self.ring_bell(rank));
        }
    }

    /// Sleeps until a member has posted something else than `seen`, or it is time to look around.
    fn sleep(&self, rank: usize, seen: u32, waiting: &mut MemberWait<'_>) -> Result<(), Apart> {
        let pause = waiting.pause(rank)?;
        let word = self.posted(rank);
        let time = futex::Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(pause.subsec_nanos()),
        };
        self.sleepers(rank).fetch_add(1, Ordering::SeqCst);
        let slept = futex::wait(word, futex::Flags::empty(), seen, Some(&time));
        self.sleepers(rank).fetch_sub(1, Ordering::SeqCst);
        if !matches!(slept, Err(rustix::io::Errno::TIMEDOUT)) {
            return Ok(());
        }
        waiting.drive();
        Ok(())
    }
}

/// A wait of a member: how long at a time, and until when.
struct MemberWait<'a> {
    drive: Drive<'a>,
    pause: Duration,
    limit: Option<Instant>,
    looked: Instant,
}

impl std::fmt::Debug for MemberWait<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemberWait")
            .field("is_driving", &self.drive.is_some())
            .field("pause", &self.pause)
            .finish()
    }
}

impl<'a> MemberWait<'a> {
    fn new(drive: Drive<'a>, limit: Option<Duration>) -> MemberWait<'a> {
        let now = Instant::now();
        MemberWait {
            drive,
            pause: match drive {
                Some(_) => FIRST_DRIVE,
                None => WATCH,
            },
            limit: limit.and_then(|limit| now.checked_add(limit)),
            looked: now,
        }
    }

    fn pause(&mut self, rank: usize) -> Result<Duration, Apart> {
        let mut pause = self.pause;
        if let Some(limit) = self.limit {
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Apart::Late(rank));
            }
            pause = pause.min(left);
        }
        Ok(pause)
    }

    fn drive(&mut self) {
        if let Some(drive) = self.drive {
            for _ in 0..DRIVES {
                drive();
            }
        }
        if self.pause < LAST_DRIVE {
            self.pause = (self.pause * 2).min(LAST_DRIVE);
        }
    }

    /// Whether it is time to look at the others.
    fn is_time_to_look(&mut self) -> bool {
        let is_time = self.looked.elapsed() >= WATCH;
        if is_time {
            self.looked = Instant::now();
        }
        is_time
    }
}

/// Steps that belong together.
#[derive(Debug)]
struct Round<'a> {
    assembly: &'a Assembly,
    step: parking_lot::MutexGuard<'a, u32>,
    waiting: MemberWait<'a>,
}

impl Round<'_> {
    /// Says that this member's slot is written.
    fn post(&self) {
        let Assembly { rank, .. } = *self.assembly;
        let word = self.assembly.posted(rank);
        word.store(*self.step, Ordering::SeqCst);
        if self.assembly.sleepers(rank).load(Ordering::SeqCst) > 0 {
            let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// Waits until a member has posted this step.
    fn wait(&mut self, rank: usize) -> Result<(), Apart> {
        let assembly = self.assembly;
        let is_posted = |seen: u32| seen.wrapping_sub(*self.step) < u32::MAX / 2;
        loop {
            let seen = assembly.posted(rank).load(Ordering::SeqCst);
            if is_posted(seen) {
                return Ok(());
            }
            if let Some(cause) = assembly.cause(rank) {
                // It may have posted before it left.
                return match is_posted(assembly.posted(rank).load(Ordering::SeqCst)) {
                    true => Ok(()),
                    false => Err(cause),
                };
            }
            let has_come = assembly.word(rank, PID).load(Ordering::SeqCst) != 0;
            if has_come && self.waiting.is_time_to_look() && !assembly.lives(rank) {
                return match is_posted(assembly.posted(rank).load(Ordering::SeqCst)) {
                    true => Ok(()),
                    false => Err(Apart::Died(rank)),
                };
            }
            // One that waits for a dead member finds out by itself, leaves, and we see that.
            assembly.sleep(rank, seen, &mut self.waiting)?;
        }
    }

    fn next(&mut self) {
        *self.step = self.step.wrapping_add(1);
    }
}

impl Drop for Assembly {
    fn drop(&mut self) {
        if std::process::id() != self.pid {
            return;
        }
        self.forget_name();
        self.word(self.rank, LEFT).store(1, Ordering::SeqCst);
        self.wake_all();
    }
}

/// When a process began, in the kernel's ticks, if it lives.
fn began(pid: u32) -> Option<u64> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name may hold anything, also parentheses; it ends with the last one.
    let (_, rest) = text.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    if matches!(words.next()?, "Z" | "X" | "x") {
        return None;
    }
    words.nth(18)?.parse().ok()
}
