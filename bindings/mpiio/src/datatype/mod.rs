//! Datatypes of the host as trees of our own.
//!
//! ```text
//!  handle --named?--> table of the process                       no host call, no allocation
//!         --else----> attribute of the host's type, if it was met before
//!                     else envelope and contents, once           recursively, then kept
//! ```
//!
//! Invariants
//! - Bounds are the host's: where those of the algebra differ (padding of structs, old markers) the type is
//!   resized to the host's.
//! - A type is never flattened: its tree has one node for each constructor.
//! - Handles that the host gives out with contents are given back.
//!
//! Left to others: what values look like in a file (`datarep`), buffers (`memory`), views (`view`).

mod contents;
mod element;
mod kept;
mod named;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use client::{Places, View};
use layout::mpi::{Constructor, Datatype, FileView};
use parking_lot::Mutex;

use crate::entry::Outcome;
use crate::failure::{Class, Failure};
use crate::ffi::Word;
use crate::host::Host;

pub(crate) use element::{Element, Kind};

use contents::{Arguments, Combiner};

/// Deepest tree that is read; deeper ones are refused, so that no program can exhaust the stack.
const MOST_DEEP: u32 = layout::mpi::MAX_DEPTH;

/// A datatype of the program.
#[derive(Debug)]
pub(crate) struct Type {
    /// What it means for bytes in memory, and in files whose representation is that of memory.
    pub(crate) native: Datatype,
    /// Whether it belongs to the host and is never given back.
    pub(crate) is_predefined: bool,
    parts: Parts,
    /// How often each element occurs.
    elements: Box<[(Element, u64)]>,
    /// Whether copies are one run of bytes.
    is_solid: bool,
    /// Places of the count that was asked for last.
    places: Mutex<Option<(u64, ElementPlaces)>>,
    /// What it shows of an array, once that was asked for, and how long the array is.
    part: OnceLock<(View, u64)>,
    /// How the host packs it, as far as that was seen.
    packs: AtomicU8,
}

/// How the host packs a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostPacks {
    /// Not seen yet.
    Unseen = 0,
    /// To its bytes, one after the other.
    Plainly,
    /// In a way of its own.
    Otherwise,
}

/// Where elements of a type lie in memory.
#[derive(Clone, Debug)]
pub(crate) struct ElementPlaces {
    /// The lowest byte, from the address of the buffer.
    pub(crate) low: i64,
    /// The bytes from there on.
    pub(crate) places: Places,
}

/// What a type is made of.
#[derive(Debug)]
enum Parts {
    Element(Element),
    /// A value and an index, with C's padding between and behind them.
    Pair([Element; 2]),
    /// Other types by a constructor. Its bounds are those of the algebra, not the host's.
    Of {
        made: Datatype,
        olds: Box<[Arc<Type>]>,
    },
}

impl Type {
    fn new(native: Datatype, is_predefined: bool, parts: Parts) -> Type {
        let size = native.size();
        let is_solid =
            size > 0 && !native.has_holes() || native.size() == 0 && native.extent() == 0;
        Type {
            elements: counted(&parts),
            is_solid,
            native,
            is_predefined,
            parts,
            places: Mutex::new(None),
            part: OnceLock::new(),
            packs: AtomicU8::new(HostPacks::Unseen as u8),
        }
    }

    /// It as a part of an array: the bytes that it shows, and how long the array is.
    pub(crate) fn part(&self) -> Outcome<(View, u64)> {
        if let Some(known) = self.part.get() {
            return Ok(known.clone());
        }
        let byte = Datatype::basic(1)?;
        let view = FileView::new(0, &byte, &self.native)?.to_periodic()?;
        let extent = self.native.extent().max(0).unsigned_abs();
        let part = (View::from(view), extent);
        Ok(self.part.get_or_init(|| part).clone())
    }

    /// Whether copies of it are one run of bytes.
    pub(crate) fn is_solid(&self) -> bool {
        self.is_solid
    }

    /// How the host packs it.
    pub(crate) fn host_packs(&self) -> HostPacks {
        let seen = self.packs.load(Ordering::Relaxed);
        let all = [HostPacks::Plainly, HostPacks::Otherwise];
        let found = all.into_iter().find(|packs| *packs as u8 == seen);
        found.unwrap_or(HostPacks::Unseen)
    }

