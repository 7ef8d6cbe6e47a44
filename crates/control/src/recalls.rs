//! Recalls: clients that cannot look at the stamps ([`super::stamps`]) are told which of them change.
//!
//! Such a client always has a question open, *what has changed?*, whose answer ends what it believes of some slots, and whose
//! next question says that it has heard so. A change waits until every client that holds one of its slots has heard, or until
//! the client believes nothing any more by itself:
//!
//! ```text
//!  client    has heard 4 --------------> waited for until then + VALID_MS
//!  manager               <- answer 5: slots 7, 9
//!  client    believes nothing of 7 and 9, all else until its question + VALID_MS
//!  client    has heard 5 --------------> the change goes on
//! ```
//!
//! Invariants
//! - A client believes for a shorter time than it is waited for: it counts from sending a question that was answered, the manager
//!   from receiving it.
//! - A client has one question open at a time. One that has not had the last answer is told to forget everything.
//! - A client that is not waited for holds nothing: what it held is dropped, and its next question is answered as its first. A dead
//!   one is waited for once, for the time it would believe.
//! - No clock: the time comes in milliseconds that only rise.
//!
//! Left to others: sockets and waiting (`metaserver`), what the client believes (`client`).

use std::collections::HashMap;

use wire::ClientId;

use super::stamps::SLOTS;

/// How long a client believes what it was told, from sending its last question that was answered.
pub const VALID_MS: u64 = 1500;

/// How long the manager lets a question lie at most.
pub const LYING_MS: u64 = 400;

const WORDS: usize = SLOTS as usize / 64;

#[derive(Debug)]
struct Holder {
    /// One bit a slot.
    slots: Box<[u64]>,
    /// To be told: slots, and what stands in them.
    pending: Vec<(u32, u64)>,
    /// The number of the last answer.
    sent: u64,
    /// The number of the last answer that the client has had when it asked; 0 until it has had one.
    heard: u64,
    until_ms: u64,
}

/// What is told to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recall {
    /// Number of the answer.
    pub number: u64,
    /// The client has to forget everything that it was told before.
    pub is_first: bool,
    /// Slots that it must not believe any more, and what stands in them.
    pub slots: Vec<(u32, u64)>,
}

/// A client that has to hear an answer before a change goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedClient {
    client: ClientId,
    number: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Recalls {
    holders: HashMap<ClientId, Holder>,
    /// The number of the last answer to any client: none has the number of another, so that a client that lost the first answer
    /// of a later life is not taken for one that has had the first of an earlier.
    last: u64,
}

impl Recalls {
    /// Of a start of the manager.
    pub fn new(start: u64) -> Recalls {
        Recalls {
            holders: HashMap::new(),
            last: start << 32,
        }
    }

    /// A client asks what has changed, and has had the answer with this number (0 for none).
    pub fn asked(&mut self, client: ClientId, heard: u64, now_ms: u64) {
        self.drop_those_who_are_late(now_ms);
        let until_ms = now_ms + VALID_MS;
        if let Some(holder) = self.holders.get_mut(&client) {
            holder.until_ms = until_ms;
            match heard > 0 && heard == holder.sent {
                true => {
                    if holder.heard == 0 {
                        // It has forgotten everything now.
                        holder.slots.fill(0);
                    }
                    holder.heard = heard;
                }
                // Until it has heard that it has to forget, it believes what it was told.
                false => holder.heard = 0,
            }
            return;
        }
        let new = Holder {
            slots: vec![0; WORDS].into(),
            pending: Vec::new(),
            sent: 0,
            heard: 0,
            until_ms,
        };
        self.holders.insert(client, new);
    }

    /// Whether there is anything to tell a client that has asked; one that holds nothing any more is told that.
    pub fn has_news(&self, client: ClientId) -> bool {
        let holder = self.holders.get(&client);
        holder.is_none_or(|holder| holder.heard == 0 || !holder.pending.is_empty())
    }

    /// What is told to a client now; nothing if it holds nothing any more.
    pub fn tell(&mut self, client: ClientId) -> Option<Recall> {
        let holder = self.holders.get_mut(&client)?;
        self.last += 1;
        holder.sent = self.last;
        Some(Recall {
            number: holder.sent,
            is_first: holder.heard == 0,
            slots: std::mem::take(&mut holder.pending),
        })
    }

