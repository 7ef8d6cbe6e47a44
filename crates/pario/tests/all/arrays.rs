//! Typed arrays: every part and region against plain arithmetic on indices, and errors that say what would be right.
//!
//! Arrays are small; that bytes go the right way between servers is shown elsewhere.

use pario::{Array, Axis, Element, MoveState, Order, Pario, Status};

use crate::service::everywhere;

const SHAPE: [u64; 2] = [5, 7];

/// A matrix that holds its own positions.
fn matrix(pario: &Pario, path: &str, layout: &str) -> Array<i32> {
    let matrix = pario.create_array::<i32>(path, &SHAPE).layout(layout);
    let matrix = matrix.create().unwrap();
    let values: Vec<i32> = (0..35).collect();
    matrix.write(&values).unwrap();
    matrix
}

/// The text of the error of something that has to fail.
fn refused<T: std::fmt::Debug>(result: pario::Result<T>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument, "{error}");
    error.to_string()
}

#[test]
fn all_types_of_entries_come_back() {
    fn check<T: Element + PartialEq>(pario: &Pario, name: &str, values: &[T]) {
        let path = format!("/{name}");
        let shape = [values.len() as u64];
        let array = pario.create_array::<T>(&path, &shape).create().unwrap();
        array.write(values).unwrap();
        array.close().unwrap();
        let array = pario.read_array::<T>(&path).unwrap();
        assert_eq!(array.read().unwrap(), values, "{name}");
        let text = array.array_type().to_string();
        assert_eq!(text, format!("{name}[{}]", values.len()));
    }
    everywhere(|pario| {
        check::<u8>(pario, "u8", &[1, u8::MAX]);
        check::<u16>(pario, "u16", &[1, u16::MAX]);
        check::<u32>(pario, "u32", &[1, u32::MAX]);
        check::<u64>(pario, "u64", &[1, u64::MAX]);
        check::<i8>(pario, "i8", &[-1, i8::MIN]);
        check::<i16>(pario, "i16", &[-1, i16::MIN]);
        check::<i32>(pario, "i32", &[-1, i32::MIN]);
        check::<i64>(pario, "i64", &[-1, i64::MIN]);
        check::<f32>(pario, "f32", &[-0.0, f32::MAX]);
        check::<f64>(pario, "f64", &[-0.0, f64::MIN_POSITIVE]);
        check::<bool>(pario, "bool", &[true, false, true]);
        check::<[u8; 3]>(pario, "bytes(3)", &[*b"abc", *b"def"]);
        let complex = num_complex::Complex::new(1.0f32, -2.0);
        check(pario, "c64", &[complex, complex * complex]);
        let complex = num_complex::Complex::new(1.0f64, -2.0);
        check(pario, "c128", &[complex, complex * complex]);
    });
}

#[test]
fn a_byte_that_is_no_bool_is_true() {
    everywhere(|pario| {
        let options = pario.file("/flags").write().create().array("bool[4]");
        options
            .open()
            .unwrap()
            .write_at(0, &[0, 1, 2, 255])
            .unwrap();
        let flags = pario.read_array::<bool>("/flags").unwrap();
        assert_eq!(flags.read().unwrap(), [false, true, true, true]);
    });
}

#[test]
fn parts_have_the_entries_of_their_layout() {
    everywhere(|pario| {
        let matrix = matrix(pario, "/m", "(cyclic, block) onto 2x2");
        let check = |text: &str, shape: &[u64], rows: &[i32], columns: &[i32]| {
            let part = matrix.part(text).unwrap();
            let of_row = |row: &i32| columns.iter().map(|c| row * 7 + c).collect::<Vec<_>>();
            let want: Vec<i32> = rows.iter().flat_map(of_row).collect();
            assert_eq!((part.shape(), part.len()), (shape, want.len()), "{text}");
            assert_eq!(part.is_empty(), want.is_empty());
            assert_eq!(part.read().unwrap(), want, "{text}");
        };
        let all = [0, 1, 2, 3, 4, 5, 6];
        check("(block, *) onto 2 [0]", &[3, 7], &[0, 1, 2], &all);
        check("(block, *) onto 2 [1]", &[2, 7], &[3, 4], &all);
        check("(*, cyclic) onto 3 [1]", &[5, 2], &[0, 1, 2, 3, 4], &[1, 4]);
        check(
            "(block, cyclic(2)) onto 2x2 [3]",
            &[2, 3],
            &[3, 4],
            &[2, 3, 6],
        );
        check("chunks(2,3) [5]", &[2, 1], &[2, 3], &[6]);
        check("slice[1:5:2, [0,5]]", &[2, 2], &[1, 3], &[0, 5]);
        check("whole", &[5, 7], &[0, 1, 2, 3, 4], &all);
        // More ranks than rows.
        check("(block, *) onto 9 [7]", &[0, 7], &[], &all);
        // No choice of indices: as many entries as there are.
        check("striped(28) over 2 [1]", &[14], &[1, 3], &all);

        let part = matrix.part_of("(*, cyclic) onto 3", 1).unwrap();
        assert_eq!(part.layout().to_string(), "(*, cyclic) onto 3[1]");
        assert_eq!(part.read().unwrap()[..2], [1, 4]);
        part.write(&[-1; 10]).unwrap();
        let row = [7, -1, 9, 10, -1, 12, 13];
        assert_eq!(matrix.region(&[1..2, 0..7]).unwrap().read().unwrap(), row);
    });
}

