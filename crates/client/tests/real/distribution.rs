//! Where bytes go, with real servers: the rule for files without a layout, and layouts by views.
//!
//! Every case ends with a comparison of the whole file with a plain array of bytes that saw the same
//! writes. Ranks are threads with clients of their own, as processes would be.

use client::{Client, File, LayoutSpec, OpenOptions, ServerId, Status, Team, View};
use falls::FallsSet;
use layout::FileOffset;

use crate::service::Service;

/// Bytes that tell who wrote them.
fn pattern(seed: u64, len: usize) -> Vec<u8> {
    crate::service::pattern(len, seed as usize * 17)
}

fn rw() -> OpenOptions {
    OpenOptions::new().read().write().create()
}

/// Runs every rank in a thread with a client of its own.
fn together<T: Send>(
    service: &Service,
    ranks: usize,
    work: impl Fn(&Team, &Client) -> T + Sync,
) -> Vec<T> {
    let team = Team::threads(ranks);
    std::thread::scope(|scope| {
        let work = &work;
        let each = team.into_iter().map(|member| {
            scope.spawn(move || {
                let client = service.connect();
                work(&member, &client)
            })
        });
        let each: Vec<_> = each.collect();
        each.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// Rank r of n shows its block of every round.
fn interleaved(rank: usize, ranks: usize, bytes: u64, displacement: u64) -> View {
    let set = FallsSet::segment(rank as u64 * bytes, bytes).unwrap();
    View::new(FileOffset(displacement), ranks as u64 * bytes, set).unwrap()
}

fn read_all(client: &Client, path: &str, len: usize) -> Vec<u8> {
    let file = client.open(path, &OpenOptions::new().read()).unwrap();
    let mut bytes = vec![0xee; len + 10];
    let n = file.read_at(0, &mut bytes).unwrap();
    bytes.truncate(n);
    bytes
}

/// What a file of so many bytes has when everybody wrote a pattern of his own through his view.
fn expected(views: &[View], bytes_each: usize, len: usize) -> Vec<u8> {
    let mut plain = vec![0; len];
    for (rank, view) in views.iter().enumerate() {
        for (k, byte) in pattern(rank as u64, bytes_each).into_iter().enumerate() {
            let x = view.view_to_file(layout::ViewOffset(k as u64)).unwrap();
            plain[x.get() as usize] = byte;
        }
    }
    plain
}

/// Servers of the last access, and how many messages went there.
fn servers_of(file: &File) -> Vec<(u64, u64)> {
    let phases = file.last_access();
    let met = phases.servers.iter().filter(|s| s.bytes > 0);
    met.map(|s| (s.server, s.messages)).collect()
}

#[test]
fn seed001_s09_every_relation_of_clients_to_servers_works() {
    for (servers, ranks) in [
        (1, 1),
        (1, 3),
        (3, 1),
        (3, 2),
        (3, 3),
        (3, 6),
        (3, 4),
        (2, 5),
    ] {
        let service = Service::start(servers);
        let bytes = 3000;
        together(&service, ranks, |team, client| {
            let file = client.open_together(team, "/f", &rw()).unwrap();
            let view = interleaved(team.rank(), team.size(), 1000, 0);
            file.set_view_together(team, &view).unwrap();
            file.write_at(0, &pattern(team.rank() as u64, bytes))
                .unwrap();
            team.barrier().unwrap();
        });
        let views: Vec<View> = (0..ranks).map(|r| interleaved(r, ranks, 1000, 0)).collect();
        let all = expected(&views, bytes, bytes * ranks);
        assert_eq!(read_all(&service.connect(), "/f", all.len()), all);
    }
}

#[test]
fn a_team_has_a_file_alone_as_one_opening() {
    let service = Service::start(2);
    let other = service.connect();
    together(&service, 3, |team, client| {
        let file = client.open_together(team, "/f", &rw().unique()).unwrap();
        team.barrier().unwrap();
        if team.rank() == 0 {
            for options in [rw(), rw().unique()] {
                let error = other.open("/f", &options).unwrap_err();
                assert_eq!(error.status(), Status::InUse);
            }
        }
        let error = client.open_together(team, "/f", &rw().unique());
        assert_eq!(error.unwrap_err().status(), Status::InUse);
        team.barrier().unwrap();
        file.close().unwrap();
        team.barrier().unwrap();
        let kept = (team.rank() == 1).then(|| client.open("/f", &rw()).unwrap());
        team.barrier().unwrap();
        let error = client.open_together(team, "/f", &rw().unique());
        assert_eq!(error.unwrap_err().status(), Status::InUse);
        drop(kept);
    });
}

#[test]
fn seed001_s65_a_rank_with_a_whole_subfile_talks_to_one_server_and_takes_no_lock() {
    let service = Service::start(3);
    let ranks = 7;
    let found = together(&service, ranks, |team, client| {
        let file = client.open_together(team, "/f", &rw()).unwrap();
        let view = interleaved(team.rank(), ranks, 20_000, 0);
        file.set_view_together(team, &view).unwrap();
        file.write_at(0, &pattern(team.rank() as u64, 60_000))
            .unwrap();
        let wrote = servers_of(&file);
        let mut back = vec![0; 60_000];
        file.read_at(0, &mut back).unwrap();
        assert_eq!(back, pattern(team.rank() as u64, 60_000));
        (wrote, file.distribution().unwrap())
    });
    for (rank, (servers, why)) in found.iter().enumerate() {
        assert!(
            why.starts_with("views of 7 ranks on 3 servers: 6 whole"),
            "{why}"
        );
        match rank < 6 {
            true => {
                assert_eq!(servers.len(), 1, "rank {rank}");
                let same = &found[rank % 3].0;
                assert_eq!(servers[0].0, same[0].0, "rank mod servers");
            }
            false => assert_eq!(servers.len(), 3, "the rest is striped"),
        }
    }
    let distinct: std::collections::BTreeSet<u64> = (0..3).map(|r| found[r].0[0].0).collect();
    assert_eq!(distinct.len(), 3);
    let counters = service.servers.iter().flat_map(|s| s.statistics());
    let locks: Vec<_> = counters.filter(|c| c.name.contains("lock")).collect();
    assert!(!locks.is_empty());
    assert!(locks.iter().all(|c| c.value == 0), "{locks:?}");
}

#[test]
fn seed001_s66_overlapping_views_read_and_write_the_same_bytes_as_a_plain_file() {
    let service = Service::start(3);
    let ranks = 3;
    // Blocks with a halo of 50 bytes on both sides.
    let view = |rank: usize| {
        let lo = (rank * 400).saturating_sub(50) as u64;
        let hi = (rank * 400 + 450).min(1200) as u64;
        let set = FallsSet::segment(lo, hi - lo).unwrap();
        View::new(FileOffset(0), 1200, set).unwrap()
    };
    let mut plain = vec![0u8; 3600];
    for turn in 0..ranks {
        for (k, byte) in pattern(turn as u64, 1100).into_iter().enumerate() {
            let x = view(turn)
                .view_to_file(layout::ViewOffset(k as u64))
                .unwrap();
            plain[x.get() as usize] = byte;
        }
    }
    let plain = &plain;
    together(&service, ranks, |team, client| {
        let file = client.open_together(team, "/f", &rw()).unwrap();
        file.set_view_together(team, &view(team.rank())).unwrap();
        assert!(file.distribution().unwrap().contains("overlap"));
        for turn in 0..ranks {
            if turn == team.rank() {
                file.write_at(0, &pattern(turn as u64, 1100)).unwrap();
            }
            team.barrier().unwrap();
        }
        let mut seen = vec![0; 1100];
        let n = file.read_at(0, &mut seen).unwrap();
        for (k, byte) in seen[..n].iter().enumerate() {
            let x = file
                .view()
                .view_to_file(layout::ViewOffset(k as u64))
                .unwrap();
            assert_eq!(
                *byte,
                plain[x.get() as usize],
                "rank {} at {k}",
                team.rank()
            );
        }
    });
    let all = read_all(&service.connect(), "/f", 3600);
    assert_eq!(all[..], plain[..all.len()]);
}

#[test]
fn seed001_s67_views_can_be_changed_later() {
    let service = Service::start(2);
    together(&service, 4, |team, client| {
        let file = client.open_together(team, "/f", &rw()).unwrap();
        let rank = team.rank();
        file.set_view_together(team, &interleaved(rank, 4, 8, 0))
            .unwrap();
        file.write_at(0, &pattern(rank as u64, 800)).unwrap();
        team.barrier().unwrap();
        // Another cut of the same bytes, by everybody and then by one.
        file.set_view_together(team, &interleaved(rank, 4, 100, 0))
            .unwrap();
        let mut part = vec![0; 800];
        assert_eq!(file.read_at(0, &mut part).unwrap(), 800);
        let views: Vec<View> = (0..4).map(|r| interleaved(r, 4, 8, 0)).collect();
        let all = expected(&views, 800, 3200);
        let own: Vec<u8> = (0..800)
            .map(|k| all[(k / 100 * 400) + rank * 100 + k % 100])
            .collect();
        assert_eq!(part, own);
        assert!(file.distribution().unwrap().contains("views of 4"));
        file.set_view(&View::whole_file()).unwrap();
        let mut whole = vec![0; 3200];
        file.read_at(0, &mut whole).unwrap();
        assert_eq!(whole, all);
    });
}

#[test]
fn seed001_s68_the_linear_file_and_any_other_view_have_the_same_bytes() {
    let service = Service::start(3);
    let ranks = 5;
    together(&service, ranks, |team, client| {
        let options = rw().array("u8[60,50]");
        let file = client.open_together(team, "/a", &options).unwrap();
        let text = format!("(*, block) onto 5 [{}]", team.rank());
        file.set_view_text_together(team, &text).unwrap();
        file.write_at(0, &pattern(team.rank() as u64, 600)).unwrap();
        team.barrier().unwrap();
    });
    let mut all = vec![0; 3000];
    for rank in 0..ranks {
        for (k, byte) in pattern(rank as u64, 600).into_iter().enumerate() {
            all[k / 10 * 50 + rank * 10 + k % 10] = byte;
        }
    }
    let client = service.connect();
    assert_eq!(read_all(&client, "/a", 3000), all);
    let file = client.open("/a", &OpenOptions::new().read()).unwrap();
    file.set_view_text("(block, *) onto 4 [2]").unwrap();
    let mut rows = vec![0; 750];
    assert_eq!(file.read_at(0, &mut rows).unwrap(), 750);
    assert_eq!(rows, all[1500..2250]);
    file.set_view_text("slice[7:50:3, 11]").unwrap();
    let mut some = vec![0; 15];
    assert_eq!(file.read_at(0, &mut some).unwrap(), 15);
    let slice: Vec<u8> = (7..50).step_by(3).map(|row| all[row * 50 + 11]).collect();
    assert_eq!(some, slice);
}

#[test]
fn seed001_s69_bytes_that_no_view_shows_have_a_home() {
    let service = Service::start(2);
    let (ranks, header) = (2, 100u64);
    together(&service, ranks, |team, client| {
        let file = client.open_together(team, "/f", &rw()).unwrap();
        // A third of every round is nobody's.
        let set = FallsSet::segment(team.rank() as u64 * 1000, 1000).unwrap();
        let view = View::new(FileOffset(header), 3000, set).unwrap();
        file.set_view_together(team, &view).unwrap();
        file.write_at(0, &pattern(team.rank() as u64, 2000))
            .unwrap();
        team.barrier().unwrap();
        if team.rank() == 0 {
            assert!(file.distribution().unwrap().contains("no view"));
            file.set_view(&View::whole_file()).unwrap();
            file.write_at(0, &pattern(7, 100)).unwrap();
            file.write_at(100 + 2000, &pattern(8, 1000)).unwrap();
            file.write_at(100 + 5000, &pattern(9, 1500)).unwrap();
        }
    });
    let mut all = vec![0; 6600];
    all[..100].copy_from_slice(&pattern(7, 100));
    for round in 0..2 {
        for rank in 0..2 {
            let at = 100 + round * 3000 + rank * 1000;
            let bytes = &pattern(rank as u64, 2000)[round * 1000..round * 1000 + 1000];
            all[at..at + 1000].copy_from_slice(bytes);
        }
    }
    all[2100..3100].copy_from_slice(&pattern(8, 1000));
    all[5100..6600].copy_from_slice(&pattern(9, 1500));
    assert_eq!(read_all(&service.connect(), "/f", 6600), all);
}

#[test]
fn seed001_s70_files_of_one_job_have_different_distributions() {
    let service = Service::start(3);
    let found = together(&service, 3, |team, client| {
        let view = interleaved(team.rank(), 3, 500, 0);
        let bytes = pattern(team.rank() as u64, 1500);
        let mut words = Vec::new();
        for (path, options, by_views) in [
            ("/views", rw(), true),
            ("/striped", rw(), false),
            ("/given", rw().layout("striped(64) over 2 from 1"), true),
            ("/one", rw().expected_clients(1), false),
        ] {
            let file = client.open_together(team, path, &options).unwrap();
            match by_views {
                true => file.set_view_together(team, &view).unwrap(),
                false => file.set_view(&view).unwrap(),
            }
            file.write_at(0, &bytes).unwrap();
            words.push(file.distribution().unwrap());
            team.barrier().unwrap();
        }
        words
    });
    let starts = [
        "views of 3",
        "by rule: 3 clients",
        "given",
        "by rule: one client",
    ];
    for (word, start) in found[0].iter().zip(starts) {
        assert!(word.starts_with(start), "{word}");
    }
    let views: Vec<View> = (0..3).map(|r| interleaved(r, 3, 500, 0)).collect();
    let all = expected(&views, 1500, 4500);
    let client = service.connect();
    for path in ["/views", "/striped", "/given", "/one"] {
        assert_eq!(read_all(&client, path, 4500), all, "{path}");
    }
    assert_eq!(
        client.layout("/given").unwrap().text,
        "striped(64) over 2 from 1"
    );
    let one = client.layout("/one").unwrap().state;
    assert_eq!(one.pieces[0].places.len(), 1);
}

#[test]
fn seed001_s72_layouts_change_into_each_other_while_others_read() {
    let service = Service::start(3);
    together(&service, 4, |team, client| {
        let file = client.open_together(team, "/f", &rw()).unwrap();
        let view = interleaved(team.rank(), 4, 700, 128);
        file.set_view_together(team, &view).unwrap();
        file.write_at(0, &pattern(team.rank() as u64, 70_000))
            .unwrap();
        team.barrier().unwrap();
    });
    let client = service.connect();
    let views: Vec<View> = (0..4).map(|r| interleaved(r, 4, 700, 128)).collect();
    let all = expected(&views, 70_000, 128 + 280_000);
    let by_views = client.layout("/f").unwrap().text;
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (is_over, all, service) = (&is_over, &all, &service);
        for reader in 0..2usize {
            scope.spawn(move || {
                let client = service.connect();
                let file = client.open("/f", &OpenOptions::new().read()).unwrap();
                let mut at = reader * 1000;
                while !is_over.load(std::sync::atomic::Ordering::Acquire) {
                    let mut part = [0; 5000];
                    file.read_at(at as u64, &mut part).unwrap();
                    assert_eq!(part, all[at..at + 5000]);
                    at = (at + 7777) % (all.len() - 5000);
                }
            });
        }
        // From views to stripes, to one server, and to the views again.
        for text in ["striped(999) over 3", "whole", &by_views] {
            client.relayout("/f", text).unwrap().wait().unwrap();
            let words = client.layout("/f").unwrap().distribution;
            assert_eq!(words, "given by a re-layout");
        }
        is_over.store(true, std::sync::atomic::Ordering::Release);
    });
    assert_eq!(read_all(&client, "/f", all.len()), all);
}

#[test]
fn seed001_s72a_ranks_count_in_the_team_that_opens() {
    let service = Service::start(2);
    // Five processes; only the last three open the file, as ranks 0 to 2.
    let found = together(&service, 3, |team, client| {
        let file = client.open_together(team, "/f", &rw()).unwrap();
        assert!(file.is_new());
        let view = interleaved(team.rank(), 3, 20_000, 0);
        file.set_view_together(team, &view).unwrap();
        file.write_at(0, &pattern(team.rank() as u64, 20_000))
            .unwrap();
        servers_of(&file).len()
    });
    assert_eq!(found, [1, 1, 2]);
}

#[test]
fn seed001_s72b_servers_hold_equal_shares_of_striped_subfiles() {
    let service = Service::start(4);
    for (n, path) in ["/a", "/b", "/c"].into_iter().enumerate() {
        together(&service, 3, |team, client| {
            let file = client.open_together(team, path, &rw()).unwrap();
            let view = interleaved(team.rank(), 3, 50_000, 0);
            file.set_view_together(team, &view).unwrap();
            file.write_at(0, &pattern(n as u64, 50_000)).unwrap();
        });
        let client = service.connect();
        let state = client.layout(path).unwrap().state;
        let piece = &state.pieces[0];
        let mut at = std::collections::BTreeMap::new();
        for (i, places) in piece.places.iter().enumerate() {
            *at.entry(places[0].server).or_insert(0) += piece.partition.subfile_len(i, 150_000);
        }
        let (least, most) = (at.values().min().unwrap(), at.values().max().unwrap());
        assert_eq!(at.len(), 4);
        assert!(most - least <= 2 * 12_500, "{at:?}");
    }
}

#[test]
fn seed001_s72c_a_header_before_or_after_the_views_gives_the_same_file() {
    let service = Service::start(2);
    for (path, header_first) in [("/before", true), ("/after", false)] {
        together(&service, 3, |team, client| {
            let file = client.open_together(team, path, &rw()).unwrap();
            let header = || {
                if team.rank() == 0 {
                    file.set_view(&View::whole_file()).unwrap();
                    file.write_at(0, &pattern(9, 77)).unwrap();
                }
                team.barrier().unwrap();
            };
            let view = interleaved(team.rank(), 3, 64, 77);
            if header_first {
                header();
            }
            file.set_view_together(team, &view).unwrap();
            file.write_at(0, &pattern(team.rank() as u64, 640)).unwrap();
            if !header_first {
                header();
            }
            let is_by_views = file.distribution().unwrap().starts_with("views");
            assert_eq!(is_by_views, !header_first);
        });
    }
    let views: Vec<View> = (0..3).map(|r| interleaved(r, 3, 64, 77)).collect();
    let mut all = expected(&views, 640, 77 + 1920);
    all[..77].copy_from_slice(&pattern(9, 77));
    for path in ["/before", "/after"] {
        assert_eq!(read_all(&service.connect(), path, all.len()), all, "{path}");
    }
}

#[test]
fn seed001_s56_parameters_are_fixed_with_the_first_byte() {
    let service = Service::start(3);
    let client = service.connect();
    let spec = |layout: &str| LayoutSpec {
        array: None,
        layout: Some(layout.into()),
    };
    let file = client.open("/f", &rw()).unwrap();
    client.set_layout("/f", spec("striped(10) over 2")).unwrap();
    file.write_at(0, &pattern(1, 100)).unwrap();
    file.sync().unwrap();
    let error = client.set_layout("/f", spec("whole")).unwrap_err();
    assert_eq!(error.status(), Status::InUse, "{error}");
    client.relayout("/f", "whole").unwrap().wait().unwrap();
    assert_eq!(client.layout("/f").unwrap().text, "whole");
    assert_eq!(read_all(&client, "/f", 100), pattern(1, 100));
}

/// A handle that was opened before the layout was replaced sees what is written after.
#[test]
fn seed001_s57_all_servers_and_clients_go_by_the_same_parameters() {
    let service = Service::start(3);
    let (writer, reader) = (service.connect(), service.connect());
    let file = writer.open("/f", &rw()).unwrap();
    let old = reader.open("/f", &OpenOptions::new().read()).unwrap();
    // Both have asked the owner, so servers know the first layout.
    assert_eq!((file.size().unwrap(), old.size().unwrap()), (0, 0));
    let spec = LayoutSpec {
        array: None,
        layout: Some("striped(10) over 2 from 1".into()),
    };
    writer.set_layout("/f", spec).unwrap();
    file.write_at(0, &pattern(3, 1000)).unwrap();
    let mut bytes = vec![0; 1000];
    assert_eq!(old.read_at(0, &mut bytes).unwrap(), 1000);
    assert_eq!(bytes, pattern(3, 1000));
    let states = [&writer, &reader].map(|c| c.layout("/f").unwrap().state);
    assert_eq!(states[0], states[1]);
    assert_eq!(file.layout().version(), old.layout().version());
    file.resize(333).unwrap();
    assert_eq!(old.read_at(0, &mut bytes).unwrap(), 333);
}

#[test]
fn seed001_s59_a_file_of_one_client_is_on_one_server() {
    let service = Service::start(4);
    let client = service.connect();
    let near = service.servers[2].server();
    let options = rw().expected_clients(1).expected_size(5 << 20).near(near);
    let file = client.open("/one", &options).unwrap();
    file.write_at(0, &pattern(1, 100_000)).unwrap();
    assert_eq!(
        servers_of(&file).iter().map(|s| s.0).collect::<Vec<_>>(),
        [near.0]
    );
    let options = rw()
        .expected_clients(32)
        .expected_size(128 << 20)
        .expected_access(8192);
    let file = client.open("/many", &options).unwrap();
    file.write_at(0, &pattern(1, 100_000)).unwrap();
    assert_eq!(servers_of(&file).len(), 4);
    assert_eq!(client.layout("/many").unwrap().text, "striped(8KiB) over 4");
    // The same by hints.
    let hints = client::Hints::new()
        .with("expected_clients", "1")
        .unwrap()
        .with("near_server", &near.0.to_string())
        .unwrap();
    client.create("/hinted", &rw().hints(hints)).unwrap();
    let state = client.layout("/hinted").unwrap().state;
    assert_eq!(ServerId(state.pieces[0].places[0][0].server), near);
}

/// Figure 7.1: files that are shorter than a stripe.
#[test]
fn seed001_s60_small_files_spread_evenly() {
    let service = Service::start(5);
    let client = service.connect();
    let mut at = std::collections::BTreeMap::new();
    // All are placed before any is written: reports of some servers that already have bytes, while others have not
    // reported yet, would send the next ones to the others.
    let create = |i| client.open(&format!("/small{i}"), &rw()).unwrap();
    let files: Vec<File> = (0..50).map(create).collect();
    for (i, file) in (0..).zip(&files) {
        file.write_at(0, &pattern(i, 1000)).unwrap();
        *at.entry(servers_of(file)[0].0).or_insert(0) += 1000;
    }
    assert_eq!(at.values().copied().collect::<Vec<u64>>(), [10_000; 5]);
}

#[test]
fn arguments_that_differ_between_ranks_fail_at_every_rank() {
    let service = Service::start(2);
    let errors = together(&service, 3, |team, client| {
        let path = format!("/f{}", team.rank() / 2);
        client.open_together(team, &path, &rw()).unwrap_err()
    });
    for error in errors {
        assert_eq!(error.status(), Status::InvalidArgument);
        assert!(error.to_string().contains("rank 2"), "{error}");
    }
    // What the service refuses to the one who creates is refused to all.
    service.connect().create("/there", &rw()).unwrap();
    let errors = together(&service, 2, |team, client| {
        let options = rw().exclusive();
        client.open_together(team, "/there", &options).unwrap_err()
    });
    assert_eq!(errors[0].status(), Status::Exists);
    assert!(errors[1].to_string().contains("rank 0"), "{}", errors[1]);
    let errors = together(&service, 2, |team, client| {
        let file = client.open_together(team, "/there", &rw()).unwrap();
        let text = ["whole", "nonsense"][team.rank()];
        file.set_view_text_together(team, text).unwrap_err()
    });
    assert!(errors[0].to_string().contains("rank 1"), "{}", errors[0]);
}

#[test]
fn a_stranger_who_writes_keeps_the_layout_as_it_is() {
    let service = Service::start(2);
    let stranger = service.connect();
    let other = stranger.open("/f", &rw()).unwrap();
    let found = together(&service, 2, |team, client| {
        let file = client.open_together(team, "/f", &rw()).unwrap();
        let view = interleaved(team.rank(), 2, 100, 0);
        file.set_view_together(team, &view).unwrap();
        file.write_at(0, &pattern(team.rank() as u64, 100)).unwrap();
        file.distribution().unwrap()
    });
    assert!(
        found[0].contains("views not used: somebody else"),
        "{}",
        found[0]
    );
    other.write_at(200, &pattern(5, 100)).unwrap();
    let all = [pattern(0, 100), pattern(1, 100), pattern(5, 100)].concat();
    assert_eq!(read_all(&stranger, "/f", 300), all);
}

#[test]
fn teams_of_processes_meet_through_the_service() {
    let service = Service::start(1);
    // Ranks have clients of their own; the name is used twice, one team after the other.
    for round in 0..2u8 {
        let found = std::thread::scope(|scope| {
            let each = (0..3usize).map(|rank| {
                let service = &service;
                scope.spawn(move || {
                    let client = service.connect();
                    let team = Team::processes(&client, "job 1", rank, 3).unwrap();
                    (0..5)
                        .map(|i| team.allgather(&[round, i, rank as u8]).unwrap())
                        .collect::<Vec<_>>()
                })
            });
            let each: Vec<_> = each.collect();
            each.into_iter()
                .map(|t| t.join().unwrap())
                .collect::<Vec<_>>()
        });
        for rounds in found {
            for (i, all) in rounds.into_iter().enumerate() {
                let i = i as u8;
                assert_eq!(all, [[round, i, 0], [round, i, 1], [round, i, 2]]);
            }
        }
    }
}

#[test]
fn teams_that_contradict_or_lose_a_member_fail_at_once() {
    let service = Service::start(1);
    let sizes = [2usize, 3];
    let errors = std::thread::scope(|scope| {
        let each = (0..2usize).map(|rank| {
            let service = &service;
            scope.spawn(move || {
                let client = service.connect();
                Team::processes(&client, "job", rank, sizes[rank]).unwrap_err()
            })
        });
        let each: Vec<_> = each.collect();
        each.into_iter()
            .map(|t| t.join().unwrap())
            .collect::<Vec<_>>()
    });
    for error in errors {
        assert_eq!(error.status(), Status::InvalidArgument, "{error}");
        assert!(error.to_string().contains("ranks"), "{error}");
    }
    // One goes while the other waits.
    std::thread::scope(|scope| {
        let service = &service;
        let stays = scope.spawn(move || {
            let client = service.connect();
            let team = Team::processes(&client, "pair", 0, 2).unwrap();
            team.barrier().unwrap_err()
        });
        scope.spawn(move || {
            let client = service.connect();
            drop(Team::processes(&client, "pair", 1, 2).unwrap());
        });
        let error = stays.join().unwrap();
        assert_eq!(error.status(), Status::Unreachable, "{error}");
        assert!(error.to_string().contains("rank 1"), "{error}");
    });
    // Nobody waits for ever, and too much is refused to all.
    let client = service.connect();
    let short = std::time::Duration::from_millis(50);
    let late = Team::processes_for(&client, "alone", 0, 2, short).unwrap_err();
    assert_eq!(late.status(), Status::TimedOut, "{late}");
    let team = Team::processes(&client, "one", 0, 1).unwrap();
    assert!(team.allgather(&vec![7; 2 << 20]).unwrap() == [vec![7; 2 << 20]]);
}
