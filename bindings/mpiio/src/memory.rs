//! Memory of the program as an operation sees it: an address, a datatype, a count.
//!
//! ```text
//!  the view shows values as in memory    the program's own bytes             nothing is copied twice
//!  it shows others                       bytes of the file on a stage        converted before a write, after a read
//!  memory to read into overlaps          the same                            laid out one after the other
//! ```
//!
//! It may be handed to a thread of ours: MPI demands that the program leaves the buffer alone until the
//! operation is complete.
//!
//! Invariants
//! - Sizes and places are those of bytes of the view.
//! - Bytes between the described ones are never touched.
//! - Functions of the program convert values before a write when the memory is described, after a read in
//!   [`Memory::finish`]; [`Memory::needs_caller`] says where that may be called.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use client::{Places, SharedBytes, SharedBytesMut};
use parking_lot::Mutex;

use crate::datarep::{self, ProgramRepresentation, Representation};
use crate::datatype::{Element, ElementPlaces, Kind, Type};
use crate::entry::Outcome;
use crate::failure::{Class, Failure};
use crate::ffi::{Address, Word};
use crate::operation::Direction;
use crate::view::CurrentView;

/// Bytes of values that are converted in one go.
const PORTION: u64 = 64 << 10;

/// A described buffer of the program.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Where the lowest described byte is.
    base: usize,
    /// The bytes from there on.
    places: Places,
    /// Set if the view shows other bytes than those.
    staged: Option<Box<StagedValues>>,
}

/// Values on their way between memory and file.
#[derive(Debug)]
struct StagedValues {
    bytes: Stage,
    places: Places,
    /// How values are converted; nothing if they are laid out as they come.
    representation: Option<Representation>,
    /// What the program gave.
    buffer: usize,
    datatype: Arc<Type>,
    handle: Word,
    count: u64,
    direction: Direction,
}

impl Memory {
    /// `count` elements of a type at an address, to be moved through a view. `handle` is the type's.
    pub(crate) fn new(
        buffer: Address,
        count: u64,
        datatype: &Arc<Type>,
        handle: Word,
        view: &CurrentView,
        direction: Direction,
    ) -> Outcome<Memory> {
        let ElementPlaces { low, places } = datatype.placed(count)?;
        let mut memory = Memory {
            base: buffer.number().wrapping_add_signed(low as isize),
            places,
            staged: None,
        };
        if memory.places.size() == 0 {
            return Ok(memory);
        }
        let is_converted = is_converted(&view.representation, datatype, direction)?;
        if is_converted || direction == Direction::Read && memory.places.has_overlap() {
            let bytes = match is_converted {
                true => view.representation.bytes_of(datatype, count)?,
                false => memory.places.size(),
            };
            let staged = StagedValues {
                bytes: Stage::new(bytes)?,
                places: Places::bytes(bytes),
                representation: is_converted.then(|| view.representation.clone()),
                buffer: buffer.number(),
                datatype: Arc::clone(datatype),
                handle,
                count,
                direction,
            };
            if direction == Direction::Write {
                memory.convert_out(&staged)?;
            }
            memory.staged = Some(Box::new(staged));
        }
        Ok(memory)
    }

    /// No bytes.
    pub(crate) fn nothing() -> Memory {
        Memory {
            base: 0,
            places: Places::bytes(0),
            staged: None,
        }
    }

    /// Bytes of the view in all.
    pub(crate) fn size(&self) -> u64 {
        self.places().size()
    }

    /// How bytes of the view lie.
    pub(crate) fn places(&self) -> &Places {
        match &self.staged {
            Some(staged) => &staged.places,
            None => &self.places,
        }
    }

    /// Whether a function of the program has to be called when the bytes have come.
    pub(crate) fn needs_caller(&self) -> bool {
        self.staged.as_ref().is_some_and(|staged| {
            staged.direction == Direction::Read
                && matches!(staged.representation, Some(Representation::Registered(_)))
        })
    }

