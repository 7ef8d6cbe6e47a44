//! Parts as arrays of `ndarray`, in both orders and from memory of any strides.
//!
//! The oracle is the array in memory that was written.

use ndarray::{Array2, ArrayD, Axis, ShapeBuilder, s};
use pario::{Order, Status};

use crate::service::everywhere;

/// Entries that tell their place.
fn numbered(rows: usize, columns: usize) -> Array2<f32> {
    Array2::from_shape_fn((rows, columns), |(i, j)| (i * 100 + j) as f32)
}

#[test]
fn views_of_any_strides_are_written_and_read() {
    everywhere(|pario| {
        for order in [Order::C, Order::Fortran] {
            let file = pario.create_array::<f32>("/m", &[6, 8]).replace();
            let file = file.order(order).layout("(block, *) onto 2");
            let file = file.create().unwrap();
            let whole = file.whole().unwrap();
            let want = numbered(6, 8);
            let back = || whole.read_ndarray().unwrap();
            let clear = || whole.write_ndarray(&Array2::zeros((6, 8))).unwrap();

            whole.write_ndarray(&want).unwrap();
            assert_eq!(back(), want.clone().into_dyn());
            // The other order in memory.
            clear();
            let mut other = Array2::zeros((6, 8).f());
            other.assign(&want);
            whole.write_ndarray(&other).unwrap();
            assert_eq!(back(), want.clone().into_dyn());
            // Transposed, with gaps, and backwards.
            clear();
            whole.write_ndarray(&want.t().to_owned().t()).unwrap();
            assert_eq!(back(), want.clone().into_dyn());
            clear();
            let mut wide = Array2::zeros((12, 24));
            wide.slice_mut(s![..;2, ..;3]).assign(&want);
            whole.write_ndarray(&wide.slice(s![..;2, ..;3])).unwrap();
            assert_eq!(back(), want.clone().into_dyn());
            clear();
            let mut turned = want.clone();
            turned.invert_axis(Axis(0));
            let upside_down = turned.as_standard_layout().into_owned();
            whole
                .write_ndarray(&upside_down.slice(s![..;-1, ..]))
                .unwrap();
            assert_eq!(back(), want.clone().into_dyn());

            let mut into = Array2::zeros((6, 8));
            whole.read_into_ndarray(&mut into).unwrap();
            assert_eq!(into, want);
            let mut into = Array2::zeros((6, 8).f());
            whole.read_into_ndarray(&mut into).unwrap();
            assert_eq!(into, want);
            let mut into = Array2::from_elem((6, 16), -1.0);
            whole
                .read_into_ndarray(&mut into.slice_mut(s![.., ..;2]))
                .unwrap();
            assert_eq!(into.slice(s![.., ..;2]), want);
            assert!(into.slice(s![.., 1..;2]).iter().all(|v| *v == -1.0));

            // Parts have the shape of what they take.
            let part = file.part("(*, cyclic) onto 3 [1]").unwrap();
            let columns: ArrayD<f32> = part.read_ndarray().unwrap();
            assert_eq!(columns, want.slice(s![.., 1..;3]).into_dyn());
            let region = file.region(&[2..5, 7..8]).unwrap();
            assert_eq!(
                region.read_ndarray().unwrap(),
                want.slice(s![2..5, 7..8]).into_dyn()
            );
        }
    });
}

#[test]
fn a_wrong_shape_is_refused() {
    everywhere(|pario| {
        let array = pario.create_array::<f32>("/m", &[6, 8]).create().unwrap();
        let part = array.part("(*, block) onto 2 [0]").unwrap();
        for error in [
            part.write_ndarray(&numbered(4, 6)).unwrap_err(),
            part.read_into_ndarray(&mut numbered(4, 6)).unwrap_err(),
        ] {
            assert_eq!(error.status(), Status::InvalidArgument);
            let text = "values: an array of 4 x 6, but the part is one of 6 x 4; give that shape";
            assert_eq!(error.to_string(), text);
        }
        let flat = ndarray::Array1::<f32>::zeros(24);
        assert!(part.write_ndarray(&flat).is_err());
    });
}
