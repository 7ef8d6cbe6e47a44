//! Many requests at once share transactions.
//!
//! How many share one depends on how they meet; that those who do share it is tested with the committer.

use std::thread;

use wire::message::catalogue::*;

use crate::fixture::*;

#[test]
fn ten_thousand_files_through_four_connections() {
    let (scratch, _manager, _members) = with_members("crowd", 4);
    let socket = scratch.socket();
    const EACH: usize = 2500;
    thread::scope(|scope| {
        for t in 0..4 {
            let socket = &socket;
            scope.spawn(move || {
                let mut c = Asker::client(socket);
                for i in 0..EACH {
                    assert!(c.create(&format!("/f{t}-{i:04}")).is_new);
                }
            });
        }
    });
    let mut c = Asker::client(&socket);
    assert_eq!(c.ask(&Count {}).files, 4 * EACH as u64);
    let (commits, operations) = (c.statistic("commits"), c.statistic("operations"));
    assert!(operations >= 4 * EACH as u64);
    assert!(
        commits <= operations,
        "{commits} commits for {operations} operations"
    );
    let mut found = 0;
    let mut after = None;
    loop {
        let part = c.ask(&List {
            path: "/".into(),
            after: after.clone(),
            limit: u32::MAX,
            with_attributes: false,
            wants_stamps: false,
        });
        found += part.entries.len();
        after = part.entries.last().map(|e| e.name.clone());
        if !part.has_more {
            break;
        }
    }
    assert_eq!(found, 4 * EACH);
    assert_eq!(c.ask(&Check {}), []);
}
