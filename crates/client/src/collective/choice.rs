//! Which strategy a collective access takes: the one that was asked for, or the one that the cost model says
//! is fastest.
//!
//! The model is asked once for every kind of access (direction, bytes of each rank), by rank 0, which knows
//! the calibrated costs of its host; the others are told. So all ranks decide alike, and a loop of equal
//! accesses asks nothing.
//!
//! Left to others: what each way costs (`advise::cost`), which of them is taken (`advise::collective`), whether it gives the
//! same bytes (`collective`).

use std::collections::VecDeque;

use advise::collective::{Abilities, blocks_per_round, pick};
use advise::cost::{
    Access, DirectedWay, Home, Machine, Op, Prediction, Process, StoreKind as StoreCosts, Way,
    alternatives,
};
use parking_lot::Mutex;
use wire::message::catalogue::StoreKind;
use wire::{Reader, put_number};

use crate::access::memory::Direction;
use crate::collective::RankAccess;
use crate::collective::agreement::Agreement;
use crate::collective::strategy::{Choice, Collective, Reason};
use crate::collective::team::Team;
use crate::error::{Error, Result};
use crate::file::File;

/// Answers that are kept.
const KEPT: usize = 32;

/// What an answer is for: direction, what is possible, bytes of each rank.
type Kind = (Direction, bool, bool, Vec<u64>);

/// Answers of the cost model.
#[derive(Debug, Default)]
pub(crate) struct Choices(Mutex<VecDeque<(Kind, Choice)>>);

impl Choices {
    fn get(&self, kind: &Kind) -> Option<Choice> {
        let kept = self.0.lock();
        let found = kept.iter().find(|(known, _)| known == kind);
        found.map(|(_, choice)| choice.clone())
    }

    fn keep(&self, kind: Kind, choice: Choice) {
        let mut kept = self.0.lock();
        kept.truncate(KEPT - 1);
        kept.push_front((kind, choice));
    }
}

fn way(how: Way) -> Option<Collective> {
    Some(match how {
        Way::Direct | Way::Message | Way::Packed => Collective::Independent,
        Way::TwoPhase => Collective::TwoPhase,
        Way::DiskDirected(DirectedWay::Packet) => Collective::PbDdio,
        Way::DiskDirected(DirectedWay::MultiBlock { .. }) => Collective::MbDdio,
        Way::DiskDirected(DirectedWay::TwoPhase) => Collective::TwoPhaseDdio,
        // Piece by piece is for comparison, and the others know no views at the server.
        Way::DiskDirected(DirectedWay::Piece) | Way::List | Way::Pieces | Way::Sieved { .. } => {
            return None;
        }
    })
}

/// What predictions come to: every strategy with its seconds, the fastest first, and the one to take.
fn strategies(predictions: &[Prediction], can: Abilities) -> (Collective, Vec<(Collective, f64)>) {
    let mut all: Vec<(Collective, f64)> = Vec::new();
    for prediction in predictions {
        if prediction.way == Way::Direct && !can.go_directly {
            continue;
        }
        if let Some(how) = way(prediction.way)
            && !all.iter().any(|(known, _)| *known == how)
        {
            all.push((how, prediction.seconds));
        }
    }
    let picked = pick(predictions, can).and_then(|p| way(p.way));
    (picked.unwrap_or(Collective::Independent), all)
}

fn put(choice: &Choice) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, choice.how.number());
    put_number(&mut out, choice.blocks);
    put_number(&mut out, choice.alternatives.len() as u64);
    for (how, seconds) in &choice.alternatives {
        put_number(&mut out, how.number());
        put_number(&mut out, (seconds * 1e9) as u64);
    }
    out
}

fn read(bytes: &[u8]) -> Option<Choice> {
    let mut r = Reader::new(bytes);
    let how = Collective::of(r.number().ok()?)?;
    let blocks = r.number().ok()?;
    let mut alternatives = Vec::new();
    for _ in 0..r.number().ok()?.min(Collective::COUNT as u64) {
        let how = Collective::of(r.number().ok()?)?;
        alternatives.push((how, r.number().ok()? as f64 * 1e-9));
    }
    let predicted = alternatives.iter().find(|(other, _)| *other == how);
    Some(Choice {
        how,
        reason: Reason::Predicted,
        predicted_s: predicted.map(|(_, seconds)| *seconds),
        alternatives,
        blocks,
    })
}

