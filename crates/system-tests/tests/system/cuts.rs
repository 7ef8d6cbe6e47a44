//! However a write is cut, the subfiles hold the same bytes: through views that are the subfiles,
//! and in the data files of the servers.

use client::View;
use system_tests::layouts::view_of;
use system_tests::plain_file::assert_bytes;
use system_tests::{PlainFile, Random, ServiceOptions};

use crate::{create, open, read_all, subfiles};

const LAYOUTS: &[(Option<&str>, &str)] = &[
    (None, "striped(1000) over 3"),
    (Some("f64[31,17]"), "(cyclic(3), block) onto 2x2"),
    (Some("u8[40,50]"), "chunks(7,9) over 3"),
    (
        None,
        "falls{(0,3,8,2,{(0,0,2,2)}); (0,3,8,2,{(1,1,2,2)}); (4,7,8,2)}",
    ),
];

#[test]
fn seed000_s20_any_cutting_of_a_write_leaves_the_same_subfiles() {
    let service = ServiceOptions::new(3).disk().start();
    let client = service.client();
    let mut random = Random::of_run(20);
    for (number, (array, layout)) in LAYOUTS.iter().enumerate() {
        let view = view_of(Some("u8[41,53]"), 19, "(cyclic(2), block) onto 2x2 [2]");
        let bytes = random.bytes(30_000);
        let mut model = PlainFile::new();
        model.write(&view, 5, &bytes);
        for cutting in 0..4 {
            let path = format!("/file-{number}-{cutting}");
            let file = create(&client, &path, *array, layout);
            file.set_view(&view).expect("a view");
            match cutting {
                0 => drop(file.write_at(5, &bytes).expect("written")),
                // Equal pieces, backwards.
                1 => {
                    for (i, part) in bytes
                        .chunks(777)
                        .enumerate()
                        .collect::<Vec<_>>()
                        .iter()
                        .rev()
                    {
                        file.write_at(5 + 777 * *i as u64, part).expect("written");
                    }
                }
                // Any pieces, all at once.
                2 => {
                    let mut cuts: Vec<usize> = (0..20).map(|_| random.index(bytes.len())).collect();
                    cuts.extend([0, bytes.len()]);
                    cuts.sort_unstable();
                    let requests: Vec<_> = cuts
                        .windows(2)
                        .map(|w| {
                            file.write_at_nonblocking(5 + w[0] as u64, bytes[w[0]..w[1]].to_vec())
                        })
                        .collect();
                    for request in requests {
                        request.wait().0.expect("written");
                    }
                }
                // Through other views: the file's own pieces, byte by byte of the model.
                _ => {
                    for subfile in subfiles(&file) {
                        if subfile.bytes().is_empty() {
                            continue;
                        }
                        file.set_view(&subfile).expect("a view");
                        let seen = model.seen(&subfile);
                        let half = seen.len() / 2;
                        file.write_at(half as u64, &seen[half..]).expect("written");
                        file.write_at(0, &seen[..half]).expect("written");
                    }
                }
            }
            file.sync().expect("synced");
            file.close().expect("closed");
            let file = open(&client, &path);
            assert_eq!(
                file.size().expect("a size"),
                model.size(),
                "{layout} {cutting}"
            );
            for (index, subfile) in subfiles(&file).iter().enumerate() {
                file.set_view(subfile).expect("a view");
                let what = format!("subfile {index} of {layout}, cut {cutting}");
                assert_bytes(&read_all(&file), &model.seen(subfile), &what);
            }
            let scrubbed = file.scrub().expect("scrubbed");
            assert!(scrubbed.blocks > 0 && scrubbed.damaged == 0, "{scrubbed:?}");
        }
        // What the servers keep is equal too: the same lengths of the same subfiles. (Not of the last
        // cutting, which writes the zeros of holes.)
        let lens = |path: &str| {
            let id = open(&client, path).id();
            let mut lens = Vec::new();
            for index in 0..service.servers() {
                let all = client.subfiles(service.server_id(index)).expect("subfiles");
                lens.extend(
                    all.iter()
                        .filter(|s| s.file == id)
                        .map(|s| (s.index, s.len)),
                );
            }
            lens.sort_unstable();
            lens
        };
        let first = lens(&format!("/file-{number}-0"));
        assert!(!first.is_empty());
        for cutting in 1..3 {
            assert_eq!(
                lens(&format!("/file-{number}-{cutting}")),
                first,
                "{layout}"
            );
        }
    }
}

#[test]
fn seed000_s19_subfiles_are_as_long_as_the_file_says_and_ends_and_holes_are_right() {
    let service = ServiceOptions::new(3).start();
    let client = service.client();
    let mut random = Random::of_run(19);
    for (number, (array, layout)) in LAYOUTS.iter().enumerate() {
        for size in [1, 7, 999, 1000, 1001, 5000, 12_345] {
            let path = format!("/file-{number}-{size}");
            let file = create(&client, &path, *array, layout);
            let bytes = random.bytes(size);
            file.write_at(0, &bytes).expect("written");
            let state = file.layout();
            let partition = &state.pieces[0].partition;
            let mut all = 0;
            for (index, subfile) in subfiles(&file).iter().enumerate() {
                file.set_view(subfile).expect("a view");
                let len = partition.subfile_len(index, size as u64);
                let mut found = vec![0xEE; len as usize + 20];
                let n = file.read_at(0, &mut found).expect("read");
                assert_eq!(n as u64, len, "subfile {index} of {layout}, {size} bytes");
                assert!(file.last_access().is_end_of_file);
                all += len;
            }
            assert_eq!(all, size as u64);
            // Behind a hole the file goes on; the hole reads as zeros.
            file.set_view(&View::whole_file()).expect("a view");
            file.write_at(2 * size as u64, &[7]).expect("written");
            let mut expected = bytes;
            expected.resize(2 * size, 0);
            expected.push(7);
            crate::check_whole(&file, &expected);
            file.close().expect("closed");
        }
    }
}
