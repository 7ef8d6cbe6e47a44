//! The metadata manager, which coordinates moves, I/O servers and clients die at named points of a move.
//!
//! Somebody is started so that he kills himself when he gets to a point. Files move until he has; he is started
//! again, and the moves that were under way go on by themselves. A client stands still meanwhile. Disks keep
//! what was synced; memory keeps everything while no I/O server dies.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use control::moves::{COORDINATOR_POINTS, SERVER_POINTS};
use system_tests::process::{Stopped, stop};
use system_tests::{Random, Service, ServiceOptions, Store, Worker, pause, until};

use crate::battle::{Mover, Orders};
use crate::{Ground, client_points, compare, seeded};

/// How long files move until somebody has died at a point. It only turns a hang into a failure.
const REACHED: Duration = Duration::from_secs(240);
/// How long a client stands still if others wait for what it holds: locks have no limit but their holders.
const LATE: Duration = Duration::from_secs(5);
/// Moves that have to end after he was started again.
const AFTER: u64 = 2;
const WORKERS: u64 = 3;

/// Who dies, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Manager(&'static str),
    Server(&'static str),
    Client(&'static str),
}

impl Victim {
    fn point(self) -> &'static str {
        let (Victim::Manager(point) | Victim::Server(point) | Victim::Client(point)) = self;
        point
    }
}

/// All points, or those that `PARIO_POINTS` names.
fn all(options: &ServiceOptions) -> Vec<Victim> {
    let managers = COORDINATOR_POINTS.iter().map(|p| Victim::Manager(p));
    let servers = SERVER_POINTS.iter().map(|p| Victim::Server(p));
    let clients = client_points(options).into_iter().map(Victim::Client);
    let all: Vec<Victim> = managers.chain(servers).chain(clients).collect();
    let Ok(names) = std::env::var("PARIO_POINTS") else {
        return all;
    };
    let named = names.split(',').filter_map(|name| {
        let mut all = all.iter();
        all.find(|v| v.point() == name)
    });
    named.copied().collect()
}

/// A client that stands still, and since when.
struct Late(Option<(Stopped, Instant)>);

impl Late {
    /// Lets it go on if it has stood still for long.
    fn look(&mut self) {
        self.0.take_if(|(_, since)| since.elapsed() > LATE);
    }
}

struct Battle<'a> {
    service: &'a mut Service,
    ground: &'a Ground,
    orders: &'a Orders,
    army: &'a mut Vec<Worker>,
    random: Random,
    kills: u64,
    /// Points that somebody died at.
    reached: Vec<&'static str>,
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
        self.wait_for_moves_beside(count, &mut Late(None));
    }

    fn wait_for_moves_beside(&self, count: u64, late: &mut Late) {
        let before = self.orders.over();
        until("moves", || {
            late.look();
            self.orders.over() >= before + count
        });
    }

    /// Lets somebody die at a point, and start again.
    fn die(&mut self, victim: Victim) {
        let end = Instant::now() + REACHED;
        // Goes on after everything is over. The others have to use files for the point to be reached.
        let index = self.random.index(self.army.len());
        let mut late = Late(match victim {
            Victim::Client(_) => None,
            _ => Some((stop(self.army[index].pid()), Instant::now())),
        });
        match victim {
            Victim::Client(point) => self.die_as_client(point, end),
            Victim::Manager(point) => {
                let cancels = point.contains("cancel");
                // Only few moves are still under way when they are cancelled.
                let times = if cancels { 1 } else { self.random.within(1..3) };
                let at = format!("{point}:{times}");
                eprintln!("the metadata manager dies at {at}");
                self.service.kill_meta();
                self.service.start_meta_with("PARIO_CRASH_AT", &at);
                self.orders.cancels.store(cancels, Ordering::Relaxed);
                while self.service.meta().is_running() {
                    late.look();
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
                    late.look();
                    assert!(Instant::now() < end, "io-{index} never got to {at}");
                    pause(Duration::from_millis(2));
                }
                self.service.kill_io(index);
                self.service.start_io(index);
                self.count();
            }
        }
        self.reached.push(victim.point());
        self.wait_for_moves_beside(AFTER, &mut late);
        drop(late);
        self.wait_for_moves(1);
        self.ground.assert_good();
    }

    /// Puts a client in the place of one, which dies at a point, and another one in its place.
    fn die_as_client(&mut self, point: &str, end: Instant) {
        // Those who go by message cannot die while they copy.
        let index = match point {
            "client_in_copy" => 1 + self.random.index(2),
            _ => self.random.index(self.army.len()),
        };
        // Clients ask for moves rarely.
        let times = match point {
            "client_after_relayout" => 1,
            _ => self.random.within(1..4),
        };
        let at = format!("{point}:{times}");
        eprintln!("client {index} dies at {at}");
        self.replace(index, Some(&at));
        while self.army[index].is_running() {
            assert!(Instant::now() < end, "client {index} never got to {at}");
            self.ground.assert_good();
            pause(Duration::from_millis(2));
        }
        self.replace(index, None);
    }

    fn replace(&mut self, index: usize, point: Option<&str>) {
        self.army[index].kill();
        let me = index as u64;
        let mut worker = self.ground.recruit_for(self.service, me, point);
        worker.send(&self.ground.order(me, self.random.draw()));
        self.army[index] = worker;
    }
}

/// Moves files while these die, one after the other.
fn crash(what: u64, options: ServiceOptions, victims: &[Victim]) {
    let mut random = seeded(what);
    let is_on_disk = options.store == Store::Disk;
    let mut service = options.start();
    let ground = Ground::new(&service, WORKERS, true);
    let mut army = ground.open_fire(&service, &mut random);
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
        let _over = orders.ending();
        let mut battle = Battle {
            service: &mut service,
            ground: &ground,
            orders: &orders,
            army: &mut army,
            random,
            kills: 0,
            reached: Vec::new(),
        };
        battle.wait_for_moves(AFTER);
        for &victim in victims {
            battle.die(victim);
        }
        eprintln!("died at {:?}", battle.reached);
    });
    eprintln!("{orders:?}");
    ground.cease_fire(army);
    compare(&service.client(), &ground.dir, &ground.stop, WORKERS);
    if is_on_disk {
        service.kill_all();
        service.start_all();
        compare(&service.client(), &ground.dir, &ground.stop, WORKERS);
    }
}

fn on_disk() -> ServiceOptions {
    ServiceOptions::new(3).disk()
}

#[test]
fn servers_die_at_some_points_of_moves_and_nothing_synced_is_lost() {
    let mut victims = all(&on_disk());
    let mut random = seeded(3);
    random.shuffle(&mut victims);
    crash(4, on_disk(), &victims[..victims.len().min(4)]);
}

#[test]
#[ignore = "takes minutes; make test-full runs it"]
fn servers_die_at_every_point_of_moves_and_nothing_synced_is_lost() {
    let mut victims = all(&on_disk());
    seeded(5).shuffle(&mut victims);
    for (i, some) in victims.chunks(7).enumerate() {
        crash(20 + i as u64, on_disk(), some);
    }
}

/// Memory is lost with its server, so nobody dies but those who have none.
#[test]
#[ignore = "takes minutes; make test-full runs it"]
fn managers_and_clients_die_at_every_point_of_moves_in_memory_and_nothing_is_lost() {
    let mut victims = all(&ServiceOptions::new(4));
    victims.retain(|victim| !matches!(victim, Victim::Server(_)));
    seeded(6).shuffle(&mut victims);
    for (i, some) in victims.chunks(7).enumerate() {
        crash(30 + i as u64, ServiceOptions::new(4), some);
    }
}