impl File {
    /// What things cost here.
    fn machine(&self) -> Machine {
        self.session.machine()
    }

    /// What is to be done, the same at all ranks.
    pub(crate) fn choose(
        &self,
        team: &Team,
        agreed: &Agreement,
        wanted: &[RankAccess],
        direction: Direction,
        may_regroup: bool,
        can_direct: bool,
    ) -> Result<Choice> {
        if let Some(forced) = agreed.forced {
            let how = forced.collective();
            let blocks = match how {
                Collective::Ddio | Collective::PbDdio => 1,
                _ if agreed.blocks > 0 => agreed.blocks,
                // Only rank 0 says how many.
                _ if team.rank() > 0 => 0,
                _ => self.blocks(agreed),
            };
            return Ok(Choice {
                how,
                reason: Reason::Forced,
                predicted_s: None,
                alternatives: Vec::new(),
                blocks,
            });
        }
        let lens = wanted.iter().map(|wanted| wanted.len).collect();
        let kind: Kind = (direction, may_regroup, can_direct, lens);
        if let Some(choice) = agreed.choices.get(&kind) {
            return Ok(choice);
        }
        let mine = match team.rank() {
            0 => put(&self.predict(agreed, wanted, direction, may_regroup, can_direct)),
            _ => Vec::new(),
        };
        self.together.exchanged(mine.len());
        let said = team.agree(Ok(mine))?;
        let choice = read(&said[0])
            .ok_or_else(|| Error::argument("team", "rank 0 told no strategy that is known here"))?;
        agreed.choices.keep(kind, choice.clone());
        Ok(choice)
    }

    /// Blocks of a packet: so many that messages cost little beside bytes.
    fn blocks(&self, agreed: &Agreement) -> u64 {
        match agreed.blocks {
            0 => blocks_per_round(
                &self.machine(),
                agreed.ranks.len() as u64,
                agreed.block_bytes,
            ),
            blocks => blocks,
        }
    }

    fn predict(
        &self,
        agreed: &Agreement,
        wanted: &[RankAccess],
        direction: Direction,
        may_regroup: bool,
        can_direct: bool,
    ) -> Choice {
        let blocks = self.blocks(agreed);
        let state = self.known.state();
        let piece = &state.pieces[0];
        let plan = self.views.whole.plan(&state);
        let near = self.near_servers(&plan.places);
        let servers: Vec<usize> = piece
            .places
            .iter()
            .map(|places| {
                let server = places.first().map(|place| place.server);
                let slot = plan.places.iter().position(|p| Some(p.server) == server);
                slot.unwrap_or(0)
            })
            .collect();
        // A host of its own for every server that is not here.
        let hosts: Vec<usize> = (0..plan.places.len())
            .map(|slot| if near[slot] { 0 } else { slot + 1 })
            .collect();
        let here = near.iter().position(|near| *near);
        let processes: Vec<Process> = wanted
            .iter()
            .zip(&agreed.ranks)
            .map(|(wanted, rank)| Process {
                view: rank.view.clone(),
                lo: wanted.offset,
                hi: wanted.offset + wanted.len,
                near: here,
            })
            .collect();
        let home = Home {
            partition: &piece.partition,
            servers: &servers,
            server_count: plan.places.len().max(1),
            hosts: &hosts,
        };
        let access = Access {
            op: match direction {
                Direction::Read => Op::Read,
                Direction::Write => Op::Write,
            },
            processes: &processes,
            is_collective: true,
            store: self.store_costs(&plan.places),
        };
        let predictions = alternatives(&self.machine(), &access, &home);
        let can = Abilities {
            go_directly: agreed.is_direct,
            regroup: may_regroup,
            are_directed: can_direct,
        };
        let (how, alternatives) = strategies(&predictions, can);
        let predicted = alternatives.iter().find(|(other, _)| *other == how);
        Choice {
            how,
            reason: Reason::Predicted,
            predicted_s: predicted.map(|(_, seconds)| *seconds),
            blocks: match how {
                Collective::PbDdio => 1,
                _ => blocks,
            },
            alternatives,
        }
    }

