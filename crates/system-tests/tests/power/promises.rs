//! One promise after the other, each made right before the power goes and everything unsynced is lost.
//! What a loss by halves leaves is in [`crate::anywhen`].

use client::{MoveOptions, OpenOptions};
use lossyfs::Loss;
use system_tests::files::{create, open, read, whole};
use system_tests::until;

use crate::Host;

const LEN: usize = 300_000;

#[test]
fn synced_bytes_are_there_after_a_power_cut_and_unsynced_ones_are_old_or_new() {
    let Some(mut host) = Host::start(3) else {
        return;
    };
    let client = host.client();
    let layouts = ["striped(4KiB) over 3", "striped(1000) over 2 from 1"];
    for (k, layout) in layouts.iter().enumerate() {
        let file = create(&client, &format!("/synced-{k}"), layout);
        file.write_at(0, &whole(0, LEN, 1)).unwrap();
        assert!(file.sync().unwrap().is_durable);
        // Beyond and over what was synced, and not synced.
        let second = create(&client, &format!("/over-{k}"), layout);
        second.write_at(0, &whole(0, LEN, 2)).unwrap();
        assert!(second.sync().unwrap().is_durable);
        second.write_at(1000, &whole(1000, LEN, 3)).unwrap();
        let third = create(&client, &format!("/unsynced-{k}"), layout);
        third.write_at(0, &whole(0, LEN, 4)).unwrap();
    }
    assert!(host.disk.waiting() > 0, "something is there to be lost");
    host.lose_power(Loss::Everything);
    let client = host.client();
    for k in 0..layouts.len() {
        let file = open(&client, &format!("/synced-{k}"));
        assert_eq!(file.size().unwrap(), LEN as u64);
        assert!(read(&file, 0, LEN + 9) == whole(0, LEN, 1), "synced bytes");
        assert_eq!(file.scrub().unwrap().damaged, 0);
        let file = open(&client, &format!("/over-{k}"));
        let size = file.size().unwrap() as usize;
        assert!((LEN..=LEN + 1000).contains(&size), "{size}");
        let bytes = read(&file, 0, size);
        let (old, new) = (whole(0, size, 2), whole(0, size, 3));
        let odd = (0..size).find(|&x| {
            let is_old = x < LEN && bytes[x] == old[x] || x >= LEN && bytes[x] == 0;
            !(is_old || x >= 1000 && bytes[x] == new[x])
        });
        assert_eq!(odd, None, "neither old nor new");
        let file = open(&client, &format!("/unsynced-{k}"));
        let size = file.size().unwrap() as usize;
        let (bytes, new) = (read(&file, 0, size), whole(0, size, 4));
        let odd = (0..bytes.len()).find(|&x| bytes[x] != 0 && bytes[x] != new[x]);
        assert_eq!(odd, None, "neither nothing nor new");
        // It is as good as any other file.
        file.write_at(0, &whole(0, LEN, 5)).unwrap();
        assert!(file.sync().unwrap().is_durable);
    }
    host.lose_power(Loss::Everything);
    let client = host.client();
    let file = open(&client, "/unsynced-0");
    assert!(read(&file, 0, LEN + 9) == whole(0, LEN, 5));
    host.assert_well();
}

#[test]
fn acknowledged_names_are_there_after_a_power_cut() {
    let Some(mut host) = Host::start(2) else {
        return;
    };
    // Each is the last thing before the power goes, so that nothing later syncs it by chance.
    let client = host.client();
    client.mkdir("/d", None).unwrap();
    host.lose_power(Loss::Everything);
    let client = host.client();
    client.create("/d/f", &OpenOptions::new()).unwrap();
    host.lose_power(Loss::Everything);
    let client = host.client();
    client.rename("/d/f", "/d/g").unwrap();
    host.lose_power(Loss::Everything);
    let client = host.client();
    let names = |client: &client::Client| -> Vec<String> {
        let list = client.list("/d").unwrap();
        list.map(|entry| entry.unwrap().name).collect()
    };
    assert_eq!(names(&client), ["g"]);
    client.unlink("/d/g").unwrap();
    host.lose_power(Loss::Everything);
    let client = host.client();
    assert_eq!(names(&client), [] as [&str; 0]);
    host.assert_well();
}

#[test]
fn put_with_sync_is_there_after_a_power_cut() {
    let Some(mut host) = Host::start(2) else {
        return;
    };
    let source = host.service.dir().join("source");
    std::fs::write(&source, whole(0, LEN, 7)).unwrap();
    let mut put = host.service.pario();
    put.arg("put").arg("--sync").arg(&source).arg("/put");
    let output = put.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    host.lose_power(Loss::Everything);
    let back = host.service.dir().join("back");
    let mut get = host.service.pario();
    let output = get.arg("get").arg("/put").arg(&back).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(std::fs::read(&back).unwrap() == whole(0, LEN, 7));
    host.assert_well();
}

