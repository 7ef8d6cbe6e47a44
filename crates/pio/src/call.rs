//! What processes ask each other, and how it travels: a number of its kind, then its fields as the memory's own messages have them.
//!
//! Bytes that are no question or answer are refused, and nothing is guessed.

use dsm::{Code, HomeRun, Reader};

/// Pages that follow each other: the first and how many.
pub(crate) type PageRun = (u32, u32);

/// Which memory is written where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Save {
    pub(crate) path: String,
    pub(crate) first: u32,
    pub(crate) bytes: u64,
    pub(crate) is_synced: bool,
}

/// What one process asks all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Open a file under a number.
    Open { pfd: u32, path: String, reads: bool },
    /// Close it.
    Close { pfd: u32 },
    /// Read your pages of the whole file, which lies in memory from a page on and is so long.
    Fill {
        pfd: u32,
        first: u32,
        bytes: u64,
        homes: Vec<HomeRun>,
    },
    /// Write your pages of the memory from a page on into a file.
    Save(Save),
    /// Tell who accessed pages.
    Accesses { first: u32, count: u32 },
    /// Tell which server is nearest.
    Nearest,
}

/// What a process says to that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It could not.
    Failed { errno: u32, text: String },
    /// The file, if it is about one, is open here; 1 more than the nearest server, 0 if none is.
    Open { size: u64, server: u64 },
    /// Done, with so many pages; and whether the program is writing some of them.
    Done { pages: u32, is_writing: bool },
    /// Pages that the program has read and written.
    Accesses {
        read: Vec<PageRun>,
        written: Vec<PageRun>,
    },
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    text.as_bytes().to_vec().put(out);
}

fn take_text(from: &mut Reader<'_>) -> Option<String> {
    String::from_utf8(Code::take(from)?).ok()
}

impl Question {
    pub(crate) fn save(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Question::Open { pfd, path, reads } => {
                0u8.put(&mut out);
                pfd.put(&mut out);
                put_text(path, &mut out);
                u8::from(*reads).put(&mut out);
            }
            Question::Close { pfd } => {
                1u8.put(&mut out);
                pfd.put(&mut out);
            }
            Question::Fill {
                pfd,
                first,
                bytes,
                homes,
            } => {
                2u8.put(&mut out);
                (*pfd, *first, *bytes).put(&mut out);
                homes.put(&mut out);
            }
            Question::Save(save) => {
                3u8.put(&mut out);
                put_text(&save.path, &mut out);
                (save.first, save.bytes, u8::from(save.is_synced)).put(&mut out);
            }
            Question::Accesses { first, count } => {
                4u8.put(&mut out);
                (*first, *count).put(&mut out);
            }
            Question::Nearest => 5u8.put(&mut out),
        }
        out
    }

    pub(crate) fn load(bytes: &[u8]) -> Option<Question> {
        let mut from = Reader::new(bytes);
        let question = match u8::take(&mut from)? {
            0 => Question::Open {
                pfd: Code::take(&mut from)?,
                path: take_text(&mut from)?,
                reads: u8::take(&mut from)? == 1,
            },
            1 => Question::Close {
                pfd: Code::take(&mut from)?,
            },
            2 => Question::Fill {
                pfd: Code::take(&mut from)?,
                first: Code::take(&mut from)?,
                bytes: Code::take(&mut from)?,
                homes: Code::take(&mut from)?,
            },
            3 => Question::Save(Save {
                path: take_text(&mut from)?,
                first: Code::take(&mut from)?,
                bytes: Code::take(&mut from)?,
                is_synced: u8::take(&mut from)? == 1,
            }),
            4 => Question::Accesses {
                first: Code::take(&mut from)?,
                count: Code::take(&mut from)?,
            },
            5 => Question::Nearest,
            _ => return None,
        };
        from.is_empty().then_some(question)
    }
}

impl Answer {
    pub(crate) fn save(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Answer::Failed { errno, text } => {
                0u8.put(&mut out);
                errno.put(&mut out);
                put_text(text, &mut out);
            }
            Answer::Open { size, server } => {
                1u8.put(&mut out);
                (*size, *server).put(&mut out);
            }
            Answer::Done { pages, is_writing } => {
                2u8.put(&mut out);
                (*pages, u8::from(*is_writing)).put(&mut out);
            }
            Answer::Accesses { read, written } => {
                3u8.put(&mut out);
                read.put(&mut out);
                written.put(&mut out);
            }
        }
        out
    }

    pub(crate) fn load(bytes: &[u8]) -> Option<Answer> {
        let mut from = Reader::new(bytes);
        let answer = match u8::take(&mut from)? {
            0 => Answer::Failed {
                errno: Code::take(&mut from)?,
                text: take_text(&mut from)?,
            },
            1 => Answer::Open {
                size: Code::take(&mut from)?,
                server: Code::take(&mut from)?,
            },
            2 => Answer::Done {
                pages: Code::take(&mut from)?,
                is_writing: u8::take(&mut from)? == 1,
            },
            3 => Answer::Accesses {
                read: Code::take(&mut from)?,
                written: Code::take(&mut from)?,
            },
            _ => return None,
        };
        from.is_empty().then_some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_come_back_and_torn_ones_are_refused() {
        let questions = [
            Question::Open {
                pfd: 3,
                path: "/a".into(),
                reads: true,
            },
            Question::Close { pfd: 3 },
            Question::Fill {
                pfd: 1,
                first: 2,
                bytes: 9000,
                homes: vec![(2, 0), (1, 7)],
            },
            Question::Save(Save {
                path: "/b".into(),
                first: 5,
                bytes: 1,
                is_synced: true,
            }),
            Question::Accesses { first: 0, count: 9 },
            Question::Nearest,
        ];
        for question in questions {
            let bytes = question.save();
            assert_eq!(Question::load(&bytes), Some(question));
            assert_eq!(Question::load(&bytes[..bytes.len() - 1]), None);
        }
        let answers = [
            Answer::Failed {
                errno: 2,
                text: "no".into(),
            },
            Answer::Open { size: 1, server: 2 },
            Answer::Done {
                pages: 4,
                is_writing: true,
            },
            Answer::Accesses {
                read: vec![(1, 2)],
                written: vec![],
            },
        ];
        for answer in answers {
            let bytes = answer.save();
            assert_eq!(Answer::load(&bytes), Some(answer));
            assert_eq!(Answer::load(&bytes[..bytes.len() - 1]), None);
        }
    }
}