#[test]
fn regions_are_ranges_with_steps() {
    everywhere(|pario| {
        let matrix = matrix(pario, "/m", "(block, *) onto 2");
        for start in 0..5 {
            for stop in start..=5 {
                for step in 1..4 {
                    let rows = Axis::from(start..stop).step_by(step);
                    let region = matrix.region((rows, 2)).unwrap();
                    let taken = (start..stop).step_by(step as usize);
                    let want: Vec<i32> = taken.map(|row| row as i32 * 7 + 2).collect();
                    assert_eq!(region.shape(), [want.len() as u64, 1]);
                    assert_eq!(region.read().unwrap(), want, "{start}..{stop} by {step}");
                }
            }
        }
        let read = |region: &[Axis]| matrix.region(region).unwrap().read().unwrap();
        assert_eq!(read(&[Axis::from(4), Axis::from(5..)]), [33, 34]);
        assert_eq!(read(&[Axis::from(0..=1), Axis::from(6)]), [6, 13]);
        assert_eq!(read(&[Axis::from(..), Axis::ALL]).len(), 35);
        assert_eq!(matrix.region((4, ..)).unwrap().read().unwrap()[0], 28);
        assert_eq!(matrix.region(([..; 2],).0).unwrap().len(), 35);
        assert_eq!(
            matrix
                .region(vec![1..2; 2].as_slice())
                .unwrap()
                .read()
                .unwrap(),
            [8]
        );
        matrix
            .region(&[0..2, 0..2])
            .unwrap()
            .write(&[9; 4])
            .unwrap();
        assert_eq!(matrix.read().unwrap()[..9], [9, 9, 2, 3, 4, 5, 6, 9, 9]);
    });
}

#[test]
fn what_nobody_has_written_is_zero() {
    everywhere(|pario| {
        let array = pario
            .create_array::<f64>("/zeros", &[4, 4])
            .create()
            .unwrap();
        assert_eq!(array.read().unwrap(), [0.0; 16]);
        array
            .region(&[0..2, 0..4])
            .unwrap()
            .write(&[1.0; 8])
            .unwrap();
        let mut column = [7.0; 4];
        array
            .region(&[0..4, 1..2])
            .unwrap()
            .read_into(&mut column)
            .unwrap();
        assert_eq!(column, [1.0, 1.0, 0.0, 0.0]);
    });
}

