//! Which files have the size that the catalogue has, so that no owner needs to be asked for it.
//!
//! While a client has a file open for writing, its owner knows the size and the catalogue may not. When the last of them has
//! closed it, and each of them said that what it wrote is counted in the catalogue, the file is *settled*, until a client
//! opens it for writing again. A file of which a writer went without that word (it has died) is *in doubt*: it is settled when its
//! owner was asked and said the same as the catalogue, while nobody could write.
//!
//! ```text
//!   opened ----> writers: 1 ----> writers: 2 ----> 1 ----> 0, all have said "counted" ----> settled
//!                                  one died .............> 0, in doubt --- asked, same ---> settled
//! ```
//!
//! Invariants
//! - No file is settled while a writer is known.
//! - A file stays in doubt, whatever later writers say of their own bytes, until its owner was asked.
//! - A file that was made before the present start of the metadata manager is never settled: a client may still have it open that
//!   has not come back yet, and writes without asking the manager.
//! - An answer of the owner settles nothing if a writer was there, or the size was reported, between question and answer.
//! - What was never settled, or was forgotten for want of room, is asked for: this only ever saves a question.
//!
//! Left to others: which handles there are (`meta`), asking the owner (`metaserver`).

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use wire::FileId;

/// Most files that are remembered; all are forgotten when there are more.
const MOST: usize = 1 << 20;

/// The word of a writer that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// All that it wrote is in the size of the catalogue, it says.
    Counted,
    /// It died, or could not make sure.
    InDoubt,
}

/// What the owner of a file has said of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// What the catalogue had before the question began.
    Same,
    /// Another one, or nothing.
    Other,
}

#[derive(Debug, Default)]
struct Questions {
    count: u64,
    /// The size may have changed since one of them began.
    is_disturbed: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub struct SettledSizes {
    /// Files before this one were there before this start.
    first: FileId,
    writers: HashMap<FileId, u64>,
    /// Files of which a writer went in doubt since the owner was last asked.
    in_doubt: HashSet<FileId>,
    /// Files before this one are settled by their owners only: which of them are in doubt was forgotten.
    first_trusted: FileId,
    /// Since which moment.
    settled: HashMap<FileId, u64>,
    /// Counts files that became settled.
    moment: u64,
    asking: HashMap<FileId, Questions>,
    most: usize,
}

impl SettledSizes {
    /// Of a start of the catalogue, whose first new file has this number or a higher one.
    pub fn new(first: FileId) -> SettledSizes {
        SettledSizes {
            first,
            writers: HashMap::new(),
            in_doubt: HashSet::new(),
            first_trusted: FileId(0),
            settled: HashMap::new(),
            moment: 0,
            asking: HashMap::new(),
            most: MOST,
        }
    }

    /// Now, for [`SettledSizes::is_settled_since`].
    pub fn moment(&self) -> u64 {
        self.moment
    }

    /// Whether a file has been settled from that moment on without a break: then the catalogue had the size all that time.
    pub fn is_settled_since(&self, file: FileId, moment: u64) -> bool {
        self.settled
            .get(&file)
            .is_some_and(|since| *since <= moment)
    }

    /// Whether a client has it open for writing.
    pub fn is_written(&self, file: FileId) -> bool {
        self.writers.contains_key(&file)
    }

    /// A handle for writing is there from now on. Told before its client hears of it.
    pub fn opened(&mut self, file: FileId) {
        *self.writers.entry(file).or_default() += 1;
        self.disturb(file);
    }

    /// A handle for writing is gone.
    pub fn closed(&mut self, file: FileId, word: Farewell) {
        let Some(writers) = self.writers.get_mut(&file) else {
            return;
        };
        *writers = writers.saturating_sub(1);
        let is_last = *writers == 0;
        if is_last {
            self.writers.remove(&file);
        }
        if word == Farewell::InDoubt {
            self.doubt(file);
        }
        if is_last && !self.in_doubt.contains(&file) && file >= self.first_trusted {
            self.settle(file);
        }
    }

    fn doubt(&mut self, file: FileId) {
        if self.in_doubt.len() >= self.most {
            self.in_doubt.clear();
            self.first_trusted = FileId(u64::MAX);
        }
        self.in_doubt.insert(file);
    }

    /// The owner has reported a size that the catalogue did not have.
    pub fn reported(&mut self, file: FileId) {
        self.disturb(file);
    }

