//! Space that is taken for a file before it is written: it belongs to the view that it was asked for with.
//!
//! What clients make of it is in their own tests, and what a disk does with it in those of the store.

use layout::View;
use wire::Status;
use wire::message::file::{Allocation, DropView, KeepAhead, Size};

use crate::life::until;
use crate::rig::Rig;

fn keep(view: u64, size: u64) -> KeepAhead {
    KeepAhead {
        view,
        epoch: 0,
        size,
    }
}

#[test]
fn space_goes_back_with_the_view_and_with_the_client() {
    let rig = Rig::with(1, |o| o.store = crate::rig::memory(64 << 20));
    let used = || rig.count(0, "memory_bytes");
    let server = rig.number(0);
    let whole = View::whole_file();
    let mut client = rig.client();
    let file = client.open("/f", None, Some("striped(4KiB) over 1"));
    for view in [1, 2] {
        client.set_view(&file, view, &whole);
    }
    client.ask(server, &keep(1, 8 << 20)).unwrap();
    client.ask(server, &keep(2, 20 << 20)).unwrap();
    assert_eq!(
        client.ask(server, &Allocation { view: 1 }).unwrap(),
        20 << 20
    );
    assert_eq!(client.ask(server, &Size { view: 1 }).unwrap().size, 0);
    // More than it could ever have, and more than is left: what it has stays.
    let mut other = rig.client();
    let second = other.open("/second", None, Some("striped(4KiB) over 1"));
    other.set_view(&second, 1, &whole);
    for size in [1 << 40, 50 << 20] {
        let refused = other.ask(server, &keep(1, size)).unwrap_err();
        assert_eq!(refused.status(), Status::NoSpace, "{refused}");
        assert!(refused.to_string().contains("has room for"), "{refused}");
    }
    let beyond = other.ask(server, &keep(1, u64::MAX)).unwrap_err();
    assert_eq!(beyond.status(), Status::InvalidArgument, "{beyond}");
    assert_eq!(used(), 20 << 20);
    // Less, and nothing.
    client.ask(server, &keep(2, 2 << 20)).unwrap();
    assert_eq!(used(), 8 << 20);
    client.ask(server, &DropView { view: 1, maps: 0 }).unwrap();
    assert_eq!(used(), 2 << 20);
    other.ask(server, &keep(1, 50 << 20)).unwrap();
    assert_eq!(used(), 52 << 20);
    // A client that goes without a word.
    drop(other);
    until(|| used() == 2 << 20);
    client.ask(server, &keep(2, 0)).unwrap();
    assert_eq!(used(), 0);
}
