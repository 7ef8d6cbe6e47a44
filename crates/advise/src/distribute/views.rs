//! D3: the views of those who open a file together become its subfiles.
//!
//! ```text
//! rank 0   ==..==..==..      subfile 0, whole at a server, bytes in the order of the view
//! rank 1   ..==..==..==      subfile 1, whole at the next
//! ```
//!
//! **The rule**, for `|C|` ranks and `|S|` servers, with `q = |C| / |S|` rounded down:
//!
//! - The byte at offset `k` of a view is the byte at offset `k` of its subfile. Where views overlap,
//!   a byte is at home with the lowest rank that shows it, and offsets agree up to the first byte that is
//!   at home elsewhere; every view still reads and writes all its bytes, since accesses go by maps
//!   between view and subfile and not by their being equal.
//! - Ranks below `q * |S|` have a whole subfile on one server, `q` on each: by descending bytes, each to
//!   the server that has least and fewer than `q`. For views of equal size this is `rank mod |S|`; where
//!   sizes differ, servers get equal bytes rather than equal ranks in turn.
//! - The others are striped over all servers in the order of the view, and so is a subfile that
//!   alone has more than twice the bytes of a server's share: equal views of one file, or one rank that has
//!   nearly all. Each striped subfile starts one server further than the one before.
//! - What no view shows, in front of the displacements or in gaps, is a striped subfile of its own.
//!
//! The set of all is a partition again: disjoint, covering, one period. With displacements above 0 that
//! period is stretched to at least 4 PiB, a multiple of the views' own, so that a view and its subfile
//! begin together.
//!
//! Declined, with a reason, when views say nothing (all show the whole file, or nothing), or when they
//! have no common period that can be written down. Cost: about the nodes of the views; nothing is
//! flattened.

use falls::{Budget, FallsSet, MAX_OFFSET, Periodic, lcm};
use layout::{Pattern, View};

/// The least part of a view that is worth a place of its own.
const LEAST_PART: u64 = 4 << 10;
/// Parts of a view that is too short for that go in stripes of about so many bytes.
const RECORDS_PART: u64 = 64 << 10;
/// Least period of a layout that begins with something else than views.
const STRETCHED: u64 = 1 << 52;
/// Most pieces that striped subfiles are cut into, in one period and all together.
const MOST_PIECES: u64 = 4096;

/// Bounds and choices of the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewRule {
    /// Stripe of what is striped, where that leaves no more than a bounded number of pieces.
    pub stripe: u64,
    /// The server where the first striped subfile starts; counts up with every file.
    pub rotation: u64,
    /// Most nodes of all subfiles together.
    pub most_nodes: u64,
    /// Most subfiles.
    pub most_subfiles: usize,
}

impl Default for ViewRule {
    fn default() -> Self {
        ViewRule {
            stripe: super::STRIPE,
            rotation: 0,
            most_nodes: 1 << 14,
            most_subfiles: 1 << 16,
        }
    }
}

/// One subfile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subfile {
    /// The rank whose view it is, or part of; `None` for what no view shows.
    pub rank: Option<usize>,
    /// Index of its server.
    pub server: usize,
    /// Whether it is all of the rank's bytes.
    pub is_whole: bool,
}

/// A layout made from views.
#[derive(Clone, Debug)]
pub struct ByViews {
    /// What each subfile has.
    pub pattern: Pattern,
    /// Whose it is and where.
    pub subfiles: Vec<Subfile>,
    /// In words, for people.
    pub why: String,
}

/// Why views do not become the layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeclineReason {
    /// No rank, or no server.
    #[error("there is no rank or no server")]
    Nobody,
    /// All views show everything, or nothing.
    #[error("all views show the whole file or nothing")]
    SayNothing,
    /// No common period that can be written down.
    #[error("the views have no common period that is short enough")]
    TooComplex,
}

impl From<falls::FallsError> for DeclineReason {
    fn from(_: falls::FallsError) -> Self {
        DeclineReason::TooComplex
    }
}

impl From<layout::LayoutError> for DeclineReason {
    fn from(_: layout::LayoutError) -> Self {
        DeclineReason::TooComplex
    }
}

/// Bytes of one owner: those before all views have begun, and those of a period after that.
#[derive(Clone)]
struct Home {
    head: FallsSet,
    tail: FallsSet,
}

