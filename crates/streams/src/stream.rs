//! [`Stream`]: a parallel file as one member of a team has it open.
//!
//! All members call the same operations in the same order, each for its own VPs. What they have in common (segments, positions
//! while all VPs go together, the root) every member keeps for itself, and it changes by the same rules everywhere, so that
//! nothing has to be said about it.
//!
//! Invariants
//! - While positions are [`At::Uniform`], no VP has bytes in the independent segment beyond what its record says.
//! - Only the member that emulates a VP touches blocks of that VP.
//! - After an error of this member alone, its later operations fail, and with the next agreement those of all (G-10).
//!
//! Left to others: array transfers (`regular`), modes of operations (`transfer`), becoming durable (`commit`).

use std::hash::{BuildHasher, Hasher, RandomState};

use client::{Client, Error, File, Places, Result, Team, View};
use layout::Sequence;
use random::mix;

use crate::agreement::{self, Proposal, Regularity, Verdict, another_call};
use crate::context::Context;
use crate::emulation::Emulation;
use crate::fetch::Fetch;
use crate::independent::{Independent, Vp, Who};
use crate::options::{Access, Mode, StreamOptions};
use crate::pages::Pages;
use crate::regular::Buffers;
use crate::root::{IndependentRoot, PageHome, Regular, Root};
use crate::shape::Shape;

/// Where VPs read and write next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// All at the same place.
    Uniform { position: u64, is_ended: bool },
    /// Each where its own state says.
    Each,
}

/// What a stream has counted, at this member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamStatistics {
    /// Parts of collective operations that went without buffers.
    pub nb: u64,
    /// Parts of collective operations that went through collective buffers, or by their blocks.
    pub cb: u64,
    /// Collective operations, or parts, that every VP did for itself.
    pub ib: u64,
    /// Calls from elemental functions.
    pub elemental: u64,
    /// Exchanges among the members about modes.
    pub reductions: u64,
    /// Array transfers of all members together.
    pub transfers: u64,
    /// Requests that wrote a whole superblock.
    pub superblock_writes: u64,
    /// Requests of independent buffering that wrote less.
    pub small_writes: u64,
    /// Requests of independent buffering that read.
    pub reads: u64,
    /// Roots that were made durable.
    pub commits: u64,
}

/// What a file records about its streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The arrangement of its VPs.
    pub shape: Shape,
    /// How its writer dealt VPs to members.
    pub distribution: String,
}

/// A parallel file as one member of a team has it open. Nothing is kept by dropping it: [`Stream::close`] says whether all is well.
#[derive(Debug)]
pub struct Stream {
    pub(crate) client: Client,
    pub(crate) team: Team,
    pub(crate) path: String,
    pub(crate) emulation: Emulation,
    pub(crate) options: StreamOptions,
    /// With a view of the blocks of this member's VPs in a regular segment.
    pub(crate) shaped: File,
    /// Base and block of that view.
    pub(crate) shown: Option<(u64, u64)>,
    /// With the file as it is.
    pub(crate) raw: File,
    /// As it was last kept.
    pub(crate) root: Root,
    /// Whether the file has no root yet, and is some other program's.
    pub(crate) is_plain: bool,
    pub(crate) nb: Regular,
    pub(crate) cb: Regular,
    pub(crate) at: At,
    pub(crate) buffered: Buffers,
    /// Empty until VPs go each for itself.
    pub(crate) vps: Vec<Vp>,
    pub(crate) pages: Pages,
    pub(crate) ib: Option<Independent>,
    pub(crate) fetch: Fetch,
    /// Memory with a stride, as transfers were told last.
    pub(crate) places: Option<((usize, usize), Places)>,
    /// Marks the independent segment, if this opening begins it.
    pub(crate) stamp: u64,
    /// Whether a member may be elsewhere than this one believes.
    pub(crate) is_doubtful: bool,
    /// Bytes per VP of the last write of all.
    pub(crate) written: u64,
    pub(crate) failure: Option<Error>,
    pub(crate) statistics: StreamStatistics,
}

/// A number that no other opening has.
fn fresh_number() -> u64 {
    RandomState::new().build_hasher().finish() | 1
}

impl Stream {
    /// What a file records about its streams; `None` for a file of another program.
    pub fn record(client: &Client, path: &str) -> Result<Option<Record>> {
        let text = Root::of_file(client, path)?;
        let root = text.map(|text| Root::parse(&text)).transpose()?;
        Ok(root.map(|root| Record {
            shape: root.shape,
            distribution: root.distribution,
        }))
    }

