//! D2: start server, ordered subset and stripe size of a file, from what is known.
//!
//! **The rule.** All quantities are integers, shares are in thousandths.
//!
//! *Cost of a server*, lower is better:
//!
//! ```text
//! cost = (5 * full + 3 * busy + 2 * ahead) / 10
//! full   1000 * stored / capacity                      0 if the capacity is not known
//! busy   1000 * load / (largest load of all)           0 if nobody is busy (load < 1 MiB a report)
//! ahead  1000 * (stored - least) / (most - least)      0 if the difference is below 1 MiB
//! ```
//!
//! *In or out*, one decision per server (rule 4): room is asked first, a server whose share of the
//! file does not fit is out; then cost, one that costs 500 more than the cheapest is out. If room leaves
//! nobody, all are in: the service says that there is no space when it is used up.
//!
//! *How many*, of the `n` that are in:
//!
//! | what is known | servers | rule |
//! |---|---|---|
//! | the file has at most 64 KiB | 1 | 3 |
//! | one client | the fewest that have room for it | 2 |
//! | at least 256 MiB, several clients | n | 1 |
//! | c clients | min(n, c) | |
//! | nothing | n | 5 |
//!
//! *Which*: the cheapest; among equals the order of the rotation, a number that counts up with every
//! file. One server alone is the one that the client is near to, if that is known and in.
//!
//! *Stripe*: the size of an access, if it is known and at least 4 KiB (rule 1, no false sharing);
//! else a 16th of what a server gets, as a power of two between 64 KiB and 4 MiB; else 1 MiB, 4 MiB for a
//! file that is accessed from one end to the other (fewer pieces of an access), 64 KiB for one that is
//! accessed at random (accesses near each other meet different servers). A file
//! whose size is known gets no longer stripes than spread it over all its servers, in steps of 4 KiB
//! (rule 3). Where an alignment is known, stripes are rounded up to a multiple of it.
//!
//! *Start*: the cheapest, among equals by rotation.
//!
//! With nothing known, servers alike and rotation 0 this is D1 (statement 58). **Bound** (statement
//! 60): files that each go to one server and whose sizes are told, or known by the time the next is
//! placed, leave fullest and emptiest server apart by no more than the largest of them plus 1 MiB, while
//! loads and capacities are alike.

use crate::distribute::Striping;
use crate::hints::AccessStyle;

/// Stripe of a file about which nothing is known.
pub const STRIPE: u64 = 1 << 20;
/// The longest stripe that is chosen from the size of a file.
pub const MOST_STRIPE: u64 = 4 << 20;
/// A file of at most so many bytes is on one server.
pub const WHOLE_BYTES: u64 = 64 << 10;
/// A file of at least so many bytes and with several clients is on all servers.
pub const LARGE_BYTES: u64 = 256 << 20;

const LEAST_STRIPE: u64 = 64 << 10;
const PAGE: u64 = 4 << 10;
/// Less is no difference between two servers.
const NEGLIGIBLE: u64 = 1 << 20;
const FAR_DEARER: u64 = 500;

/// What is known about a server that takes subfiles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerKnowledge {
    /// Its number.
    pub server: u64,
    /// Bytes that it stores, those included that are expected soon.
    pub stored: u64,
    /// Room in all; 0 is unknown, and counts as enough.
    pub capacity: u64,
    /// What it had to do lately, in units that only compare.
    pub load: u64,
}

/// What is known when a file is created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Knowledge {
    /// Servers that take subfiles, by number.
    pub servers: Vec<ServerKnowledge>,
    /// Counts up with every file.
    pub rotation: u64,
    /// Bytes the file will have.
    pub size: Option<u64>,
    /// Processes that will use it.
    pub clients: Option<u64>,
    /// Bytes of one access.
    pub access_bytes: Option<u64>,
    /// The server that its only client is near to.
    pub near: Option<u64>,
    /// How its bytes are accessed.
    pub style: AccessStyle,
    /// Stripes begin at multiples of this.
    pub alignment: Option<u64>,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Ordered servers, start and stripe.
    pub striping: Striping,
    /// In words, for people.
    pub why: String,
}

impl Choice {
    /// The servers in the order in which they get blocks, the start first.
    pub fn in_order(&self) -> Vec<u64> {
        let mut servers = self.striping.servers().to_vec();
        servers.rotate_left(self.striping.start());
        servers
    }
}

struct RatedServer<'k> {
    known: &'k ServerKnowledge,
    cost: u64,
    /// Place in the order of this file's rotation.
    turn: u64,
}

