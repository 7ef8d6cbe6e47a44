//! What I/O servers keep with a subfile, so that a directory could be rebuilt from the stores alone.
//!
//! ```text
//! 2 | path | array, if the file holds one | layout | generation and text of the layout that it is moved to, 0 and nothing if it does not move
//! ```
//!
//! In the encoding of `wire`; version 1 ends with the layout. A note fits into what a store takes; of a path that is too long the end
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
    /// The layout that it is moved to, and the generation of the subfiles that have it; absent if it does not move.
    pub next: Option<(u64, String)>,
}

impl Note {
    /// The layout that a subfile of a generation belongs to.
    pub fn layout_of(&self, generation: u64) -> Option<&str> {
        match &self.next {
            Some((next, text)) if *next == generation => Some(text),
            _ => self.layout.as_deref(),
        }
    }

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
            (note.layout, note.next) = (None, None);
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
        put_number(&mut out, 2);
        self.path.put(&mut out);
        self.array.put(&mut out);
        self.layout.put(&mut out);
        let (generation, text) = self.next.clone().unwrap_or_default();
        put_number(&mut out, generation);
        text.put(&mut out);
        out
    }

    /// Reads a note.
    pub fn decode(bytes: &[u8]) -> Result<Note, DecodeError> {
        let mut r = Reader::new(bytes);
        let version = r.number()?;
        if !(1..=2).contains(&version) {
            return Err(DecodeError::BadTag(version));
        }
        let note = Note {
            path: Field::read(&mut r)?,
            array: Field::read(&mut r)?,
            layout: Field::read(&mut r)?,
            next: match version {
                1 => None,
                _ => {
                    let generation = r.number()?;
                    Some((generation, Field::read(&mut r)?)).filter(|(g, _)| *g > 0)
                }
            },
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
            next: None,
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
        assert_eq!(Note::decode(&[3]), Err(DecodeError::BadTag(3)));
        assert!(Note::decode(&[]).is_err());
    }

    #[test]
    fn a_subfile_of_a_move_belongs_to_the_layout_of_its_generation() {
        let moving = Note {
            path: "/a".into(),
            array: None,
            layout: Some("old".into()),
            next: Some((3, "new".into())),
        };
        let read = Note::decode(&moving.encode()).unwrap();
        assert_eq!(read, moving);
        assert_eq!(read.layout_of(3), Some("new"));
        assert_eq!(read.layout_of(2), Some("old"));
        // As version 1 wrote it.
        let mut old = vec![1];
        moving.path.put(&mut old);
        moving.array.put(&mut old);
        moving.layout.put(&mut old);
        let read = Note::decode(&old).unwrap();
        assert_eq!((read.layout_of(3), &read.next), (Some("old"), &None));
    }
}
