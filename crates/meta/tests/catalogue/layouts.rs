//! Layouts, servers, views and sizes by example: one test per rule that users meet.
//!
//! Everything runs on memory; what survives a crash is in `crash.rs`.

use std::sync::Arc;

use meta::catalogue::{
    Batch, Caller, Finding, Join, LayoutMeanings, LayoutSpec, MemberState, MoveRecord, MoveTarget,
    NamedView, UnlinkHow,
};
use meta::{MetaError, Rights, ServerId, Time};
use wire::{LayoutState, Status};

use crate::fixture::{ALICE, BOB, Fixture, disk, laid_out, memory, refused, who};

#[test]
fn layouts_are_resolved_and_placed_in_rotation() {
    let mut f = Fixture::new(3);
    let mut firsts = Vec::new();
    for i in 0..6 {
        let file = f.create(ALICE, &format!("/f{i}")).unwrap();
        let state = f
            .catalogue
            .snapshot()
            .unwrap()
            .layout(file)
            .unwrap()
            .decode()
            .unwrap();
        let servers: Vec<u64> = state.pieces[0].places.iter().map(|p| p[0].server).collect();
        assert_eq!(servers.len(), 3);
        assert_eq!(state.owner.server, servers[0]);
        assert_eq!(state.pieces[0].ranges.len(), 1);
        assert_eq!(
            (
                state.pieces[0].ranges[0].start,
                state.pieces[0].ranges[0].end
            ),
            (0, u64::MAX)
        );
        firsts.push(servers[0]);
    }
    assert_eq!(firsts, [0, 1, 2, 0, 1, 2]);
    let options = laid_out(Some("f64[64,64]"), Some("(block, cyclic(8)) onto 2x2"));
    let file = f
        .by(ALICE, |b, c| b.create(c, "/array", &options))
        .unwrap()
        .file;
    let snapshot = f.catalogue.snapshot().unwrap();
    let state = snapshot.layout(file).unwrap().decode().unwrap();
    assert_eq!(state.pieces[0].partition.len(), 4);
    assert_eq!(state.pieces[0].partition.pattern().period(), 64 * 64 * 8);
    let stat = snapshot.stat(&who(ALICE), "/array").unwrap();
    assert_eq!(stat.array.as_deref(), Some("f64[64,64]"));
    assert_eq!(stat.layout.as_deref(), Some("(block, cyclic(8)) onto 2x2"));
    drop(snapshot);
    let listed = laid_out(None, Some("striped(4KiB) over [2,0] from 1"));
    let file = f
        .by(ALICE, |b, c| b.create(c, "/listed", &listed))
        .unwrap()
        .file;
    let state = f
        .catalogue
        .snapshot()
        .unwrap()
        .layout(file)
        .unwrap()
        .decode()
        .unwrap();
    let servers: Vec<u64> = state.pieces[0].places.iter().map(|p| p[0].server).collect();
    assert_eq!(servers, [2, 0]);
    let unknown = laid_out(None, Some("striped(4KiB) over [7]"));
    refused(
        f.by(ALICE, |b, c| b.create(c, "/no", &unknown)),
        Status::Unreachable,
    );
    let wrong = laid_out(Some("f64[64"), None);
    refused(
        f.by(ALICE, |b, c| b.create(c, "/no", &wrong)),
        Status::InvalidArgument,
    );
    f.clean();
}

#[test]
fn refused_operation_leaves_nothing() {
    let mut f = Fixture::new(3);
    f.by(ALICE, |b, c| b.mkdir(c, "/d", 0o755)).unwrap();
    let first = |f: &Fixture, file| {
        let layout = f.catalogue.snapshot().unwrap().layout(file).unwrap();
        layout.decode().unwrap().owner.server
    };
    let a = f.create(ALICE, "/d/a").unwrap();
    // Its place was chosen, and the rotation counted up, before it was found that he may not.
    refused(f.create(BOB, "/d/x"), Status::PermissionDenied);
    let b = f.create(ALICE, "/d/b").unwrap();
    assert_eq!((first(&f, a), first(&f, b)), (0, 1));
    assert_eq!(b.0, a.0 + 1);
    f.clean();
}