    /// A question to the owner begins.
    pub fn ask(&mut self, file: FileId) {
        let is_written = self.writers.contains_key(&file);
        let asking = self.asking.entry(file).or_default();
        asking.count += 1;
        asking.is_disturbed |= is_written;
    }

    /// A question to the owner has ended.
    pub fn answered(&mut self, file: FileId, answer: Answer) {
        let Some(asking) = self.asking.get_mut(&file) else {
            return;
        };
        asking.count -= 1;
        let is_disturbed = asking.is_disturbed;
        if asking.count == 0 {
            self.asking.remove(&file);
        }
        let is_same = answer == Answer::Same;
        if is_same && !is_disturbed && !self.writers.contains_key(&file) {
            self.in_doubt.remove(&file);
            self.settle(file);
        }
    }

    fn disturb(&mut self, file: FileId) {
        self.settled.remove(&file);
        if let Some(asking) = self.asking.get_mut(&file) {
            asking.is_disturbed = true;
        }
    }

    fn settle(&mut self, file: FileId) {
        if file < self.first {
            return;
        }
        if self.settled.len() >= self.most {
            self.settled.clear();
        }
        if let Entry::Vacant(free) = self.settled.entry(file) {
            self.moment += 1;
            free.insert(self.moment);
        }
    }
}

#[cfg(test)]
mod tests {
    use random::Random;

    use super::*;

    const FILE: FileId = FileId(7);

    impl SettledSizes {
        fn is_settled(&self, file: FileId) -> bool {
            self.is_settled_since(file, self.moment())
        }
    }

    fn opened_once() -> SettledSizes {
        let mut sizes = SettledSizes::new(FileId(2));
        sizes.opened(FILE);
        sizes
    }

    #[test]
    fn a_file_is_settled_when_all_writers_have_said_that_their_bytes_are_counted() {
        let mut sizes = opened_once();
        sizes.opened(FILE);
        sizes.closed(FILE, Farewell::Counted);
        assert!(!sizes.is_settled(FILE));
        sizes.closed(FILE, Farewell::Counted);
        assert!(sizes.is_settled(FILE));
        sizes.opened(FILE);
        assert!(!sizes.is_settled(FILE));
        let before = sizes.moment();
        sizes.closed(FILE, Farewell::Counted);
        assert!(sizes.is_settled(FILE) && !sizes.is_settled_since(FILE, before));
        sizes.opened(FILE);
        // One in doubt is enough, also if it is not the last.
        sizes.opened(FILE);
        sizes.closed(FILE, Farewell::InDoubt);
        sizes.closed(FILE, Farewell::Counted);
        assert!(!sizes.is_settled(FILE));
        // One that comes later knows nothing of those bytes, whatever it says of its own.
        sizes.opened(FILE);
        sizes.closed(FILE, Farewell::Counted);
        assert!(!sizes.is_settled(FILE));
        sizes.ask(FILE);
        sizes.answered(FILE, Answer::Same);
        assert!(sizes.is_settled(FILE));
        sizes.opened(FILE);
        sizes.closed(FILE, Farewell::Counted);
        assert!(sizes.is_settled(FILE));
        sizes.reported(FILE);
        assert!(!sizes.is_settled(FILE));
    }

    #[test]
    fn an_answer_settles_only_what_nobody_could_change_since_the_question() {
        let mut sizes = opened_once();
        sizes.closed(FILE, Farewell::InDoubt);
        sizes.ask(FILE);
        sizes.answered(FILE, Answer::Other);
        assert!(!sizes.is_settled(FILE));
        type Change = fn(&mut SettledSizes);
        // A writer that was there when the question began may write after the answer and go before it comes.
        sizes.opened(FILE);
        sizes.ask(FILE);
        sizes.closed(FILE, Farewell::InDoubt);
        sizes.answered(FILE, Answer::Same);
        assert!(!sizes.is_settled(FILE));
        let changes: [Change; 3] = [
            |sizes| sizes.opened(FILE),
            |sizes| {
                sizes.opened(FILE);
                sizes.closed(FILE, Farewell::InDoubt);
            },
            |sizes| sizes.reported(FILE),
        ];
        for change in changes {
            sizes.ask(FILE);
            change(&mut sizes);
            sizes.answered(FILE, Answer::Same);
            assert!(!sizes.is_settled(FILE));
            sizes.closed(FILE, Farewell::InDoubt);
        }
        // Two questions: the first was disturbed, and the second began before it ended.
        sizes.ask(FILE);
        sizes.reported(FILE);
        sizes.ask(FILE);
        sizes.answered(FILE, Answer::Same);
        sizes.answered(FILE, Answer::Same);
        assert!(!sizes.is_settled(FILE));
        sizes.ask(FILE);
        sizes.answered(FILE, Answer::Same);
        assert!(sizes.is_settled(FILE));
    }

