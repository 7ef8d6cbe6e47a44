//! The size of a file by example and at random: growth, truncates, owners and servers that come and go.
//! What servers do with it is played here by a pair of numbers each; asking them is the owner's (`ioserver`).

use super::*;
use wire::ClientId;

const A: ServerId = ServerId(0);
const B: ServerId = ServerId(1);

fn ticket(request: u64) -> Ticket {
    Ticket {
        client: ClientId(1),
        request,
    }
}

fn wrote(request: u64, epoch: u64, end: u64) -> Event {
    Event::Wrote {
        ticket: ticket(request),
        epoch,
        end,
    }
}

fn truncate(request: u64, to: u64) -> Event {
    Event::Truncate {
        ticket: ticket(request),
        to,
    }
}

fn applied(server: ServerId, epoch: u64) -> Event {
    Event::Applied { server, epoch }
}

fn apply(epoch: u64, to: u64, servers: &[ServerId]) -> Effect {
    Effect::Apply {
        epoch,
        to,
        servers: servers.to_vec(),
    }
}

fn intend(request: u64, to: u64) -> Effect {
    let ticket = ticket(request);
    Effect::Intend { ticket, to }
}

#[test]
fn size_only_grows() {
    let mut owner = SizeOwner::new([A, B]);
    assert_eq!(
        owner.handle(wrote(1, 0, 100)),
        [Effect::Hint(100), Effect::Counted(ticket(1))]
    );
    assert_eq!(owner.handle(wrote(2, 0, 60)), [Effect::Counted(ticket(2))]);
    assert_eq!(owner.report(), Some((0, 100)));
    assert!(owner.wrote(0, 120) && owner.wrote(0, 7) && !owner.wrote(1, 500));
    assert_eq!(owner.report(), Some((0, 120)));
}

#[test]
fn truncate_lowers_the_hint_first_and_begins_an_epoch() {
    let mut owner = SizeOwner::new([A, B]);
    owner.handle(wrote(1, 0, 100));
    assert_eq!(
        owner.handle(truncate(2, 10)),
        [Effect::Hint(10), intend(2, 10)]
    );
    // A write that returns before the intent is durable counts, but the hint stays low.
    assert_eq!(owner.handle(wrote(3, 0, 200)), [Effect::Counted(ticket(3))]);
    assert_eq!(owner.handle(truncate(4, 50)), []);
    assert_eq!(
        owner.handle(Event::Intended { epoch: 1 }),
        [apply(1, 10, &[A, B])]
    );
    assert_eq!(
        owner.handle(wrote(5, 0, 300)),
        [Effect::TooOld {
            ticket: ticket(5),
            epoch: 1
        }]
    );
    // Regrowth in the new epoch; nobody hears of it before all have cut.
    assert_eq!(owner.handle(wrote(6, 1, 30)), [Effect::Counted(ticket(6))]);
    assert_eq!(owner.size(), None);
    assert_eq!(owner.handle(applied(A, 1)), []);
    assert_eq!((owner.size(), owner.report()), (None, None));
    assert_eq!(owner.handle(applied(B, 0)), []);
    assert_eq!(
        owner.handle(applied(B, 1)),
        [
            Effect::Hint(30),
            Effect::Truncated(ticket(2)),
            Effect::Finish { epoch: 1 },
            Effect::Hint(30),
            intend(4, 50),
        ]
    );
    // The next one was refused by the catalogue.
    assert_eq!(
        owner.handle(Event::IntentRefused),
        [Effect::Hint(30), Effect::NotTruncated(ticket(4))]
    );
    assert_eq!(owner.size(), Some(30));
}

