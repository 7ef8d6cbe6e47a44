//! Calibrations between clients of a service: one keeps, others use, and a model that no longer predicts is
//! called stale by whoever notices.

use client::{Calibration, Parameter, Time};

use crate::service::{Service, create, pattern};

fn calibration(host: &str, taken: i64, byte_s: f64) -> Calibration {
    Calibration {
        from: host.into(),
        to: host.into(),
        taken: Time(taken),
        is_stale: false,
        parameters: vec![Parameter {
            name: "near.byte_s".into(),
            bits: byte_s.to_bits(),
        }],
        fits: Vec::new(),
    }
}

#[test]
fn what_one_client_keeps_others_use() {
    let service = Service::start(1);
    let (first, second) = (service.connect(), service.connect());
    let before = first.messages_sent().0;
    assert_eq!(first.machine(), advise::cost::Machine::HOST);
    assert_ne!(first.messages_sent().0, before, "asked once");
    let before = first.messages_sent().0;
    first.machine();
    assert_eq!(first.messages_sent().0, before, "and not again");
    let host = first.host_name();
    first
        .keep_calibration(&calibration(&host, 5, 7e-10))
        .unwrap();
    assert_eq!(first.machine().near.byte_s, 7e-10);
    assert_eq!(second.machine().near.byte_s, 7e-10);
    assert_eq!(second.calibrations(Some("elsewhere")).unwrap(), []);
    assert_eq!(second.calibrations(None).unwrap().len(), 1);
    let nonsense = calibration(&host, 9, f64::NAN);
    assert!(first.keep_calibration(&nonsense).is_err());
    assert_eq!(first.machine().near.byte_s, 7e-10);
}

#[test]
fn a_model_that_is_far_off_is_called_stale_when_the_file_is_closed() {
    let service = Service::start(2);
    let client = service.connect_how(false);
    let host = client.host_name();
    // A millisecond a byte: no machine is as slow.
    client
        .keep_calibration(&calibration(&host, 5, 1e-3))
        .unwrap();
    let file = create(&client, "/f", "", "striped(65536) over 2");
    file.write_at(0, &pattern(128 << 10, 1)).unwrap();
    let mut bytes = vec![0; 128 << 10];
    for _ in 0..80 {
        file.read_at(0, &mut bytes).unwrap();
    }
    let drift = client.drift();
    assert!(drift.accesses >= 80 && drift.is_stale, "{drift:?}");
    assert!(
        !client.calibrations(None).unwrap()[0].is_stale,
        "not yet told"
    );
    file.close().unwrap();
    let kept = client.calibrations(None).unwrap();
    assert!(kept[0].is_stale);
    // A new one is good again, for this session too.
    client
        .keep_calibration(&calibration(&host, 6, 4e-10))
        .unwrap();
    assert!(!client.calibrations(None).unwrap()[0].is_stale);
    assert_eq!(client.drift().accesses, 0);
}