    #[test]
    fn files_of_earlier_starts_are_asked_for_and_room_is_bounded() {
        let mut sizes = SettledSizes::new(FileId(7));
        sizes.most = 3;
        for number in 0..20 {
            let file = FileId(number);
            sizes.opened(file);
            sizes.closed(file, Farewell::Counted);
            assert_eq!(sizes.is_settled(file), number >= 7, "{file}");
            sizes.ask(file);
            sizes.answered(file, Answer::Same);
            assert_eq!(sizes.is_settled(file), number >= 7, "{file}");
            assert!(sizes.settled.len() <= 3);
        }
        for number in 20..24 {
            sizes.opened(FileId(number));
            sizes.closed(FileId(number), Farewell::InDoubt);
        }
        // Which files are in doubt was forgotten: nobody's word is enough any more.
        sizes.opened(FileId(30));
        sizes.closed(FileId(30), Farewell::Counted);
        assert!(!sizes.is_settled(FileId(30)) && sizes.in_doubt.len() <= 3);
        assert!(sizes.writers.is_empty() && sizes.asking.is_empty());
        // Nonsense changes nothing.
        sizes.closed(FileId(100), Farewell::Counted);
        sizes.answered(FileId(100), Answer::Same);
        assert!(!sizes.is_settled(FileId(100)));
    }

    /// A file with its true size, the size in the catalogue, and writers that do everything in any order.
    #[test]
    fn whatever_happens_a_settled_file_has_the_size_of_the_catalogue() {
        let mut settled = 0;
        for seed in 0..2000 {
            let mut random = Random::new(seed);
            let mut sizes = SettledSizes::new(FileId(0));
            let (mut size, mut durable) = (0u64, 0u64);
            // For each writer, whether all that it wrote is in the catalogue.
            let mut writers: Vec<bool> = Vec::new();
            // For each question, the durable size when it began, and what the owner has said.
            let mut questions: Vec<(u64, Option<u64>)> = Vec::new();
            let mut was_settled = false;
            for _ in 0..60 {
                match random.below(8) {
                    0 if writers.len() < 3 => {
                        sizes.opened(FILE);
                        writers.push(true);
                    }
                    1 if !writers.is_empty() => {
                        size += 1;
                        let which = random.below(writers.len() as u64) as usize;
                        writers[which] = false;
                    }
                    // The owner reports, for a writer that closes or by itself.
                    2 if size != durable => {
                        durable = size;
                        writers.iter_mut().for_each(|counted| *counted = true);
                        sizes.reported(FILE);
                    }
                    3 if !writers.is_empty() => {
                        let which = random.below(writers.len() as u64) as usize;
                        let how = match writers.swap_remove(which) && random.below(2) == 0 {
                            true => Farewell::Counted,
                            false => Farewell::InDoubt,
                        };
                        sizes.closed(FILE, how);
                    }
                    4 if questions.len() < 3 => {
                        sizes.ask(FILE);
                        questions.push((durable, None));
                    }
                    5 => {
                        let waiting = questions.iter_mut().find(|(_, said)| said.is_none());
                        if let Some((_, said)) = waiting {
                            *said = Some(size);
                        }
                    }
                    6 => {
                        let done = questions.iter().position(|(_, said)| said.is_some());
                        if let Some(at) = done {
                            let (before, said) = questions.swap_remove(at);
                            let answer = match said == Some(before) {
                                true => Answer::Same,
                                false => Answer::Other,
                            };
                            sizes.answered(FILE, answer);
                        }
                    }
                    _ => {}
                }
                if sizes.is_settled(FILE) {
                    was_settled = true;
                    assert_eq!(size, durable, "seed {seed}");
                    assert!(writers.is_empty(), "seed {seed}");
                }
            }
            settled += u64::from(was_settled);
        }
        assert!(settled > 300, "{settled} of 2000 were ever settled");
    }
}
