//! Hostile views, short to send and endless to walk through: `by_views` cuts a file by them soon, with a layout or with a reason.
//!
//! A client sends them to the metadata manager, which cuts in the thread of the connection.

use std::sync::mpsc::channel;
use std::time::Duration;

use advise::distribute::{ViewRule, by_views};
use layout::{FileOffset, View};
use testkit::hostile::{self, Source};

/// Bytes `(left, right, stride, count)` of a period.
fn view(displacement: u64, period: u64, set: &str) -> View {
    View::new(FileOffset(displacement), period, set.parse().expect(set)).expect(set)
}

/// Fails if the work is not done in time; the thread is left to itself then.
fn soon<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = channel();
    std::thread::spawn(move || done.send(work()));
    let value = wait.recv_timeout(Duration::from_secs(20));
    value.unwrap_or_else(|_| panic!("{what}: no end in sight"))
}

#[test]
fn by_views_ends_for_views_of_years() {
    let years = |p: u64| view(p, (1 << 61) - 1, "{(0,0,2,576460752303423488)}");
    let odd = |stride: u64, n: u64| view(0, stride * n, &format!("{{(0,0,{stride},{n})}}"));
    let cases: Vec<(&str, Vec<View>)> = vec![
        ("one", vec![years(0)]),
        ("two", vec![years(0), years(1)]),
        ("shifted", vec![years(0), years((1 << 40) + 1)]),
        (
            "coprime periods",
            vec![
                view(0, (1 << 20) + 7, "{(0,0,2,1000)}"),
                view(0, (1 << 20) - 3, "{(1,1,2,1000)}"),
            ],
        ),
        ("coprime strides", vec![odd(2, 1 << 40), odd(3, 1 << 40)]),
        (
            "coprime strides of one period",
            vec![
                view(0, 6 << 40, &format!("{{(0,0,2,{})}}", 3_u64 << 40)),
                view(0, 6 << 40, &format!("{{(1,1,3,{})}}", 2_u64 << 40)),
            ],
        ),
        (
            "three strides of one period",
            vec![
                view(0, 30 << 40, &format!("{{(0,0,6,{})}}", 5_u64 << 40)),
                view(0, 30 << 40, &format!("{{(1,1,10,{})}}", 3_u64 << 40)),
                view(0, 30 << 40, &format!("{{(2,2,15,{})}}", 2_u64 << 40)),
            ],
        ),
        (
            "late beginnings",
            vec![view(1 << 59, 4, "{(0,0,2,2)}"), view(7, 6, "{(0,0,3,2)}")],
        ),
        (
            "nested",
            vec![
                view(
                    0,
                    1 << 60,
                    "{(0,1048575,2097152,549755813888,{(0,0,3,349525)})}",
                ),
                view(
                    5,
                    1 << 60,
                    "{(0,1048575,3145728,366503875925,{(0,0,5,209715)})}",
                ),
            ],
        ),
    ];
    for (name, views) in cases {
        for servers in [1, 4, 64] {
            let views = views.clone();
            let _ = soon(&format!("{name} on {servers}"), move || {
                by_views(&views, servers, &ViewRule::default()).is_ok()
            });
        }
    }
}

#[test]
fn by_views_ends_for_random_hostile_views() {
    for seed in 0..400 {
        soon(&format!("seed {seed}"), move || {
            let mut source = Source::seeded(seed);
            let count = 1 + source.below(5);
            let views = (0..count).map(|_| View::from(hostile::periodic(&mut source)));
            let views: Vec<View> = views.collect();
            let servers = 1 + source.below(9) as usize;
            if let Ok(by) = by_views(&views, servers, &ViewRule::default()) {
                assert!(by.subfiles.len() <= ViewRule::default().most_subfiles);
            }
        });
    }
}
