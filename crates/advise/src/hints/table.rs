//! The table of hints: every name that has a meaning, and which values make sense for it.
//!
//! A name that is missing here has no effect; it is kept, since programs pass hints of other systems
//! along.

use layout::{ArrayType, Layout};

use super::style::AccessStyle;
use super::values::{number, server_list, switch, upcoming};

/// What a hint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// How a file is laid out and stored.
    File,
    /// What will be accessed, and how far to run ahead of it.
    Prefetch,
    /// What the service is made of and how it works.
    Administration,
}

impl Kind {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Prefetch => "prefetch",
            Kind::Administration => "administration",
        }
    }
}

/// When a hint can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Before a run, at its start and in it; by anybody.
    Static,
    /// In a run, by a program that has the file open.
    Dynamic,
}

impl Life {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Life::Static => "static",
            Life::Dynamic => "dynamic",
        }
    }
}

/// Which values make sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A number of at least so much; a size as `64KiB` too.
    Number(u64),
    /// `on` or `off`.
    Switch,
    /// One of these words.
    Words(&'static [&'static str]),
    /// Words that `client` knows.
    OfClient,
    Styles,
    Servers,
    Array,
    Layout,
    /// A layout that picks one element, or one without elements.
    View,
    Ranges,
}

/// A hint that has a meaning.
#[derive(Clone, Copy, Debug)]
pub struct HintMeaning {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub kind: Kind,
    /// When it can be given.
    pub life: Life,
    form: Form,
    /// Whether it counts when a file is created, and not later.
    pub is_of_creation: bool,
    /// What it says, for people.
    pub what: &'static str,
}

const fn at_creation(name: &'static str, form: Form, what: &'static str) -> HintMeaning {
    HintMeaning {
        name,
        kind: Kind::File,
        life: Life::Static,
        form,
        is_of_creation: true,
        what,
    }
}

const fn of_handle(name: &'static str, kind: Kind, form: Form, what: &'static str) -> HintMeaning {
    HintMeaning {
        name,
        kind,
        life: Life::Static,
        form,
        is_of_creation: false,
        what,
    }
}

const fn dynamic(name: &'static str, kind: Kind, form: Form, what: &'static str) -> HintMeaning {
    HintMeaning {
        name,
        kind,
        life: Life::Dynamic,
        form,
        is_of_creation: false,
        what,
    }
}

use Form::{Array, Number, OfClient, Ranges, Servers, Styles, Switch, View, Words};
use Kind::{Administration, File, Prefetch};

/// All hints that have a meaning.
pub const TABLE: &[HintMeaning] = &[
    at_creation("array", Array, "what a new file holds"),
    at_creation("layout", Form::Layout, "how a new file is cut"),
    at_creation(
        "striping_unit",
        Number(1),
        "bytes of a stripe of a new file without layout",
    ),
    at_creation(
        "striping_factor",
        Number(1),
        "servers that a new file without layout is striped over",
    ),
    at_creation(
        "striping_start",
        Number(0),
        "which of them gets the first stripe",
    ),
    at_creation(
        "server_list",
        Servers,
        "the servers that may hold a new file, by number",
    ),
    at_creation(
        "file_alignment",
        Number(1),
        "stripes of a new file begin at multiples of this",
    ),
    at_creation("expected_size", Number(0), "bytes a new file will have"),
    at_creation(
        "expected_clients",
        Number(1),
        "processes that will use a new file",
    ),
    at_creation("expected_access", Number(1), "bytes of one access"),
    at_creation(
        "near_server",
        Number(0),
        "the server that a new file should be near to",
    ),
    of_handle(
        "auto_layout",
        File,
        Words(&["off", "suggest", "apply"]),
        "what is done about a layout that does not fit the accesses",
    ),
    of_handle(
        "access_style",
        Prefetch,
        Styles,
        "read_once, write_once, read_mostly, write_mostly, sequential, reverse_sequential, random",
    ),
    of_handle(
        "prefetch_depth",
        Prefetch,
        Number(0),
        "accesses that are read ahead; 0 for none",
    ),
    of_handle(
        "prefetch",
        Prefetch,
        Words(&["auto", "on", "off"]),
        "on: the handle also reads ahead into a buffer of its own; off: nobody reads ahead for it",
    ),
    of_handle(
        "prefetch_bytes",
        Prefetch,
        Number(0),
        "buffer for what is read ahead, of a handle, and of a server for collective reads",
    ),
    of_handle(
        "collective_prefetch",
        Prefetch,
        Words(&["none", "disk", "packets", "exchanged"]),
        "what servers do about the next collective read while nobody asks",
    ),
    dynamic(
        "upcoming",
        Prefetch,
        Ranges,
        "what will be accessed next: OFFSET:SIZE, ... in bytes of the view",
    ),
    dynamic(
        "upcoming_view",
        Prefetch,
        View,
        "the view that will be set next",
    ),
    of_handle(
        "write_behind",
        Administration,
        Switch,
        "whether short writes that go by message are collected until sync, close or a read",
    ),
    of_handle(
        "write_behind_bytes",
        Administration,
        Number(0),
        "bytes that a handle collects, 4 MiB",
    ),
    of_handle(
        "write_through",
        File,
        Switch,
        "on: a write returns when its bytes are in the data files of servers with disks, as with --writes through",
    ),
    of_handle(
        "message_bytes",
        Administration,
        Number(4096),
        "longest payload of one message",
    ),
    of_handle(
        "rendezvous_bytes",
        Administration,
        Number(0),
        "writes with a longer payload are announced first",
    ),
    of_handle(
        "direct",
        Administration,
        Switch,
        "whether bytes at servers of this host are copied directly",
    ),
    of_handle(
        "profile",
        Administration,
        Switch,
        "whether the use of the file is recorded for its profile",
    ),
    of_handle(
        "strategy",
        Administration,
        OfClient,
        "how accesses through views with gaps, and collective ones, are done",
    ),
    of_handle(
        "collective_barrier",
        Administration,
        Switch,
        "whether ranks wait for each other in every collective access",
    ),
    of_handle(
        "ddio_block_size",
        Administration,
        Number(512),
        "bytes of a block of collective accesses that servers direct, 64 KiB",
    ),
    of_handle(
        "ddio_blocks",
        Administration,
        Number(1),
        "blocks from which a packet of such an access is built; by what messages and bytes cost if not given",
    ),
    of_handle(
        "cb_buffer_size",
        Administration,
        Number(1),
        "longest domain of a rank in one round of two phases",
    ),
    of_handle(
        "ind_rd_buffer_size",
        Administration,
        Number(1),
        "longest window of a sieved read",
    ),
    of_handle(
        "ind_wr_buffer_size",
        Administration,
        Number(1),
        "longest window of a sieved write",
    ),
    of_handle(
        "shared_pointer_group",
        Administration,
        Number(0),
        "number of the shared pointer",
    ),
    dynamic(
        "disk_failed",
        Administration,
        Servers,
        "servers whose disk has failed: they take no new subfiles",
    ),
];