impl Home {
    fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty()
    }

    /// What it weighs: bytes of a period, or of the head if there is no other.
    fn weight(&self, has_tail: bool) -> u64 {
        match has_tail {
            true => self.tail.size(),
            false => self.head.size(),
        }
    }
}

/// Something to be striped.
struct StripedHome {
    rank: Option<usize>,
    home: Home,
}

/// Cuts a file by the views of its ranks. The rule stands at the top of the module.
pub fn by_views(views: &[View], servers: usize, rule: &ViewRule) -> Result<ByViews, DeclineReason> {
    if views.is_empty() || servers == 0 {
        return Err(DeclineReason::Nobody);
    }
    let says = |view: &View| !view.bytes().is_empty() && !view.bytes().is_everything();
    if !views.iter().any(says) {
        return Err(DeclineReason::SayNothing);
    }
    let shown = || views.iter().map(View::bytes).filter(|b| !b.is_empty());
    let start = shown().map(Periodic::displacement).max().unwrap_or(0);
    let period = shown().try_fold(1, |period, bytes| match bytes.is_everything() {
        true => Some(period),
        false => lcm(period, bytes.period()),
    });
    let period = period.ok_or(DeclineReason::TooComplex)?;
    let (homes, overlap) = homes(views, start, period, rule.most_nodes)?;
    let rest = rest(&homes, start, period)?;
    let ranks = views.len();
    let (mut whole, mut striped) = divide(homes, servers);
    let whole_count = whole.len();
    let striped_ranks = striped.len();
    if !rest.is_empty() {
        let home = rest;
        striped.push(StripedHome { rank: None, home });
    }
    let has_rest = striped.len() > striped_ranks;
    // Short records are striped in whole periods of the views, so the period grows for all.
    let times = records(&striped, period, servers)?;
    let long_period = period
        .checked_mul(times)
        .filter(|&p| p <= MAX_OFFSET)
        .ok_or(DeclineReason::TooComplex)?;
    let mut found: Vec<(Subfile, Home)> = Vec::new();
    for (subfile, home) in whole.drain(..) {
        let tail = home.tail.repeat(times, period)?;
        let head = home.head;
        found.push((subfile, Home { head, tail }));
    }
    let rounds = rounds(&striped, servers);
    for (i, striped) in striped.into_iter().enumerate() {
        let first = ((rule.rotation % servers as u64) as usize + i) % servers;
        let parts = stripe(&striped.home, servers, period, times, rule.stripe, rounds)?;
        for (j, home) in parts.into_iter().enumerate() {
            let subfile = Subfile {
                rank: striped.rank,
                server: (first + j) % servers,
                is_whole: false,
            };
            found.push((subfile, home));
        }
    }
    found.retain(|(_, home)| !home.is_empty());
    found.sort_by_key(|(subfile, _)| subfile.rank.unwrap_or(usize::MAX));
    if found.len() > rule.most_subfiles {
        return Err(DeclineReason::TooComplex);
    }
    let (subfiles, homes): (Vec<Subfile>, Vec<Home>) = found.into_iter().unzip();
    let (period, sets) = lay(homes, start, long_period)?;
    if sets.iter().map(FallsSet::node_count).sum::<u64>() > rule.most_nodes {
        return Err(DeclineReason::TooComplex);
    }
    let pattern = Pattern::new(period, sets)?;
    let mut why = format!("views of {ranks} ranks on {servers} servers: {whole_count} whole");
    if striped_ranks > 0 {
        why.push_str(&format!(", {striped_ranks} striped"));
    }
    if has_rest {
        why.push_str(", what no view shows striped");
    }
    if overlap {
        why.push_str("; views overlap, a byte is with the lowest rank");
    }
    Ok(ByViews {
        pattern,
        subfiles,
        why,
    })
}