#[test]
fn placement_goes_around_dead_and_full_servers() {
    let mut f = Fixture::new(3);
    let members = f.catalogue.snapshot().unwrap().members().unwrap();
    let servers = |f: &mut Fixture, name: &str| -> Vec<u64> {
        let file = f.create(ALICE, name).unwrap();
        let state = f
            .catalogue
            .snapshot()
            .unwrap()
            .layout(file)
            .unwrap()
            .decode()
            .unwrap();
        let mut list: Vec<u64> = state.pieces[0].places.iter().map(|p| p[0].server).collect();
        list.sort_unstable();
        list
    };
    assert_eq!(servers(&mut f, "/a"), [0, 1, 2]);
    f.by(0, |b, _| b.mark_dead(ServerId(1), members[1].incarnation))
        .unwrap();
    assert_eq!(servers(&mut f, "/b"), [0, 2]);
    let room = |f: &mut Fixture, server: usize, used: u64| {
        let incarnation = members[server].incarnation;
        f.by(0, |b, _| {
            b.report_room(ServerId(server as u64), incarnation, 1000, used, 0)
        })
    };
    room(&mut f, 0, 990).unwrap();
    assert_eq!(servers(&mut f, "/c"), [2]);
    room(&mut f, 2, 1000).unwrap();
    refused(f.create(ALICE, "/d"), Status::NoSpace);
    room(&mut f, 0, 10).unwrap();
    f.by(0, |b, _| b.leave(ServerId(2))).unwrap();
    assert_eq!(servers(&mut f, "/d"), [0]);
    f.by(0, |b, _| b.leave(ServerId(0))).unwrap();
    refused(f.create(ALICE, "/e"), Status::Unreachable);
    // A report about a start that is over says nothing.
    let again = f.join(memory(Some(1)));
    assert!(again.incarnation > members[1].incarnation);
    refused(
        f.by(0, |b, _| b.mark_dead(ServerId(1), members[1].incarnation)),
        Status::WrongIncarnation,
    );
    assert_eq!(servers(&mut f, "/e"), [1]);
}

#[test]
fn memory_is_lost_with_its_incarnation_and_disks_resume() {
    let mut f = Fixture::new(0);
    refused(f.create(ALICE, "/x"), Status::Unreachable);
    let in_memory = f.join(memory(None));
    let on_disk = f.join(disk(None, None));
    let file = f.create(ALICE, "/x").unwrap();
    let lost = |f: &Fixture| -> Vec<u64> {
        let places = f.catalogue.snapshot().unwrap().lost(file).unwrap();
        places.iter().map(|(_, p)| p.server).collect()
    };
    assert!(lost(&f).is_empty());
    // Both start again; the disk server finds its store.
    let again = f.join(memory(Some(0)));
    let resumed = f.join(disk(Some(1), Some(on_disk.incarnation)));
    assert_eq!(resumed.kept_since, on_disk.incarnation);
    assert_eq!(lost(&f), [0]);
    let findings = f.catalogue.snapshot().unwrap().check().unwrap();
    assert!(
        matches!(findings[..], [Finding::LostBytes { place, .. }]
            if place.incarnation == in_memory.incarnation),
        "{findings:?}"
    );
    // Memory that was adopted resumes like a disk.
    let adopted = f.join(Join {
        resumes: Some(again.incarnation),
        ..memory(Some(0))
    });
    assert_eq!(adopted.kept_since, again.incarnation);
    assert!(adopted.incarnation > again.incarnation);
    assert_eq!(lost(&f), [0]);
    // What is lost need not be removed.
    f.by(ALICE, |b, c| b.unlink(c, "/x", UnlinkHow::EvenIfOpen))
        .unwrap();
    assert_eq!((f.removals(0).len(), f.removals(1).len()), (0, 1));
    // With an empty store it starts from nothing, and its old removals are void.
    let fresh = f.join(disk(Some(1), None));
    assert_eq!(fresh.kept_since, fresh.incarnation);
    assert!(f.removals(1).is_empty());
    refused(
        f.by(0, |b, _| b.join(&memory(Some(9)))),
        Status::InvalidArgument,
    );
    f.clean();
}

