//! The oracle: one stream in memory for every VP, with the position and the end of C's stdio.
//!
//! It knows neither members nor modes.

/// The streams of all VPs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) streams: Vec<Vec<u8>>,
    pub(crate) positions: Vec<u64>,
    pub(crate) appends: Appends,
}

/// Whether writes go to the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Appends {
    #[default]
    No,
    Always,
}

impl Model {
    pub(crate) fn new(vps: usize) -> Model {
        Model {
            streams: vec![Vec::new(); vps],
            positions: vec![0; vps],
            appends: Appends::No,
        }
    }

    pub(crate) fn reopen(&mut self, appends: Appends) {
        self.positions.fill(0);
        self.appends = appends;
    }

    pub(crate) fn write(&mut self, vp: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let stream = &mut self.streams[vp];
        let at = match self.appends {
            Appends::Always => stream.len(),
            Appends::No => self.positions[vp] as usize,
        };
        if stream.len() < at + bytes.len() {
            stream.resize(at + bytes.len(), 0);
        }
        stream[at..at + bytes.len()].copy_from_slice(bytes);
        self.positions[vp] = (at + bytes.len()) as u64;
    }

    pub(crate) fn read(&mut self, vp: usize, bytes: usize) -> Vec<u8> {
        let stream = &self.streams[vp];
        let at = (self.positions[vp] as usize).min(stream.len());
        let end = (at + bytes).min(stream.len());
        self.positions[vp] += (end - at) as u64;
        stream[at..end].to_vec()
    }
}