/// What each rank is home to, and whether views overlap.
fn homes(
    views: &[View],
    start: u64,
    period: u64,
    most_nodes: u64,
) -> Result<(Vec<Home>, bool), DeclineReason> {
    let end = start.checked_add(period).filter(|&e| e <= MAX_OFFSET);
    let end = end.ok_or(DeclineReason::TooComplex)?;
    let mut homes: Vec<Home> = views
        .iter()
        .map(|view| Home {
            head: view.bytes().window(0..start).simplify(),
            tail: view.bytes().window(start..end).cut(start..end).simplify(),
        })
        .collect();
    let mut overlap = false;
    for part in [part_head, part_tail] {
        let sets: Vec<FallsSet> = homes.iter_mut().map(|h| part(h).clone()).collect();
        if sets.iter().map(FallsSet::node_count).sum::<u64>() > most_nodes {
            return Err(DeclineReason::TooComplex);
        }
        if !FallsSet::union(&sets)?.1 {
            continue;
        }
        overlap = true;
        let mut taken = FallsSet::empty();
        let mut work = 0;
        for home in &mut homes {
            let set = part(home);
            // What is taken is looked at again for every rank.
            work += taken.node_count() + set.node_count();
            if taken.node_count() > most_nodes || work > 16 * most_nodes {
                return Err(DeclineReason::TooComplex);
            }
            let common = set
                .intersect_within(&taken, Budget::for_sets(set, &taken))
                .ok_or(DeclineReason::TooComplex)?;
            if !common.is_empty() {
                let free = common.complement(set.end())?;
                *set = set
                    .intersect_within(&free, Budget::for_sets(set, &free))
                    .ok_or(DeclineReason::TooComplex)?
                    .simplify();
            }
            taken = FallsSet::union(&[taken, set.clone()])?.0;
        }
    }
    Ok((homes, overlap))
}

fn part_head(home: &mut Home) -> &mut FallsSet {
    &mut home.head
}

fn part_tail(home: &mut Home) -> &mut FallsSet {
    &mut home.tail
}

/// What is at home nowhere.
fn rest(homes: &[Home], start: u64, period: u64) -> Result<Home, DeclineReason> {
    let heads: Vec<FallsSet> = homes.iter().map(|h| h.head.clone()).collect();
    let tails: Vec<FallsSet> = homes.iter().map(|h| h.tail.clone()).collect();
    Ok(Home {
        head: FallsSet::union(&heads)?.0.complement(start)?,
        tail: FallsSet::union(&tails)?.0.complement(period)?,
    })
}

/// Whole subfiles with their servers, and what is to be striped; by rank.
fn divide(homes: Vec<Home>, servers: usize) -> (Vec<(Subfile, Home)>, Vec<StripedHome>) {
    let has_tail = homes.iter().any(|h| !h.tail.is_empty());
    let total: u128 = homes.iter().map(|h| u128::from(h.weight(has_tail))).sum();
    let share = total.div_ceil(servers as u128);
    let whole_ranks = homes.len() / servers * servers;
    let (mut whole, mut striped) = (Vec::new(), Vec::new());
    for (rank, home) in homes.into_iter().enumerate() {
        if home.is_empty() {
            continue;
        }
        let is_heavy = servers > 1 && u128::from(home.weight(has_tail)) > 2 * share;
        if rank < whole_ranks && !is_heavy {
            whole.push((rank, home));
        } else {
            let rank = Some(rank);
            striped.push(StripedHome { rank, home });
        }
    }
    // As many on each server as there are, up to one.
    let most = whole.len().div_ceil(servers);
    let mut order: Vec<usize> = (0..whole.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(whole[i].1.weight(has_tail)), whole[i].0));
    let mut loads: Vec<(u128, usize)> = vec![(0, 0); servers];
    let mut server_of = vec![0; whole.len()];
    for i in order {
        let free = (0..servers).filter(|&s| loads[s].1 < most);
        let server = free
            .min_by_key(|&s| (loads[s].0, loads[s].1, s))
            .unwrap_or(0);
        loads[server].0 += u128::from(whole[i].1.weight(has_tail));
        loads[server].1 += 1;
        server_of[i] = server;
    }
    let whole = whole
        .into_iter()
        .zip(server_of)
        .map(|((rank, home), server)| {
            let subfile = Subfile {
                rank: Some(rank),
                server,
                is_whole: true,
            };
            (subfile, home)
        })
        .collect();
    (whole, striped)
}

/// Whether a period's bytes are too few to be cut.
fn is_record(home: &Home, servers: usize) -> bool {
    !home.tail.is_empty() && home.tail.size() < LEAST_PART * servers as u64
}

