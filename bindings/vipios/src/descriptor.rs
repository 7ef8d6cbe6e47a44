//! `Access_Desc` and `basic_block` as C lays them out, read into words, and from these into a checked descriptor.
//!
//! ```text
//!  structs of the program  --Words::read-->  words: a key to find patterns by  --describe-->  AccessDesc
//! ```
//!
//! A struct that several blocks point at is read once. One that is part of itself is refused, as are more levels than
//! [`MAX_DEPTH`], counts below 0 and null pointers.
//!
//! The ground of the unsafe blocks here is what `vipios.h` demands: a descriptor points at as many blocks as it says, and a block at
//! a descriptor or at nothing.

use std::collections::HashMap;
use std::ffi::c_int;

use border::entry::{Failure, Outcome};
use border::ffi::{List, Out};
use client::Status;
use layout::access_desc::{AccessDesc, BasicBlock, MAX_DEPTH};

use crate::answer::{Number, code, not_negative};

/// Most blocks of a descriptor and of all in it.
const MOST_BLOCKS: u64 = 1 << 20;

/// Words of a block: offset, repeat, count, stride, which descriptor before this one is its subtype, or -1.
const BLOCK_WORDS: usize = 5;

/// `basic_block`, and the one with 64.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<N> {
    offset: N,
    repeat: N,
    count: N,
    stride: N,
    subtype: *mut Desc<N>,
    sub_count: N,
    sub_actual: N,
}

/// `Access_Desc`, and the one with 64.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Desc<N> {
    no_blocks: N,
    basics: *mut Block<N>,
    skip: N,
}

/// A descriptor of the program that is only read.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor<N>(*const Desc<N>);

/// A descriptor of the program whose results are stored.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescriptorToFill<N>(*mut Desc<N>);

/// All descriptors of one, those in it first: for each the number of its blocks, what it skips, and its blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words(Vec<i64>);

/// What has become of a struct that was met.
#[derive(Clone, Copy, Debug)]
enum Encounter {
    /// It is not read to its end: what points at it is part of it.
    Begun,
    /// It is the descriptor with this number.
    Read(i64),
}

struct Reader<N> {
    words: Words,
    count: i64,
    blocks: u64,
    met: HashMap<*const Desc<N>, Encounter>,
    /// In the order of their numbers.
    order: Vec<*const Desc<N>>,
}

impl<N: Number> Reader<N> {
    fn read(&mut self, at: *const Desc<N>, level: u32) -> Outcome<i64> {
        let refuse = |text: String| Err(Failure::argument("desc", text));
        match self.met.get(&at) {
            Some(Encounter::Read(number)) => return Ok(*number),
            Some(Encounter::Begun) => return refuse("is part of itself".into()),
            None => {}
        }
        if level > MAX_DEPTH {
            return refuse(format!("has more than {MAX_DEPTH} levels"));
        }
        if at.is_null() {
            return refuse("is a null pointer".into());
        }
        self.met.insert(at, Encounter::Begun);
        // SAFETY: the caller gives a descriptor.
        let desc = unsafe { at.read_unaligned() };
        let blocks = not_negative("no_blocks", desc.no_blocks.into())?;
        if desc.basics.is_null() && blocks > 0 {
            return refuse(format!(
                "says {blocks} blocks, and basics is a null pointer"
            ));
        }
        self.blocks = self.blocks.saturating_add(blocks);
        if self.blocks > MOST_BLOCKS {
            let text = format!("desc: has more than {MOST_BLOCKS} blocks");
            return Err(Failure::new(Status::TooLarge, text));
        }
        let mut mine = vec![desc.no_blocks.into(), desc.skip.into()];
        mine.reserve(blocks as usize * BLOCK_WORDS);
        for index in 0..blocks as usize {
            // SAFETY: the descriptor has so many blocks.
            let block = unsafe { desc.basics.add(index).read_unaligned() };
            let sub = match block.subtype.is_null() {
                true => -1,
                false => self.read(block.subtype, level + 1)?,
            };
            for word in [block.offset, block.repeat, block.count, block.stride] {
                mine.push(word.into());
            }
            mine.push(sub);
        }
        self.words.0.append(&mut mine);
        let number = self.count;
        self.count += 1;
        self.met.insert(at, Encounter::Read(number));
        self.order.push(at);
        Ok(number)
    }
}

fn read<N: Number>(at: *const Desc<N>) -> Outcome<Reader<N>> {
    let mut reading = Reader {
        words: Words::default(),
        count: 0,
        blocks: 0,
        met: HashMap::new(),
        order: Vec::new(),
    };
    reading.read(at, 1)?;
    Ok(reading)
}

impl<N: Number> Descriptor<N> {
    /// What the program has described.
    pub(crate) fn get(self) -> Outcome<Words> {
        Ok(read(self.0)?.words)
    }
}

impl Words {
    /// All descriptors, checked; the last is the whole.
    fn describe_all(&self) -> Outcome<Vec<AccessDesc>> {
        let mut all: Vec<AccessDesc> = Vec::new();
        let mut rest = &self.0[..];
        while let [count, skip, behind @ ..] = rest {
            let (words, after) = behind.split_at(*count as usize * BLOCK_WORDS);
            let block = |words: &[i64]| BasicBlock {
                offset: words[0],
                repeat: words[1],
                count: words[2],
                stride: words[3],
                subtype: usize::try_from(words[4]).ok().map(|sub| all[sub].clone()),
            };
            let blocks = words.chunks_exact(BLOCK_WORDS).map(block).collect();
            all.push(AccessDesc::new(*skip, blocks)?);
            rest = after;
        }
        Ok(all)
    }

