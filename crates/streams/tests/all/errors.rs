//! Wrong use gets an error that says what is wrong and what to do, at all members alike; and nothing is lost by it.
//!
//! Texts are compared as far as they name the argument and what would be right.

use std::io::Write;

use client::{Team, View};
use streams::{Access, Context, Emulation, ScalarFile, Shape, Stream, StreamOptions};

use crate::place::{TestPlace, run};

fn open(
    place: &TestPlace,
    team: &Team,
    shape: &str,
    options: &StreamOptions,
) -> client::Result<Stream> {
    let emulation = Emulation::block(&shape.parse().unwrap(), team).unwrap();
    Stream::open(place.client(), team, "/s", &emulation, options)
}

fn write_some(place: &TestPlace) {
    run(2, |team| {
        let mut stream = open(place, team, "[6]", &StreamOptions::new(Access::Write)).unwrap();
        let bytes = vec![3; 8 * stream.emulation().count()];
        stream.write(&Context::everywhere(), &bytes, 8).unwrap();
        stream
            .elemental(&Context::everywhere(), |vp| vp.write_all(b"abc"))
            .unwrap();
        stream.close().unwrap();
    });
}

#[test]
fn seed002_s46_another_shape_is_refused_by_name() {
    let place = TestPlace::new();
    write_some(&place);
    run(2, |team| {
        let error = open(&place, team, "[2][3]", &StreamOptions::new(Access::Read)).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("shape: /s has streams of shape [6], not [2][3]"),
            "{text}"
        );
    });
}

#[test]
fn seed002_s47_the_shape_is_told_by_the_file() {
    let place = TestPlace::new();
    write_some(&place);
    let record = Stream::record(place.client(), "/s").unwrap().unwrap();
    assert_eq!(record.shape, Shape::new(&[6]).unwrap());
    place.put("/plain", b"x");
    assert_eq!(Stream::record(place.client(), "/plain").unwrap(), None);
}

#[test]
fn damaged_and_newer_roots_are_refused_by_all() {
    let place = TestPlace::new();
    write_some(&place);
    let good = place.client().get_view("/s", streams::RECORD).unwrap().text;
    let keep = |text: &str| {
        let view = View::whole_file();
        place
            .client()
            .put_view("/s", streams::RECORD, text, &view)
            .unwrap();
    };
    let stamp = good.split("stamp ").nth(1).unwrap();
    let stamp = stamp.split(' ').next().unwrap();
    for (text, expected) in [
        (good.replace("pario-stream 1", "pario-stream 9"), "format 9"),
        (good.replace("shape [6]", "shape []"), "damaged"),
        // The directory of another file.
        (good.replace(stamp, "12345"), "is damaged"),
        // A directory that was cut off.
        (
            good.replace("superblocks ", "superblocks 0")
                .replace("superblocks 0", "superblocks 0 "),
            "damaged",
        ),
    ] {
        keep(&text);
        run(2, |team| {
            let stream = open(&place, team, "[6]", &StreamOptions::new(Access::Read));
            let error = stream.and_then(|mut stream| stream.lengths()).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(expected), "{text}");
        });
    }
    keep(&good);
    run(2, |team| {
        let mut stream = open(&place, team, "[6]", &StreamOptions::new(Access::Read)).unwrap();
        assert_eq!(stream.lengths().unwrap().of(0), 11);
        stream.close().unwrap();
    });
}