/// How many periods of the views make one period of the layout.
fn records(striped: &[StripedHome], period: u64, servers: usize) -> Result<u64, DeclineReason> {
    let short = striped.iter().filter(|s| is_record(&s.home, servers));
    let Some(bytes) = short.map(|s| s.home.tail.size()).max() else {
        return Ok(1);
    };
    let servers = servers as u64;
    let most = (STRETCHED / period / servers).max(1);
    let periods = (RECORDS_PART / bytes).clamp(1, most);
    periods
        .checked_mul(servers)
        .ok_or(DeclineReason::TooComplex)
}

/// How often a striped subfile goes round the servers in one period, at most.
fn rounds(striped: &[StripedHome], servers: usize) -> u64 {
    (MOST_PIECES / (striped.len().max(1) * servers) as u64).clamp(1, 64)
}

/// The parts of a subfile that is striped over all servers, by turn.
fn stripe(
    home: &Home,
    servers: usize,
    period: u64,
    times: u64,
    stripe: u64,
    rounds: u64,
) -> Result<Vec<Home>, DeclineReason> {
    let heads = pieces(&home.head, servers, stripe, rounds)?;
    let mut tails = if is_record(home, servers) {
        let each = times / servers as u64;
        let run = home.tail.repeat(each, period)?;
        (0..servers as u64)
            .map(|j| run.shift(j * each * period))
            .collect::<Result<_, _>>()?
    } else {
        pieces(&home.tail, servers, stripe, rounds)?
    };
    if !is_record(home, servers) {
        for tail in &mut tails {
            *tail = tail.repeat(times, period)?;
        }
    }
    let parts = heads.into_iter().zip(tails);
    Ok(parts.map(|(head, tail)| Home { head, tail }).collect())
}

/// Bytes of a set dealt in stripes of its own order.
fn pieces(
    set: &FallsSet,
    servers: usize,
    stripe: u64,
    rounds: u64,
) -> Result<Vec<FallsSet>, DeclineReason> {
    let mut dealt: Vec<Vec<FallsSet>> = vec![Vec::new(); servers];
    let n = servers as u64;
    let spread = set.size().div_ceil(n).max(LEAST_PART);
    let least = set.size().div_ceil(n * rounds);
    let stripe = stripe.clamp(1, spread).max(least).max(1);
    // Long stripes end at pages of the view, as the accesses of programs do.
    let stripe = match stripe < 16 * LEAST_PART {
        true => stripe,
        false => stripe.div_ceil(LEAST_PART).saturating_mul(LEAST_PART),
    };
    let mut at = 0;
    let mut turn = 0;
    while at < set.size() {
        let end = at.saturating_add(stripe).min(set.size());
        dealt[turn % servers].push(set.slice_by_rank(at, end));
        (at, turn) = (end, turn + 1);
    }
    let joined = dealt.iter().map(|parts| FallsSet::concat(parts));
    Ok(joined.collect::<Result<_, _>>()?)
}

/// Period and sets of the whole: heads, then tails repeated.
fn lay(homes: Vec<Home>, start: u64, period: u64) -> Result<(u64, Vec<FallsSet>), DeclineReason> {
    if start == 0 {
        let sets = homes.into_iter().map(|h| h.tail.simplify()).collect();
        return Ok((period, sets));
    }
    let end = stretched(start, period);
    let sets = homes.into_iter().map(|home| {
        let tail = Periodic::new(start, period, home.tail.simplify())?.window(0..end);
        FallsSet::concat(&[home.head, tail])
    });
    Ok((end, sets.collect::<Result<_, _>>()?))
}

/// A multiple of the period, far behind the start, with many divisors, so that other views find a
/// common period with it.
fn stretched(start: u64, period: u64) -> u64 {
    let far = STRETCHED.max(start.saturating_mul(2));
    let mut end = period;
    for factor in [3, 5, 7].into_iter().chain(std::iter::repeat(2)) {
        if end >= far {
            break;
        }
        match end.checked_mul(factor).filter(|&e| e <= MAX_OFFSET) {
            Some(longer) => end = longer,
            None => break,
        }
    }
    // A start so far out that not even this is enough leaves the views' own period behind it.
    if end <= start {
        end = start.saturating_add(period).min(MAX_OFFSET);
    }
    end
}