    /// The host was seen to pack it.
    pub(crate) fn saw_host_pack(&self, packs: HostPacks) {
        self.packs.store(packs as u8, Ordering::Relaxed);
    }

    /// A predefined type of one element.
    fn of_element(element: Element) -> Outcome<Type> {
        let native = Datatype::basic(element.size() as i64)?;
        Ok(Type::new(native, true, Parts::Element(element)))
    }

    /// A value and an index as C lays out a struct of them.
    fn of_pair(pair: [Element; 2]) -> Outcome<Type> {
        let [value, index] = pair;
        let align = u64::from(index.width.max(1));
        let second = value.size().next_multiple_of(align);
        let olds = [
            Datatype::basic(value.size() as i64)?,
            Datatype::basic(index.size() as i64)?,
        ];
        let native = Datatype::structure(&[1, 1], &[0, second as i64], &olds)?;
        Ok(Type::new(native, true, Parts::Pair(pair)))
    }

    /// What a constructor makes of others.
    fn of_others(made: Datatype, olds: Vec<Arc<Type>>) -> Type {
        let parts = Parts::Of {
            made: made.clone(),
            olds: olds.into(),
        };
        Type::new(made, false, parts)
    }

    /// This type with other bounds, which are the host's.
    fn with_bounds(self, (lb, extent): (i64, i64)) -> Outcome<Type> {
        if (self.native.lb(), self.native.extent()) == (lb, extent) {
            return Ok(self);
        }
        let native = Datatype::resized(lb, extent, &self.native)?;
        Ok(Type::new(native, self.is_predefined, self.parts))
    }

    /// Bytes of the type map.
    pub(crate) fn size(&self) -> u64 {
        self.native.size()
    }

    /// Elements of the type map.
    pub(crate) fn items(&self) -> u64 {
        self.elements.iter().map(|(_, count)| count).sum()
    }

    /// The only kind of element in it; nothing if there are several, or none.
    pub(crate) fn uniform(&self) -> Option<&Element> {
        match &*self.elements {
            [(element, _)] => Some(element),
            _ => None,
        }
    }

    /// How often each element occurs in it.
    pub(crate) fn elements(&self) -> &[(Element, u64)] {
        &self.elements
    }

    /// Where `count` of them lie.
    pub(crate) fn placed(&self, count: u64) -> Outcome<ElementPlaces> {
        if self.is_solid {
            let bytes = self.size().checked_mul(count).ok_or_else(too_large)?;
            return Ok(ElementPlaces {
                low: self.native.true_lb(),
                places: Places::bytes(bytes),
            });
        }
        let mut kept = self.places.lock();
        if let Some((of, placed)) = &*kept
            && *of == count
        {
            return Ok(placed.clone());
        }
        let sequence = self.native.to_sequence_of(count)?;
        let low = sequence.hull().map_or(0, |hull| hull.start);
        let from_low = sequence.shift(low.checked_neg().ok_or_else(too_large)?)?;
        let placed = ElementPlaces {
            low,
            places: Places::new(&from_low),
        };
        *kept = Some((count, placed.clone()));
        Ok(placed)
    }

    /// The type as it is in a file where elements have other sizes. What counts elements is scaled; what
    /// counts bytes is as the program gave it.
    pub(crate) fn in_file(&self, size_of: &dyn Fn(&Element) -> Outcome<u64>) -> Outcome<Datatype> {
        self.scaled(size_of, &mut HashMap::new())
    }

    fn scaled(
        &self,
        size_of: &dyn Fn(&Element) -> Outcome<u64>,
        known: &mut HashMap<*const Type, Datatype>,
    ) -> Outcome<Datatype> {
        let basic = |element: &Element| -> Outcome<Datatype> {
            let size = i64::try_from(size_of(element)?).map_err(|_| too_large())?;
            Ok(Datatype::basic(size)?)
        };
        match &self.parts {
            Parts::Element(element) => basic(element),
            Parts::Pair([value, index]) => {
                let olds = [basic(value)?, basic(index)?];
                let second = olds[0].extent();
                Ok(Datatype::structure(&[1, 1], &[0, second], &olds)?)
            }
            Parts::Of { made, olds } => {
                let mut new = Vec::with_capacity(olds.len());
                for old in olds {
                    let scaled = match known.get(&Arc::as_ptr(old)) {
                        Some(scaled) => scaled.clone(),
                        None => old.scaled(size_of, known)?,
                    };
                    known.insert(Arc::as_ptr(old), scaled.clone());
                    new.push(scaled);
                }
                contents::remake(made.constructor(), &new)
            }
        }
    }