#[test]
fn continuing_server_keeps_its_memory_unless_it_was_replaced() {
    let mut f = Fixture::new(0);
    let first = f.join(memory(None));
    let file = f.create(ALICE, "/x").unwrap();
    f.by(0, |b, _| b.mark_dead(first.server, first.incarnation))
        .unwrap();
    let mut f = f.restart();
    let again = |f: &mut Fixture, continues, join: Join| {
        let join = Join { continues, ..join };
        f.by(0, |b, _| b.join(&join))
    };
    // Its process lived on: nothing is lost, and it takes subfiles again.
    let moved = Join {
        address: "unix:/run/elsewhere".into(),
        used_bytes: 77,
        capacity_bytes: 1 << 31,
        distance: 4,
        ..memory(Some(first.server.0))
    };
    let member = again(&mut f, Some(first.incarnation), moved.clone()).unwrap();
    assert_eq!(
        (member.incarnation, member.kept_since),
        (first.incarnation, first.kept_since)
    );
    assert_eq!((member.state, member.used_bytes), (MemberState::Alive, 77));
    assert_eq!((member.capacity_bytes, member.distance), (1 << 31, 4));
    assert_eq!(member.address, moved.address);
    assert_eq!(f.catalogue.snapshot().unwrap().lost(file).unwrap(), []);
    f.create(ALICE, "/y").unwrap();
    // Another process took its number: one that continues the old start is too late.
    let replaced = f.join(memory(Some(first.server.0)));
    assert!(replaced.incarnation > first.incarnation);
    refused(
        again(&mut f, Some(first.incarnation), memory(Some(0))),
        Status::WrongIncarnation,
    );
    refused(
        again(&mut f, Some(replaced.incarnation), disk(Some(0), None)),
        Status::WrongIncarnation,
    );
    refused(
        again(&mut f, Some(replaced.incarnation), memory(None)),
        Status::InvalidArgument,
    );
    let snapshot = f.catalogue.snapshot().unwrap();
    assert_eq!(
        snapshot.members().unwrap()[0].incarnation,
        replaced.incarnation
    );
    assert_eq!(snapshot.lost(file).unwrap().len(), 1);
}

#[test]
fn servers_are_forgotten_when_no_file_names_them() {
    let mut f = Fixture::new(2);
    let file = f.create(ALICE, "/x").unwrap();
    refused(
        f.by(0, |b, _| b.forget(ServerId(1))),
        Status::InvalidArgument,
    );
    f.by(0, |b, _| b.leave(ServerId(1))).unwrap();
    refused(f.by(0, |b, _| b.forget(ServerId(1))), Status::InUse);
    f.by(ALICE, |b, c| b.unlink(c, "/x", UnlinkHow::EvenIfOpen))
        .unwrap();
    f.by(0, |b, _| b.forget(ServerId(1))).unwrap();
    let members = f.catalogue.snapshot().unwrap().members().unwrap();
    assert_eq!(members.len(), 1);
    assert_eq!(members[0].state, MemberState::Alive);
    assert_eq!(f.removals(0), [(file.0, 1)]);
    // The number is not given to anybody else.
    assert_eq!(f.join(memory(None)).server, ServerId(2));
    f.clean();
}

