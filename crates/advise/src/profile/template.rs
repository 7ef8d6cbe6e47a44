//! Templates: the profile of one file with its shape, for another file that has the same, or almost.
//!
//! ```text
//!  same array, same processes      as it is
//!  same array, other processes     elements of the same distribution; else ranks stretched
//!  other array, known distribution elements of the same distribution of the other array
//!  other array, anything else      refused
//! ```
//!
//! Section 1.6 and 6.7 of the specification of source 003. Plain bytes of another size count as another array whose views
//! are stretched with the file.

use layout::ArrayType;

use super::record::{Entry, Profile};
use super::tally::Tally;
use super::travel::{ProfileError, put_text, take_text};
use crate::predict::travel::{put, take};

const MAGIC: &[u8] = b"pario template\n";
const VERSION: u64 = 1;
/// Longest text of an array.
const MOST_ARRAY_BYTES: usize = 4096;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The array of the file, as it was written; empty for plain bytes.
    pub array: String,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// What was observed.
    pub profile: Profile,
}

/// Why a template is of no use for a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The bytes are no template.
    #[error("{}", match .0 {
        ProfileError::Malformed => "the file is no template; `pario profile PATH --export FILE` writes one".into(),
        newer => newer.to_string(),
    })]
    Bytes(ProfileError),
    /// The file holds something else, and the views are elements of no known distribution.
    #[error(
        "the template was made with {then}, the file holds {now}, and the views of {application} are \
         elements of no distribution that could be carried over; use one of a file of the same shape"
    )]
    OtherShape {
        /// What the template was made with.
        then: String,
        /// What the file holds.
        now: String,
        /// The application whose views are not known.
        application: String,
    },
}

fn shape(array: &str, file_bytes: u64) -> String {
    match array {
        "" => format!("{file_bytes} plain bytes"),
        array => array.to_owned(),
    }
}

impl Template {
    /// As bytes.
    pub fn save(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put(&mut out, VERSION);
        put_text(&mut out, &self.array);
        put(&mut out, self.file_bytes);
        out.extend(self.profile.save());
        out
    }

    /// From bytes.
    pub fn load(bytes: &[u8]) -> Result<Template, TemplateError> {
        let malformed = || TemplateError::Bytes(ProfileError::Malformed);
        let mut r = bytes.strip_prefix(MAGIC).ok_or_else(malformed)?;
        let version = take(&mut r).ok_or_else(malformed)?;
        if version > VERSION {
            return Err(TemplateError::Bytes(ProfileError::Newer(version)));
        }
        let array = take_text(&mut r, MOST_ARRAY_BYTES).ok_or_else(malformed)?;
        let file_bytes = take(&mut r).ok_or_else(malformed)?;
        let profile = Profile::load(r).map_err(TemplateError::Bytes)?;
        Ok(Template {
            array,
            file_bytes,
            profile,
        })
    }