    /// The bytes of the view, for a request in this direction.
    pub(crate) fn of_request(&self, direction: Direction) -> Outcome<client::Memory<'_>> {
        let places = self.places();
        let memory = match (direction, &self.staged) {
            (Direction::Write, None) => client::Memory::source(self.described(), 0, places),
            (Direction::Write, Some(staged)) => client::Memory::source(staged.source(), 0, places),
            (Direction::Read, None) => client::Memory::target(self.described_mut(), 0, places),
            (Direction::Read, Some(staged)) => client::Memory::target(staged.target(), 0, places),
        };
        Ok(memory?)
    }

    /// Converts what has come, if it has to be; bytes of the program that `moved` bytes of the view are.
    pub(crate) fn finish(&self, moved: u64) -> Outcome<u64> {
        let Some(staged) = &self.staged else {
            return Ok(moved);
        };
        let Some(representation) = &staged.representation else {
            let came = &staged.filled()[..moved as usize];
            self.places.unpack(came, self.described_mut(), 0, 0)?;
            return Ok(moved);
        };
        match (staged.direction, representation) {
            (Direction::Write, _) if moved == self.size() => Ok(self.places.size()),
            (Direction::Write, _) => Ok(staged.items_in(representation, moved)?.1),
            (Direction::Read, Representation::Registered(registered)) => {
                let (items, bytes) = staged.items_in(representation, moved)?;
                staged.call(registered, items)?;
                Ok(bytes)
            }
            (Direction::Read, _) => self.convert_in(staged, moved),
        }
    }

    /// Bytes from the lowest described one to the highest.
    fn reach(&self) -> usize {
        self.places.hull().map_or(0, |hull| hull.end as usize)
    }

    fn described(&self) -> SharedBytes<'_> {
        // SAFETY: the program gave a buffer that holds what the datatype describes, and leaves it alone until the
        // operation is complete.
        unsafe { SharedBytes::new(self.base as *const u8, self.reach()) }
    }

    fn described_mut(&self) -> SharedBytesMut<'_> {
        // SAFETY: the same; nobody else uses the bytes that are described.
        unsafe { SharedBytesMut::new(self.base as *mut u8, self.reach()) }
    }

    /// Makes values of the file on the stage.
    fn convert_out(&self, staged: &StagedValues) -> Outcome {
        if let Some(Representation::Registered(registered)) = &staged.representation {
            return staged.call(registered, staged.items());
        }
        let (mut from, mut to) = (0, 0);
        let mut target = staged.target();
        // SAFETY: the stage is new and in nobody else's hands.
        let file = unsafe { std::slice::from_raw_parts_mut(target.as_mut_ptr(), target.len()) };
        let mut packed = Vec::new();
        let mut outcome = Ok(());
        staged.in_portions(|element, count| {
            let (size, external) = (count * element.size(), count * element.external_size());
            packed.resize(size as usize, 0);
            outcome = self
                .places
                .pack(self.described(), 0, from, &mut packed)
                .map_err(Failure::from)
                .and_then(|()| {
                    let place = &mut file[to as usize..(to + external) as usize];
                    datarep::to_external(element, &packed, place)
                });
            from += size;
            to += external;
            outcome.is_ok()
        });
        outcome
    }

    /// Makes values in memory of `moved` bytes on the stage; how many bytes they have there.
    fn convert_in(&self, staged: &StagedValues, moved: u64) -> Outcome<u64> {
        let (mut from, mut to) = (0, 0);
        let file = staged.filled();
        let mut values = Vec::new();
        let mut outcome = Ok(());
        staged.in_portions(|element, count| {
            let count = count.min((moved - from) / element.external_size());
            let (size, external) = (count * element.size(), count * element.external_size());
            values.resize(size as usize, 0);
            let came = &file[from as usize..(from + external) as usize];
            outcome = datarep::from_external(element, came, &mut values).and_then(|()| {
                let unpacked = self.places.unpack(&values, self.described_mut(), 0, to);
                unpacked.map_err(Failure::from)
            });
            from += external;
            to += size;
            outcome.is_ok() && count > 0
        });
        outcome.map(|()| to)
    }
}

