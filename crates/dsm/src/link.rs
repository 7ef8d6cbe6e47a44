//! What one process receives of another, in order and once: numbers on messages, for ways that reorder and repeat.
//!
//! The machines count on messages of one process arriving in the order of sending. A way that does not promise that numbers them.

use std::collections::BTreeMap;

/// The receiving end of one pair.
#[derive(Debug)]
pub struct Link<T> {
    next: u64,
    held: BTreeMap<u64, T>,
}

impl<T> Default for Link<T> {
    fn default() -> Link<T> {
        Link {
            next: 0,
            held: BTreeMap::new(),
        }
    }
}

impl<T> Link<T> {
    /// Takes a message with its number, counted from 0, and gives out all that are now in order.
    ///
    /// ```
    /// let mut link = dsm::Link::default();
    /// assert!(link.take(1, 'b').is_empty());
    /// assert_eq!(link.take(0, 'a'), ['a', 'b']);
    /// assert!(link.take(1, 'b').is_empty(), "a repeated message");
    /// ```
    pub fn take(&mut self, number: u64, message: T) -> Vec<T> {
        if number >= self.next {
            self.held.insert(number, message);
        }
        let mut due = Vec::new();
        while let Some(message) = self.held.remove(&self.next) {
            due.push(message);
            self.next += 1;
        }
        due
    }
}