    /// The profile for a file that holds `array`, or `file_bytes` plain bytes, when applications have so many processes;
    /// 0 leaves their number.
    pub fn fit(
        &self,
        array: Option<&ArrayType>,
        file_bytes: u64,
        processes: u64,
    ) -> Result<Profile, TemplateError> {
        let mine: Option<ArrayType> = self.array.parse().ok();
        let before = mine
            .as_ref()
            .map_or(self.file_bytes, |a| self.file_bytes.max(a.bytes()));
        let number = |n: u64| if processes == 0 { n } else { processes };
        if mine.as_ref() == array && (array.is_some() || self.file_bytes == file_bytes) {
            return Ok(match processes {
                0 => self.profile.clone(),
                n => self.profile.for_processes(n, array, before),
            });
        }
        let mut fitted = Profile::default();
        for application in self.profile.applications() {
            let now = number(self.profile.processes(application));
            let origin = self.profile.origin(application, mine.as_ref(), before);
            if let Some(origin) = origin.and_then(|origin| origin.for_processes(now)) {
                self.profile
                    .derive(application, &origin, now, array, file_bytes, &mut fitted);
                continue;
            }
            // Plain bytes that were accessed by offsets are stretched with the file.
            let entries = self.profile.entries();
            let mut of = entries
                .iter()
                .filter(|(key, _)| key.application == application);
            let is_plain = |entry: &Entry| {
                let view = entry.view.bytes();
                view.is_everything() && view.displacement() == 0
            };
            if mine.is_some() || array.is_some() || !of.clone().all(|(_, e)| is_plain(e)) {
                return Err(TemplateError::OtherShape {
                    then: shape(&self.array, self.file_bytes),
                    now: shape(
                        &array.map(ToString::to_string).unwrap_or_default(),
                        file_bytes,
                    ),
                    application: application.to_owned(),
                });
            }
            let mut stretched = Profile::default();
            of.try_for_each(|(key, entry)| {
                let mut entry = (*entry).clone();
                for tally in [&mut entry.read, &mut entry.written] {
                    scale(tally, self.file_bytes, file_bytes);
                }
                stretched.add(application, key.rank, entry);
                Some(())
            });
            fitted.merge(&match processes {
                0 => stretched,
                n => stretched.for_processes(n, None, file_bytes),
            });
        }
        Ok(fitted)
    }
}

/// Moves a tally to the corresponding part of a file of another size.
fn scale(tally: &mut Tally, from: u64, to: u64) {
    if tally.is_empty() {
        return;
    }
    let at = |x: u64| (u128::from(x) * u128::from(to) / u128::from(from.max(1))) as u64;
    let ranges = tally.ranges();
    tally.hull = (at(tally.hull.0), at(tally.hull.1).max(at(tally.hull.0) + 1));
    tally.touched = super::tally::TouchedBlocks::default();
    for range in ranges {
        tally
            .touched
            .touch(at(range.start)..at(range.end).max(at(range.start) + 1));
    }
    tally.bytes = at(tally.bytes);
}

#[cfg(test)]
mod tests {
    use super::super::Recorder;
    use super::*;
    use layout::View;

    fn bands(bytes: u64, processes: u64) -> Template {
        let mut profile = Profile::default();
        for rank in 0..processes {
            let recorder = Recorder::default();
            recorder.record(false, rank * bytes / processes, bytes / processes);
            let mut entry = Entry::new(&View::whole_file(), "", bytes);
            [entry.read, entry.written] = recorder.take();
            profile.add("app", rank, entry);
        }
        Template {
            array: String::new(),
            file_bytes: bytes,
            profile,
        }
    }

    #[test]
    fn a_template_comes_back_and_fits_other_sizes_of_plain_bytes() {
        let template = bands(1 << 20, 4);
        assert_eq!(Template::load(&template.save()), Ok(template.clone()));
        assert!(Template::load(b"pario template\n\x02").is_err());
        assert_eq!(template.fit(None, 1 << 20, 0).unwrap(), template.profile);
        let fitted = template.fit(None, 4 << 20, 8).unwrap();
        let map = super::super::blocks::AccessMap::new(&fitted, 4 << 20);
        assert_eq!(map.processes.len(), 8);
        assert_eq!(map.sharing(1 << 19), (0, 8, 0));
    }

    #[test]
    fn another_array_needs_a_known_distribution() {
        let mut template = bands(64 * 64, 4);
        template.array = "u8[64,64]".into();
        let other: ArrayType = "u8[128,32]".parse().unwrap();
        // Bands of plain offsets are blocks of rows of the array.
        let fitted = template.fit(Some(&other), other.bytes(), 0).unwrap();
        assert_eq!(
            fitted
                .origin("app", Some(&other), other.bytes())
                .unwrap()
                .layout
                .to_string(),
            "(block, *) onto 4"
        );
        let mut odd = bands(4096, 3);
        odd.array = "u8[64,64]".into();
        let error = odd.fit(Some(&other), other.bytes(), 0).unwrap_err();
        assert!(error.to_string().contains("u8[64,64]") && error.to_string().contains("app"));
    }
}
