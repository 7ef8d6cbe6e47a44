//! No server dies: every read is exact. Clients stand still for a while and go on, or are killed, anywhere or at a
//! named point, and replaced. Servers that die are in `crashes`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use system_tests::process::stop;
use system_tests::{Random, Service, ServiceOptions, Worker, pause};

use crate::battle::{Mover, Orders};
use crate::{Ground, choir, client_points, compare, seeded};

/// How long one goes on.
#[derive(Clone, Copy)]
enum Until {
    /// So long, and until something has moved.
    Time(Duration),
    /// So many moves are over and clients have died at all points.
    Moves(u64),
}

/// Longest time for so many moves.
const LIMIT: Duration = Duration::from_secs(400);

/// Clients that use the files, and points that one of them dies at.
struct Army<'a> {
    service: &'a Service,
    ground: &'a Ground,
    workers: Vec<Worker>,
    /// Which one dies, where, and until when it has time to get there.
    doomed: Option<(usize, &'static str, Instant)>,
    left: Vec<&'static str>,
    reached: BTreeSet<&'static str>,
}

/// How long a worker may live that is to die at a point; then it is another one's turn.
const PATIENCE: Duration = Duration::from_secs(8);

impl Army<'_> {
    /// Puts another one in the place of a worker that is dead or dies now.
    fn replace(&mut self, index: usize, point: Option<&str>, random: &mut Random) {
        self.workers[index].kill();
        let me = index as u64;
        let mut worker = self.ground.recruit_for(self.service, me, point);
        worker.send(&self.ground.order(me, random.draw()));
        self.workers[index] = worker;
    }

    /// Has one of them die at the next point, and another one take its place when it has.
    fn doom(&mut self, random: &mut Random) {
        let Some((index, point, end)) = self.doomed else {
            let Some(point) = self.left.pop() else {
                return;
            };
            // Those who go by message cannot die while they copy.
            let workers = self.workers.len();
            let index = match point {
                "client_in_copy" => 1 + random.index(2),
                _ => random.index(workers),
            };
            let at = format!("{point}:{}", random.within(1..4));
            self.replace(index, Some(&at), random);
            self.doomed = Some((index, point, Instant::now() + PATIENCE));
            return;
        };
        let is_reached = !self.workers[index].is_running();
        if !is_reached && Instant::now() < end {
            return;
        }
        match is_reached {
            true => drop(self.reached.insert(point)),
            false => self.left.insert(0, point),
        }
        self.doomed = None;
        self.replace(index, None, random);
    }

    fn is_doomed(&self, index: usize) -> bool {
        self.doomed.is_some_and(|(doomed, ..)| doomed == index)
    }

    /// Stops one for a while, or kills it, or leaves them alone.
    fn trouble(&mut self, random: &mut Random) {
        self.doom(random);
        let victim = random.index(self.workers.len());
        match random.below(3) {
            0 if self.workers[victim].is_running() => {
                // Longer than servers wait for somebody who copies.
                let stopped = stop(self.workers[victim].pid());
                pause(Duration::from_millis(random.within(1..400)));
                drop(stopped);
            }
            1 if !self.is_doomed(victim) => self.replace(victim, None, random),
            _ => pause(Duration::from_millis(random.within(50..300))),
        }
        self.ground.assert_good();
    }
}