#[test]
fn layout_is_set_while_the_file_is_empty() {
    let mut f = Fixture::new(2);
    let file = f.create(ALICE, "/x").unwrap();
    let whole = LayoutSpec {
        array: None,
        layout: Some("whole".into()),
    };
    let set = |f: &mut Fixture, user| f.by(user, |b, c| b.set_layout(c, "/x", &whole));
    refused(set(&mut f, BOB), Status::PermissionDenied);
    let state = set(&mut f, ALICE).unwrap().decode().unwrap();
    assert_eq!(
        (state.pieces[0].generation, state.pieces[0].partition.len()),
        (2, 1)
    );
    assert_eq!(
        (f.removals(0), f.removals(1)),
        (vec![(file.0, 1)], vec![(file.0, 1)])
    );
    // A client may have written what is not reported yet.
    f.by(ALICE, |b, c| b.chmod(c, "/x", 0o666)).unwrap();
    let writer = f.open(BOB, "/x", Rights::WRITE).unwrap();
    refused(set(&mut f, ALICE), Status::InUse);
    f.by(BOB, |b, c| b.close(c, writer.handle)).unwrap();
    f.by(0, |b, _| b.report_size(file, 0, 1, Time(0))).unwrap();
    refused(set(&mut f, ALICE), Status::InUse);
    f.clean();
}

fn target(layout: &str) -> MoveTarget {
    MoveTarget {
        layout: layout.into(),
        ..MoveTarget::default()
    }
}

fn ranges(state: &LayoutState) -> Vec<Vec<std::ops::Range<u64>>> {
    state.pieces.iter().map(|p| p.ranges.clone()).collect()
}

fn generations(state: &LayoutState) -> Vec<u64> {
    state.pieces.iter().map(|p| p.generation).collect()
}

#[test]
fn relayout_has_two_generations_until_it_ends() {
    let mut f = Fixture::new(2);
    let options = laid_out(Some("u8[512,512]"), Some("(block, *) onto 2"));
    let file = f
        .by(ALICE, |b, c| b.create(c, "/x", &options))
        .unwrap()
        .file;
    let end = 256 << 10;
    f.by(0, |b, _| b.report_size(file, 0, end, Time(0)))
        .unwrap();
    let begin = |f: &mut Fixture| {
        let mut record = MoveRecord::default();
        record.options.lanes = 2;
        let to = target("(*, block) onto 4");
        f.by(0, |b, _| b.begin_relayout(file, &to, end, record, Time(1)))
    };
    let state = begin(&mut f).unwrap().decode().unwrap();
    assert_eq!((generations(&state), state.step), (vec![1, 2], 2));
    let half = end / 2;
    assert_eq!(
        ranges(&state),
        [vec![0..half, half..end], vec![end..u64::MAX]]
    );
    let record = f.catalogue.snapshot().unwrap().move_record(file).unwrap();
    assert_eq!(record.unwrap().total_bytes, end);
    f.clean();
    refused(begin(&mut f), Status::Busy);
    let finish = |f: &mut Fixture, step| f.by(0, |b, _| b.finish_relayout(file, step));
    refused(finish(&mut f, 1), Status::StaleLayout);
    refused(finish(&mut f, 2), Status::InUse);
    // Cancelled before anything moved: back to one, and the number is not used again.
    let back = f.by(0, |b, _| b.cancel_relayout(file, 2, end)).unwrap();
    assert_eq!(generations(&back.decode().unwrap()), [2, 1]);
    refused(
        f.by(0, |b, _| b.cancel_relayout(file, 3, end)),
        Status::Busy,
    );
    let state = finish(&mut f, 3).unwrap().decode().unwrap();
    assert_eq!((generations(&state), state.step), (vec![1], 4));
    assert!(f.removals(0).contains(&(file.0, 2)));
    let state = begin(&mut f).unwrap().decode().unwrap();
    assert_eq!((generations(&state), state.step), (vec![1, 3], 5));
    let advance = |f: &mut Fixture, step, moved: &[std::ops::Range<u64>]| {
        f.by(0, |b, _| b.advance_relayout(file, step, moved))
    };
    let moved = [0..16, half..half + 40];
    let state = advance(&mut f, 5, &moved).unwrap().decode().unwrap();
    assert_eq!(
        ranges(&state),
        [
            vec![16..half, half + 40..end],
            vec![0..16, half..half + 40, end..u64::MAX]
        ]
    );
    refused(advance(&mut f, 6, &moved[..1]), Status::InvalidArgument);
    refused(advance(&mut f, 5, &[16..20]), Status::StaleLayout);
    // A truncate takes what it cuts off out of the move, together with the intent.
    let handle = f.open(ALICE, "/x", Rights::BOTH).unwrap().handle;
    let cut = f.by(ALICE, |b, c| b.begin_truncate(c, handle, half + 60));
    assert_eq!(cut.unwrap().truncate_to, Some(half + 60));
    let layout = |f: &Fixture| f.catalogue.snapshot().unwrap().layout(file).unwrap();
    let state = layout(&f).decode().unwrap();
    assert_eq!(state.step, 7);
    assert_eq!(
        ranges(&state),
        [
            vec![16..half, half + 40..half + 60],
            vec![0..16, half..half + 40, half + 60..u64::MAX]
        ]
    );
    refused(
        advance(&mut f, 7, &[half + 40..half + 61]),
        Status::InvalidArgument,
    );
    advance(&mut f, 7, &[16..half, half + 40..half + 60]).unwrap();
    let state = finish(&mut f, 8).unwrap().decode().unwrap();
    assert_eq!((generations(&state), state.step), (vec![3], 9));
    assert_eq!(ranges(&state), [vec![0..u64::MAX]]);
    assert!(f.removals(0).contains(&(file.0, 1)));
    let snapshot = f.catalogue.snapshot().unwrap();
    let stat = snapshot.stat(&who(ALICE), "/x").unwrap();
    assert_eq!(stat.layout.as_deref(), Some("(*, block) onto 4"));
    assert_eq!(snapshot.move_record(file), Ok(None));
    f.clean();
}

