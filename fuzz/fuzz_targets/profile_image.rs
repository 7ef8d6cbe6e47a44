//! Arbitrary bytes as profiles and templates: no decoder panics, and a profile that is accepted is written and read again
//! as the same.
#![no_main]

use advise::profile::Profile;
use advise::profile::template::Template;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(profile) = Profile::load(data) {
        let saved = profile.save();
        assert_eq!(Profile::load(&saved).as_ref(), Ok(&profile));
    }
    let _ = Template::load(data);
});
