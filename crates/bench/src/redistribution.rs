//! Owns [`Redistribution`]: a plan between two partitions carried out in memory, one buffer per
//! element on either side.
//!
//! Invariants: every byte of the file has a value that follows from its offset alone; the sources
//! are filled by walking their own segments and the targets are checked by walking theirs, so what
//! is checked does not depend on the plan, on meetings or on kernels.

use std::cell::RefCell;
use std::ops::Range;

use console::subject::Elements;
use console::{Error, notation};
use falls::{Joint, Periodic};
use kernels::{
    Body, Disjoint, Nest, NestError, PageBuffer, Pages, Program, copy, copy_parallel, copy_plain,
};
use layout::{ArrayType, Partition};
use plan::Plan;

/// A layout of the language as a partition, with its text; `role` names the argument in errors.
pub(crate) fn partition(
    role: &str,
    text: &str,
    array: &ArrayType,
) -> Result<(String, Partition), Error> {
    let subject = notation::partition(role, text, array)?;
    match subject.elements {
        Elements::Partition(partition) => Ok((subject.text, partition)),
        Elements::Views(_) => unreachable!("read as a partition"),
    }
}

/// Plain copies of as many bytes, between huge pages that were used before.
pub(crate) struct FlatCopy(PageBuffer, PageBuffer);

impl FlatCopy {
    /// Memory for so many bytes.
    pub(crate) fn new(bytes: u64) -> Result<FlatCopy, Error> {
        let len = usize::try_from(bytes)?;
        let (mut from, mut to) = (
            PageBuffer::new(len, Pages::Huge)?,
            PageBuffer::new(len, Pages::Huge)?,
        );
        from.fill(1);
        to.fill(2);
        Ok(FlatCopy(from, to))
    }

    /// Copies once.
    pub(crate) fn run(&mut self) {
        self.1.copy_from_slice(std::hint::black_box(&self.0));
    }

    /// Copies once by so many threads.
    pub(crate) fn run_on(&mut self, threads: usize) {
        let part = self.0.len().div_ceil(threads);
        std::thread::scope(|scope| {
            for (from, to) in self.0.chunks(part).zip(self.1.chunks_mut(part)) {
                scope.spawn(move || to.copy_from_slice(std::hint::black_box(from)));
            }
        });
    }
}

/// Buffers of the elements of one side, in one piece of memory.
struct Buffers {
    memory: PageBuffer,
    places: Vec<Range<usize>>,
}

/// Elements begin on pages of their own, as separate buffers would.
const ALIGNMENT: u64 = 4096;

impl Buffers {
    fn new(side: &plan::Side, file_len: u64) -> Result<Buffers, Error> {
        let mut end = 0u64;
        let mut places = Vec::with_capacity(side.len());
        for element in side.elements() {
            let start = end.next_multiple_of(ALIGNMENT);
            end = start + element.rank(file_len);
            places.push(usize::try_from(start)?..usize::try_from(end)?);
        }
        let memory = PageBuffer::new(usize::try_from(end)?, Pages::Huge)?;
        Ok(Buffers { memory, places })
    }
}

/// A plan with its buffers.
pub(crate) struct Redistribution {
    sources: Buffers,
    targets: RefCell<Buffers>,
    source_sets: Vec<Periodic>,
    target_sets: Vec<Periodic>,
    nests: Vec<Nest>,
    program: Program,
    /// The program with the proof that threads need, if there is one.
    proved: Option<Disjoint<Program>>,
    file_len: u64,
}

impl Redistribution {
    /// Compiles all transfers into one program, which therefore knows the size of the whole job, and
    /// allocates buffers; bytes are written by [`Redistribution::fill`].
    pub(crate) fn new(plan: &Plan) -> Result<Redistribution, Error> {
        let sources = Buffers::new(plan.sources(), plan.window().end.0)?;
        Redistribution::with_sources(plan, sources)
    }

    /// This plan once more with fresh targets, untouched by anybody.
    pub(crate) fn with_fresh_targets(self, plan: &Plan) -> Result<Redistribution, Error> {
        Redistribution::with_sources(plan, self.sources)
    }

