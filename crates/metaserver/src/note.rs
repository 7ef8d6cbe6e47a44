//! What I/O servers keep with a subfile, so that a directory could be rebuilt from the stores alone.
//!
//! ```text
//! 1 | path | array, if the file holds one | layout
//! ```
//!
//! In the encoding of `wire`. A note fits into what a store takes; of a path that is too long the end
//! is kept, and a layout whose text leaves no room for a path is left out.

use wire::message::Field;
use wire::{DecodeError, Reader, put_number};

/// Longest note, which is the most that a store keeps with a subfile.
pub const NOTE_BYTES: usize = 2048;

/// A path is kept at least this far, so that the name of the file is there.
const LEAST_PATH: usize = 512;

/// What a note says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The path, or its end; empty if the file had lost its name.
    pub path: String,
    /// The array that the file holds.
    pub array: Option<String>,
    /// Its layout, as it was written.
    pub layout: Option<String>,
}

impl Note {
    /// At most [`NOTE_BYTES`].
    pub fn encode(&self) -> Vec<u8> {
        let mut note = self.clone();
        let room = |note: &Note| {
            let rest = Note {
                path: String::new(),
                ..note.clone()
            };
            // The length of a path takes up to two bytes more than that of the empty one.
            NOTE_BYTES.saturating_sub(rest.put().len() + 2)
        };
        let wanted = LEAST_PATH.min(self.path.len());
        if room(&note) < wanted {
            note.layout = None;
        }
        if room(&note) < wanted {
            note.array = None;
        }
        let mut cut = note.path.len().saturating_sub(room(&note));
        while !note.path.is_char_boundary(cut) {
            cut += 1;
        }
        note.path.drain(..cut);
        note.put()
    }

    fn put(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, 1);
        self.path.put(&mut out);
        self.array.put(&mut out);
        self.layout.put(&mut out);
        out
    }

    /// Reads a note.
    pub fn decode(bytes: &[u8]) -> Result<Note, DecodeError> {
        let mut r = Reader::new(bytes);
        match r.number()? {
            1 => {}
            other => return Err(DecodeError::BadTag(other)),
        }
        let note = Note {
            path: Field::read(&mut r)?,
            array: Field::read(&mut r)?,
            layout: Field::read(&mut r)?,
        };
        r.finish()?;
        Ok(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_fit_and_keep_the_end_of_the_path() {
        let note = |path: String, layout: usize| Note {
            path,
            array: Some("f64[8,8]".into()),
            layout: Some("l".repeat(layout)),
        };
        let short = note("/a/b".into(), 30);
        assert_eq!(Note::decode(&short.encode()), Ok(short));
        for layout in [30, 1400, 1500, 1600, 5000] {
            let long = note(format!("/{}/name", "ü".repeat(1990)), layout);
            let bytes = long.encode();
            assert!(bytes.len() <= NOTE_BYTES, "{}", bytes.len());
            assert!(bytes.len() > LEAST_PATH, "{}", bytes.len());
            let read = Note::decode(&bytes).unwrap();
            assert!(read.path.ends_with("/name"));
            assert!(long.path.ends_with(&read.path));
            assert_eq!(read.layout.is_some(), layout <= 1500, "{layout}");
            assert_eq!(read.array, long.array);
        }
        assert_eq!(Note::decode(&[2]), Err(DecodeError::BadTag(2)));
        assert!(Note::decode(&[]).is_err());
    }
}
