//! What the metadata manager has said about names, given again without asking for as long as it is so.
//!
//! An answer comes with stamps of all that it depends on; the manager changes them, in memory that it shares with clients of its
//! host, before a change can be seen. So an answer whose stamps stand is what the manager would say now, and one whose stamps
//! do not stand is asked for again. Nothing is taken back by message: a client that sleeps, or is dead, holds nobody up.
//!
//! A client on another host has a thread that asks the manager what has changed (`control::recalls`) as long as names are asked
//! for; it believes for a short time after a question that was answered, and the manager waits for no longer than that.
//!
//! Invariants
//! - An answer is given only while all its stamps stand, as the start that gave them says, and that start lives.
//! - An answer is kept only if it was asked for when its stamps could be looked at already, in the same way.
//! - A session that has no stamps (a directory behind the service) asks each time.
//! - What is remembered is bounded; all of it is forgotten when there is more.
//!
//! Left to others: what stamps mean (`control::stamps`), their memory (`direct`).

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use ::direct::StampView;
use parking_lot::{Mutex, RwLock};
use wire::message::catalogue::{Attributes, Entry};
use wire::message::stamps::{AttachStamps, AwaitRecalls, RecallsAre, Stamp, StampList};
use wire::url::Endpoint;

use crate::error::Trouble;
use crate::session::Session;
use crate::transport::jobs::Jobs;

/// Most names that are remembered, those in listings included.
const MOST: usize = 1 << 17;

/// A session that has not asked for so long is not told any more.
const UNUSED: Duration = Duration::from_secs(10);

/// Questions of a session before it asks for stamps: a program that asks once does without.
const FIRST_QUESTIONS: u64 = 1;

/// Part of a directory.
#[derive(Debug)]
pub(crate) struct ListedPart {
    pub(crate) entries: Vec<Entry>,
    pub(crate) has_more: bool,
}

/// Which part of which directory, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PartOf {
    pub(crate) path: String,
    pub(crate) after: Option<String>,
    pub(crate) with_attributes: bool,
}

#[derive(Debug)]
struct Answer<T> {
    stamps: Vec<Stamp>,
    value: T,
}

#[derive(Debug, Default)]
enum Source {
    /// Not asked for yet.
    #[default]
    Unknown,
    /// This start of the manager gives none.
    Refused(u64),
    Seen(Stamps),
}

/// Where stamps are looked at. Clones are the same.
#[derive(Clone, Debug)]
enum Stamps {
    /// In memory of the manager.
    Shared(Arc<StampView>),
    /// By what it says.
    Told(Arc<ToldStamps>),
}

/// What the manager has said of stamps to a client that cannot look at them.
#[derive(Debug)]
struct ToldStamps {
    start: u64,
    base: Instant,
    /// Until when what was told is believed, in nanoseconds from the base on.
    until: AtomicU64,
    /// Stamps that are not believed any more: those at or below these.
    recalled: Mutex<HashMap<u32, u64>>,
    /// Something was asked since the thread looked last.
    is_used: AtomicBool,
}

impl Stamps {
    fn start(&self) -> u64 {
        match self {
            Stamps::Shared(view) => view.start(),
            Stamps::Told(told) => told.start,
        }
    }

    fn is_alive(&self) -> bool {
        match self {
            Stamps::Shared(view) => view.is_alive(),
            Stamps::Told(told) => told.is_believed(),
        }
    }

    fn have_all(&self, stamps: &[Stamp]) -> bool {
        match self {
            Stamps::Shared(view) => {
                stamps.iter().all(|s| view.has(s.slot, s.stamp)) && view.is_alive()
            }
            Stamps::Told(told) => {
                told.is_used.store(true, Ordering::Relaxed);
                let recalled = told.recalled.lock();
                let is_old = |s: &Stamp| recalled.get(&s.slot).is_some_and(|r| *r > s.stamp);
                !stamps.iter().any(is_old) && told.is_believed()
            }
        }
    }

