//! Calibrations: what was measured between hosts of clients and hosts of servers.
//!
//! Advice for everybody, so everybody may keep and read them; what is kept is bounded, and numbers that no
//! measurement gives are refused. The latest of two hosts counts: a client that finds an old one stale
//! cannot replace a new one by it.

use wire::message::Field;
use wire::message::calibration::Calibration;

use super::record::{decode, key};
use super::rows::Rows;
use super::{Batch, Snapshot};
use crate::error::MetaError;

/// Most pairs of hosts.
const MAX_PAIRS: usize = 4096;
/// Most parameters, and most fits, of one.
const MAX_PARAMETERS: usize = 256;
/// Longest name of a host, a parameter or a fit.
const MAX_NAME: usize = 256;

/// Whether a row can be read.
pub(super) fn read_row(key: &[u8], value: &[u8]) -> Result<(), MetaError> {
    decode(key, value, Calibration::read).map(drop)
}

fn refused(detail: String) -> MetaError {
    MetaError::Argument {
        name: "calibration",
        detail,
    }
}

fn check(calibration: &Calibration) -> Result<(), MetaError> {
    for host in [&calibration.from, &calibration.to] {
        if host.is_empty() || host.len() > MAX_NAME {
            return Err(refused(format!(
                "a host's name has 1 to {MAX_NAME} bytes, not {}",
                host.len()
            )));
        }
    }
    let (parameters, fits) = (&calibration.parameters, &calibration.fits);
    if parameters.len() > MAX_PARAMETERS || fits.len() > MAX_PARAMETERS {
        return Err(refused(format!("it has more than {MAX_PARAMETERS} parts")));
    }
    let names = parameters.iter().map(|p| &p.name);
    if names
        .chain(fits.iter().map(|f| &f.name))
        .any(|n| n.len() > MAX_NAME)
    {
        return Err(refused(format!("a name is longer than {MAX_NAME} bytes")));
    }
    let wrong = parameters.iter().find(|p| {
        let value = f64::from_bits(p.bits);
        !value.is_finite() || value < 0.0
    });
    match wrong {
        Some(p) => Err(refused(format!(
            "{} is {}; give a number that is finite and not negative",
            p.name,
            f64::from_bits(p.bits)
        ))),
        None => Ok(()),
    }
}

impl Batch<'_> {
    /// Keeps a calibration unless a later one of the same hosts is there.
    pub fn put_calibration(&mut self, calibration: &Calibration) -> Result<(), MetaError> {
        check(calibration)?;
        self.one(|b| {
            let key = key::calibration(&calibration.from, &calibration.to);
            let mut kept = calibration.clone();
            match b.rows.get(&key)? {
                Some(bytes) => {
                    let before = decode(&key, &bytes, Calibration::read)?;
                    if before.taken > calibration.taken || before == *calibration {
                        return Ok(());
                    }
                    if before.taken == calibration.taken {
                        kept = Calibration {
                            is_stale: before.is_stale || calibration.is_stale,
                            ..before
                        };
                    }
                }
                None => {
                    let count = b.rows.scan(&key::calibrations(), None, MAX_PAIRS)?.len();
                    if count == MAX_PAIRS {
                        return Err(MetaError::TooLarge("the number of calibrated hosts"));
                    }
                }
            }
            let mut out = Vec::new();
            kept.put(&mut out);
            b.rows.put(key, out);
            Ok(())
        })
    }
}

impl Snapshot {
    /// Calibrations of one client's host, or of all; up to `limit`.
    pub fn calibrations(
        &self,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Calibration>, MetaError> {
        let prefix = from.map_or_else(key::calibrations, key::calibrations_from);
        let rows = self.rows.scan(&prefix, None, limit)?;
        rows.iter()
            .map(|(key, bytes)| decode(key, bytes, Calibration::read))
            .collect()
    }
}