    fn near_servers(&self, places: &[wire::Place]) -> Vec<bool> {
        let session = &self.session;
        let near = session.with_lane(|lane| {
            let near = places.iter().map(|place| {
                session
                    .server_pipe(lane, *place)
                    .is_ok_and(|index| lane.pipe(index).is_local())
            });
            Ok(near.collect())
        });
        near.unwrap_or_else(|_| vec![true; places.len()])
    }

    fn store_costs(&self, places: &[wire::Place]) -> StoreCosts {
        let session = &self.session;
        match places
            .iter()
            .any(|place| session.store_of(place.server) == Some(StoreKind::Disk))
        {
            true => StoreCosts::Disk,
            false => StoreCosts::Memory,
        }
    }
}

#[cfg(test)]
mod tests {
    use advise::collective::EQUAL;
    use advise::cost::{Curve, Link, StoreCost, Walk};
    use falls::FallsSet;
    use layout::{FileOffset, Partition, Pattern, View};

    use super::*;

    fn can(go_directly: bool, regroup: bool, are_directed: bool) -> Abilities {
        Abilities {
            go_directly,
            regroup,
            are_directed,
        }
    }

    /// What is taken for records of `e` bytes dealt to ranks, on striped disks, and the seconds of each strategy.
    fn picked(
        machine: &Machine,
        ranks: u64,
        servers: u64,
        e: u64,
    ) -> (Collective, Vec<(Collective, f64)>) {
        let bytes = 8 << 20;
        let set = |lo: u64, hi: u64| FallsSet::segment(lo, hi).unwrap();
        let stripe = 64 << 10;
        let elements = (0..servers).map(|i| set(i * stripe, stripe));
        let pattern = Pattern::new(servers * stripe, elements.collect()).unwrap();
        let partition = Partition::from_start(pattern);
        let processes: Vec<Process> = (0..ranks)
            .map(|r| Process {
                view: View::new(FileOffset(0), ranks * e, set(r * e, e)).unwrap(),
                lo: 0,
                hi: bytes / ranks / e * e,
                near: None,
            })
            .collect();
        let access = Access {
            op: Op::Read,
            processes: &processes,
            is_collective: true,
            store: StoreCosts::Disk,
        };
        let places: Vec<usize> = (0..servers as usize).collect();
        let home = Home {
            partition: &partition,
            servers: &places,
            server_count: servers as usize,
            hosts: &[],
        };
        strategies(
            &alternatives(machine, &access, &home),
            can(false, true, true),
        )
    }

    fn seconds(machine: &Machine, ranks: u64, servers: u64, e: u64) -> Vec<(Collective, f64)> {
        picked(machine, ranks, servers, e).1
    }

    /// The machine of the source's figures (Tables 5.4 and 5.5): packing of 0.147 us a byte for records of 8 bytes and
    /// 0.075 for 16, disks of 9.3 MB/s, messages of 17 us and 0.025 us a byte.
    fn meiko() -> Machine {
        let host = Machine::HOST;
        let link = |byte_s| Link {
            round_trip_s: 34e-6,
            message_s: 17e-6,
            byte_s,
        };
        Machine {
            pack: Curve {
                a: 4.28e-6,
                b: 1.8,
                c: 4.55e-8,
            },
            unpack: Curve {
                a: 4.094e-6,
                b: 1.864,
                c: 6.87e-8,
            },
            walk: Walk {
                page_s: 0.0,
                line_s: 0.0,
                far_line_s: 0.0,
                far_byte_s: 0.0,
                odd_piece_s: 0.0,
                ..host.walk
            },
            near: link(2.5e-8),
            far: link(2.5e-8),
            exchange: link(5.2e-8),
            disk: StoreCost {
                latency_s: 13e-3,
                read_byte_s: 0.844e-3 / 8192.0,
                write_byte_s: 0.844e-3 / 8192.0,
                block_bytes: 8192,
            },
            cores: 1.0,
            ..host
        }
    }