#[test]
fn intents_of_other_times_change_nothing() {
    let mut owner = SizeOwner::new([A]);
    owner.handle(wrote(1, 0, 100));
    // None was asked for.
    assert_eq!(owner.handle(Event::Intended { epoch: 1 }), []);
    assert_eq!(owner.report(), Some((0, 100)));
    owner.handle(truncate(2, 10));
    // An answer that is older than what is known.
    assert_eq!(owner.handle(Event::Intended { epoch: 0 }), []);
    let effects = owner.handle(Event::Intended { epoch: 1 });
    assert_eq!(effects, [apply(1, 10, &[A])]);
    // Another truncate waits for this one: an answer that comes twice does not let it begin.
    owner.handle(truncate(3, 5));
    assert_eq!(owner.handle(Event::Intended { epoch: 2 }), []);
    let effects = owner.handle(applied(A, 1));
    assert!(effects.contains(&intend(3, 5)), "{effects:?}");
}

#[test]
fn truncate_is_answered_when_nothing_can_be_stored_that_will_be_cut() {
    let mut owner = SizeOwner::new([A, B]);
    owner.handle(wrote(1, 0, 100));
    owner.handle(Event::ServerGone(B));
    owner.handle(truncate(2, 10));
    owner.handle(Event::Intended { epoch: 1 });
    assert_eq!(owner.size(), None);
    // B may live, and clients of its host store there: no answer. The size is not held up by it.
    assert_eq!(owner.handle(applied(A, 1)), []);
    assert_eq!((owner.size(), owner.held_up_by()), (Some(10), vec![B]));
    // It is back and has not cut: the size waits again.
    assert_eq!(owner.handle(Event::ServerBack(B)), [apply(1, 10, &[B])]);
    assert_eq!(owner.size(), None);
    assert_eq!(
        owner.handle(applied(B, 1)),
        [
            Effect::Hint(10),
            Effect::Truncated(ticket(2)),
            Effect::Finish { epoch: 1 }
        ]
    );
    // One whose bytes are gone has nothing to cut.
    owner.handle(Event::ServerGone(A));
    owner.handle(truncate(3, 5));
    owner.handle(Event::Intended { epoch: 2 });
    assert_eq!(owner.handle(applied(B, 2)), []);
    assert_eq!(
        owner.handle(Event::ServerLost(A)),
        [
            Effect::Hint(5),
            Effect::Truncated(ticket(3)),
            Effect::Finish { epoch: 2 }
        ]
    );
}

#[test]
fn start_that_is_over_keeps_the_intent_but_not_the_client() {
    let mut owner = SizeOwner::new([A, B]);
    owner.handle(Event::ServerGone(B));
    owner.handle(truncate(1, 10));
    owner.handle(Event::Intended { epoch: 1 });
    assert_eq!(owner.handle(applied(A, 1)), []);
    assert_eq!(
        owner.handle(Event::ServerOver(B)),
        [Effect::Hint(10), Effect::Truncated(ticket(1))]
    );
    assert_eq!(owner.handle(Event::ServerBack(B)), [apply(1, 10, &[B])]);
    assert_eq!(owner.handle(applied(B, 1)), [Effect::Finish { epoch: 1 }]);
    // The next epoch asks the start that is there now.
    owner.handle(truncate(2, 5));
    owner.handle(Event::Intended { epoch: 2 });
    owner.handle(Event::ServerGone(B));
    assert_eq!(owner.handle(applied(A, 2)), []);
    // A client that gives up waiting takes nothing back.
    assert_eq!(owner.handle(Event::Withdrawn(ticket(2))), []);
    assert_eq!(owner.handle(Event::ServerBack(B)), [apply(2, 5, &[B])]);
    assert_eq!(owner.handle(applied(B, 2)), [Effect::Finish { epoch: 2 }]);
}