    /// A client is about to be given stamps of these slots; whether it hears when they change. To be asked before the stamps are
    /// read.
    pub fn hold(&mut self, client: ClientId, slots: &[u32], now_ms: u64) -> bool {
        let Some(holder) = self.holders.get_mut(&client) else {
            return false;
        };
        // One that is about to be dropped gets nothing, and one that is about to forget everything.
        if holder.until_ms <= now_ms || holder.heard == 0 {
            return false;
        }
        for slot in slots {
            holder.slots[*slot as usize / 64] |= 1 << (slot % 64);
        }
        true
    }

    /// Slots are about to change, and this stands in them now. Who has to hear of it before it can be seen.
    pub fn change(&mut self, slots: &[u32], stamp: u64, now_ms: u64) -> Vec<AwaitedClient> {
        self.drop_those_who_are_late(now_ms);
        let number = self.last + 1;
        let mut awaited = Vec::new();
        for (client, holder) in &mut self.holders {
            let before = holder.pending.len();
            for slot in slots {
                let (word, bit) = (*slot as usize / 64, 1 << (slot % 64));
                if holder.slots[word] & bit != 0 {
                    holder.slots[word] &= !bit;
                    holder.pending.push((*slot, stamp));
                }
            }
            if holder.pending.len() > before {
                awaited.push(AwaitedClient {
                    client: *client,
                    number,
                });
            }
        }
        awaited
    }

    /// Until when those are waited for that have not heard yet; nothing if all have.
    pub fn waits_until(&mut self, awaited: &[AwaitedClient], now_ms: u64) -> Option<u64> {
        self.drop_those_who_are_late(now_ms);
        let waiting = awaited.iter().filter_map(|awaited| {
            let holder = self.holders.get(&awaited.client)?;
            (holder.heard < awaited.number).then_some(holder.until_ms)
        });
        waiting.max()
    }

    /// How many clients hold anything.
    pub fn holders(&self) -> usize {
        self.holders.len()
    }

    fn drop_those_who_are_late(&mut self, now_ms: u64) {
        self.holders.retain(|_, holder| holder.until_ms > now_ms);
    }
}

#[cfg(test)]
mod tests {
    use random::Random;

    use super::*;
    use crate::stamps::{changed, changing};

    const A: ClientId = ClientId(1);
    const B: ClientId = ClientId(2);

    #[test]
    fn a_change_waits_until_all_who_hold_its_slots_have_heard() {
        let mut recalls = Recalls::new(0);
        for client in [A, B] {
            recalls.asked(client, 0, 10);
            assert!(!recalls.hold(client, &[7], 10), "it has no answer yet");
            let first = recalls.tell(client).unwrap();
            assert!(first.is_first);
            recalls.asked(client, first.number, 20);
            assert!(!recalls.has_news(client));
        }
        assert!(recalls.hold(A, &[7, 8], 20) && recalls.hold(B, &[8, 9], 20));
        assert!(!recalls.hold(ClientId(3), &[7], 20), "it does not listen");
        assert_eq!(recalls.change(&[1, 2], 5, 20), []);
        let both = recalls.change(&[8], 5, 20);
        assert_eq!(both.len(), 2);
        assert_eq!(recalls.change(&[8], 7, 20), [], "nobody holds it any more");
        assert!(recalls.has_news(A) && recalls.has_news(B));
        let told = recalls.tell(A).unwrap();
        assert_eq!(told.slots, [(8, 5)]);
        assert!(!told.is_first);
        assert_eq!(recalls.waits_until(&both, 30), Some(20 + VALID_MS));
        recalls.asked(A, told.number, 40);
        let of_b = recalls.tell(B).unwrap().number;
        assert_eq!(recalls.waits_until(&both, 50), Some(20 + VALID_MS));
        recalls.asked(B, of_b, 60);
        assert_eq!(recalls.waits_until(&both, 60), None);
        // An answer is lost: the client is told to forget, and waited for until it has heard that.
        assert!(recalls.hold(A, &[3], 60));
        let awaited = recalls.change(&[3], 9, 60);
        assert_eq!(recalls.tell(A).unwrap().slots, [(3, 9)]);
        recalls.asked(A, told.number, 70);
        assert_eq!(recalls.waits_until(&awaited, 70), Some(70 + VALID_MS));
        let again = recalls.tell(A).unwrap();
        assert!(again.is_first);
        recalls.asked(A, again.number, 80);
        assert_eq!(recalls.waits_until(&awaited, 80), None);
    }