#[test]
fn arguments_that_are_wrong_are_named_with_what_is_right() {
    everywhere(|pario| {
        let matrix = matrix(pario, "/m", "(block, *) onto 2");
        let text = refused(pario.open_array::<f32>("/m"));
        assert_eq!(
            text,
            "element type: /m holds i32[5,7], not entries of f32; open it as an array of i32"
        );
        pario.file("/raw").write().create().open().unwrap();
        let text = refused(pario.open_array::<f32>("/raw"));
        assert_eq!(
            text,
            "path: /raw holds plain bytes and no array; open it as a file"
        );

        let text = refused(matrix.region(0..5));
        assert!(
            text.starts_with("region: 1 dimensions for an array of 2; give"),
            "{text}"
        );
        let text = refused(matrix.region(&[0..5, 3..8]));
        assert_eq!(
            text,
            "region: dimension 1: 3..8 reaches outside; indices are 0..7"
        );
        let text = refused(matrix.region([5, 0]));
        assert_eq!(
            text,
            "region: dimension 0: 5..6 reaches outside; indices are 0..5"
        );
        #[allow(clippy::reversed_empty_ranges)] // the mistake of the test
        let text = refused(matrix.region(&[3..1, 0..7]));
        assert_eq!(text, "region: dimension 0: 3..1 runs backwards; give 1..3");
        let text = refused(matrix.region([Axis::ALL, Axis::ALL.step_by(0)]));
        assert_eq!(text, "region: dimension 1: a step of 0; give 1 or more");

        let text = refused(matrix.part("(block, *) onto 2"));
        assert!(
            text.contains("has 2 elements; pick one, as in `(block, *) onto 2 [0]`"),
            "{text}"
        );
        let text = refused(matrix.part("(blok, *) onto 2 [0]"));
        assert!(text.contains("found 'blok'"), "{text}");
        let text = refused(matrix.part("(block) onto 2 [0]"));
        assert!(text.contains("1 for an array of 2 dimensions"), "{text}");
        let text = refused(matrix.part_of("(block, *) onto 2", 2));
        assert!(text.contains("elements are numbered 0 to 1"), "{text}");
        let text = refused(matrix.part("striped(6) over 2 [0]"));
        assert!(
            text.contains("cuts entries of i32[5,7]") && text.contains("4 bytes"),
            "{text}"
        );

        let part = matrix.part("(block, *) onto 2 [1]").unwrap();
        let wanted = "but the part has 14 entries (2 x 7); give as many";
        assert_eq!(
            refused(part.write(&[1; 13])),
            format!("values: 13, {wanted}")
        );
        assert_eq!(
            refused(part.read_into(&mut [1; 15])),
            format!("values: 15, {wanted}")
        );
        assert_eq!(part.read().unwrap()[0], 21, "nothing was written");

        let text = refused(pario.create_array::<u8>("/big", &[1 << 62, 4]).create());
        assert!(text.starts_with("shape: "), "{text}");
        let text = refused(
            pario
                .create_array::<u8>("/y", &[4])
                .layout("(blok)")
                .create(),
        );
        assert!(text.contains("found 'blok'"), "{text}");
    });
}

#[test]
fn an_array_that_is_there_is_opened_kept_or_replaced() {
    everywhere(|pario| {
        matrix(pario, "/m", "(block, *) onto 2");
        let create = || pario.create_array::<i32>("/m", &SHAPE);
        let same = create().layout("(*, block) onto 2").create().unwrap();
        assert_eq!(same.read().unwrap()[34], 34);
        assert_eq!(same.layout().unwrap().text, "(block, *) onto 2");
        let kept = create().new_only().create().unwrap_err();
        assert_eq!(kept.status(), Status::Exists);
        let text = refused(pario.create_array::<i32>("/m", &[7, 5]).create());
        assert_eq!(
            text,
            "shape: /m is there already and holds i32[5,7], not i32[7,5]; open it as it is, or create it with replace()"
        );
        let text = refused(pario.create_array::<f32>("/m", &SHAPE).create());
        assert!(text.contains("open it as an array of i32"), "{text}");

        let new = pario.create_array::<f32>("/m", &[2, 2]).replace();
        let new = new.layout("(*, block) onto 2").create().unwrap();
        assert_eq!(new.read().unwrap(), [0.0; 4]);
        // A handle of the old one keeps it.
        assert_eq!(same.read().unwrap()[34], 34);
        assert_eq!(pario.read_array::<f32>("/m").unwrap().shape(), [2, 2]);
        let none = pario.create_array::<f32>("/none", &[2]).replace().create();
        assert_eq!(none.unwrap().len(), 2);
    });
}

#[test]
fn reading_only_is_reading_only() {
    everywhere(|pario| {
        matrix(pario, "/m", "(block, *) onto 2");
        let array = pario.read_array::<i32>("/m").unwrap();
        let part = array.part("(*, block) onto 2 [1]").unwrap();
        assert_eq!(part.read().unwrap()[..3], [4, 5, 6]);
        assert!(part.write(&vec![0; part.len()]).is_err());
    });
}

