//! Calibrations that clients keep with the service, for all clients of the same host.
//!
//! The manager looks at none of the numbers: they are advice from clients to clients. Rules and limits are
//! the catalogue's.

use wire::message::calibration::{Calibration, GetCalibrations, PutCalibration};

use crate::committer::Refused;
use crate::manager::{Manager, Session};
use crate::requests::keep_what_fits;

/// Most pairs of hosts in one answer.
const MAX_PAIRS: usize = 4096;

impl Manager {
    pub(crate) fn put_calibration(
        &self,
        session: &mut Session,
        r: PutCalibration,
    ) -> Result<(), Refused> {
        self.change_once(session, move |b, _| b.put_calibration(&r.calibration))
    }

    pub(crate) fn get_calibrations(
        &self,
        session: &mut Session,
        r: GetCalibrations,
    ) -> Result<Vec<Calibration>, Refused> {
        let snapshot = self.read(session)?;
        let mut list = snapshot.calibrations(r.from.as_deref(), MAX_PAIRS)?;
        keep_what_fits(&mut list);
        Ok(list)
    }
}