/// Decides; `None` if there is no server. The rule stands at the top of the module.
///
/// ```
/// use advise::distribute::{Knowledge, ServerKnowledge, choose};
/// let servers = (0..4).map(|server| ServerKnowledge { server, ..Default::default() }).collect();
/// let nothing = Knowledge { servers, ..Default::default() };
/// let choice = choose(&nothing).unwrap();
/// assert_eq!((choice.in_order(), choice.striping.block()), (vec![0, 1, 2, 3], 1 << 20));
/// ```
pub fn choose(known: &Knowledge) -> Option<Choice> {
    let count = known.servers.len() as u64;
    if count == 0 {
        return None;
    }
    let mut rated = rate(known);
    let (width, mut why) = take_in(known, &mut rated);
    // By cost, among equals by turn.
    rated.sort_by_key(|r| (r.cost, r.turn));
    let near = rated
        .iter()
        .position(|r| width == 1 && Some(r.known.server) == known.near);
    match near {
        Some(at) => {
            rated.swap(0, at);
            why.push_str(", the one that its client is near to");
        }
        None if width == 1 => why.push_str(", the one that costs least"),
        None => {}
    }
    let first = rated[0].known.server;
    rated.truncate(width);
    let mut servers: Vec<u64> = rated.iter().map(|r| r.known.server).collect();
    servers.sort_unstable();
    let start = servers.iter().position(|&s| s == first).unwrap_or(0);
    let block = stripe(known, width as u64);
    let out = count - width as u64;
    if out > 0 && width > 1 {
        why.push_str(&format!(", {out} left out"));
    }
    let striping = Striping::new(block, servers, start).ok()?;
    Some(Choice { striping, why })
}

fn rate(known: &Knowledge) -> Vec<RatedServer<'_>> {
    let all = &known.servers;
    let (mut least, mut most, mut busiest) = (u64::MAX, 0, 0);
    for server in all {
        least = least.min(server.stored);
        most = most.max(server.stored);
        busiest = busiest.max(server.load);
    }
    let thousandths = |part: u64, whole: u64| {
        (u128::from(part) * 1000 / u128::from(whole.max(1))).min(1000) as u64
    };
    let count = all.len() as u64;
    let first = known.rotation % count;
    (0..count)
        .zip(all)
        .map(|(i, server)| {
            let full = match server.capacity {
                0 => 0,
                capacity => thousandths(server.stored, capacity),
            };
            let busy = match busiest < NEGLIGIBLE {
                true => 0,
                false => thousandths(server.load, busiest),
            };
            let ahead = match most - least < NEGLIGIBLE {
                true => 0,
                false => thousandths(server.stored - least, most - least),
            };
            RatedServer {
                known: server,
                cost: (5 * full + 3 * busy + 2 * ahead) / 10,
                turn: (i + count - first) % count,
            }
        })
        .collect()
}

fn has_room(server: &ServerKnowledge, bytes: u64) -> bool {
    server.capacity == 0 || server.capacity.saturating_sub(server.stored) >= bytes
}

/// Leaves those who are in, and says how many of them take part and why.
fn take_in(known: &Knowledge, rated: &mut Vec<RatedServer<'_>>) -> (usize, String) {
    let all = rated.len() as u64;
    // What a server would get if all took part, which is the least it may get.
    let share = known.size.map_or(0, |size| size.div_ceil(all));
    if rated.iter().any(|r| has_room(r.known, share)) {
        rated.retain(|r| has_room(r.known, share));
    }
    let cheapest = rated.iter().map(|r| r.cost).min().unwrap_or(0);
    let is_in = |r: &RatedServer<'_>| r.cost < cheapest + FAR_DEARER;
    let alone = known.clients == Some(1);
    if known.size.is_some_and(|size| size <= WHOLE_BYTES) {
        let size = known.size.unwrap_or(0);
        let roomy = |r: &RatedServer<'_>| has_room(r.known, size);
        if rated.iter().any(roomy) {
            rated.retain(roomy);
        }
        return (1, format!("{size} bytes, which one server takes"));
    }
    if alone {
        // A near server may cost more: what it saves is the way.
        let near = |r: &RatedServer<'_>| Some(r.known.server) == known.near;
        let size = known.size.unwrap_or(0);
        let n = rated.len();
        for width in 1..=n {
            let part = size.div_ceil(width as u64);
            let fits = |r: &RatedServer<'_>| has_room(r.known, part) && (is_in(r) || near(r));
            if rated.iter().filter(|r| fits(r)).count() >= width {
                rated.retain(|r| fits(r));
                let servers = match width {
                    1 => "one server".to_owned(),
                    width => format!("the {width} servers that have room"),
                };
                return (width, format!("one client, {servers}"));
            }
        }
        return (n, format!("one client, all {n} servers"));
    }
    rated.retain(|r| is_in(r));
    let n = rated.len();
    match (known.size, known.clients) {
        (Some(size), _) if size >= LARGE_BYTES => (n, format!("a large file, {n} servers")),
        (_, Some(clients)) => {
            let mut width = usize::try_from(clients).unwrap_or(n).clamp(1, n);
            // The fewest that have room, if that is more.
            if let Some(size) = known.size {
                let fits = |w: &usize| {
                    let part = size.div_ceil(*w as u64);
                    rated.iter().filter(|r| has_room(r.known, part)).count() >= *w
                };
                width = (width..=n).find(fits).unwrap_or(n);
                let part = size.div_ceil(width as u64);
                if rated.iter().filter(|r| has_room(r.known, part)).count() >= width {
                    rated.retain(|r| has_room(r.known, part));
                }
            }
            (width, format!("{clients} clients, {width} servers"))
        }
        (Some(size), None) => (n, format!("{size} bytes, {n} servers")),
        (None, None) => (n, format!("nothing known of its use, {n} servers")),
    }
}