    #[test]
    fn nobody_waits_for_the_dead_longer_than_they_believe() {
        let mut recalls = Recalls::new(0);
        recalls.asked(A, 0, 0);
        let first = recalls.tell(A).unwrap().number;
        recalls.asked(A, first, 100);
        recalls.hold(A, &[7], 100);
        let awaited = recalls.change(&[7], 5, 200);
        assert_eq!(recalls.waits_until(&awaited, 200), Some(100 + VALID_MS));
        assert_eq!(recalls.waits_until(&awaited, 100 + VALID_MS), None);
        assert_eq!(recalls.holders(), 0);
        // Not dead after all: it has to forget everything.
        assert!(recalls.tell(A).is_none() && recalls.has_news(A));
        recalls.asked(A, first, 5000);
        assert!(recalls.tell(A).unwrap().is_first);
        assert_eq!(recalls.change(&[7], 9, 5000), []);
    }

    /// Clients as they are written: what they believe is compared with what stands, while messages take any time or none.
    #[test]
    fn no_client_believes_what_has_changed() {
        #[derive(Default)]
        struct Client {
            /// When the last question was sent that was answered.
            sent_ms: u64,
            heard: u64,
            /// When it was sent, and whether it lies at the manager.
            question: Option<(u64, bool)>,
            answer: Option<Recall>,
            believed: HashMap<u32, u64>,
            given: Vec<(u32, u64)>,
            recalled: HashMap<u32, u64>,
            is_dead: bool,
        }
        let (mut waited, mut longest) = (0, 0);
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let mut recalls = Recalls::new(0);
            let mut slots = [0u64; 4];
            let mut number = 0;
            let mut now = 1;
            let mut clients: Vec<Client> = (0..3).map(|_| Client::default()).collect();
            let mut under_way: Option<(Vec<u32>, Vec<AwaitedClient>, u64)> = None;
            for _ in 0..400 {
                now += random.below(60);
                let which = random.index(clients.len());
                let id = ClientId(which as u64 + 1);
                let client = &mut clients[which];
                if client.is_dead && random.below(8) != 0 {
                    continue;
                }
                client.is_dead &= random.below(3) != 0;
                match random.below(7) {
                    0 if client.question.is_none() => {
                        client.question = Some((now, true));
                        recalls.asked(id, client.heard, now);
                    }
                    1 | 2 if client.question.is_some_and(|(_, lies)| lies) => {
                        client.answer = recalls.tell(id);
                        // Now and then it is lost with the connection, or the manager knows nothing of the client.
                        let is_lost = client.answer.is_none() || random.below(20) == 0;
                        client.answer.take_if(|_| is_lost);
                        client.question = client.question.map(|(sent, _)| (sent, false));
                        client.question.take_if(|_| is_lost);
                    }
                    3 => {
                        if let Some(recall) = client.answer.take() {
                            if recall.is_first {
                                client.believed.clear();
                                client.given.clear();
                                client.recalled.clear();
                            }
                            client.heard = recall.number;
                            client.sent_ms = client.question.take().expect("asked").0;
                            for (slot, stamp) in recall.slots {
                                client.recalled.insert(slot, stamp);
                            }
                        }
                    }
                    4 => {
                        let slot = random.below(4) as u32;
                        let stamp = slots[slot as usize];
                        if stamp & 1 == 0 && recalls.hold(id, &[slot], now) {
                            client.given.push((slot, stamp));
                        }
                    }
                    5 => client.believed.extend(client.given.drain(..)),
                    6 if random.below(40) == 0 => client.is_dead = true,
                    _ => {}
                }
                match &under_way {
                    None if random.below(3) == 0 => {
                        number += 1;
                        let of: Vec<u32> = (0..4).filter(|_| random.below(3) == 0).collect();
                        for slot in &of {
                            slots[*slot as usize] = changing(number);
                        }
                        let awaited = recalls.change(&of, changing(number), now);
                        under_way = Some((of, awaited, now));
                    }
                    Some((of, awaited, since)) if recalls.waits_until(awaited, now).is_none() => {
                        waited += u64::from(now > *since);
                        longest = longest.max(now - since);
                        // It can be seen: nobody believes what was there before.
                        for (who, client) in clients.iter().enumerate() {
                            let is_valid = client.sent_ms > 0 && now < client.sent_ms + VALID_MS;
                            for slot in of.iter().filter(|_| is_valid) {
                                let recalled = client.recalled.get(slot).copied();
                                let believed = client.believed.get(slot).copied();
                                let is_believed =
                                    believed.is_some_and(|b| recalled.is_none_or(|r| r <= b));
                                assert!(!is_believed, "seed {seed}: {who} believes {slot}");
                            }
                        }
                        for slot in of {
                            slots[*slot as usize] = changed(number);
                        }
                        under_way = None;
                    }
                    None | Some(_) => {}
                }
            }
        }
        assert!(
            waited > 1000 && longest > VALID_MS,
            "{waited}, {longest} ms"
        );
    }
}