    /// Opens a file whose shape is that of the emulation. A file of another program is one NB segment (K-05).
    ///
    /// All members call it, with the same path and options.
    pub fn open(
        client: &Client,
        team: &Team,
        path: &str,
        emulation: &Emulation,
        options: &StreamOptions,
    ) -> Result<Stream> {
        let checked = options.check().map(|()| Vec::new());
        agreement::tell(team, checked)?;
        let access = options.access;
        let mut opening = access.open_options();
        if let (Some(layout), true) = (&options.layout, access != Access::Read) {
            opening = opening.layout(layout.clone());
        }
        let shaped = client.open_together(team, path, &opening)?;
        let mine = match team.rank() {
            0 => begin(client, path, emulation, access, &shaped),
            _ => Ok(Vec::new()),
        };
        let told = agreement::tell(team, mine)?;
        let opened = (|| {
            let (head, text) = told[0].split_at_checked(24).ok_or_else(another_call)?;
            let words = agreement::words(head).ok_or_else(another_call)?;
            let mut opening = match access.can_write() {
                true => client::OpenOptions::new().read().write(),
                false => client::OpenOptions::new().read(),
            };
            opening = opening.shared_pointer(words[0]);
            let raw = client.open(path, &opening)?;
            if raw.id() != shaped.id() {
                return Err(Error::Argument {
                    name: "path",
                    text: format!("{path} became another file while it was opened; open it again"),
                });
            }
            let text = String::from_utf8_lossy(text);
            let root = (!text.is_empty()).then(|| Root::parse(&text)).transpose()?;
            if let Some(root) = &root
                && root.shape != *emulation.shape()
            {
                return Err(Error::Argument {
                    name: "shape",
                    text: format!(
                        "{path} has streams of shape {}, not {}; open it with its own shape",
                        root.shape,
                        emulation.shape()
                    ),
                });
            }
            Ok((raw, root, words[1]))
        })();
        let failed = opened.as_ref().err().cloned();
        agreement::tell(team, failed.map_or(Ok(Vec::new()), Err))?;
        let (raw, root, stamp) = opened?;
        let is_plain = root.is_none();
        let root = root.unwrap_or_else(|| Root {
            pad: options.pad,
            ..Root::empty(emulation.shape(), emulation.distribution())
        });
        let (nb, cb) = (root.nb, root.cb);
        let page = options.choose_superblock(emulation.share(), 64);
        let page = root.ib.as_ref().map_or(page, |ib| ib.superblock);
        let at = match options.least {
            Mode::Ib => At::Each,
            _ => At::Uniform {
                position: 0,
                is_ended: false,
            },
        };
        let mut stream = Stream {
            client: client.clone(),
            team: team.clone(),
            path: path.to_owned(),
            emulation: emulation.clone(),
            shaped,
            shown: None,
            raw,
            root,
            is_plain,
            nb,
            cb,
            at: At::Uniform {
                position: 0,
                is_ended: false,
            },
            buffered: Buffers::default(),
            vps: Vec::new(),
            pages: Pages::new(page, options.read_buffers),
            ib: None,
            fetch: Fetch::default(),
            places: None,
            stamp,
            is_doubtful: false,
            written: 0,
            failure: None,
            statistics: StreamStatistics::default(),
            options: options.clone(),
        };
        stream.pages.pad = stream.root.pad;
        let begun = match at {
            At::Each => stream.become_each(),
            At::Uniform { .. } => Ok(()),
        };
        agreement::tell(team, begun.map(|()| Vec::new()))?;
        Ok(stream)
    }

    /// Which VPs this member has.
    pub fn emulation(&self) -> &Emulation {
        &self.emulation
    }

    /// The path it was opened by.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What was counted so far.
    pub fn statistics(&self) -> StreamStatistics {
        let pages = self.pages.counts;
        StreamStatistics {
            superblock_writes: pages.whole_writes,
            small_writes: pages.small_writes,
            reads: pages.reads + self.fetch.reads,
            ..self.statistics
        }
    }

    /// VPs of all members.
    pub(crate) fn all_vps(&self) -> u64 {
        self.emulation.shape().count()
    }

    /// Bytes of every VP in the regular segments.
    pub(crate) fn uniform_len(&self) -> u64 {
        self.nb.len + self.cb.len
    }

    /// Whether the file has an independent segment, as far as this member knows.
    pub(crate) fn has_independent(&self) -> bool {
        self.ib.is_some() || self.root.ib.is_some()
    }

