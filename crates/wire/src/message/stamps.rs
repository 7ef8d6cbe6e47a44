//! Answers that a client may give again to itself, for as long as their stamps stand.
//!
//! ```text
//! AttachStamps  ------>  StampsAre + a descriptor: all stamps of the manager, for reading
//! AwaitRecalls  ------>  .. RecallsAre                            where no memory can be shared: what has changed
//! Stat, List    ------>  the answer, and the stamps of all that it depends on
//! ```
//!
//! [`AttachStamps`] only over a Unix socket, which carries the descriptor. What stamps mean is in `control::stamps`, and their
//! memory in `direct`.

record! {
    /// Asks for the stamps of the manager.
    pub struct AttachStamps {}

    /// A descriptor comes with it.
    pub struct StampsAre {
        /// Bytes of the stamps.
        pub bytes: u64,
    }

    /// Asks what has changed of what the client was told; lies at the manager until something has, or for a short while.
    pub struct AwaitRecalls {
        /// The number of the last answer that the client has had; 0 for none.
        pub heard: u64,
    }

    /// What has changed.
    pub struct RecallsAre {
        /// The start of the manager.
        pub start: u64,
        /// Says in the next question that this was heard.
        pub number: u64,
        /// The client has to forget everything that it was told before.
        pub is_first: bool,
        /// Slots that have changed, and what stands in them.
        pub changed: Vec<Stamp>,
        /// How long the client may believe what it was told, from sending the question on, in milliseconds.
        pub valid_ms: u64,
    }

    /// What stood in a slot.
    pub struct Stamp {
        /// The slot.
        pub slot: u32,
        /// What stood there when the answer was made, and before anything of it was read.
        pub stamp: u64,
    }

    /// An answer is so for as long as all these stand.
    pub struct StampList {
        /// The start of the manager whose stamps they are.
        pub start: u64,
        /// All that the answer depends on.
        pub stamps: Vec<Stamp>,
    }
}