    fn with_disks(machine: Machine, speed: f64) -> Machine {
        let mut machine = machine;
        machine.disk.read_byte_s /= speed;
        machine
    }

    /// Whether ranks regroup, or servers build packets.
    fn regroups(machine: &Machine, ranks: u64, servers: u64, e: u64) -> bool {
        match picked(machine, ranks, servers, e).0 {
            Collective::TwoPhase | Collective::TwoPhaseDdio => true,
            Collective::PbDdio | Collective::MbDdio => false,
            other => panic!("{other:?} was taken"),
        }
    }

    #[test]
    fn seed002_s89_the_choice_of_ranks_flips_where_table_5_7_says() {
        let meiko = meiko();
        // The least time is taken, but for times that are equal.
        for e in [8, 16, 24, 64, 1024] {
            for (ranks, servers) in [(8, 2), (16, 2), (16, 8)] {
                let (how, all) = picked(&meiko, ranks, servers, e);
                let least = all.iter().map(|(_, s)| *s).fold(f64::INFINITY, f64::min);
                assert!(
                    of(&all, how) <= least * EQUAL,
                    "{e} {ranks} {servers}: {all:?}"
                );
            }
        }
        // Ranks per server, upwards: towards regrouping, since more of them pack.
        assert!(!regroups(&meiko, 16, 8, 8) && regroups(&meiko, 16, 2, 8));
        // Speed of disks, upwards: towards regrouping, since less is hidden behind them.
        assert!(!regroups(&meiko, 32, 4, 16));
        assert!(regroups(&with_disks(meiko, 2.0), 32, 4, 16));
        // Messages, downwards: towards a packet for every block, which sends the most; regrouping hardly changes.
        let with_messages = |message_s: f64| {
            let mut machine = meiko;
            machine.far.message_s = message_s;
            machine
        };
        let gain = |how| {
            let at = |message_s| of(&seconds(&with_messages(message_s), 16, 2, 24), how);
            at(2e-3) / at(1e-7)
        };
        assert!(gain(Collective::PbDdio) > 1.2 * gain(Collective::MbDdio));
        assert!(gain(Collective::MbDdio) >= gain(Collective::TwoPhaseDdio));
        assert_ne!(
            picked(&with_messages(2e-3), 16, 2, 24).0,
            Collective::PbDdio
        );
        // Packing, faster: towards packets of servers, where all of it is hidden.
        let mut packing = meiko;
        packing.pack.a *= 0.3;
        packing.pack.c *= 0.3;
        assert!(regroups(&meiko, 32, 4, 8) && !regroups(&packing, 32, 4, 8));
        // Records, longer: as faster packing. Figure 5.6 has the flip between 8 and 16 bytes too.
        assert!(regroups(&meiko, 32, 4, 8) && !regroups(&meiko, 32, 4, 16));
        // Ranks, upwards at the same number per server: in the source regrouping loses to address translation, since it
        // fills the packets of all ranks at once. Ranks here fill one after the other, and nothing flips.
        assert_eq!(regroups(&meiko, 8, 1, 8), regroups(&meiko, 32, 4, 8));
    }

    #[test]
    fn seed002_s90_regrouping_stops_paying_at_one_length_of_records() {
        // As between one and two phases of the source: below the crossing regrouping pays, above it never does.
        let meiko = with_disks(meiko(), 2.0);
        let pays: Vec<bool> = (2..=64).map(|k| regroups(&meiko, 16, 2, 4 * k)).collect();
        let crossing = pays
            .iter()
            .position(|pays| !pays)
            .expect("packets win in the end");
        assert!(pays[crossing..].iter().all(|pays| !pays), "it crosses once");
        let e = 4 * (crossing as u64 + 2);
        assert!((12..=64).contains(&e), "at {e} bytes");
        // A slower exchange, which only regrouping needs, moves it down.
        let mut slow = meiko;
        slow.exchange.byte_s *= 8.0;
        let earlier = (2..=64).find(|k| !regroups(&slow, 16, 2, 4 * k));
        assert!(
            earlier.is_some_and(|k| 4 * k < e),
            "{earlier:?} instead of {e}"
        );
    }