#[test]
fn moving_single_subfiles_keeps_what_stays() {
    let mut f = Fixture::new(2);
    let options = laid_out(None, Some("striped(4KiB) over 4"));
    let file = f
        .by(ALICE, |b, c| b.create(c, "/x", &options))
        .unwrap()
        .file;
    f.join(memory(None));
    let begin = |f: &mut Fixture, to: &MoveTarget| {
        let record = MoveRecord::default();
        f.by(0, |b, _| b.begin_relayout(file, to, 32768, record, Time(1)))
    };
    let end = |f: &mut Fixture, state: &LayoutState| {
        let left = state.pieces[0].ranges.clone();
        f.by(0, |b, _| b.advance_relayout(file, state.step, &left))
            .unwrap();
        let done = f.by(0, |b, _| b.finish_relayout(file, state.step + 1));
        done.unwrap().decode().unwrap()
    };
    let one = MoveTarget {
        subfiles: vec![(2, ServerId(2))],
        ..MoveTarget::default()
    };
    let state = begin(&mut f, &one).unwrap().decode().unwrap();
    let record = f.catalogue.snapshot().unwrap().move_record(file).unwrap();
    assert_eq!(record.unwrap().total_bytes, 8192, "one subfile of four");
    assert_eq!(state.pieces[1].stores, [1, 1, 2, 1]);
    let state = end(&mut f, &state);
    assert_eq!(state.pieces[0].stores, [1, 1, 2, 1]);
    let removals = |f: &Fixture, server| {
        let snapshot = f.catalogue.snapshot().unwrap();
        snapshot.removals(ServerId(server), None, 9).unwrap()
    };
    let of: Vec<_> = removals(&f, 0).into_iter().map(|r| r.subfiles).collect();
    assert_eq!(of, [vec![2]], "subfile 0 stays at server 0");
    assert!(removals(&f, 1).is_empty() && removals(&f, 2).is_empty());
    refused(begin(&mut f, &one), Status::InvalidArgument);
    // Draining takes the rest from server 0, and nothing new goes there.
    f.by(0, |b, _| b.set_draining(ServerId(0), true)).unwrap();
    refused(
        f.by(ALICE, |b, c| {
            b.create(c, "/y", &laid_out(None, Some("striped(4KiB) over [0]")))
        }),
        Status::InUse,
    );
    let parts = f
        .catalogue
        .snapshot()
        .unwrap()
        .parts_at(ServerId(0))
        .unwrap();
    assert_eq!((parts.len(), &parts[0].subfiles[..]), (1, &[0][..]));
    assert!(parts[0].is_owner);
    let state = begin(&mut f, &MoveTarget::default()).unwrap();
    let state = end(&mut f, &state.decode().unwrap());
    assert_ne!(state.owner.server, 0);
    let servers: Vec<u64> = state.pieces[0].places.iter().map(|p| p[0].server).collect();
    assert_eq!(servers, [2, 1, 2, 1], "to the server with fewer subfiles");
    assert_eq!(state.pieces[0].stores, [3, 1, 2, 1]);
    let of: Vec<_> = removals(&f, 0).into_iter().map(|r| r.subfiles).collect();
    assert_eq!(
        of,
        [Vec::<u32>::new()],
        "all that is stored under generation 1"
    );
    assert!(
        f.catalogue
            .snapshot()
            .unwrap()
            .parts_at(ServerId(0))
            .unwrap()
            .is_empty()
    );
    f.clean();
}

