//! Calibrations in the catalogue: the latest of two hosts counts, what is kept outlives a restart, and
//! nonsense is refused.

use meta::MetaError;
use wire::message::calibration::{Calibration, FitIs, Parameter};
use wire::{Status, Time};

use crate::fixture::{Fixture, refused};

fn calibration(from: &str, to: &str, taken: i64, value: f64) -> Calibration {
    Calibration {
        from: from.into(),
        to: to.into(),
        taken: Time(taken),
        is_stale: false,
        parameters: vec![Parameter {
            name: "near.byte_s".into(),
            bits: value.to_bits(),
        }],
        fits: Vec::new(),
    }
}

fn put(fixture: &mut Fixture, calibration: &Calibration) -> Result<(), MetaError> {
    let done = fixture
        .catalogue
        .transact(|b| b.put_calibration(calibration));
    done.unwrap()
}

fn kept(fixture: &Fixture, from: Option<&str>) -> Vec<Calibration> {
    let snapshot = fixture.catalogue.snapshot().unwrap();
    snapshot.calibrations(from, 100).unwrap()
}

#[test]
fn the_latest_calibration_of_two_hosts_is_kept_over_a_restart() {
    let mut fixture = Fixture::new(1);
    let first = calibration("a", "b", 10, 1e-9);
    put(&mut fixture, &first).unwrap();
    put(&mut fixture, &calibration("a", "b", 9, 5e-9)).unwrap();
    assert_eq!(
        kept(&fixture, Some("a")),
        std::slice::from_ref(&first),
        "older is ignored"
    );
    // Names are not cut at the wrong place: "a" with "bc" is not "ab" with "c".
    put(&mut fixture, &calibration("ab", "c", 1, 2e-9)).unwrap();
    put(&mut fixture, &calibration("a", "bc", 1, 3e-9)).unwrap();
    assert_eq!(kept(&fixture, Some("a")).len(), 2);
    assert_eq!(kept(&fixture, Some("ab")).len(), 1);
    assert_eq!(kept(&fixture, None).len(), 3);
    let fixture = fixture.restart();
    assert_eq!(kept(&fixture, None).len(), 3);
    fixture.clean();
}

#[test]
fn stale_is_said_about_what_is_kept_and_ends_with_a_new_one() {
    let mut fixture = Fixture::new(1);
    let first = calibration("a", "b", 10, 1e-9);
    put(&mut fixture, &first).unwrap();
    let stale = Calibration {
        is_stale: true,
        parameters: Vec::new(),
        ..first.clone()
    };
    put(&mut fixture, &stale).unwrap();
    let now = kept(&fixture, None);
    assert!(now[0].is_stale);
    assert_eq!(now[0].parameters, first.parameters, "only the mark changed");
    let second = calibration("a", "b", 20, 2e-9);
    put(&mut fixture, &second).unwrap();
    // A client that had the first one finds it stale only now.
    put(&mut fixture, &stale).unwrap();
    assert_eq!(kept(&fixture, None), [second]);
}

#[test]
fn numbers_that_nobody_measured_are_refused() {
    let mut fixture = Fixture::new(1);
    for value in [f64::NAN, f64::INFINITY, -1.0] {
        let refused = put(&mut fixture, &calibration("a", "b", 1, value)).unwrap_err();
        assert_eq!(refused.status(), Status::InvalidArgument);
        assert!(refused.to_string().contains("near.byte_s"), "{refused}");
    }
    for (from, to) in [("", "b"), ("a", ""), (&"x".repeat(300)[..], "b")] {
        assert!(put(&mut fixture, &calibration(from, to, 1, 1.0)).is_err());
    }
    let mut many = calibration("a", "b", 1, 1.0);
    many.parameters = vec![many.parameters[0].clone(); 300];
    assert!(put(&mut fixture, &many).is_err());
    assert_eq!(kept(&fixture, None), []);
}

#[test]
fn names_and_lists_of_a_calibration_are_taken_up_to_their_bounds() {
    let mut fixture = Fixture::new(1);
    let sized = |host: usize, name: usize, parameters: usize, fits: usize| {
        let mut sized = calibration(&"h".repeat(host), &"h".repeat(host), 1, 1.0);
        sized.parameters[0].name = "n".repeat(name);
        sized.parameters = vec![sized.parameters[0].clone(); parameters];
        let fit = FitIs {
            name: "n".repeat(name),
            r_squared_bits: 0,
            max_error_bits: 0,
            error_90_bits: 0,
            count: 0,
        };
        sized.fits = vec![fit; fits];
        sized
    };
    put(&mut fixture, &sized(256, 256, 256, 256)).unwrap();
    for above in [
        sized(257, 1, 1, 1),
        sized(1, 257, 1, 0),
        sized(1, 257, 0, 1),
        sized(1, 1, 257, 1),
        sized(1, 1, 1, 257),
    ] {
        refused(put(&mut fixture, &above), Status::InvalidArgument);
    }
}