    /// The VP at a place.
    pub(crate) fn who(&self, local: usize) -> Who {
        Who {
            local,
            number: self.emulation.vp(local),
        }
    }

    /// Refuses what this opening is not for, and goes on failing after a failure.
    pub(crate) fn check(&self, what: Use) -> Result<()> {
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        let access = self.options.access;
        let (may, word) = match what {
            Use::Write => (access.can_write(), "writing"),
            Use::Read => (access.can_read(), "reading"),
        };
        may.then_some(()).ok_or_else(|| Error::Argument {
            name: "access",
            text: format!("{} is not open for {word}; open it so", self.path),
        })
    }

    /// Checks that a context is one of this member's VPs.
    pub(crate) fn check_context(&self, context: &Context) -> Result<()> {
        let count = self.emulation.count();
        match context.mask_len() {
            Some(len) if len != count => Err(Error::Argument {
                name: "context",
                text: format!("a mask for {len} VPs, but this member has {count}"),
            }),
            _ => Ok(()),
        }
    }

    /// Keeps a failure of this member, so that it is told to the others.
    pub(crate) fn keep_failure<T>(&mut self, done: Result<T>) -> Result<T> {
        if let Err(error) = &done {
            self.failure.get_or_insert_with(|| error.clone());
        }
        done
    }

    /// Agrees with the others about the next operation, and goes where they are.
    pub(crate) fn agree(&mut self, mine: Result<(Regularity, u64)>) -> Result<Verdict> {
        let mine = match &self.failure {
            Some(error) => Err(error.clone()),
            None => mine,
        };
        let proposal = mine.map(|(is_regular, bytes)| Proposal {
            is_regular,
            bytes,
            segments: self.segments_in_short(),
            ib_block: self.ib.as_ref().map_or(0, Independent::block),
        });
        self.statistics.reductions += 1;
        let verdict = agreement::agree(&self.team, proposal)?;
        // Members that went for themselves have left their buffers, and so do all others.
        let mut done = match std::mem::take(&mut self.is_doubtful) {
            true => self.leave_buffers(),
            false => Ok(()),
        };
        if verdict.is_regular == Regularity::Independent {
            done = done.and_then(|()| self.become_each());
        }
        if verdict.ib_block > 0 {
            done = done.and_then(|()| self.have_vps());
            done = done.and_then(|()| self.begin_independent(verdict.ib_block));
        }
        self.keep_failure(done)?;
        Ok(verdict)
    }

    /// What every member has to have alike.
    fn segments_in_short(&self) -> u64 {
        let Stream { nb, cb, .. } = self;
        let words = [nb.block, nb.len, cb.base, cb.block, cb.len];
        words.iter().fold(1, |sum, word| mix(sum ^ word))
    }

    /// From now on every VP goes for itself. Says nothing to the others.
    pub(crate) fn become_each(&mut self) -> Result<()> {
        let At::Uniform { position, is_ended } = self.at else {
            return Ok(());
        };
        if self.is_unread() {
            let size = self.raw.size()?;
            let row = size.div_ceil(self.all_vps()).max(1);
            self.begin_plain(self.options.nb_block.unwrap_or(row))?;
        }
        self.leave_buffers()?;
        self.have_vps()?;
        for vp in &mut self.vps {
            vp.position = position;
            vp.flags.is_ended = is_ended;
        }
        self.at = At::Each;
        Ok(())
    }

    /// Whether this is a file of another program, of which nobody has said how long its blocks are.
    pub(crate) fn is_unread(&self) -> bool {
        self.is_plain && self.nb.block == 0
    }

    /// Has the state of every VP, with what the independent segment of the file says about it.
    pub(crate) fn have_vps(&mut self) -> Result<()> {
        if self.vps.is_empty() {
            self.vps = vec![Vp::default(); self.emulation.count()];
            self.load_independent()?;
        }
        Ok(())
    }

