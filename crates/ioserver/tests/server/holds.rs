//! Ranges that clients hold, and moves: what is held stays where it is.
//!
//! That nobody else gets in is tested with sieved writes, by `client`.

use std::time::Duration;

use wire::Status;
use wire::ask::AskError;
use wire::message::Bytes;
use wire::message::catalogue::{MoveOptions, MoveState, Relayout, RelayoutProgress};
use wire::message::directed::{HoldRange, LetGo};

use crate::direct::whole;
use crate::life::until;
use crate::rig::{Client, File, Rig};

fn hold(client: &mut Client, file: &File, lo: u64, hi: u64) -> Result<u64, Status> {
    let mut version = Vec::new();
    file.state.version().put(&mut version);
    let request = HoldRange {
        view: 1,
        lo,
        hi,
        version: Bytes(version),
    };
    let server = file.state.owner.server;
    client.ask(server, &request).map_err(|error| match error {
        AskError::Refused(status, _) => status,
        other => panic!("{other:?}"),
    })
}

fn opened(client: &mut Client) -> File {
    let file = client.open("/f", None, Some("striped(100) over 1"));
    client.set_view(&file, 1, &whole());
    file
}

#[test]
fn a_move_waits_for_a_range_that_is_held_and_nobody_holds_what_has_moved() {
    // Whoever holds is not cut off, however long this takes.
    let rig = Rig::with(2, |options| options.hold_wait = Duration::from_secs(60));
    let mut holder = rig.client();
    let file = opened(&mut holder);
    let server = file.state.owner.server;
    holder.write(&file, 1, &whole(), 0, &[5; 1000]).unwrap();
    let held = hold(&mut holder, &file, 100, 200).unwrap();
    let mut other = rig.client();
    let same = opened(&mut other);
    assert_eq!(hold(&mut other, &same, 150, 250), Err(Status::Busy));
    let mut mover = rig.client();
    std::thread::scope(|scope| {
        let moving = scope.spawn(move || {
            let request = Relayout {
                path: "/f".into(),
                layout: "striped(50) over 2".into(),
                servers: Vec::new(),
                options: MoveOptions::default(),
            };
            mover.ask_manager(&request).unwrap();
            mover
        });
        // It has come to the server, and keeps new holders away although it waits itself.
        until(|| match hold(&mut other, &same, 500, 600) {
            Ok(number) => {
                other.ask(server, &LetGo { view: 1, number }).unwrap();
                false
            }
            Err(status) => status == Status::Busy,
        });
        // The holder gets in, and what it read is still there.
        let (read, _) = holder.read(&file, 1, &whole(), 100, 200).unwrap();
        assert_eq!(read, [5; 100]);
        holder.write(&file, 1, &whole(), 100, &[6; 100]).unwrap();
        let number = held;
        holder.ask(server, &LetGo { view: 1, number }).unwrap();
        let mut mover = moving.join().unwrap();
        until(|| {
            let asked = RelayoutProgress { file: file.id };
            let told = mover.ask_manager(&asked).unwrap();
            told.state == MoveState::Done
        });
    });
    assert_eq!(
        hold(&mut other, &same, 100, 200),
        Err(Status::StaleLayout),
        "other servers have it now"
    );
    let mut third = rig.client();
    let file = third.open("/f", None, None);
    third.set_view(&file, 1, &whole());
    let (read, _) = third.read(&file, 1, &whole(), 0, 1000).unwrap();
    let expected = |x: usize| if (100..200).contains(&x) { 6 } else { 5 };
    assert!(read.iter().enumerate().all(|(x, b)| *b == expected(x)));
}