fn stripe(known: &Knowledge, width: u64) -> u64 {
    let wanted = match (known.access_bytes, known.size) {
        (Some(access), _) if access >= PAGE => access,
        (_, Some(size)) => {
            let part = (size / width / 16).max(1);
            let power = part.checked_next_power_of_two().unwrap_or(MOST_STRIPE);
            power.clamp(LEAST_STRIPE, MOST_STRIPE)
        }
        _ if known.style.is_random() => LEAST_STRIPE,
        _ if known.style.is_sequential() || known.style.is_reverse() => MOST_STRIPE,
        _ => STRIPE,
    };
    // A stripe for every server, at least.
    let most = match known.size {
        Some(size) if size > 0 && width > 1 => {
            size.div_ceil(width).div_ceil(PAGE).saturating_mul(PAGE)
        }
        _ => u64::MAX,
    };
    // So long that all servers' stripes together still have a length.
    let longest = falls::MAX_OFFSET / width;
    let stripe = wanted.min(most).clamp(1, longest);
    let aligned = known
        .alignment
        .and_then(|a| stripe.checked_next_multiple_of(a.max(1)));
    aligned.filter(|a| *a <= longest).unwrap_or(stripe)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn servers(count: u64) -> Vec<ServerKnowledge> {
        let plain = |server| ServerKnowledge {
            server,
            ..ServerKnowledge::default()
        };
        (0..count).map(plain).collect()
    }

    fn known(count: u64) -> Knowledge {
        Knowledge {
            servers: servers(count),
            ..Knowledge::default()
        }
    }

    #[test]
    fn seed001_s58_default_constants_give_plain_striping() {
        for count in 1..9 {
            let choice = choose(&known(count)).unwrap();
            assert_eq!(choice.striping, Striping::plain(STRIPE, count).unwrap());
        }
        assert_eq!(choose(&known(0)), None);
    }

    #[test]
    fn seed001_s59_one_client_has_one_server_and_many_have_all() {
        let mut k = known(6);
        k.clients = Some(1);
        k.size = Some(10 << 20);
        assert_eq!(choose(&k).unwrap().striping.servers().len(), 1);
        // The server it is near to, and the one with room if there is none there.
        k.near = Some(4);
        assert_eq!(choose(&k).unwrap().striping.servers(), [4]);
        k.servers[4].capacity = 1 << 20;
        assert_ne!(choose(&k).unwrap().striping.servers(), [4]);
        // One client whose file no server can take alone gets the fewest that can.
        for server in &mut k.servers {
            server.capacity = 4 << 20;
        }
        assert_eq!(choose(&k).unwrap().striping.servers().len(), 3);
        // Rule 1: large, many clients, large chunks.
        let mut k = known(6);
        (k.size, k.clients, k.access_bytes) = (Some(8 << 30), Some(48), Some(3 << 20));
        let choice = choose(&k).unwrap().striping;
        assert_eq!((choice.servers().len(), choice.block()), (6, 3 << 20));
        (k.size, k.clients) = (Some(8 << 20), Some(3));
        assert_eq!(choose(&k).unwrap().striping.servers().len(), 3);
    }

    /// Rule 3, figure 7.2: a small file goes to the server with least data, a somewhat larger one is
    /// spread by smaller blocks.
    #[test]
    fn seed001_s60_many_small_files_stay_within_the_bound() {
        let mut k = known(5);
        k.size = Some(2 << 20);
        let choice = choose(&k).unwrap().striping;
        assert_eq!(choice.servers().len(), 5);
        assert!(choice.block() * 4 < 2 << 20, "{} bytes", choice.block());
        // Figure 7.1: many files smaller than a stripe. Plain striping puts all on server 0.
        let sizes = [1000u64, 64 << 10, 17, 40_000, 9_999];
        let mut k = known(5);
        for i in 0..1000u64 {
            let size = sizes[i as usize % sizes.len()];
            (k.rotation, k.size) = (i, Some(size));
            let choice = choose(&k).unwrap().striping;
            let bytes = choice.bytes(0, size);
            for (server, bytes) in choice.servers().iter().zip(bytes) {
                k.servers[*server as usize].stored += bytes;
            }
            let stored = k.servers.iter().map(|s| s.stored);
            let (least, most) = (stored.clone().min().unwrap(), stored.max().unwrap());
            assert!(
                most - least <= (64 << 10) + NEGLIGIBLE,
                "file {i}: {most} {least}"
            );
        }
    }

    #[test]
    fn seed001_s61_free_memory_and_load_are_respected_and_contradictions_resolved() {
        // Most of server 1 is full; it is out.
        let mut k = known(4);
        for server in &mut k.servers {
            server.capacity = 100 << 20;
        }
        k.servers[1].stored = 99 << 20;
        k.size = Some(80 << 20);
        let choice = choose(&k).unwrap();
        assert_eq!(choice.striping.servers(), [0, 2, 3]);
        assert!(choice.why.contains("1 left out"), "{}", choice.why);
        // The busy one does not get the file of one client.
        let mut k = known(3);
        k.clients = Some(1);
        k.servers[0].load = 100 << 20;
        k.servers[1].load = 90 << 20;
        assert_eq!(choose(&k).unwrap().striping.servers(), [2]);
        // Much room but high load against little room and no load: room first, then cost.
        let mut k = known(2);
        k.clients = Some(1);
        k.size = Some(50 << 20);
        for server in &mut k.servers {
            server.capacity = 100 << 20;
        }
        k.servers[0].load = 1 << 30;
        k.servers[1].stored = 60 << 20;
        assert_eq!(choose(&k).unwrap().striping.servers(), [0]);
        // Nobody has room: all are in, and the service says so when space is used up.
        k.servers[0].stored = 100 << 20;
        k.servers[1].stored = 100 << 20;
        assert_eq!(choose(&k).unwrap().striping.servers().len(), 2);
    }

    #[test]
    fn style_and_alignment_decide_about_stripes_where_nothing_else_is_known() {
        let stripe = |style: &str, alignment| {
            let mut k = known(3);
            (k.style, k.alignment) = (AccessStyle::parse(style).unwrap(), alignment);
            choose(&k).unwrap().striping.block()
        };
        assert_eq!(stripe("", None), STRIPE);
        assert_eq!(stripe("write_once,sequential", None), MOST_STRIPE);
        assert_eq!(stripe("random", None), LEAST_STRIPE);
        assert_eq!(stripe("random", Some(100_000)), 100_000);
        assert_eq!(stripe("", Some(0)), STRIPE);
        assert_eq!(stripe("", Some(u64::MAX)), STRIPE);
    }

    proptest! {
        #![proptest_config(testkit::laws::config(500))]

        #[test]
        fn seed001_s61_any_knowledge_gives_one_sound_decision(
            stored in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 1..9),
            rotation in any::<u64>(),
            size in any::<Option<u64>>(),
            clients in any::<Option<u64>>(),
            access_bytes in any::<Option<u64>>(),
            near in proptest::option::of(0u64..20),
            style in 0u8..128,
            alignment in any::<Option<u64>>(),
        ) {
            let k = Knowledge {
                servers: stored.iter().zip(0..).map(|(&(stored, capacity, load), i)| {
                    ServerKnowledge { server: i * 2, stored, capacity, load }
                }).collect(),
                rotation, size, clients, access_bytes, near,
                style: AccessStyle::from_bits(style).unwrap(),
                alignment,
            };
            let choice = choose(&k).unwrap();
            prop_assert_eq!(&choice, &choose(&k).unwrap());
            let striping = &choice.striping;
            prop_assert!(striping.servers().iter().all(|s| s % 2 == 0 && *s < 2 * stored.len() as u64));
            prop_assert!(striping.layout().is_ok());
            prop_assert!(!choice.why.is_empty());
            prop_assert_eq!(choice.in_order()[0], striping.server_of(0));
        }
    }
}