#[test]
fn end_of_a_later_epoch_is_asked_for_again_in_that_epoch() {
    let end = |server, epoch, end| last_end(server, 0, epoch, end);
    let durable = SizeState {
        size: 100,
        epoch: 3,
        truncate_to: None,
    };
    let (mut owner, _) = SizeOwner::restarted(durable, [A, B]);
    owner.handle(end(A, 3, 80));
    // An intent of the owner before has arrived late: B has cut already.
    assert_eq!(owner.handle(end(B, 4, 25)), [Effect::Behind(B)]);
    assert_eq!(owner.size(), None);
    let later = SizeState {
        size: 20,
        epoch: 4,
        truncate_to: Some(20),
    };
    assert_eq!(
        owner.handle(Event::Overtaken(later)),
        [
            Effect::Hint(20),
            Effect::AskEnds(vec![B]),
            apply(4, 20, &[A, B])
        ]
    );
    owner.handle(end(B, 4, 25));
    owner.handle(applied(A, 4));
    owner.handle(applied(B, 4));
    assert_eq!(owner.report(), Some((4, 25)));
}

#[test]
fn restart_takes_the_largest_end_capped_by_the_pending_truncate() {
    let durable = SizeState {
        size: 10,
        epoch: 3,
        truncate_to: Some(10),
    };
    let end = |server, epoch, end| last_end(server, 0, epoch, end);
    let (mut owner, effects) = SizeOwner::restarted(durable, [A, B]);
    assert_eq!(
        effects,
        [Effect::AskEnds(vec![A, B]), apply(3, 10, &[A, B])]
    );
    assert_eq!(owner.size(), None);
    // A has not applied it: its bytes up to 500 are on their way out. B has, and has grown since.
    owner.handle(end(A, 2, 500));
    owner.handle(end(B, 3, 25));
    assert_eq!(owner.size(), None);
    owner.handle(applied(A, 3));
    assert_eq!(owner.handle(applied(B, 3)), [Effect::Finish { epoch: 3 }]);
    assert_eq!(owner.size(), Some(25));
    // Without a truncate it is the plain maximum; a server that missed one is not believed.
    let durable = SizeState {
        truncate_to: None,
        ..durable
    };
    let (mut owner, _) = SizeOwner::restarted(durable, [A, B]);
    owner.handle(end(A, 3, 12));
    owner.handle(end(B, 2, 500));
    assert_eq!(owner.size(), Some(12));
    let (mut owner, _) = SizeOwner::restarted(durable, [A]);
    assert_eq!(owner.handle(truncate(1, 0)), []);
    owner.handle(Event::ServerGone(A));
    assert_eq!(
        owner.handle(Event::ServerBack(A)),
        [Effect::AskEnds(vec![A])]
    );
    assert_eq!(owner.handle(end(A, 3, 4)), [Effect::Hint(0), intend(1, 0)]);
}

#[test]
fn known_size_asks_nobody_and_applies_what_is_pending() {
    let durable = SizeState {
        size: 10,
        epoch: 3,
        truncate_to: None,
    };
    let (owner, effects) = SizeOwner::known(durable, [A, B]);
    assert_eq!(
        (owner.size(), owner.epoch(), effects),
        (Some(10), 3, vec![])
    );
    let pending = SizeState {
        truncate_to: Some(10),
        ..durable
    };
    let (mut owner, effects) = SizeOwner::known(pending, [A]);
    assert_eq!(effects, [apply(3, 10, &[A])]);
    // Who comes to the file meanwhile applies it too.
    assert_eq!(owner.handle(Event::ServerAdded(B)), [apply(3, 10, &[B])]);
    assert_eq!(owner.handle(Event::ServerAdded(B)), []);
    assert_eq!(owner.handle(applied(A, 3)), []);
    assert_eq!(owner.handle(applied(B, 3)), [Effect::Finish { epoch: 3 }]);
    assert_eq!(owner.handle(Event::ServerAdded(ServerId(2))), []);
}

