//! The metadata manager, which coordinates moves, and I/O servers die at named points of a move.
//!
//! A server is started so that it kills itself when it gets to a point. Files move until it has; it is started
//! again, and the moves that were under way go on by themselves. Disks keep what was synced.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use control::moves::{COORDINATOR_POINTS, SERVER_POINTS};
use system_tests::{Random, Service, ServiceOptions, pause, until};

use crate::battle::{Mover, Orders};
use crate::{Ground, compare, seeded};

/// How long files move until somebody has died at a point.
const REACHED: Duration = Duration::from_secs(40);
/// Moves that have to end after he was started again.
const AFTER: u64 = 2;
const WORKERS: u64 = 3;

/// Who dies, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Manager(&'static str),
    Server(&'static str),
}

/// All points, or those that `PARIO_POINTS` names.
fn all() -> Vec<Victim> {
    let managers = COORDINATOR_POINTS.iter().map(|p| Victim::Manager(p));
    let servers = SERVER_POINTS.iter().map(|p| Victim::Server(p));
    let all: Vec<Victim> = managers.chain(servers).collect();
    let Ok(names) = std::env::var("PARIO_POINTS") else {
        return all;
    };
    let named = names.split(',').filter_map(|name| {
        let mut all = all.iter();
        all.find(|v| matches!(v, Victim::Manager(p) | Victim::Server(p) if *p == name))
    });
    named.copied().collect()
}

struct Battle<'a> {
    service: &'a mut Service,
    ground: &'a Ground,
    orders: &'a Orders,
    random: Random,
    kills: u64,
}

impl Battle<'_> {
    /// Says that bytes may be lost from now on, or that nobody dies any more.
    fn count(&mut self) {
        self.kills += 1;
        let path = self.ground.kills.as_ref().expect("a deadly ground");
        // Whole, whoever reads it.
        let new = path.with_extension("new");
        std::fs::write(&new, self.kills.to_string()).expect("written");
        std::fs::rename(&new, path).expect("renamed");
    }

    /// Waits until files have moved.
    fn wait_for_moves(&self, count: u64) {
        let before = self.orders.over();
        until("moves", || self.orders.over() >= before + count);
    }

    /// Lets somebody die at a point, and start again.
    fn die(&mut self, victim: Victim) {
        let end = Instant::now() + REACHED;
        match victim {
            Victim::Manager(point) => {
                let at = format!("{point}:{}", self.random.within(1..3));
                eprintln!("the metadata manager dies at {at}");
                self.service.kill_meta();
                self.service.start_meta_with("PARIO_CRASH_AT", &at);
                let cancels = point.contains("cancel");
                self.orders.cancels.store(cancels, Ordering::Relaxed);
                while self.service.meta().is_running() {
                    assert!(Instant::now() < end, "it never got to {at}");
                    pause(Duration::from_millis(2));
                }
                self.orders.cancels.store(false, Ordering::Relaxed);
                self.service.kill_meta();
                self.service.start_meta();
            }
            Victim::Server(point) => {
                let at = format!("{point}:{}", self.random.within(1..3));
                let index = self.random.index(self.service.servers());
                eprintln!("server io-{index} dies at {at}");
                self.count();
                self.service.kill_io(index);
                self.service.start_io_with(index, "PARIO_CRASH_AT", &at);
                while self.service.io(index).is_running() {
                    assert!(Instant::now() < end, "io-{index} never got to {at}");
                    pause(Duration::from_millis(2));
                }
                self.service.kill_io(index);
                self.service.start_io(index);
                self.count();
            }
        }
        self.wait_for_moves(AFTER);
    }
}

/// Moves files on disks while these die, one after the other.
fn crash(what: u64, victims: &[Victim]) {
    let mut random = seeded(what);
    let mut service = ServiceOptions::new(3).disk().start();
    let ground = Ground::new(&service, WORKERS, true);
    let army = ground.open_fire(&service, &mut random);
    let orders = Orders::default();
    let seeds = [random.draw(), random.draw()];
    let clients = [service.client(), service.client()];
    std::thread::scope(|scope| {
        for (seed, client) in seeds.into_iter().zip(clients) {
            let mut mover = Mover {
                client,
                ground: &ground,
                servers: 3,
                random: Random::new(seed),
                orders: &orders,
                is_deadly: true,
            };
            scope.spawn(move || mover.run());
        }
        // Movers end however this ends.
        let _over = Over(&orders);
        let mut battle = Battle {
            service: &mut service,
            ground: &ground,
            orders: &orders,
            random,
            kills: 0,
        };
        battle.wait_for_moves(AFTER);
        for &victim in victims {
            battle.die(victim);
        }
    });
    eprintln!("{orders:?}");
    ground.cease_fire(army);
    compare(&service.client(), &ground.dir, &ground.stop, WORKERS);
    service.kill_all();
    service.start_all();
    compare(&service.client(), &ground.dir, &ground.stop, WORKERS);
}

struct Over<'a>(&'a Orders);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

#[test]
fn servers_die_at_some_points_of_moves_and_nothing_synced_is_lost() {
    let mut victims = all();
    let mut random = seeded(3);
    random.shuffle(&mut victims);
    crash(4, &victims[..victims.len().min(5)]);
}

#[test]
#[ignore = "takes minutes; make test-full runs it"]
fn servers_die_at_every_point_of_moves_and_nothing_synced_is_lost() {
    let mut victims = all();
    seeded(5).shuffle(&mut victims);
    for (i, some) in victims.chunks(6).enumerate() {
        crash(20 + i as u64, some);
    }
}