    /// Hands out the elements of `count` copies in the order of the type map, with how often each comes in a
    /// row, until `visit` says that it is enough.
    pub(crate) fn visit(&self, count: u64, visit: &mut dyn FnMut(&Element, u64) -> bool) -> bool {
        if let [(element, each)] = &*self.elements {
            let count = count.saturating_mul(*each);
            return count == 0 || visit(element, count);
        }
        if self.elements.is_empty() {
            return true;
        }
        (0..count).all(|_| match &self.parts {
            Parts::Element(element) => visit(element, 1),
            Parts::Pair(pair) => pair.iter().all(|element| visit(element, 1)),
            Parts::Of { made, olds } => match made.constructor() {
                Constructor::Struct { blocklens, .. } => blocklens
                    .iter()
                    .zip(olds)
                    .all(|(blocklen, old)| old.visit(blocklen.unsigned_abs(), visit)),
                _ => olds[0].visit(made.size() / olds[0].size().max(1), visit),
            },
        })
    }
}

/// How often each element occurs in the parts of a type.
fn counted(parts: &Parts) -> Box<[(Element, u64)]> {
    let mut counts: Vec<(Element, u64)> = Vec::new();
    let mut add = |element: &Element, count: u64| {
        if count == 0 || element.size() == 0 {
            return;
        }
        match counts.iter_mut().find(|(known, _)| known == element) {
            Some((_, known)) => *known += count,
            None => counts.push((*element, count)),
        }
    };
    match parts {
        Parts::Element(element) => add(element, 1),
        Parts::Pair([value, index]) => {
            add(value, 1);
            add(index, 1);
        }
        Parts::Of { made, olds } => match made.constructor() {
            Constructor::Struct { blocklens, .. } => {
                for (blocklen, old) in blocklens.iter().zip(olds) {
                    for (element, each) in &old.elements {
                        add(element, each * blocklen.unsigned_abs());
                    }
                }
            }
            _ => {
                for old in olds.iter().filter(|old| old.size() > 0) {
                    for (element, each) in &old.elements {
                        add(element, each * (made.size() / old.size()));
                    }
                }
            }
        },
    }
    counts.into()
}

/// A datatype that is used for one call: predefined ones are there for ever and are not counted.
#[derive(Debug)]
pub(crate) enum LentType {
    Named(&'static Arc<Type>),
    Made(Arc<Type>),
}

impl Deref for LentType {
    type Target = Arc<Type>;