#[test]
fn moves_are_found_and_judged_before_they_begin() {
    let mut f = Fixture::new(2);
    let file = f.create(ALICE, "/x").unwrap();
    f.by(ALICE, |b, c| b.mkdir(c, "/d", 0o755)).unwrap();
    let opened = f.open(ALICE, "/x", Rights::READ).unwrap();
    let look = |f: &mut Fixture, user| f.by(user, |b, c| b.opened(c, opened.handle));
    assert_eq!(look(&mut f, ALICE).unwrap().rights, Rights::READ);
    refused(look(&mut f, BOB), Status::BadHandle);
    let snapshot = f.catalogue.reader().snapshot().unwrap();
    let layout = "striped(4KiB) over 2";
    let may = |user, path, layout| snapshot.may_relayout(&who(user), path, &target(layout));
    assert_eq!(may(ALICE, "/x", layout), Ok(file));
    refused(may(BOB, "/x", layout), Status::PermissionDenied);
    refused(may(ALICE, "/d", layout), Status::IsDirectory);
    refused(may(ALICE, "/x", "(block) onto 2"), Status::InvalidArgument);
    assert_eq!(snapshot.moving_files(), Ok(vec![]));
    let owner = snapshot.layout(file).unwrap().owner().unwrap();
    assert_eq!(
        owner,
        snapshot.layout(file).unwrap().decode().unwrap().owner
    );
    assert_eq!(snapshot.parent_of(file).unwrap().0, 1);
    drop(snapshot);
    assert_eq!(f.by(ALICE, |b, c| b.find(c, "/x")), Ok(file));
    let commits = f.catalogue.commits();
    let (to, record) = (target(layout), MoveRecord::default());
    f.by(0, |b, _| b.begin_relayout(file, &to, 0, record, Time(1)))
        .unwrap();
    assert_eq!(f.catalogue.commits(), commits + 1);
    let snapshot = f.catalogue.reader().snapshot().unwrap();
    assert_eq!(snapshot.moving_files(), Ok(vec![file]));
}

#[test]
fn views_are_kept_with_the_file() {
    let mut f = Fixture::new(1);
    f.create(ALICE, "/x").unwrap();
    let view = NamedView {
        text: "every other".into(),
        view: layout::View::new(layout::FileOffset(4), 2, "{(0,0)}".parse().unwrap()).unwrap(),
    };
    for name in ["b", "a", "ü"] {
        f.by(ALICE, |b, c| b.put_view(c, "/x", name, &view))
            .unwrap();
    }
    refused(
        f.by(BOB, |b, c| b.put_view(c, "/x", "c", &view)),
        Status::PermissionDenied,
    );
    refused(
        f.by(ALICE, |b, c| b.put_view(c, "/x", "", &view)),
        Status::InvalidArgument,
    );
    refused(
        f.by(ALICE, |b, c| b.put_view(c, "/", "c", &view)),
        Status::IsDirectory,
    );
    f.by(ALICE, |b, c| b.rename(c, "/x", "/y")).unwrap();
    let snapshot = f.catalogue.snapshot().unwrap();
    assert_eq!(snapshot.view(&who(BOB), "/y", "a").unwrap(), view);
    refused(snapshot.view(&who(BOB), "/y", "q"), Status::NotFound);
    let names = snapshot.views(&who(BOB), "/y", None, 2).unwrap();
    assert_eq!(
        names,
        [
            ("a".into(), view.text.clone()),
            ("b".into(), view.text.clone())
        ]
    );
    let rest = snapshot.views(&who(BOB), "/y", Some("b"), 2).unwrap();
    assert_eq!(rest.len(), 1);
    f.by(ALICE, |b, c| b.remove_view(c, "/y", "a")).unwrap();
    refused(
        f.by(ALICE, |b, c| b.remove_view(c, "/y", "a")),
        Status::NotFound,
    );
    f.by(ALICE, |b, c| b.unlink(c, "/y", UnlinkHow::EvenIfOpen))
        .unwrap();
    f.clean();
}