#[test]
fn arrays_in_fortran_order_have_their_first_index_fastest() {
    everywhere(|pario| {
        let array = pario.create_array::<u16>("/f", &[2, 3]);
        let array = array.order(Order::Fortran).create().unwrap();
        array.write(&[1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(array.order(), Order::Fortran);
        assert_eq!(
            array.region(&[1..2, 0..3]).unwrap().read().unwrap(),
            [2, 4, 6]
        );
        assert_eq!(
            array.region(&[0..2, 1..3]).unwrap().read().unwrap(),
            [3, 4, 5, 6]
        );
    });
}

#[test]
fn arrays_without_entries_have_nothing_to_read() {
    everywhere(|pario| {
        let Ok(array) = pario.create_array::<f64>("/none", &[0, 4]).create() else {
            return; // the service may refuse them, and says so
        };
        assert!(array.is_empty());
        assert!(array.read().unwrap().is_empty());
        let part = array.part("(*, block) onto 2 [1]").unwrap();
        assert_eq!((part.shape(), part.len()), (&[0, 2][..], 0));
        part.write(&[]).unwrap();
    });
}

#[test]
fn parts_give_their_handles_to_later_ones() {
    everywhere(|pario| {
        let matrix = matrix(pario, "/m", "(block, *) onto 2");
        // Nothing can be opened by this name any more, so every part has the handle of the one before.
        pario.rename("/m", "/elsewhere").unwrap();
        for row in 0..5 {
            let row_values = matrix.region(&[row..row + 1, 0..7]).unwrap().read();
            assert_eq!(row_values.unwrap()[0], row as i32 * 7);
        }
        let one = matrix.whole().unwrap();
        let error = matrix.whole().unwrap_err();
        assert_eq!(error.status(), Status::NotFound);
        // Another file of the name is not taken for it.
        pario.create_array::<i32>("/m", &SHAPE).create().unwrap();
        let error = matrix.whole().unwrap_err();
        assert_eq!(
            error.to_string(),
            "/m is another file by now; open the array again"
        );
        pario.rename("/elsewhere", "/m").unwrap();
        let two = matrix.whole().unwrap();
        assert_eq!(one.read().unwrap(), two.read().unwrap());
    });
}

#[test]
fn what_is_synced_and_closed_is_there_for_the_next() {
    everywhere(|pario| {
        let array = matrix(pario, "/m", "(block, *) onto 2");
        let part = array.part("whole").unwrap();
        let other = array.region(&[0..1, 0..1]).unwrap();
        other.write(&[100]).unwrap();
        array.sync().unwrap();
        drop(other);
        array.sync().unwrap();
        array.close().unwrap();
        array.close().unwrap();
        assert_eq!(part.read().unwrap_err(), pario::Error::Closed);
        assert_eq!(array.whole().unwrap_err(), pario::Error::Closed);
        let again = pario.open_array::<i32>("/m").unwrap();
        assert_eq!(again.read().unwrap()[..2], [100, 1]);
    });
}

/// Only the handle that wrote bytes hears that they were lost, so all of them have to ask.
#[test]
fn a_sync_asks_for_every_handle_that_has_written() {
    everywhere(|pario| {
        let array = matrix(pario, "/m", "(block, *) onto 2");
        let sync = || {
            let before = pario.client().messages_sent().0;
            array.sync().unwrap();
            pario.client().messages_sent().0 - before
        };
        sync();
        let one = sync();
        assert!(one > 0, "what others have written is synced too");
        let parts: Vec<_> = (0..3)
            .map(|rank| array.part_of("(*, block) onto 3", rank).unwrap())
            .collect();
        for part in &parts {
            part.write(&vec![1; part.len()]).unwrap();
        }
        drop(parts);
        assert!(sync() >= 3 * one);
        assert!(sync() < 3 * one, "nothing is left to ask for");
    });
}

#[test]
fn arrays_move_into_other_layouts_while_they_are_open() {
    everywhere(|pario| {
        let matrix = matrix(pario, "/m", "(block, *) onto 2");
        let column = matrix.part("slice[:, 3]").unwrap();
        let want = [3, 10, 17, 24, 31];
        assert_eq!(column.read().unwrap(), want);
        let mut relayout = matrix.relayout("(*, block) onto 2").unwrap();
        assert!(relayout.progress().is_ok());
        assert_eq!(relayout.wait().unwrap().state, MoveState::Done);
        assert_eq!(column.read().unwrap(), want);
        assert_eq!(matrix.layout().unwrap().text, "(*, block) onto 2");
        assert!(matrix.relayout("(nonsense) onto 2").is_err());
        pario
            .relayout("/m", "striped(8) over 2")
            .unwrap()
            .wait()
            .unwrap();
        assert_eq!(column.read().unwrap(), want);
    });
}

#[test]
fn threads_share_an_array() {
    everywhere(|pario| {
        let array = pario.create_array::<u64>("/shared", &[64, 32]);
        let array = array.layout("(cyclic(3), *) onto 2").create().unwrap();
        std::thread::scope(|scope| {
            for rank in 0..4 {
                let array = &array;
                scope.spawn(move || {
                    for round in 0..8 {
                        let part = array.part_of("(block, *) onto 4", rank).unwrap();
                        let values = vec![round + 10 * rank as u64; part.len()];
                        part.write(&values).unwrap();
                        assert_eq!(part.read().unwrap(), values);
                    }
                });
            }
        });
        let column = array.region(&[0..64, 31..32]).unwrap().read().unwrap();
        let want: Vec<u64> = (0..64).map(|row| row / 16 * 10 + 7).collect();
        assert_eq!(column, want);
    });
}