    fn deref(&self) -> &Arc<Type> {
        match self {
            LentType::Named(of) => of,
            LentType::Made(of) => of,
        }
    }
}

/// The datatype behind a handle, for one call.
#[inline]
pub(crate) fn lent(host: &Host, handle: Word) -> Outcome<LentType> {
    match named::known(handle) {
        Some(known) => Ok(LentType::Named(known)),
        None => of_depth(host, handle, 0).map(LentType::Made),
    }
}

/// The datatype behind a handle.
pub(crate) fn of(host: &Host, handle: Word) -> Outcome<Arc<Type>> {
    of_depth(host, handle, 0)
}

/// A datatype that the program made, for calls that name the same one again and again; nothing for predefined ones.
pub(crate) fn made_again(host: &Host, handle: Word) -> Outcome<Option<Arc<Type>>> {
    if handle == host.abi.datatype_null || named::known(handle).is_some() {
        return Ok(None);
    }
    if let Some(kept) = kept::find_again(host, handle)? {
        return Ok(Some(kept));
    }
    let read = of_depth(host, handle, 0)?;
    Ok((!read.is_predefined).then_some(read))
}

fn of_depth(host: &Host, handle: Word, depth: u32) -> Outcome<Arc<Type>> {
    if let Some(known) = named::known(handle) {
        return Ok(Arc::clone(known));
    }
    if handle == host.abi.datatype_null {
        return Err(Failure::new(
            Class::Type,
            "the datatype is MPI_DATATYPE_NULL",
        ));
    }
    if named::is_named(host, handle) {
        return named::enter(host, handle);
    }
    if let Some(kept) = kept::find(host, handle)? {
        return Ok(kept);
    }
    if depth >= MOST_DEEP {
        return Err(Failure::new(
            Class::Type,
            format!(
                "the datatype is nested deeper than {MOST_DEEP} constructors; build it of fewer"
            ),
        ));
    }
    let envelope = host.envelope(handle)?;
    let combiner = Combiner::of(envelope.combiner, &host.abi).ok_or_else(|| {
        let text = format!(
            "the datatype was made by combiner {}, which is not known",
            envelope.combiner
        );
        Failure::new(Class::Type, text)
    })?;
    let read = match combiner {
        Combiner::Named => return named::enter(host, handle),
        _ => Arc::new(take_apart(host, handle, combiner, &envelope, depth)?),
    };
    if read.size() != host.type_size(handle)? {
        return Err(Failure::new(
            Class::Type,
            format!(
                "the datatype has {} bytes for the MPI library and {} by its constructors; build it otherwise",
                host.type_size(handle)?,
                read.size()
            ),
        ));
    }
    kept::keep(host, handle, &read);
    Ok(read)
}

/// Reads how a type was made, and what of.
fn take_apart(
    host: &Host,
    handle: Word,
    combiner: Combiner,
    envelope: &crate::host::Envelope,
    depth: u32,
) -> Outcome<Type> {
    let contents = host.contents(handle, envelope)?;
    let digits = contents.ints.first().map_or(-1, |n| i64::from(*n));
    let of_digits = |element: Option<Element>| {
        let element = element.ok_or_else(|| Failure::host_lacks("Type_size_x"))?;
        Type::of_element(element)?.with_bounds(host.type_extent(handle)?)
    };
    match combiner {
        Combiner::F90Real | Combiner::F90Complex => {
            let values = if combiner == Combiner::F90Real { 1 } else { 2 };
            let size = host.type_size(handle)?;
            return of_digits(Element::f90_real(digits, values, size, handle));
        }
        Combiner::F90Integer => {
            let size = host.type_size(handle)?;
            return of_digits(Element::f90_integer(digits, size, handle));
        }
        _ => {}
    }
    // All of them are given back, whatever becomes of the first ones.
    let mut seen: HashMap<Word, Arc<Type>> = HashMap::new();
    let olds: Vec<Outcome<Arc<Type>>> = contents
        .types
        .iter()
        .map(|old| {
            let read = match seen.get(old) {
                Some(known) => Ok(Arc::clone(known)),
                None => of_depth(host, *old, depth + 1),
            };
            if let Ok(read) = &read {
                seen.insert(*old, Arc::clone(read));
            }
            if !read.as_ref().is_ok_and(|old| old.is_predefined) {
                let _ = host.type_free(*old);
            }
            read
        })
        .collect();
    let olds = olds.into_iter().collect::<Outcome<Vec<_>>>()?;
    if combiner == Combiner::ValueIndex {
        let pair: Vec<Element> = olds.iter().filter_map(|o| o.uniform().copied()).collect();
        let pair = pair.try_into().map_err(|_| {
            Failure::new(
                Class::Type,
                "a pair of a value and an index has other parts",
            )
        })?;
        return Type::of_pair(pair)?.with_bounds(host.type_extent(handle)?);
    }
    let natives: Vec<Datatype> = olds.iter().map(|old| old.native.clone()).collect();
    let numbers = Arguments::new(&contents.ints, &contents.addresses, &contents.counts);
    let made = contents::make(combiner, numbers, &natives, &host.abi)?;
    // A duplicate is the same tree once more.
    let made = match (combiner, made.constructor()) {
        (Combiner::Dup, _) => Datatype::dup(&made)?,
        _ => made,
    };
    Type::of_others(made, olds).with_bounds(host.type_extent(handle)?)
}

fn too_large() -> Failure {
    Failure::new(
        Class::Type,
        "count and datatype reach over 2^63 bytes; give fewer",
    )
}
