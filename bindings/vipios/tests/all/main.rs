//! The library from outside: what its header says, what it exports, and programs that use it.
//!
//! Archives and programs stand beside the tests; `scripts/test` builds them before.

mod header;
mod programs;

use system_tests::native::Interface;

/// The C interface of the same build, for programs that use both.
pub(crate) const PARIO: Interface = Interface {
    package: "pario_c",
    archive: "libpario_c.a",
    library: "pario",
    home: concat!(env!("CARGO_MANIFEST_DIR"), "/../c"),
    scratch: env!("CARGO_TARGET_TMPDIR"),
};

/// The interface of this build.
pub(crate) const VIPIOS: Interface = Interface {
    package: "vipios",
    archive: "libvipios.a",
    library: "vipios",
    home: env!("CARGO_MANIFEST_DIR"),
    scratch: env!("CARGO_TARGET_TMPDIR"),
};
