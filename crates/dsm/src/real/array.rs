//! Typed arrays in shared memory, and views of them that are tied to an epoch.
//!
//! A view hands out values, no references: other processes store into the same pages. Each load and store is one atomic access of the element's size, so a program with a
//! race gets an old or a new value and nothing worse.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::memory::{Core, Epoch, SharedMemory};
use super::region::{Guard, PAGE_BYTES};
use crate::page::Access;

mod sealed {
    pub trait Number: Copy {
        /// # Safety
        ///
        /// The place is a valid, aligned element.
        unsafe fn load(place: *mut u8) -> Self;

        /// # Safety
        ///
        /// The place is a valid, aligned element.
        unsafe fn store(self, place: *mut u8);
    }
}

/// Numbers that arrays in shared memory are made of.
pub trait Element: sealed::Number + bytemuck::Pod {}

macro_rules! elements {
    ($($number:ty, $atomic:ty, $bits:ty;)*) => {$(
        impl sealed::Number for $number {
            unsafe fn load(place: *mut u8) -> $number {
                // SAFETY: the caller says that the place is valid and aligned.
                let atomic = unsafe { <$atomic>::from_ptr(place.cast()) };
                bytemuck::cast::<$bits, $number>(atomic.load(Ordering::Relaxed))
            }

            unsafe fn store(self, place: *mut u8) {
                // SAFETY: the caller says that the place is valid and aligned.
                let atomic = unsafe { <$atomic>::from_ptr(place.cast()) };
                atomic.store(bytemuck::cast::<$number, $bits>(self), Ordering::Relaxed);
            }
        }

        impl Element for $number {}
    )*};
}

elements! {
    u8, AtomicU8, u8; i8, AtomicU8, u8;
    u16, AtomicU16, u16; i16, AtomicU16, u16;
    u32, AtomicU32, u32; i32, AtomicU32, u32; f32, AtomicU32, u32;
    u64, AtomicU64, u64; i64, AtomicU64, u64; f64, AtomicU64, u64;
}

/// An array in shared memory: where it is, not a right to look at it.
#[derive(Debug)]
pub struct SharedArray<T> {
    start: usize,
    len: usize,
    of: PhantomData<T>,
}

impl<T> Clone for SharedArray<T> {
    fn clone(&self) -> SharedArray<T> {
        *self
    }
}

impl<T> Copy for SharedArray<T> {}

impl<T: Element> SharedArray<T> {
    pub(super) fn new(start: usize, len: usize) -> SharedArray<T> {
        SharedArray {
            start,
            len,
            of: PhantomData,
        }
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The number of its first page in the memory; an array begins on a page.
    pub fn first_page(&self) -> u32 {
        (self.start / PAGE_BYTES) as u32
    }

    /// Its first byte, counted from the beginning of the memory.
    pub fn start(&self) -> usize {
        self.start
    }

    /// So many bytes of it from one on.
    pub(crate) fn bytes_from(&self, from: usize, len: usize) -> SharedArray<u8> {
        assert!(from + len <= self.bytes(), "bytes of another array");
        SharedArray::new(self.start + from, len)
    }

    /// An array of bytes in its place.
    pub fn as_bytes(&self) -> SharedArray<u8> {
        SharedArray::new(self.start, self.bytes())
    }

    /// Its pages that have some of these elements: the first, and the one behind the last.
    pub(super) fn pages(&self, elements: Range<usize>) -> (u32, u32) {
        assert!(
            elements.start <= elements.end && elements.end <= self.len,
            "elements of another array"
        );
        let bytes = self.start + elements.start * size_of::<T>()
            ..self.start + elements.end * size_of::<T>();
        (
            (bytes.start / PAGE_BYTES) as u32,
            bytes.end.div_ceil(PAGE_BYTES) as u32,
        )
    }
}

/// An array as it is in an epoch.
#[derive(Debug)]
pub struct View<'e, T> {
    core: &'e Core,
    array: SharedArray<T>,
    epoch: PhantomData<&'e Epoch>,
}

impl SharedMemory {
    /// Looks at an array, until the next point of synchronisation.
    pub fn view<'e, T: Element>(&'e self, _epoch: &'e Epoch, array: SharedArray<T>) -> View<'e, T> {
        View {
            core: &self.core,
            array,
            epoch: PhantomData,
        }
    }
}

impl<T: Element> View<'_, T> {
    fn place_of(&self, index: usize) -> usize {
        assert!(
            index < self.array.len,
            "element {index} of a shared array of {}",
            self.array.len
        );
        self.array.start + index * size_of::<T>()
    }

    /// Loads an element.
    pub fn get(&self, index: usize) -> T {
        let at = self.place_of(index);
        // SAFETY: an element inside the memory: arrays begin on pages and elements are as long as they are aligned.
        let load = |place| unsafe { T::load(place) };
        match self.core.region.guard {
            Guard::Software => self.core.access(at, Access::Read, load),
            _ => load(self.core.region.place(at)),
        }
    }

    /// Stores an element.
    pub fn set(&self, index: usize, value: T) {
        let at = self.place_of(index);
        // SAFETY: as for loading.
        let store = |place| unsafe { value.store(place) };
        match self.core.region.guard {
            Guard::Software => self.core.access(at, Access::Write, store),
            _ => store(self.core.region.place(at)),
        }
    }

    /// Loads several elements.
    pub fn copy_to(&self, from: usize, target: &mut [T]) {
        for (index, element) in target.iter_mut().enumerate() {
            *element = self.get(from + index);
        }
    }

    /// Stores several elements.
    pub fn copy_from(&self, to: usize, source: &[T]) {
        for (index, element) in source.iter().enumerate() {
            self.set(to + index, *element);
        }
    }
}
