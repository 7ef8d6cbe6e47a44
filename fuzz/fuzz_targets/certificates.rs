//! Any bytes as a certificate: read or refused, never a panic, and what is read of a holder is written the same.
//!
//! What a peer shows is read after its signatures were checked, but files of users are read before.
#![no_main]

use identity::{Certificate, Holder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(found) = Certificate::parse(bytes) {
        // Shown as it is, and counted.
        let _ = (found.not_before.to_string(), found.not_after.seconds());
        if let Some(holder) = found.holder {
            assert_eq!(Holder::of_uri(&holder.to_uri()), Some(Ok(holder)));
        }
    }
    if let Ok(text) = str::from_utf8(bytes)
        && let Some(Ok(holder)) = Holder::of_uri(text)
    {
        assert_eq!(Holder::of_uri(&holder.to_uri()), Some(Ok(holder)));
    }
});