    /// The descriptor, checked.
    pub(crate) fn describe(&self) -> Outcome<AccessDesc> {
        let mut all = self.describe_all()?;
        all.pop()
            .ok_or_else(|| Failure::argument("desc", "is empty"))
    }
}

fn fitting<N: Number>(value: i64) -> Outcome<N> {
    N::of(value).ok_or_else(|| {
        let text = format!("desc: {value} does not fit; use the call with 64 in its name");
        Failure::new(Status::TooLarge, text)
    })
}

/// Stores the results of all blocks, if all of them fit.
fn fill<N: Number>(desc: DescriptorToFill<N>, extent: Out<N>, actual: Out<N>) -> Outcome {
    let reading = read(desc.0.cast_const())?;
    let all = reading.words.describe_all()?;
    let mut results: Vec<(N, N)> = Vec::with_capacity(all.len());
    for desc in &all {
        let actual = i64::try_from(desc.actual()).unwrap_or(i64::MAX);
        results.push((fitting(desc.extent())?, fitting(actual)?));
    }
    let one = (fitting(1)?, fitting(1)?);
    for (at, desc) in reading.order.iter().zip(&all) {
        for index in 0..desc.blocks().len() {
            // SAFETY: these were read above; the caller gives them to be changed.
            unsafe {
                let block = (**at).basics.add(index);
                let subtype = (*block).subtype.cast_const();
                let (count, actual) = match reading.met.get(&subtype) {
                    Some(Encounter::Read(number)) => results[*number as usize],
                    _ => one,
                };
                (*block).sub_count = count;
                (*block).sub_actual = actual;
            }
        }
    }
    if let Some((whole, transferred)) = results.last() {
        extent.set(*whole);
        actual.set(*transferred);
    }
    Ok(())
}

fn place<N: Number>(desc: Descriptor<N>, offset: N, position: Out<N>) -> Outcome {
    position.required("position")?;
    let desc = desc.get()?.describe()?;
    let offset = not_negative("offset", offset.into())?;
    let found = desc.position(offset).ok_or_else(|| {
        let text =
            format!("{offset} has no place: nothing is transferred, or it is beyond 64 bits");
        Failure::argument("offset", text)
    })?;
    position.set(fitting(found)?);
    Ok(())
}

/// Stores sub_count and sub_actual of all blocks.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Fill_access_desc(
    desc: DescriptorToFill<i32>,
    extent: Out<i32>,
    actual: Out<i32>,
) -> c_int {
    code("ViPIOS_Fill_access_desc", || fill(desc, extent, actual))
}

/// Stores sub_count and sub_actual of all blocks, in 64 bits.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Fill_access_desc64(
    desc: DescriptorToFill<i64>,
    extent: Out<i64>,
    actual: Out<i64>,
) -> c_int {
    code("ViPIOS_Fill_access_desc64", || fill(desc, extent, actual))
}

/// Where a byte of a descriptor lies.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Get_absolute_byte_position(
    desc: Descriptor<i32>,
    offset: i32,
    position: Out<i32>,
) -> c_int {
    code("ViPIOS_Get_absolute_byte_position", || {
        place(desc, offset, position)
    })
}

/// Where a byte of a descriptor lies, in 64 bits.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Get_absolute_byte_position64(
    desc: Descriptor<i64>,
    offset: i64,
    position: Out<i64>,
) -> c_int {
    code("ViPIOS_Get_absolute_byte_position64", || {
        place(desc, offset, position)
    })
}

/// Writes a mapping function psi as a descriptor: one block per record, each from where the one before ended.
#[unsafe(no_mangle)]
extern "C" fn ViPIOS_Describe_psi(
    record_bytes: i64,
    count: i64,
    records: List<i64>,
    blocks: Out<Block<i64>>,
    desc: Out<Desc<i64>>,
) -> c_int {
    code("ViPIOS_Describe_psi", || {
        let bytes = not_negative("record_bytes", record_bytes)?;
        let most = not_negative("count", count)?.min(MOST_BLOCKS + 1) as usize;
        if bytes == 0 || most as u64 > MOST_BLOCKS {
            let text = format!("give records of a byte or more, and at most {MOST_BLOCKS} of them");
            return Err(Failure::argument("record_bytes", text));
        }
        let records = records.get("records", most)?;
        desc.required("desc")?;
        if most > 0 {
            blocks.required("blocks")?;
        }
        let mut end = 0i64;
        let mut all = Vec::with_capacity(records.len());
        for record in &records {
            let start = record
                .checked_sub(1)
                .filter(|n| *n >= 0)
                .and_then(|n| n.checked_mul(record_bytes));
            let next = start.and_then(|start| start.checked_add(record_bytes));
            let (Some(start), Some(next)) = (start, next) else {
                let text = format!("has {record}; records count from 1, and end within 64 bits");
                return Err(Failure::argument("records", text));
            };
            all.push(Block {
                offset: start - end,
                repeat: 1,
                count: record_bytes,
                stride: 0,
                subtype: std::ptr::null_mut(),
                sub_count: 1,
                sub_actual: 1,
            });
            end = next;
        }
        for (index, block) in all.iter().enumerate() {
            blocks.set_at(index, *block);
        }
        desc.set(Desc {
            no_blocks: count,
            basics: blocks.address(),
            skip: 0,
        });
        Ok(())
    })
}