#[test]
fn waiting_truncates_can_be_withdrawn_but_not_what_was_asked_for() {
    let mut owner = SizeOwner::new([A, B]);
    owner.handle(truncate(1, 10));
    owner.handle(truncate(2, 20));
    owner.handle(truncate(3, 30));
    assert_eq!(owner.handle(Event::Withdrawn(ticket(1))), []);
    assert_eq!(
        owner.handle(Event::Withdrawn(ticket(2))),
        [Effect::NotTruncated(ticket(2))]
    );
    assert_eq!(owner.handle(Event::Withdrawn(ticket(2))), []);
    owner.handle(Event::Intended { epoch: 1 });
    assert_eq!(owner.held_up_by(), []);
    owner.handle(Event::ServerGone(B));
    assert_eq!(owner.held_up_by(), [B]);
    assert_eq!(owner.handle(applied(A, 1)), []);
    owner.handle(Event::ServerBack(B));
    assert_eq!(owner.held_up_by(), []);
    let effects = owner.handle(applied(B, 1));
    assert_eq!(effects.last(), Some(&intend(3, 30)));
}

#[test]
fn an_intent_whose_answer_was_lost_is_taken_over() {
    let mut owner = SizeOwner::new([A]);
    owner.handle(wrote(1, 0, 100));
    let durable = SizeState {
        size: 7,
        epoch: 1,
        truncate_to: Some(7),
    };
    assert_eq!(
        owner.handle(Event::Overtaken(durable)),
        [Effect::Hint(7), apply(1, 7, &[A])]
    );
    assert_eq!(owner.handle(Event::Overtaken(durable)), []);
    assert_eq!((owner.size(), owner.epoch()), (None, 1));
    assert_eq!(owner.handle(applied(A, 1)), [Effect::Finish { epoch: 1 }]);
    assert_eq!(owner.size(), Some(7));
    // The answer to an intent may be overtaken by that to a report; it is the one that counts.
    owner.handle(truncate(2, 4));
    let durable = SizeState {
        size: 4,
        epoch: 2,
        truncate_to: Some(4),
    };
    assert_eq!(owner.handle(Event::Overtaken(durable)), []);
    let effects = owner.handle(Event::Intended { epoch: 2 });
    assert_eq!(effects, [apply(2, 4, &[A])]);
    owner.handle(applied(A, 2));
    // One that is over is only taken note of.
    let over = SizeState {
        size: 9,
        epoch: 5,
        truncate_to: None,
    };
    assert_eq!(owner.handle(Event::Overtaken(over)), [Effect::Hint(9)]);
    assert_eq!(owner.report(), Some((5, 9)));
}

/// What a grower says that still is one.
fn end_is(server: ServerId, announcement: u64, epoch: u64, end: u64) -> Event {
    Event::EndIs {
        server,
        announcement,
        epoch,
        end,
        grows: true,
    }
}

/// What a server says that is none.
fn last_end(server: ServerId, announcement: u64, epoch: u64, end: u64) -> Event {
    Event::EndIs {
        server,
        announcement,
        epoch,
        end,
        grows: false,
    }
}

/// A server that leaves the file with a move and comes back with the next may still hold itself for announced.
#[test]
fn a_server_that_comes_back_is_asked_until_it_says_that_nothing_grows() {
    let mut owner = SizeOwner::new([A, B]);
    owner.handle(Event::Announced(B));
    owner.handle(end_is(B, 1, 0, 70));
    owner.handle(Event::ServerLost(B));
    owner.handle(Event::ServerAdded(B));
    assert!(owner.growers().eq([(B, 2)]));
    // What it said before it left is no answer to the question of now.
    owner.handle(last_end(B, 1, 0, 70));
    assert!(owner.growers().eq([(B, 2)]));
    owner.handle(end_is(B, 2, 0, 90));
    assert_eq!((owner.size(), owner.growers().count()), (Some(90), 1));
    owner.handle(last_end(B, 2, 0, 90));
    assert_eq!((owner.size(), owner.growers().count()), (Some(90), 0));
    // One that was there all the time has announced itself if it grows.
    owner.handle(Event::ServerAdded(A));
    assert_eq!(owner.growers().count(), 0);
}

