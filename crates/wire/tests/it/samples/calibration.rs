//! Samples of calibrations: none, one with all its parts, names that leave ASCII.
//!
//! Numbers are bits of doubles, so extreme ones are as long as they get.

use wire::Time;
use wire::message::calibration::*;

use super::Samples;

pub(super) fn add(list: &mut Samples) {
    let calibration = Calibration {
        from: "knoten-7".into(),
        to: "Größe".into(),
        taken: Time(1 << 60),
        is_stale: true,
        parameters: [("pack.a", 2e-9), ("near.byte_s", 0.0)]
            .map(|(name, value): (&str, f64)| Parameter {
                name: name.into(),
                bits: value.to_bits(),
            })
            .into(),
        fits: vec![FitIs {
            name: "pack".into(),
            r_squared_bits: (-0.5f64).to_bits(),
            max_error_bits: f64::MAX.to_bits(),
            error_90_bits: 0,
            count: 27,
        }],
    };
    let nothing = Calibration {
        parameters: Vec::new(),
        fits: Vec::new(),
        is_stale: false,
        ..calibration.clone()
    };
    let put = |calibration| PutCalibration { calibration };
    list.pair("", put(calibration.clone()), ());
    list.pair("empty", put(nothing), ());
    list.pair("", GetCalibrations { from: None }, vec![calibration]);
    let from = Some("knoten-7".to_owned());
    list.pair("host", GetCalibrations { from }, Vec::new());
}