    fn with_sources(plan: &Plan, sources: Buffers) -> Result<Redistribution, Error> {
        let file_len = plan.window().end.0;
        let targets = Buffers::new(plan.targets(), file_len)?;
        let mut all = Vec::with_capacity(plan.transfers().len());
        for transfer in plan.transfers() {
            let (Some(i), Some(j)) = (transfer.source().element(), transfer.target().element())
            else {
                return Err("layouts with a header cannot be moved in memory".into());
            };
            let source = i64::try_from(sources.places[i].start)?;
            let target = i64::try_from(targets.places[j].start)?;
            let pieces = nests(&transfer.joint())?;
            all.push(Nest::nested(source, target, 1, 0, 0, pieces)?);
        }
        let program = Program::compile(&all);
        Ok(Redistribution {
            sources,
            targets: RefCell::new(targets),
            source_sets: plan.sources().elements().collect(),
            target_sets: plan.targets().elements().collect(),
            proved: program.clone().prove_disjoint().ok(),
            program,
            nests: all,
            file_len,
        })
    }

    /// Gives every source byte its value and touches every target byte.
    pub(crate) fn fill(&mut self) {
        self.fill_sources();
        self.targets.borrow_mut().memory.fill(0);
    }

    /// Gives every source byte its value.
    pub(crate) fn fill_sources(&mut self) {
        for (place, set) in self.sources.places.iter().zip(&self.source_sets) {
            let mut at = place.start;
            for segment in set.segments(0..self.file_len) {
                let len = segment.len() as usize;
                let part = &mut self.sources.memory[at..at + len];
                for (x, byte) in (segment.start()..).zip(part) {
                    *byte = value_of(x);
                }
                at += len;
            }
        }
    }

    /// One pass with the compiled program.
    pub(crate) fn run(&self) -> Result<(), Error> {
        let mut targets = self.targets.borrow_mut();
        Ok(copy(
            &self.program,
            &self.sources.memory,
            &mut targets.memory,
        )?)
    }

    /// One pass with the compiled program, on so many threads where that is proved to be safe.
    pub(crate) fn run_on(&self, threads: usize) -> Result<(), Error> {
        let Some(program) = &self.proved else {
            return self.run();
        };
        let mut targets = self.targets.borrow_mut();
        let target = &mut targets.memory;
        Ok(copy_parallel(
            program,
            &self.sources.memory,
            target,
            threads,
        )?)
    }

    /// One pass with the loops a programmer would write.
    pub(crate) fn run_plain(&self) -> Result<(), Error> {
        let mut targets = self.targets.borrow_mut();
        Ok(copy_plain(
            &self.nests,
            &self.sources.memory,
            &mut targets.memory,
        )?)
    }

    /// Compares every target byte with the value of the file byte that belongs there.
    pub(crate) fn verify(&self) -> Result<(), Error> {
        let targets = self.targets.borrow();
        for (element, (place, set)) in targets.places.iter().zip(&self.target_sets).enumerate() {
            let mut at = place.start;
            for segment in set.segments(0..self.file_len) {
                let len = segment.len() as usize;
                let part = &targets.memory[at..at + len];
                let wrong = (segment.start()..)
                    .zip(part)
                    .find(|(x, b)| **b != value_of(*x));
                if let Some((x, _)) = wrong {
                    return Err(format!(
                        "target {element} has the wrong byte at {}, which is byte {x} of the file",
                        at - place.start
                    )
                    .into());
                }
                at += len;
            }
        }
        Ok(())
    }

    /// The copies in the words of the numpy yardstick; `None` if they are too many or irregular.
    pub(crate) fn numpy_setup(&self) -> Option<String> {
        const MOST: usize = 4096;
        let mut lines = Vec::new();
        for nest in &self.nests {
            perfect(nest, (0, 0), &mut Vec::new(), &mut lines)?;
            if lines.len() > MOST {
                return None;
            }
        }
        let (sources, targets) = (
            self.sources.memory.len(),
            self.targets.borrow().memory.len(),
        );
        Some(format!(
            "setup {sources} {targets} {}{}",
            lines.len(),
            lines.concat()
        ))
    }
}