impl StagedValues {
    fn source(&self) -> SharedBytes<'_> {
        // SAFETY: the stage lives as long as the borrow; it was filled before.
        unsafe { SharedBytes::new(self.bytes.as_ptr().cast(), self.bytes.len()) }
    }

    fn target(&self) -> SharedBytesMut<'_> {
        // SAFETY: the bytes are atomics, so they may be written through a shared reference; one operation does.
        unsafe { SharedBytesMut::new(self.bytes.as_ptr().cast_mut().cast(), self.bytes.len()) }
    }

    /// What has come.
    fn filled(&self) -> &[u8] {
        // SAFETY: the bytes have come, and nobody writes the stage any more.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast::<u8>(), self.bytes.len()) }
    }

    /// Values in all.
    fn items(&self) -> u64 {
        self.datatype.items() * self.count
    }

    /// Whole values in a number of bytes of the view, and their bytes in memory.
    fn items_in(&self, representation: &Representation, moved: u64) -> Outcome<(u64, u64)> {
        let (mut rest, mut items, mut bytes) = (moved, 0, 0);
        let mut outcome = Ok(());
        self.datatype.visit(
            self.count,
            &mut |element, count| match representation.size_of(element) {
                Ok(size) => {
                    let whole = count.min(rest / size);
                    rest -= whole * size;
                    items += whole;
                    bytes += whole * element.size();
                    whole == count
                }
                Err(failure) => {
                    outcome = Err(failure);
                    false
                }
            },
        );
        outcome.map(|()| (items, bytes))
    }

    /// Bytes of the view before a value.
    fn bytes_before(&self, registered: &ProgramRepresentation, item: u64) -> u64 {
        let (mut rest, mut bytes) = (item, 0);
        self.datatype.visit(self.count, &mut |element, count| {
            let some = count.min(rest);
            rest -= some;
            bytes += some * registered.size_of(element).unwrap_or(0);
            rest > 0
        });
        bytes
    }

    /// Hands out values of one kind in portions, in their order.
    fn in_portions(&self, mut visit: impl FnMut(&Element, u64) -> bool) {
        self.datatype.visit(self.count, &mut |element, count| {
            let most = (PORTION / element.size()).max(1);
            let mut rest = count;
            while rest > 0 {
                let some = rest.min(most);
                if !visit(element, some) {
                    return false;
                }
                rest -= some;
            }
            true
        });
    }

    /// Has the program convert a number of values.
    fn call(&self, registered: &ProgramRepresentation, items: u64) -> Outcome {
        if items == 0 {
            return Ok(());
        }
        let before = |item| match item {
            0 => 0,
            item => self.bytes_before(registered, item),
        };
        let file = self.target().as_mut_ptr();
        let (direction, user) = (self.direction, self.buffer);
        registered.convert(direction, user, self.handle, items, file, &before)
    }
}

/// Whether values of a type are others in the file.
fn is_converted(
    representation: &Representation,
    datatype: &Type,
    direction: Direction,
) -> Outcome<bool> {
    match representation {
        Representation::Native | Representation::Internal => Ok(false),
        Representation::External32 => Ok(datatype
            .elements()
            .iter()
            .any(|(element, _)| element.kind != Kind::Bytes)),
        Representation::Registered(registered) => {
            let as_it_is = match direction {
                Direction::Read => registered.reads_as_it_is(),
                Direction::Write => registered.writes_as_it_is(),
            };
            if !as_it_is {
                return Ok(true);
            }
            for (element, _) in datatype.elements() {
                if representation.size_of(element)? != element.size() {
                    let text = format!(
                        "'{}' has no function for this direction, and values of other sizes than in memory; register one",
                        registered.name
                    );
                    return Err(Failure::new(Class::Conversion, text));
                }
            }
            Ok(false)
        }
    }
}

/// Room for bytes of the file. Given back, it is kept for the next one: new memory is dear.
#[derive(Debug)]
struct Stage {
    room: Vec<AtomicU8>,
    len: usize,
}

/// Rooms that nobody uses.
static ROOMS: Mutex<Vec<Vec<AtomicU8>>> = Mutex::new(Vec::new());
const MOST_ROOMS: usize = 4;
const LARGEST_ROOM: usize = 64 << 20;

impl Stage {
    fn new(bytes: u64) -> Outcome<Stage> {
        let no_room = || {
            Failure::new(
                Class::NoMem,
                format!("there is no memory for {bytes} bytes in the representation of the file"),
            )
        };
        let len = usize::try_from(bytes).map_err(|_| no_room())?;
        let mut room = ROOMS.lock().pop().unwrap_or_default();
        if room.len() < len {
            room.try_reserve_exact(len - room.len())
                .map_err(|_| no_room())?;
            room.resize_with(len, AtomicU8::default);
        }
        Ok(Stage { room, len })
    }
}

impl Deref for Stage {
    type Target = [AtomicU8];

    fn deref(&self) -> &[AtomicU8] {
        &self.room[..self.len]
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let mut rooms = ROOMS.lock();
        if rooms.len() < MOST_ROOMS && self.room.len() <= LARGEST_ROOM {
            rooms.push(std::mem::take(&mut self.room));
        }
    }
}