    /// Takes the independent segment of the file, with what it says about this member's VPs.
    fn load_independent(&mut self) -> Result<()> {
        let Some(root) = self.root.ib.clone() else {
            return Ok(());
        };
        let vps = self.all_vps();
        let ib = Independent::new(root, vps, self.emulation.count());
        let page = IndependentRoot::page_vps(vps);
        for home in [PageHome::First, PageHome::Second] {
            let homes = ib.root.homes.iter().enumerate();
            let pages: Vec<u64> = homes
                .filter(|(_, its)| **its == home)
                .map(|(n, _)| n as u64)
                .collect();
            for range in crate::commit::runs(&pages) {
                let first = self.emulation.below(range.start * page);
                let last = self.emulation.below(range.end * page);
                if first == last {
                    continue;
                }
                let mut records = vec![0; (last - first) * 32];
                let view = self.emulation.view(ib.root.table(vps, home), 32)?;
                let read =
                    self.through(&view, |file| file.read_at(first as u64 * 32, &mut records))?;
                records[read..].fill(0);
                for (local, record) in (first..last).zip(records.chunks_exact(32)) {
                    ib.take_record(self.who(local), &mut self.vps[local], record)?;
                }
            }
        }
        self.pages.reserve(match self.options.access.can_write() {
            true => ib.pages_to_write(self.emulation.count()),
            false => 0,
        });
        self.ib = Some(ib);
        Ok(())
    }

    /// Begins the independent segment behind the others, unless there is one. The same at all members that do it.
    pub(crate) fn begin_independent(&mut self, block: u64) -> Result<()> {
        if self.ib.is_some() {
            return Ok(());
        }
        let vps = self.all_vps();
        let end = match self.cb.block {
            0 => self.nb.end(vps),
            _ => self.cb.end(vps),
        };
        let superblock = self
            .options
            .choose_superblock(self.emulation.share(), block);
        let base = end.and_then(|end| end.checked_next_multiple_of(superblock));
        let root = IndependentRoot {
            base: base.ok_or_else(|| Error::Argument {
                name: "position",
                text: "the file would be larger than 2^63 bytes".into(),
            })?,
            superblock,
            block,
            pointers: self.options.pointers,
            stamp: self.stamp,
            superblocks: 0,
            homes: vec![PageHome::Nowhere; IndependentRoot::pages(vps)],
        };
        let count = self.emulation.count();
        let ib = Independent::new(root, vps, count);
        let room = self.options.read_buffers.max(ib.pages_to_write(count));
        match self.pages.is_of(superblock) {
            true => self.pages.reserve(room),
            false => {
                let (counts, pad) = (self.pages.counts, self.pages.pad);
                self.pages = Pages::new(superblock, room);
                (self.pages.counts, self.pages.pad) = (counts, pad);
            }
        }
        self.ib = Some(ib);
        Ok(())
    }

    /// The block that the independent segment has if it begins now.
    pub(crate) fn independent_block(&self, bytes: u64) -> u64 {
        let written = if self.written > 0 {
            self.written
        } else {
            bytes
        };
        self.options
            .choose_ib(self.emulation.share(), written.max(1))
    }

    /// Does something with the file as a view shows it.
    pub(crate) fn through<T>(
        &self,
        view: &View,
        act: impl FnOnce(&File) -> Result<T>,
    ) -> Result<T> {
        self.raw.set_view(view)?;
        let done = act(&self.raw);
        self.raw.set_view(&View::whole_file())?;
        done
    }

    /// Memory of VPs that have `bytes` each, `stride` apart.
    pub(crate) fn places_of(&mut self, bytes: usize, stride: usize) -> Result<Places> {
        let count = self.emulation.count();
        if stride == bytes || count <= 1 {
            return Ok(Places::bytes((bytes * count) as u64));
        }
        if let Some((of, places)) = &self.places
            && *of == (bytes, stride)
        {
            return Ok(places.clone());
        }
        let one = Sequence::bytes(0, bytes as u64)?;
        let places = Places::new(&one.repeat(count as u64, stride as i64)?);
        self.places = Some(((bytes, stride), places.clone()));
        Ok(places)
    }
}

/// What an operation does with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It reads.
    Read,
    /// It writes.
    Write,
}

/// What rank 0 does and tells at opening: the group of the counter, the stamp of a new segment, and the root.
fn begin(
    client: &Client,
    path: &str,
    emulation: &Emulation,
    access: Access,
    file: &File,
) -> Result<Vec<u8>> {
    let mut root = Root::of_file(client, path)?;
    if access.starts_empty() || access.can_write() && file.is_new() {
        let empty = Root::empty(emulation.shape(), emulation.distribution());
        empty.keep(client, path)?;
        if !file.is_new() {
            file.resize(0)?;
        }
        root = Some(empty.text());
    }
    let words = [fresh_number(), fresh_number(), 0];
    let mut told: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    told.extend(root.unwrap_or_default().as_bytes());
    Ok(told)
}
