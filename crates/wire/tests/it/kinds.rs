//! The table of kinds: ascending, found by number, and the same as in the page on the format.
//!
//! That a server acts on the roles is tested where it serves.

use std::path::Path;

use wire::message::{KINDS, Kind, Receiver, Sender};

#[test]
fn kinds_ascend_and_are_found_by_number() {
    assert!(KINDS.is_sorted_by(|a, b| a.number < b.number));
    for number in 0..=u16::MAX {
        let listed = KINDS.iter().find(|kind| kind.number == number);
        let found = Kind::of(number).map(|kind| kind.name);
        assert_eq!(found, listed.map(|kind| kind.name), "{number:#x}");
    }
}

fn sender(text: &str) -> Sender {
    match text {
        "anybody" | "client, I/O server" => Sender::Anyone,
        "client" => Sender::Client,
        "rank" | "rank 0 of a team" | "other ranks" => Sender::Rank,
        "I/O server" | "owner" | "owner, manager" => Sender::Server,
        "manager" => Sender::Manager,
        other => panic!("no sender: {other}"),
    }
}

fn receiver(text: &str) -> Receiver {
    match text.split(',').next().expect("a word") {
        _ if text == "manager, I/O server" => Receiver::AnyServer,
        "any server" => Receiver::AnyServer,
        "manager" => Receiver::Manager,
        "I/O server" | "owner" => Receiver::IoServer,
        other => panic!("no receiver: {other}"),
    }
}

#[test]
fn the_page_on_the_format_says_who_asks_whom() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/wire.md");
    let page = std::fs::read_to_string(page).unwrap();
    for kind in KINDS {
        let row = format!("| `{:#04x}` | `{}` | ", kind.number, kind.name);
        let line = page.lines().find_map(|line| line.strip_prefix(&row));
        let line = line.unwrap_or_else(|| panic!("{} has no row {row}", kind.name));
        let (who, _) = line.split_once(" | ").expect("another column");
        let (from, to) = who.split_once(" → ").expect("an arrow");
        assert_eq!(sender(from), kind.from, "{}: {who}", kind.name);
        assert_eq!(receiver(to), kind.to, "{}: {who}", kind.name);
    }
}