    fn of(all: &[(Collective, f64)], how: Collective) -> f64 {
        all.iter().find(|(h, _)| *h == how).unwrap().1
    }

    /// How much faster regrouping whole blocks is than packets of several blocks; above 1 it wins.
    fn gain_of_regrouping(all: &[(Collective, f64)]) -> f64 {
        of(all, Collective::MbDdio) / of(all, Collective::TwoPhaseDdio)
    }

    #[test]
    fn seed002_s69_the_choice_moves_as_the_source_says() {
        // A machine whose servers pack slowly.
        let mut machine = Machine::HOST;
        machine.pack.a = 2e-7;
        machine.far.message_s = 2e-5;
        let usual = seconds(&machine, 8, 2, 8);
        // More ranks per server: more of them pack, so regrouping gains.
        assert!(gain_of_regrouping(&seconds(&machine, 8, 1, 8)) >= gain_of_regrouping(&usual));
        // Longer records: packets gain, since packing them is cheap.
        assert!(gain_of_regrouping(&seconds(&machine, 8, 2, 1024)) < gain_of_regrouping(&usual));
        // Faster packing: the same.
        let mut packing = machine;
        packing.pack.a = 2e-9;
        assert!(gain_of_regrouping(&seconds(&packing, 8, 2, 8)) < gain_of_regrouping(&usual));
        // Dearer messages hurt one packet per block more than one per several blocks.
        let mut dear = machine;
        dear.far.message_s = 2e-4;
        let packets =
            |all: &[(Collective, f64)]| of(all, Collective::PbDdio) / of(all, Collective::MbDdio);
        assert!(packets(&seconds(&dear, 8, 2, 8)) > packets(&usual));
    }

    #[test]
    fn only_what_is_possible_and_clearly_faster_is_taken() {
        let prediction = |way, seconds| Prediction {
            way,
            seconds,
            messages: 1,
            bytes: 1,
            per_server: Vec::new(),
            matching: 1.0,
        };
        let packet = Way::DiskDirected(DirectedWay::Packet);
        let all = [
            prediction(Way::Direct, 0.1),
            prediction(Way::DiskDirected(DirectedWay::Piece), 0.2),
            prediction(Way::TwoPhase, 0.5),
            prediction(packet, 0.6),
            prediction(Way::Packed, 1.0),
        ];
        let taken = |all: &[Prediction], direct, regroup, directed| {
            strategies(all, can(direct, regroup, directed)).0
        };
        assert_eq!(taken(&all, false, true, true), Collective::TwoPhase);
        assert_eq!(taken(&all, false, false, true), Collective::PbDdio);
        assert_eq!(taken(&all, false, false, false), Collective::Independent);
        assert_eq!(taken(&all, true, true, true), Collective::Independent);
        // Of equal ones the one with the fewest messages.
        let blocks = Way::DiskDirected(DirectedWay::MultiBlock { blocks: 16 });
        let many = Prediction {
            messages: 16,
            ..prediction(packet, 0.50)
        };
        let mut equal = [
            many,
            prediction(blocks, 0.505),
            prediction(Way::Packed, 1.0),
        ];
        assert_eq!(taken(&equal, false, true, true), Collective::MbDdio);
        equal[1].seconds = 0.52;
        assert_eq!(taken(&equal, false, true, true), Collective::PbDdio);
        let close = [prediction(packet, 0.95), prediction(Way::Packed, 1.0)];
        assert_eq!(taken(&close, false, true, true), Collective::Independent);
        let told = read(&put(&Choice {
            how: Collective::PbDdio,
            reason: Reason::Predicted,
            predicted_s: Some(0.5),
            alternatives: vec![(Collective::PbDdio, 0.5), (Collective::Independent, 1.0)],
            blocks: 1,
        }));
        assert_eq!(told.unwrap().predicted_s, Some(0.5));
    }
}
