//! No server dies: every read is exact. Clients stand still for a while and go on, or are killed and replaced.
//! Servers that die are in `crashes`.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use system_tests::process::stop;
use system_tests::{Random, Service, ServiceOptions, pause};

use crate::battle::{Mover, Orders};
use crate::{Ground, compare, seeded};

/// Moves files for a while under fire.
fn calm(service: &mut Service, what: u64, workers: u64, time: Duration) {
    let mut random = seeded(what);
    let ground = Ground::new(service, workers, false);
    let mut army = ground.open_fire(service, &mut random);
    let orders = Orders::default();
    let servers = service.servers() as u64;
    let seeds = [random.draw(), random.draw()];
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
        let end = Instant::now() + time;
        while Instant::now() < end && !movers.iter().any(|m| m.is_finished()) {
            let victim = random.index(army.len());
            match random.below(3) {
                0 => {
                    // Longer than servers wait for somebody who copies.
                    let stopped = stop(army[victim].pid());
                    pause(Duration::from_millis(random.within(1..400)));
                    drop(stopped);
                }
                1 => {
                    army[victim].kill();
                    let mut worker = ground.recruit(service, victim as u64);
                    worker.send(&ground.order(victim as u64, random.draw()));
                    army[victim] = worker;
                }
                _ => pause(Duration::from_millis(random.within(50..300))),
            }
        }
        orders.is_over.store(true, Ordering::Relaxed);
    });
    eprintln!("{orders:?}");
    ground.cease_fire(army);
    compare(&service.client(), &ground.dir, &ground.stop, workers);
    assert!(orders.over() > 0, "nothing moved");
}

#[test]
fn seed001_s72_files_in_memory_move_under_fire() {
    let mut service = ServiceOptions::new(3).start();
    calm(&mut service, 1, 4, Duration::from_secs(8));
}

#[test]
fn seed001_s72_files_on_disk_move_under_fire() {
    let mut service = ServiceOptions::new(3).disk().start();
    calm(&mut service, 2, 3, Duration::from_secs(8));
    // What was synced last is there after everybody was killed.
    service.kill_all();
    service.start_all();
    let client = service.client();
    let stop = service.dir().join("stop");
    compare(&client, "/fire", &stop, 3);
}

#[test]
#[ignore = "takes minutes; make test-full runs it"]
fn seed001_s72_hundreds_of_moves_under_fire() {
    for (what, servers) in [(11, 2), (12, 4), (13, 5)] {
        let mut service = ServiceOptions::new(servers).start();
        calm(&mut service, what, 5, Duration::from_secs(60));
        let mut service = ServiceOptions::new(servers).disk().start();
        calm(&mut service, what + 10, 4, Duration::from_secs(60));
    }
}