/// Moves files for a while under fire.
fn calm(service: &Service, what: u64, workers: u64, until: Until) {
    let mut random = seeded(what);
    let ground = Ground::new(service, workers, false);
    let mut left = client_points(service.options());
    let points = left.len();
    random.shuffle(&mut left);
    let mut army = Army {
        service,
        ground: &ground,
        workers: ground.open_fire(service, &mut random),
        doomed: None,
        left,
        reached: BTreeSet::new(),
    };
    let orders = Orders::default();
    let servers = service.servers() as u64;
    let seeds = [random.draw(), random.draw()];
    let of_choir = random.draw();
    std::thread::scope(|scope| {
        let movers = seeds.map(|seed| {
            let mut mover = Mover {
                client: service.client(),
                ground: &ground,
                servers,
                random: Random::new(seed),
                orders: &orders,
                is_deadly: false,
            };
            scope.spawn(move || mover.run())
        });
        let singing = scope.spawn(|| choir::sing(service, &ground.dir, of_choir, &orders));
        // However this ends.
        let over = orders.ending();
        let started = Instant::now();
        let goes_on = |army: &Army<'_>| match until {
            Until::Time(time) => {
                let elapsed = started.elapsed();
                elapsed < time || orders.over() == 0 && elapsed < LIMIT
            }
            Until::Moves(moves) => {
                let is_enough = orders.over() >= moves && army.reached.len() == points;
                assert!(
                    is_enough || started.elapsed() < LIMIT,
                    "only {} moves, died at {:?}",
                    orders.over(),
                    army.reached
                );
                !is_enough
            }
        };
        while goes_on(&army) && !movers.iter().any(|m| m.is_finished()) && !singing.is_finished() {
            army.trouble(&mut random);
        }
        drop(over);
    });
    if let Some((index, ..)) = army.doomed.take() {
        army.replace(index, None, &mut random);
    }
    eprintln!("{orders:?}");
    eprintln!("clients died at {:?}", army.reached);
    ground.cease_fire(army.workers);
    compare(&service.client(), &ground.dir, &ground.stop, workers);
    assert!(orders.over() > 0, "nothing moved");
}

/// What was synced last is there after everybody was killed.
fn start_again(service: &mut Service, workers: u64) {
    service.kill_all();
    service.start_all();
    let stop = service.dir().join("stop");
    compare(&service.client(), "/fire", &stop, workers);
}

#[test]
fn seed001_s72_files_in_memory_move_under_fire() {
    let service = ServiceOptions::new(3).start();
    calm(&service, 1, 4, Until::Time(Duration::from_secs(6)));
}

#[test]
fn seed001_s72_files_on_disk_move_under_fire() {
    let mut service = ServiceOptions::new(3).disk().start();
    calm(&service, 2, 3, Until::Time(Duration::from_secs(6)));
    start_again(&mut service, 3);
}

/// Servers that share no memory, as those of several hosts.
fn apart(servers: usize) -> ServiceOptions {
    let mut options = ServiceOptions::new(servers);
    let off = ("PARIO_DIRECT".to_owned(), "0".to_owned());
    options.environment.push(off);
    options
}

#[test]
fn seed001_s72_files_move_by_message_under_fire() {
    let service = apart(3).start();
    calm(&service, 7, 3, Until::Time(Duration::from_secs(4)));
}

/// Moves of each service below.
const MOVES: u64 = 100;

#[test]
#[ignore = "takes minutes; make test-full runs it"]
fn seed001_s72_hundreds_of_moves_in_memory_under_fire() {
    for (what, servers) in [(11, 2), (12, 4), (13, 5)] {
        let service = ServiceOptions::new(servers).start();
        calm(&service, what, 5, Until::Moves(MOVES));
    }
}

#[test]
#[ignore = "takes minutes; make test-full runs it"]
fn seed001_s72_hundreds_of_moves_by_message_under_fire() {
    for (what, servers) in [(14, 3), (15, 5)] {
        let service = apart(servers).start();
        calm(&service, what, 5, Until::Moves(MOVES));
    }
}

#[test]
#[ignore = "takes minutes; make test-full runs it"]
fn seed001_s72_hundreds_of_moves_on_disk_under_fire() {
    for (what, servers) in [(21, 2), (22, 4), (23, 5)] {
        let mut service = ServiceOptions::new(servers).disk().start();
        calm(&service, what, 4, Until::Moves(MOVES));
        start_again(&mut service, 4);
    }
}