/// Names that others have for hints of the table.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("io_node_list", "server_list"),
    ("servers", "server_list"),
    ("alignment", "file_alignment"),
    ("start_iodevice", "striping_start"),
];

/// The name that the table has for a hint; names that are not in it stay.
pub fn canonical(name: &str) -> &str {
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == name);
    other.map_or(name, |(_, name)| name)
}

/// What the table says about a name.
pub fn known(name: &str) -> Option<&'static HintMeaning> {
    let name = canonical(name);
    TABLE.iter().find(|known| known.name == name)
}

/// Whether a value makes sense; names that are not known take any.
///
/// ```
/// use advise::hints::check;
/// assert!(check("striping_unit", "64KiB").is_ok());
/// assert!(check("cb_nodes", "anything").is_ok());
/// let why = check("auto_layout", "maybe").unwrap_err();
/// assert_eq!(why, "auto_layout is 'maybe'; give off, suggest or apply");
/// ```
pub fn check(name: &str, value: &str) -> Result<(), String> {
    let Some(known) = known(name) else {
        return Ok(());
    };
    let wrong = |what: String| Err(format!("{name} is '{value}'; {what}"));
    match known.form {
        Form::OfClient => Ok(()),
        Number(least) => match number(value) {
            Some(n) if n >= least => Ok(()),
            _ => wrong(format!("give a number from {least} on")),
        },
        Switch => match switch(value) {
            Some(_) => Ok(()),
            None => wrong("give on or off".into()),
        },
        Words(words) => match words.contains(&value.trim()) {
            true => Ok(()),
            false => {
                let (last, first) = words.split_last().unwrap_or((&"", &[]));
                wrong(format!("give {} or {last}", first.join(", ")))
            }
        },
        Styles => AccessStyle::parse(value).map(drop),
        Servers => server_list(value)
            .map(drop)
            .or_else(|why| wrong(format!("{why}; give numbers as 0,2,3"))),
        Ranges => upcoming(value).map(drop).or_else(wrong),
        Array => (value.parse::<ArrayType>())
            .map(drop)
            .map_err(|e| format!("{name} is '{value}': {e}")),
        Form::Layout => (completed(value)).map_err(|e| format!("{name} is '{value}': {e}")),
        View => (value.parse::<Layout>())
            .map(drop)
            .map_err(|e| format!("{name} is '{value}': {e}")),
    }
}

/// A layout of a file may leave out over how many servers it is dealt.
fn completed(text: &str) -> Result<(), layout::LayoutParseError> {
    match text.parse::<Layout>() {
        Ok(_) => Ok(()),
        Err(error) => match format!("{} over 1", text.trim()).parse::<Layout>() {
            Ok(_) => Ok(()),
            Err(_) => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_table_once() {
        for (i, known) in TABLE.iter().enumerate() {
            assert!(!TABLE[..i].iter().any(|k| k.name == known.name));
            assert!(!known.what.is_empty() && canonical(known.name) == known.name);
        }
        for (other, name) in OTHER_NAMES {
            assert!(TABLE.iter().any(|k| k.name == *name), "{other}");
            assert_eq!(known(other).map(|k| k.name), Some(*name));
        }
    }

    #[test]
    fn values_are_checked_by_their_form() {
        for (name, good, bad) in [
            ("message_bytes", "4KiB", "4095"),
            ("direct", "off", "sideways"),
            ("profile", "off", "sideways"),
            ("access_style", "read_once, random", "sometimes"),
            ("server_list", "0, 2", "two"),
            ("server_list", "[1,0]", ""),
            ("upcoming", "0:4096", "0:"),
            ("array", "f64[4,4]", "f65[4]"),
            ("layout", "striped(64KiB)", "stripd(1)"),
            ("upcoming_view", "(block) onto 4 [1]", "(blok)"),
            ("auto_layout", "suggest", "yes"),
        ] {
            assert_eq!(check(name, good), Ok(()), "{name}");
            let why = check(name, bad).unwrap_err();
            assert!(why.contains(name), "{why}");
        }
        assert_eq!(check("romio_whatever", "\0"), Ok(()));
    }
}