#[test]
fn growers_are_asked_until_they_say_that_they_are_none() {
    let mut owner = SizeOwner::new([A, B]);
    assert_eq!(owner.growers().count(), 0);
    owner.handle(Event::Announced(B));
    assert!(owner.growers().eq([(B, 1)]));
    // What a server says that was not asked is not believed.
    owner.handle(last_end(A, 0, 0, 500));
    assert_eq!(owner.size(), Some(0));
    owner.handle(end_is(B, 1, 0, 70));
    assert_eq!((owner.size(), owner.growers().count()), (Some(70), 1));
    // It has announced itself again while its answer was on the way.
    owner.handle(Event::Announced(B));
    owner.handle(last_end(B, 1, 0, 80));
    assert_eq!((owner.size(), owner.growers().count()), (Some(80), 1));
    owner.handle(last_end(B, 2, 0, 75));
    assert_eq!((owner.size(), owner.growers().count()), (Some(80), 0));
    // An end of an epoch that is over is cut with everything else of it.
    owner.handle(Event::Announced(B));
    owner.handle(truncate(1, 10));
    owner.handle(Event::Intended { epoch: 1 });
    owner.handle(applied(A, 1));
    owner.handle(end_is(B, 3, 0, 500));
    owner.handle(applied(B, 1));
    assert_eq!(owner.size(), Some(10));
    owner.handle(end_is(B, 3, 0, 500));
    assert_eq!(owner.size(), Some(10), "it answered before it cut");
    owner.handle(end_is(B, 3, 1, 12));
    assert_eq!(owner.size(), Some(12));
    owner.handle(Event::ServerLost(B));
    assert_eq!(owner.growers().count(), 0);
    let durable = SizeState {
        size: 12,
        epoch: 1,
        truncate_to: None,
    };
    let (mut owner, _) = SizeOwner::restarted(durable, [A, B]);
    assert_eq!(owner.growers().count(), 0, "they are asked already");
    owner.handle(last_end(A, 0, 1, 12));
    owner.handle(end_is(B, 0, 1, 13));
    assert!(owner.growers().eq([(B, 0)]));
    assert_eq!(owner.size(), Some(13));
}

