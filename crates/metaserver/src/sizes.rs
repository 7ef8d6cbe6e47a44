//! The latest sizes of files, for clients that ask for attributes.
//!
//! Of a settled file ([`control::settled`]) the catalogue has the size. The owners of all others are asked, each for all its
//! files at once. What an owner cannot tell soon keeps the durable size, and is said to be that. A size that nobody reported, of a
//! file that nobody writes to, is put into the catalogue: the next question is answered there.

use std::collections::BTreeMap;
use std::time::Duration;

use control::settled::Answer;
use meta::catalogue::{Attributes, Kind, Snapshot};
use wire::ServerId;
use wire::message::cluster::AskSizes;
use wire::message::file::SizeIs;

use crate::committer::Refused;
use crate::manager::Manager;

/// How long an owner is waited for. A client that has to know asks it by itself then.
const LIMIT: Duration = Duration::from_secs(2);

/// What became of a question for sizes.
#[derive(Clone, Debug)]
pub(crate) struct LatestSizes {
    is_latest: Vec<bool>,
    /// Of which an owner was asked, whether it answered or not.
    pub(crate) asked: Vec<usize>,
}

impl LatestSizes {
    /// Whether each of the attributes has the latest size.
    pub(crate) fn are_latest(&self) -> bool {
        self.is_latest.iter().all(|is_latest| *is_latest)
    }
}

impl Manager {
    /// Puts the latest sizes into attributes that were read from a snapshot, which was taken after this moment. Those that an owner
    /// was asked for are of a later moment than the snapshot.
    pub(crate) fn put_latest_sizes(
        &self,
        snapshot: &Snapshot,
        moment: u64,
        list: &mut [&mut Attributes],
    ) -> Result<LatestSizes, Refused> {
        let mut sizes = LatestSizes {
            is_latest: vec![true; list.len()],
            asked: Vec::new(),
        };
        let mut by_owner: BTreeMap<ServerId, Vec<usize>> = BTreeMap::new();
        for (index, attributes) in list.iter().enumerate() {
            let file = attributes.file;
            if attributes.kind == Kind::Directory
                || self.settled.lock().is_settled_since(file, moment)
            {
                continue;
            }
            sizes.is_latest[index] = false;
            sizes.asked.push(index);
            let owner = ServerId(snapshot.layout(file)?.owner()?.server);
            by_owner.entry(owner).or_default().push(index);
        }
        if by_owner.is_empty() {
            return Ok(sizes);
        }
        let mut members = snapshot.members()?;
        members.retain(|m| self.members.has(m.server, m.incarnation));
        let questions = members.iter().filter_map(|member| {
            let indices = by_owner.get(&member.server)?;
            let files = indices.iter().map(|index| list[*index].file).collect();
            Some((member, indices, AskSizes { files }))
        });
        let questions: Vec<_> = questions.collect();
        let asked: Vec<_> = questions.iter().map(|(m, _, ask)| (*m, ask)).collect();
        {
            let mut settled = self.settled.lock();
            for (_, _, question) in &questions {
                question.files.iter().for_each(|file| settled.ask(*file));
            }
        }
        let answers = self.ask_each(&asked, LIMIT);
        let mut unreported = Vec::new();
        let mut settled = self.settled.lock();
        for ((_, indices, question), answer) in questions.iter().zip(answers) {
            // One that cannot be asked says nothing of any.
            let mut said = answer.unwrap_or_default();
            said.resize(question.files.len(), None);
            for (index, size) in indices.iter().zip(said) {
                let attributes = &mut *list[*index];
                let (is_told, answer) = take_size(attributes, size);
                let is_whole = attributes.truncate_to.is_none();
                if is_told
                    && answer == Answer::Other
                    && is_whole
                    && !settled.is_written(attributes.file)
                {
                    let Attributes {
                        file, epoch, size, ..
                    } = *attributes;
                    unreported.push((file, epoch, size, attributes.modified));
                }
                settled.answered(attributes.file, answer);
                sizes.is_latest[*index] = is_told;
            }
        }
        drop(settled);
        if !unreported.is_empty() {
            // What the owner says it would report itself; a store that failed, or a file that is gone, needs no size.
            let _ = self.committer.run(move |b| {
                for (file, epoch, size, modified) in &unreported {
                    let _ = b.report_size(*file, *epoch, *size, *modified);
                }
                Ok(())
            });
        }
        Ok(sizes)
    }
}

/// Takes what the owner says, unless the catalogue knows of a later truncate; whether it is the latest size, and whether the
/// catalogue had it.
fn take_size(attributes: &mut Attributes, said: Option<SizeIs>) -> (bool, Answer) {
    let Some(said) = said.filter(|said| said.epoch >= attributes.epoch) else {
        return (false, Answer::Other);
    };
    let is_same = (said.size, said.epoch) == (attributes.size, attributes.epoch)
        && attributes.truncate_to.is_none();
    attributes.size = said.size;
    attributes.epoch = said.epoch;
    match is_same {
        true => (true, Answer::Same),
        false => (true, Answer::Other),
    }
}