#[test]
fn sizes_grow_and_truncates_begin_epochs() {
    let mut f = Fixture::new(1);
    let file = f.create(ALICE, "/x").unwrap();
    let handle = f.open(ALICE, "/x", Rights::BOTH).unwrap().handle;
    let report =
        |f: &mut Fixture, epoch, size| f.by(0, |b, _| b.report_size(file, epoch, size, Time(0)));
    assert_eq!(report(&mut f, 0, 100).unwrap().size, 100);
    assert_eq!(report(&mut f, 0, 50).unwrap().size, 100);
    refused(report(&mut f, 1, 500), Status::InvalidArgument);
    let begun = f.by(ALICE, |b, c| b.begin_truncate(c, handle, 10)).unwrap();
    assert_eq!(
        (begun.size, begun.epoch, begun.truncate_to),
        (10, 1, Some(10))
    );
    refused(
        f.by(ALICE, |b, c| b.begin_truncate(c, handle, 5)),
        Status::Busy,
    );
    // A report from before the truncate is too late.
    assert_eq!(report(&mut f, 0, 400).unwrap().size, 10);
    assert_eq!(report(&mut f, 1, 30).unwrap().size, 30);
    // Clients are told what was before, until all servers have cut.
    let told = |f: &mut Fixture| {
        let found = f.catalogue.snapshot().unwrap().stat_file(file).unwrap();
        (found.size, found.epoch)
    };
    assert_eq!(told(&mut f), (100, 0));
    // The intent survives a restart.
    let mut f = f.restart();
    assert_eq!(told(&mut f), (100, 0));
    assert_eq!(
        f.catalogue
            .snapshot()
            .unwrap()
            .size(file)
            .unwrap()
            .truncate_to,
        Some(10)
    );
    for _ in 0..2 {
        let done = f.by(0, |b, _| b.finish_truncate(file, 1)).unwrap();
        assert_eq!((done.size, done.epoch, done.truncate_to), (30, 1, None));
        assert_eq!(told(&mut f), (30, 1));
    }
    refused(
        f.by(0, |b, _| b.finish_truncate(file, 2)),
        Status::InvalidArgument,
    );
    let back = f
        .by(ALICE, |b, c| b.reopen(c, file, Rights::BOTH, None))
        .unwrap();
    refused(
        f.by(ALICE, |b, c| b.begin_truncate(c, back.handle, u64::MAX)),
        Status::InvalidArgument,
    );
    f.clean();
}