#[test]
fn wrong_arguments_are_named() {
    let place = TestPlace::new();
    let team = Team::alone();
    let options = StreamOptions::new(Access::Write);
    let mut stream = open(&place, &team, "[4]", &options).unwrap();
    let all = Context::everywhere();
    let starts = |error: client::Error, with: &str| {
        let text = error.to_string();
        assert!(text.starts_with(with), "{text}");
    };
    starts(
        stream.write(&all, &vec![0; 31], 8).unwrap_err(),
        "variable: 31 bytes of memory",
    );
    starts(
        stream.read(&all, &mut vec![0; 32], 8).unwrap_err(),
        "access: /s is not open for reading",
    );
    let mask = Context::of_mask(vec![true; 3]);
    starts(
        stream.write(&mask, &vec![0; 32], 8).unwrap_err(),
        "context: a mask for 3 VPs",
    );
    starts(
        stream.write_each(&all, &vec![0; 32], &[8; 3]).unwrap_err(),
        "sizes: 3 sizes",
    );
    starts(
        stream.seek_each(&all, &[0; 5]).unwrap_err(),
        "places: 5 of them",
    );
    let back = stream
        .seek(&all, std::io::SeekFrom::Current(-1))
        .unwrap_err();
    starts(back, "position: is before");
    // Nothing of it is left.
    stream.write(&all, &vec![1; 32], 8).unwrap();
    stream.close().unwrap();
    assert_eq!(place.bytes("/s"), [1; 32]);
    for (options, name) in [
        (options.clone().pointers(5), "pointers: 5"),
        (options.clone().superblock(5000), "superblock: 5000"),
        (options.clone().ib_block(0), "ib_block: "),
    ] {
        starts(open(&place, &team, "[4]", &options).unwrap_err(), name);
    }
}

#[test]
fn members_that_write_a_different_number_of_times_hear_of_it() {
    let place = TestPlace::new();
    run(2, |team| {
        let mut stream = open(&place, team, "[4]", &StreamOptions::new(Access::Write)).unwrap();
        let memory = vec![1; 8 * stream.emulation().count()];
        for _ in 0..2 + team.rank() {
            stream.write(&Context::everywhere(), &memory, 8).unwrap();
        }
        let text = stream.close().unwrap_err().to_string();
        assert!(
            text.contains("rank 1 of the team has not written what rank 0 has"),
            "{text}"
        );
    });
}

#[test]
fn seed002_s08_scalar_files_are_written_once_and_read_by_all() {
    let place = TestPlace::new();
    run(3, |team| {
        let options = client::OpenOptions::new().read().write().create();
        let file = ScalarFile::open(place.client(), team, "/scalar", &options).unwrap();
        assert_eq!(file.write(b"one line\n").unwrap(), 9);
        assert_eq!(file.seek(std::io::SeekFrom::Start(4)).unwrap(), 4);
        assert_eq!(file.read(100).unwrap(), b"line\n");
        file.close().unwrap();
    });
    assert_eq!(place.bytes("/scalar"), b"one line\n");
    run(3, |team| {
        let options = client::OpenOptions::new().read();
        let error = ScalarFile::open(place.client(), team, "/absent", &options).unwrap_err();
        assert_eq!(error.status(), client::Status::NotFound);
    });
}

#[test]
fn seed002_s09_files_are_opened_printed_to_and_closed_where_a_value_is_negative() {
    // The error log of the source: append mode, a mask, and a text of those that have something to say.
    let place = TestPlace::new();
    for step in 0..3 {
        run(2, |team| {
            let options = StreamOptions::new(Access::Append);
            let mut stream = open(&place, team, "[6]", &options).unwrap();
            let emulation = stream.emulation().clone();
            let value = |vp: u64| vp as i64 - 3 + step;
            let negative = Context::everywhere()
                .narrowed(emulation.count(), |local| value(emulation.vp(local)) < 0);
            stream
                .elemental(&negative, |vp| {
                    let number = vp.number();
                    writeln!(vp, "step {step}: {}", value(number))
                })
                .unwrap();
            stream.close().unwrap();
        });
    }
    run(3, |team| {
        let mut stream = open(&place, team, "[6]", &StreamOptions::new(Access::Read)).unwrap();
        stream
            .elemental(&Context::everywhere(), |vp| {
                let number = vp.number() as i64;
                for step in (0..3).filter(|step| number - 3 + step < 0) {
                    let line = vp.gets(80)?.unwrap();
                    assert_eq!(
                        line,
                        format!("step {step}: {}\n", number - 3 + step).as_bytes()
                    );
                }
                assert_eq!(vp.gets(80)?, None);
                assert!(vp.is_at_end());
                Ok(())
            })
            .unwrap();
        stream.close().unwrap();
    });
}