/// Appends the perfect nests of a tree as text; `None` for trees with siblings under a loop.
fn perfect(
    nest: &Nest,
    (source, target): (i64, i64),
    levels: &mut Vec<(u64, i64, i64)>,
    out: &mut Vec<String>,
) -> Option<()> {
    let at = (source + nest.source(), target + nest.target());
    levels.push((nest.count(), nest.source_stride(), nest.target_stride()));
    match nest.body() {
        Body::Bytes(len) => {
            let mut line = format!(" {} {} {len} {}", at.0, at.1, levels.len());
            for (count, source, target) in levels.iter() {
                line += &format!(" {count} {source} {target}");
            }
            out.push(line);
        }
        Body::Nested(children) => match &children[..] {
            [child] => perfect(child, at, levels, out)?,
            siblings if nest.count() == 1 => {
                for child in siblings {
                    perfect(child, at, levels, out)?;
                }
            }
            _ => return None,
        },
    }
    levels.pop();
    Some(())
}

/// The pieces of a transfer as loops: source on the left, target on the right.
fn nests(joint: &Joint) -> Result<Vec<Nest>, NestError> {
    joint
        .nodes()
        .iter()
        .map(|node| {
            // Offsets of the algebra are below 2^63.
            let (source, target) = (node.left as i64, node.right as i64);
            let (steps, count) = (
                (node.left_stride as i64, node.right_stride as i64),
                node.count,
            );
            match &node.inner {
                None => Nest::strided(source, target, count, steps.0, steps.1, node.unit),
                Some(inner) => Nest::nested(source, target, count, steps.0, steps.1, nests(inner)?),
            }
        })
        .collect()
}

/// The value of file byte `x`: neighbours, rows and columns all differ.
pub(crate) fn value_of(x: u64) -> u8 {
    random::mix(x) as u8
}

#[cfg(test)]
mod tests {
    use layout::FileOffset;

    use super::*;

    /// Every byte, by asking both partitions who owns it.
    fn check_naive(from: &str, to: &str, array: &str) {
        let array = notation::array(array).expect("an array");
        let partition = |text: &str| partition("layout", text, &array).expect("one").1;
        let (source, target) = (partition(from), partition(to));
        let plan = Plan::between(&source, &target, array.bytes());
        let job = Redistribution::new(&plan).expect("compiles");
        check_job(job, &source, &target);
    }

    fn check_job(mut job: Redistribution, source: &Partition, target: &Partition) {
        let bytes = job.file_len;
        job.fill();
        for x in 0..bytes {
            let (element, at) = source.owner(FileOffset(x)).expect("an owner");
            let byte = job.sources.memory[job.sources.places[element].start + at.0 as usize];
            assert_eq!(byte, value_of(x), "filled wrongly at {x}");
        }
        for run in [Redistribution::run, Redistribution::run_plain] {
            job.targets.borrow_mut().memory.fill(0);
            assert!(job.verify().is_err(), "nothing moved yet");
            run(&job).expect("runs");
            job.verify().expect("verified");
            let targets = job.targets.borrow();
            for x in 0..bytes {
                let (element, at) = target.owner(FileOffset(x)).expect("an owner");
                let byte = targets.memory[targets.places[element].start + at.0 as usize];
                assert_eq!(byte, value_of(x), "moved wrongly at {x}");
            }
        }
        assert_eq!(job.program.bytes(), bytes);
    }

    #[test]
    fn bytes_arrive_where_their_owner_expects_them() {
        check_naive("(block, *) onto 4", "(*, block) onto 4", "f64[30,42]");
        check_naive(
            "(cyclic(3), block) onto 2x3",
            "(block, cyclic(5)) onto 3x2",
            "f32[31,29]",
        );
        check_naive(
            "striped(100) over 3",
            "striped(77) over 5 from 2",
            "u8[5000]",
        );
        check_naive("chunks(4,5)", "(*, cyclic) onto 3", "u16[9,8]");
    }
}
