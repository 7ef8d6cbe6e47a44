//! What was measured of a client's host and the hosts of servers, kept with the service.
//!
//! Parameters have names, so that a model can have more of them without another protocol; who does not
//! know one leaves it alone. Numbers travel as the bits of an IEEE double.

use crate::Time;

record! {
    /// A number of the cost model.
    pub struct Parameter {
        /// As in `near.byte_s`.
        pub name: String,
        /// The bits of the value.
        pub bits: u64,
    }

    /// How well a part of the model agrees with what it was made of.
    pub struct FitIs {
        /// Which part, as in `pack`.
        pub name: String,
        /// R squared, bits.
        pub r_squared_bits: u64,
        /// Largest relative error, bits.
        pub max_error_bits: u64,
        /// The relative error that nine of ten stay within, bits.
        pub error_90_bits: u64,
        /// Measurements it was made of.
        pub count: u64,
    }

    /// What was measured between two hosts.
    pub struct Calibration {
        /// The client's host.
        pub from: String,
        /// The server's host.
        pub to: String,
        /// When.
        pub taken: Time,
        /// Whether it no longer predicts.
        pub is_stale: bool,
        /// What came out.
        pub parameters: Vec<Parameter>,
        /// How well it fits.
        pub fits: Vec<FitIs>,
    }

    /// Keeps a calibration, instead of an earlier one of the same hosts. One that is older than what is kept
    /// changes nothing; one taken at the same moment changes only whether it is stale.
    pub struct PutCalibration {
        /// What to keep.
        pub calibration: Calibration,
    }

    /// Asks for calibrations.
    pub struct GetCalibrations {
        /// Of which client's host; nothing for all.
        pub from: Option<String>,
    }
}