/// Random writes, truncates and crashes of the owner against plain servers: whatever was
/// answered is not lost, and what was cut does not come back.
#[test]
fn nothing_counted_is_lost_and_nothing_cut_returns() {
    let mut state = 88_172_645_463_325_252u64;
    let mut below = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % n
    };
    let mut told = 0;
    for round in 0..300 {
        let mut durable = SizeState {
            size: 0,
            epoch: 0,
            truncate_to: None,
        };
        // Per server: the epoch applied, and one past its last byte.
        let mut servers = BTreeMap::from([(A, (0u64, 0u64)), (B, (0, 0))]);
        // Servers that hold themselves for announced.
        let mut announced = BTreeSet::new();
        let mut owner = SizeOwner::new([A, B]);
        let mut under_way: Vec<Effect> = Vec::new();
        // The size a plain file would have.
        let mut plain = 0u64;
        for request in 0..80 {
            let server = [A, B][below(2) as usize];
            let effects = match below(11) {
                10 if under_way.is_empty() => {
                    // The file leaves a server with a move and comes back with the next.
                    let other = [A, B][usize::from(server == A)];
                    let (epoch, end) = servers[&server];
                    let (_, taken) = servers.get_mut(&other).unwrap();
                    *taken = end.max(*taken);
                    servers.insert(server, (epoch, 0));
                    let mut effects = owner.handle(Event::ServerLost(server));
                    effects.extend(owner.handle(Event::ServerAdded(server)));
                    effects
                }
                8 | 9 => {
                    // A client stores behind the end and tells nobody.
                    if announced.insert(server) {
                        owner.handle(Event::Announced(server));
                    }
                    let (epoch, end) = servers.get_mut(&server).unwrap();
                    let to = below(100);
                    if *epoch == durable.epoch {
                        *end = to.max(*end);
                        plain = plain.max(to);
                    }
                    Vec::new()
                }
                0..=2 => {
                    // A server serves the present epoch only after it has applied it.
                    let (epoch, end) = servers.get_mut(&server).unwrap();
                    let to = below(100);
                    *end = to.max(*end);
                    let effects = owner.handle(wrote(request, *epoch, to));
                    if effects.contains(&Effect::Counted(ticket(request))) {
                        plain = plain.max(to);
                    }
                    effects
                }
                3 => owner.handle(truncate(request, below(100))),
                4 if round % 2 == 0 => {
                    under_way.retain(|e| matches!(e, Effect::Intend { .. }));
                    if let Some(Effect::Intend { to, .. }) = under_way.pop() {
                        // The intent was sent before the crash and arrives.
                        durable = SizeState {
                            size: to,
                            epoch: durable.epoch + 1,
                            truncate_to: Some(to),
                        };
                        plain = to;
                    }
                    under_way.clear();
                    let (new, mut effects) = SizeOwner::restarted(durable, [A, B]);
                    owner = new;
                    for (&server, &(epoch, end)) in &servers {
                        effects.extend(owner.handle(end_is(server, 0, epoch, end)));
                    }
                    let size = owner.size();
                    assert!(size.is_none_or(|s| s == plain), "round {round}: {size:?}");
                    effects
                }
                _ if under_way.is_empty() => continue,
                _ => match under_way.remove(below(under_way.len() as u64) as usize) {
                    Effect::Intend { to, .. } => {
                        let epoch = durable.epoch + 1;
                        durable = SizeState {
                            size: to,
                            epoch,
                            truncate_to: Some(to),
                        };
                        plain = to;
                        owner.handle(Event::Intended { epoch })
                    }
                    Effect::Apply {
                        epoch,
                        to,
                        servers: list,
                    } => {
                        let mut effects = Vec::new();
                        for server in list {
                            let (applied_epoch, end) = servers.get_mut(&server).unwrap();
                            if epoch > *applied_epoch {
                                (*applied_epoch, *end) = (epoch, to.min(*end));
                            }
                            effects.extend(owner.handle(applied(server, epoch)));
                        }
                        effects
                    }
                    Effect::Finish { epoch } => {
                        assert!(servers.values().all(|(e, _)| *e >= epoch));
                        if epoch == durable.epoch {
                            durable.truncate_to = None;
                        }
                        Vec::new()
                    }
                    _ => Vec::new(),
                },
            };
            for effect in effects {
                match effect {
                    Effect::Hint(hint) => {
                        assert!(hint <= plain, "round {round}: hint too high");
                    }
                    Effect::Truncated(_) => {
                        let epoch = owner.epoch();
                        assert!(servers.values().all(|(e, _)| *e == epoch), "round {round}");
                    }
                    // Servers cut one by one.
                    Effect::Apply { epoch, to, servers } => {
                        under_way.extend(servers.iter().map(|s| apply(epoch, to, &[*s])));
                    }
                    Effect::Intend { .. } | Effect::Finish { .. } => under_way.push(effect),
                    _ => {}
                }
            }
            let growers: Vec<(ServerId, u64)> = owner.growers().collect();
            for (server, announcement) in growers {
                let (epoch, end) = servers[&server];
                let said = match below(2) {
                    0 => end_is(server, announcement, epoch, end),
                    _ => {
                        announced.remove(&server);
                        last_end(server, announcement, epoch, end)
                    }
                };
                for effect in owner.handle(said) {
                    match effect {
                        Effect::Apply { epoch, to, servers } => {
                            under_way.extend(servers.iter().map(|s| apply(epoch, to, &[*s])));
                        }
                        Effect::Intend { .. } | Effect::Finish { .. } => under_way.push(effect),
                        _ => {}
                    }
                }
            }
            // A client that is told a size is told the right one, and when all have cut.
            if let Some(size) = owner.size() {
                assert_eq!(size, plain, "round {round}, request {request}");
                let epoch = owner.epoch();
                assert!(servers.values().all(|(e, _)| *e == epoch), "round {round}");
                told += 1;
            }
        }
    }
    assert!(told > 5000, "told {told} times");
}