#[test]
fn cut_that_was_acknowledged_holds_after_a_power_cut_and_no_old_byte_returns() {
    let Some(mut host) = Host::start(3) else {
        return;
    };
    let client = host.client();
    let file = create(&client, "/f", "striped(1000) over 3");
    file.write_at(0, &whole(0, LEN, 1)).unwrap();
    file.sync().unwrap();
    file.resize(LEN as u64 / 3).unwrap();
    host.lose_power(Loss::Everything);
    let client = host.client();
    let file = open(&client, "/f");
    assert_eq!(file.size().unwrap(), LEN as u64 / 3);
    assert!(read(&file, 0, LEN) == whole(0, LEN / 3, 1));
    file.resize(LEN as u64).unwrap();
    let mut expected = whole(0, LEN / 3, 1);
    expected.resize(LEN, 0);
    assert!(read(&file, 0, LEN) == expected, "what was cut off is back");
    file.sync().unwrap();
    host.lose_power(Loss::Everything);
    let file = open(&host.client(), "/f");
    assert!(
        read(&file, 0, LEN + 9) == expected,
        "what was cut off is back"
    );
    host.assert_well();
}

#[test]
fn seed001_s13_punched_bytes_are_zero_after_a_power_cut_once_they_are_synced() {
    let Some(mut host) = Host::start(3) else {
        return;
    };
    let client = host.client();
    let file = create(&client, "/f", "striped(1000) over 3");
    let mut model = whole(0, LEN, 1);
    file.write_at(0, &model).unwrap();
    file.sync().unwrap();
    file.punch(50_500..150_250).unwrap();
    assert!(file.sync().unwrap().is_durable);
    model[50_500..150_250].fill(0);
    // Not synced: zero or what it was.
    file.punch(200_100..250_000).unwrap();
    host.lose_power(Loss::Everything);
    let error = file.sync().unwrap_err();
    assert!(
        matches!(error, client::Error::LostWrites { .. }),
        "a punch that was lost is not told: {error}"
    );
    let client = host.client();
    let file = open(&client, "/f");
    assert_eq!(file.size().unwrap(), LEN as u64);
    let found = read(&file, 0, LEN + 9);
    let odd = (0..LEN).find(|&x| {
        let is_hole = (200_100..250_000).contains(&x) && found[x] == 0;
        found[x] != model[x] && !is_hole
    });
    assert_eq!(odd, None, "neither what was synced nor zero");
    assert_eq!(file.scrub().unwrap().damaged, 0);
    host.assert_well();
}

#[test]
fn synced_bytes_are_where_a_move_brought_them_after_a_power_cut() {
    let Some(mut host) = Host::start(3) else {
        return;
    };
    const LONG: usize = 1_500_000;
    let client = host.client();
    let file = create(&client, "/f", "striped(64KiB) over 3");
    file.write_at(0, &whole(0, LONG, 6)).unwrap();
    file.sync().unwrap();
    // Nobody syncs after the move: its windows are durable by themselves, all servers and every one of them.
    let windows = MoveOptions {
        window_bytes: 1 << 18,
        ..MoveOptions::default()
    };
    let moving = client.relayout_with("/f", "striped(1000) over 3 from 1", &windows);
    moving.unwrap().wait().unwrap();
    host.lose_power(Loss::Everything);
    let file = open(&host.client(), "/f");
    assert_eq!(file.size().unwrap(), LONG as u64);
    assert!(read(&file, 0, LONG + 9) == whole(0, LONG, 6));
    assert_eq!(file.scrub().unwrap().damaged, 0);
    host.assert_well();
}

#[test]
fn synced_bytes_survive_a_power_cut_while_their_file_moves() {
    let Some(mut host) = Host::start(3) else {
        return;
    };
    const LONG: usize = 1_500_000;
    let (before, after) = ("striped(64KiB) over 3", "striped(1000) over 3 from 1");
    let windows = MoveOptions {
        window_bytes: 1 << 16,
        ..MoveOptions::default()
    };
    let mut interrupted = 0;
    for (round, cut_after) in [15, 60, 150].into_iter().enumerate() {
        let path = format!("/f-{round}");
        let client = host.client();
        let file = create(&client, &path, before);
        file.write_at(0, &whole(0, LONG, 6)).unwrap();
        file.sync().unwrap();
        host.disk.cut_after(cut_after);
        let moving = client.relayout_with(&path, after, &windows);
        // A move that is over before the power goes is as good a moment as any.
        let is_over = || moving.is_err() || client.layout(&path).is_ok_and(|l| l.text == after);
        until("the power to go", || host.disk.is_cut() || is_over());
        interrupted += u32::from(host.disk.is_cut());
        host.lose_power(Loss::Random(round as u64));
        let fresh = host.client();
        let again = open(&fresh, &path);
        assert!(read(&again, 0, LONG + 9) == whole(0, LONG, 6), "{path}");
        // The move goes on or is forgotten; another one takes the file to its place.
        until("the end of the move", || {
            match fresh.relayout(&path, after) {
                Ok(moving) => moving.wait().is_ok(),
                Err(_) => fresh.layout(&path).unwrap().text == after,
            }
        });
        assert!(again.sync().unwrap().is_durable);
        assert!(read(&again, 0, LONG + 9) == whole(0, LONG, 6), "{path}");
    }
    assert!(interrupted > 0, "no move was interrupted");
    host.lose_power(Loss::Everything);
    for round in 0..3 {
        let file = open(&host.client(), &format!("/f-{round}"));
        assert!(read(&file, 0, LONG + 9) == whole(0, LONG, 6), "{round}");
    }
    host.assert_well();
}