    fn is(&self, other: &Stamps) -> bool {
        match (self, other) {
            (Stamps::Shared(a), Stamps::Shared(b)) => Arc::ptr_eq(a, b),
            (Stamps::Told(a), Stamps::Told(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl ToldStamps {
    fn is_believed(&self) -> bool {
        let now = u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX);
        now < self.until.load(Ordering::SeqCst)
    }

    /// Takes an answer to a question that was sent then.
    fn heard(&self, answer: &RecallsAre, sent: Instant) {
        let mut recalled = self.recalled.lock();
        for stamp in &answer.changed {
            recalled.insert(stamp.slot, stamp.stamp);
        }
        let until = sent.duration_since(self.base) + Duration::from_millis(answer.valid_ms);
        let until = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        self.until.store(until, Ordering::SeqCst);
    }

    fn end(&self) {
        self.until.store(0, Ordering::SeqCst);
    }
}

/// A question that is about to be asked: how stamps were looked at then.
#[derive(Clone, Debug)]
pub(crate) struct Question(Option<Stamps>);

impl Question {
    /// Whether it should come with stamps.
    pub(crate) fn wants_stamps(&self) -> bool {
        self.0.is_some()
    }
}

#[derive(Debug, Default)]
struct Answers {
    source: Source,
    /// By path; nothing where nothing is.
    found: HashMap<String, Answer<Option<Attributes>>>,
    listed: HashMap<PartOf, Answer<Arc<ListedPart>>>,
    names: usize,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct StampedAnswers {
    kept: RwLock<Answers>,
    /// Questions without stamps.
    asked: AtomicU64,
}

impl<T> Answer<T> {
    #[inline]
    fn is_so(&self, source: &Source) -> bool {
        match source {
            Source::Seen(stamps) => stamps.have_all(&self.stamps),
            _ => false,
        }
    }
}

impl Answers {
    fn forget(&mut self) {
        self.found.clear();
        self.listed.clear();
        self.names = 0;
    }

    /// Stamps of an answer that can be looked at as when it was asked for, with room for so many names.
    fn admit(
        &mut self,
        asking: &Question,
        stamped: Option<StampList>,
        names: usize,
    ) -> Option<Vec<Stamp>> {
        let (stamped, asked) = (stamped?, asking.0.as_ref()?);
        match &self.source {
            Source::Seen(now) if now.is(asked) && now.start() == stamped.start => {}
            _ => return None,
        }
        if self.names + names > MOST {
            self.forget();
        }
        self.names += names;
        Some(stamped.stamps)
    }
}

impl StampedAnswers {
    /// What is at a path, if that is known: its attributes with the latest size, or nothing.
    pub(crate) fn found(&self, path: &str) -> Option<Option<Attributes>> {
        let kept = self.kept.read();
        let known = kept.found.get(path)?;
        known.is_so(&kept.source).then(|| known.value.clone())
    }

    /// Part of a directory, if that is known.
    pub(crate) fn listed(&self, part: &PartOf) -> Option<Arc<ListedPart>> {
        let kept = self.kept.read();
        let known = kept.listed.get(part)?;
        known.is_so(&kept.source).then(|| Arc::clone(&known.value))
    }

    /// Remembers what is at a path.
    pub(crate) fn keep_found(
        &self,
        asking: &Question,
        path: String,
        value: Option<Attributes>,
        stamped: Option<StampList>,
    ) {
        if stamped.is_none() {
            return;
        }
        let mut kept = self.kept.write();
        if let Some(stamps) = kept.admit(asking, stamped, 1)
            && kept.found.insert(path, Answer { stamps, value }).is_some()
        {
            kept.names -= 1;
        }
    }

    /// Remembers part of a directory.
    pub(crate) fn keep_listed(
        &self,
        asking: &Question,
        part: PartOf,
        value: &Arc<ListedPart>,
        stamped: Option<StampList>,
    ) {
        if stamped.is_none() {
            return;
        }
        let mut kept = self.kept.write();
        if let Some(stamps) = kept.admit(asking, stamped, value.entries.len() + 1) {
            let value = Arc::clone(value);
            if let Some(old) = kept.listed.insert(part, Answer { stamps, value }) {
                kept.names -= old.value.entries.len() + 1;
            }
        }
    }

    /// A question is about to be asked. Asks the manager for its stamps when a session has asked before.
    pub(crate) fn ask(&self, session: &Arc<Session>) -> Question {
        let start = session.manager_start();
        match &self.kept.read().source {
            Source::Seen(stamps) if stamps.is_alive() => return Question(Some(stamps.clone())),
            Source::Refused(refused) if *refused == start => return Question(None),
            _ => {}
        }
        if self.asked.fetch_add(1, Ordering::Relaxed) < FIRST_QUESTIONS {
            return Question(None);
        }
        let mut kept = self.kept.write();
        if let Source::Seen(stamps) = &kept.source
            && stamps.is_alive()
        {
            // Another thread was here.
            return Question(Some(stamps.clone()));
        }
        kept.forget();
        let attached = attach(session);
        kept.source = match attached {
            Ok(stamps) => Source::Seen(stamps),
            Err(NoStamps::Refused) => Source::Refused(start),
            Err(NoStamps::Away) => Source::Unknown,
        };
        self.asked.store(0, Ordering::Relaxed);
        match &kept.source {
            Source::Seen(stamps) => Question(Some(stamps.clone())),
            _ => Question(None),
        }
    }
}

/// Why a session has no stamps.
enum NoStamps {
    /// The manager gives none.
    Refused,
    /// It could not be asked.
    Away,
}

impl From<Trouble> for NoStamps {
    fn from(trouble: Trouble) -> NoStamps {
        match trouble {
            Trouble::Refused(..) => NoStamps::Refused,
            _ => NoStamps::Away,
        }
    }
}

fn attach(session: &Arc<Session>) -> Result<Stamps, NoStamps> {
    let endpoint = session.manager_endpoint().ok_or(NoStamps::Away)?;
    match endpoint {
        Endpoint::Unix(_) => share(session, &endpoint).map(|view| Stamps::Shared(Arc::new(view))),
        Endpoint::Tcp { .. } => listen(session).map(Stamps::Told),
    }
}

fn share(session: &Session, endpoint: &Endpoint) -> Result<StampView, NoStamps> {
    let (mut link, _) = session.introduce(endpoint)?;
    link.expect_descriptors();
    session.count_message();
    let mut out = Vec::new();
    let asked = link.ask(session.number(), &AttachStamps {}, &mut out);
    let files = link.take_descriptors();
    match (asked, &files[..]) {
        (Ok(is), [file]) => StampView::map(file.as_fd(), is.bytes).map_err(|_| NoStamps::Refused),
        (Err(wire::ask::AskError::Refused(..)) | Ok(_), _) => Err(NoStamps::Refused),
        _ => Err(NoStamps::Away),
    }
}

/// Asks what has changed, once, and starts the thread that goes on asking.
fn listen(session: &Arc<Session>) -> Result<Arc<ToldStamps>, NoStamps> {
    let mut pipe = session.manager_connection()?;
    let mut ask = move |number: u64, heard: u64| {
        let sent = Instant::now();
        let answer = pipe.ask(number, &AwaitRecalls { heard })?;
        Ok::<_, Trouble>((answer, sent))
    };
    session.count_message();
    let (first, base) = ask(session.number(), 0)?;
    let told = Arc::new(ToldStamps {
        start: first.start,
        base,
        until: AtomicU64::new(0),
        recalled: Mutex::default(),
        is_used: AtomicBool::new(true),
    });
    told.heard(&first, base);
    let (theirs, of): (_, Weak<Session>) = (Arc::clone(&told), Arc::downgrade(session));
    let job = Box::new(move || {
        let mut heard = first.number;
        let mut used = Instant::now();
        // The session is not held while a question lies: it says goodbye when its last user goes.
        let number = || of.upgrade().filter(|s| !s.is_dead()).map(|s| s.number());
        while let Some(number) = number() {
            if theirs.is_used.swap(false, Ordering::Relaxed) {
                used = Instant::now();
            }
            match ask(number, heard) {
                Ok((answer, sent)) if used.elapsed() < UNUSED && !answer.is_first => {
                    theirs.heard(&answer, sent);
                    heard = answer.number;
                }
                // The manager is away, knows nothing of what was told before, or no thread asks any more.
                _ => break,
            }
        }
        theirs.end();
    });
    let jobs = Jobs::new("pario-recalls", 1, || ());
    jobs.submit(job).map_err(|_| NoStamps::Away)?;
    Ok(told)
}