#[test]
fn views_cut_a_file_that_is_empty_and_was_left_to_the_rule() {
    let mut f = Fixture::new(2);
    let view = |start: u64| {
        let bytes = format!("{{({},{})}}", start, start + 4095);
        layout::View::new(layout::FileOffset(0), 8192, bytes.parse().unwrap()).unwrap()
    };
    let given = laid_out(None, Some("striped(4KiB)"));
    f.by(ALICE, |b, c| b.create(c, "/given", &given)).unwrap();
    let full = f.create(ALICE, "/full").unwrap();
    f.by(ALICE, |b, _| b.report_size(full, 0, 1, Time(1)))
        .unwrap();
    for (path, against) in [
        ("/empty", ""),
        ("/full", "the file has bytes already"),
        ("/given", ""),
        ("/shared", "somebody else has it open for writing"),
    ] {
        if f.status(ALICE, path) != Status::Ok {
            f.create(ALICE, path).unwrap();
        }
        let rights = match path {
            "/shared" => Rights::BOTH,
            _ => Rights::READ,
        };
        // Root is another user, and may open everything.
        f.open(0, path, rights).unwrap();
        let handle = f.open(ALICE, path, Rights::BOTH).unwrap().handle;
        let cut = f.catalogue.snapshot().unwrap();
        let cut = cut.cut_by_views(&[view(0), view(4096)]).unwrap();
        let laid_out = f
            .by(ALICE, |b, c| b.lay_out_by_views(c, handle, &[handle], &cut))
            .unwrap();
        let is_by_views = path == "/empty";
        assert_eq!(laid_out.is_by_views, is_by_views, "{path}: {laid_out:?}");
        assert_eq!(laid_out.before.is_some(), is_by_views, "{path}");
        assert!(laid_out.distribution.ends_with(against), "{laid_out:?}");
    }
    f.clean();
}

#[test]
fn files_that_views_cut_begin_at_one_server_after_the_other() {
    let mut f = Fixture::new(3);
    let view = "{(0,4095)}".parse().unwrap();
    let view = layout::View::new(layout::FileOffset(0), 8192, view).unwrap();
    let mut first = Vec::new();
    for path in ["/a", "/b", "/c"] {
        f.create(ALICE, path).unwrap();
        let handle = f.open(ALICE, path, Rights::BOTH).unwrap().handle;
        let snapshot = f.catalogue.snapshot().unwrap();
        // One view on three servers is striped over them.
        let cut = snapshot.cut_by_views(std::slice::from_ref(&view)).unwrap();
        let laid_out = f.by(ALICE, |b, c| b.lay_out_by_views(c, handle, &[handle], &cut));
        let laid_out = laid_out.unwrap();
        assert!(laid_out.is_by_views, "{laid_out:?}");
        let state = laid_out.layout.decode().unwrap();
        first.push(state.pieces[0].places[0][0].server);
    }
    first.sort_unstable();
    first.dedup();
    assert!(first.len() > 1, "all begin at server {first:?}");
    f.clean();
}

/// Does something with texts that are found out between its attempts; how many those were.
fn found_out<T: std::fmt::Debug>(
    f: &mut Fixture,
    work: impl Fn(&mut Batch<'_>, &Caller<'_>) -> Result<T, MetaError>,
) -> usize {
    let mut prepared = LayoutMeanings::default();
    for texts in 0..8 {
        let known = Arc::new(prepared.clone());
        let done = f.by(ALICE, |b, c| {
            b.prepare(known);
            Ok((work(b, c), b.take_wanted()))
        });
        let (result, wanted) = done.unwrap();
        let Some(wanted) = wanted else {
            result.unwrap();
            return texts;
        };
        assert_eq!(result.unwrap_err(), MetaError::Unprepared);
        prepared.find_out(wanted);
    }
    panic!("it always wants another text");
}

#[test]
fn no_text_is_parsed_inside_a_transaction() {
    let mut f = Fixture::new(3);
    for (path, layout) in [("/a", None), ("/b", Some("(block, *) onto 2"))] {
        let texts = found_out(&mut f, |b, c| {
            b.create(c, path, &laid_out(Some("f64[100,7]"), layout))
        });
        assert_eq!(texts, 1, "{path}");
    }
    // A file whose layout lists its servers moves to others: the text with those is looked at too.
    let listed = laid_out(None, Some("striped(4KiB) over [0,1]"));
    f.by(ALICE, |b, c| b.create(c, "/c", &listed)).unwrap();
    let file = f.by(ALICE, |b, c| b.find(c, "/c")).unwrap();
    let to = MoveTarget {
        servers: vec![1, 2],
        ..target("")
    };
    let texts = found_out(&mut f, |b, _| {
        b.begin_relayout(file, &to, 0, MoveRecord::default(), Time(1))
    });
    assert_eq!(texts, 1);
}
