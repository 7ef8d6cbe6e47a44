//! Rows under byte keys: the only module that knows which store is underneath.
//!
//! One ordered table of bytes to bytes. Reading goes through [`Rows`], from a snapshot or from
//! inside a transaction; writing collects the rows of one operation in memory, where they are
//! visible to that operation, and hands them on only when the operation has
//! succeeded. So an operation that fails half-way leaves nothing, whatever order it works in, while
//! its neighbours in the same transaction are untouched. The operations of one request are gathered once more
//! before they reach the transaction: a request that panics takes them all with it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use redb::{
    Database, ReadOnlyTable, ReadableDatabase, ReadableTable, Table, TableDefinition,
    WriteTransaction,
};

use super::stamped::touch;
use crate::error::MetaError;

const ROWS: TableDefinition<'static, &'static [u8], &'static [u8]> =
    TableDefinition::new("catalogue");

/// A key with its value.
pub(crate) type Row = (Vec<u8>, Vec<u8>);

/// What is done with each row.
pub(crate) type Visit<'v> = &'v mut dyn FnMut(&[u8], &[u8]) -> Result<(), MetaError>;

/// Rows taken at once when all rows of a kind are visited.
pub(crate) const PAGE: usize = 1024;

/// Something rows can be read from.
pub(crate) trait Rows {
    /// The value under a key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, MetaError>;

    /// Up to `limit` rows whose keys begin with `prefix` and follow `after`, ascending.
    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Row>, MetaError>;

    /// All rows whose keys begin with `prefix`, ascending, taken page by page.
    fn for_each(&self, prefix: &[u8], visit: Visit<'_>) -> Result<(), MetaError> {
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = self.scan(prefix, after.as_deref(), PAGE)?;
            for (key, value) in &page {
                visit(key, value)?;
            }
            let full = page.len() == PAGE;
            match page.into_iter().next_back() {
                Some((key, _)) if full => after = Some(key),
                _ => return Ok(()),
            }
        }
    }
}

fn scan_table<'k>(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    prefix: &'k [u8],
    after: Option<&'k [u8]>,
    limit: usize,
) -> Result<Vec<Row>, MetaError> {
    let start = match after {
        Some(key) if key >= prefix => Bound::Excluded(key),
        _ => Bound::Included(prefix),
    };
    let mut rows = Vec::new();
    for row in table.range::<&[u8]>((start, Bound::Unbounded))? {
        let (key, value) = row?;
        if rows.len() == limit || !key.value().starts_with(prefix) {
            break;
        }
        rows.push((key.value().to_vec(), value.value().to_vec()));
    }
    Ok(rows)
}

/// A consistent state of all rows, unaffected by later changes.
#[derive(Debug)]
pub(crate) struct RowsSnapshot(ReadOnlyTable<&'static [u8], &'static [u8]>);

impl RowsSnapshot {
    pub(crate) fn begin(db: &Database) -> Result<Self, MetaError> {
        Ok(RowsSnapshot(db.begin_read()?.open_table(ROWS)?))
    }
}

impl Rows for RowsSnapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, MetaError> {
        Ok(self.0.get(key)?.map(|v| v.value().to_vec()))
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Row>, MetaError> {
        scan_table(&self.0, prefix, after, limit)
    }
}

/// A transaction; dropped, it leaves nothing.
pub(crate) struct Transaction(WriteTransaction);

impl Transaction {
    pub(crate) fn begin(db: &Database) -> Result<Self, MetaError> {
        Ok(Transaction(db.begin_write()?))
    }

    pub(crate) fn rows(&self) -> Result<RowsTransaction<'_>, MetaError> {
        Ok(RowsTransaction {
            table: self.0.open_table(ROWS)?,
            pending: BTreeMap::new(),
            staged: BTreeMap::new(),
            changed: false,
            touched: BTreeSet::new(),
        })
    }

    /// Durable when this returns, if anything was changed.
    pub(crate) fn end(self, changed: bool) -> Result<(), MetaError> {
        if changed {
            self.0.commit()?;
        } else {
            self.0.abort()?;
        }
        Ok(())
    }
}

/// The rows inside a transaction, and what the operation under way changes of them.
pub(crate) struct RowsTransaction<'t> {
    table: Table<'t, &'static [u8], &'static [u8]>,
    /// `None` removes.
    pending: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// What the operations of the request under way have changed that succeeded.
    staged: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    changed: bool,
    /// Slots of what was changed.
    touched: BTreeSet<u32>,
}

impl RowsTransaction<'_> {
    /// Keeps what is pending; returns whether the transaction has anything to commit, and the slots of what it changes.
    pub(crate) fn finish(mut self) -> Result<(bool, BTreeSet<u32>), MetaError> {
        self.keep();
        self.settle()?;
        Ok((self.changed, self.touched))
    }

    pub(crate) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.pending.insert(key, Some(value));
    }

    pub(crate) fn remove(&mut self, key: Vec<u8>) {
        self.pending.insert(key, None);
    }

    /// Keeps the changes of an operation that succeeded for its request.
    pub(crate) fn keep(&mut self) {
        if self.staged.is_empty() {
            std::mem::swap(&mut self.staged, &mut self.pending);
        } else {
            self.staged.append(&mut self.pending);
        }
    }

    /// Hands the changes of a request to the transaction.
    pub(crate) fn settle(&mut self) -> Result<(), MetaError> {
        for (key, value) in std::mem::take(&mut self.staged) {
            self.changed = true;
            let old = match &value {
                Some(value) => self.table.insert(&key[..], &value[..])?,
                None => self.table.remove(&key[..])?,
            };
            let old = old.as_ref().map(|old| old.value());
            touch(&mut self.touched, &key, old, value.as_deref());
        }
        Ok(())
    }

    /// Forgets the changes of a request.
    pub(crate) fn forget(&mut self) {
        self.pending.clear();
        self.staged.clear();
    }

    /// Whether the request under way has changed anything.
    pub(crate) fn has_staged(&self) -> bool {
        !self.staged.is_empty()
    }

    /// Whether there is anything to commit.
    pub(crate) fn is_changed(&self) -> bool {
        self.changed || self.has_staged()
    }

    /// Forgets the changes of an operation that failed.
    pub(crate) fn discard(&mut self) {
        self.pending.clear();
    }
}

impl Rows for RowsTransaction<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, MetaError> {
        match self.pending.get(key).or_else(|| self.staged.get(key)) {
            Some(value) => Ok(value.clone()),
            None => Ok(self.table.get(key)?.map(|v| v.value().to_vec())),
        }
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Row>, MetaError> {
        // Every removal that is not in the table yet can hide one row of it.
        let hidden = self.pending.len() + self.staged.len();
        let mut rows: BTreeMap<Vec<u8>, Vec<u8>> =
            scan_table(&self.table, prefix, after, limit + hidden)?
                .into_iter()
                .collect();
        for (key, value) in self.staged.iter().chain(&self.pending) {
            if !key.starts_with(prefix) || after.is_some_and(|after| key.as_slice() <= after) {
                continue;
            }
            match value {
                Some(value) => rows.insert(key.clone(), value.clone()),
                None => rows.remove(key),
            };
        }
        Ok(rows.into_iter().take(limit).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of three layers, against one plain map with all of them.
    #[test]
    fn rows_inside_a_transaction_are_those_of_the_table_with_all_changes() {
        let memory = redb::backends::InMemoryBackend::new();
        let db = Database::builder().create_with_backend(memory).unwrap();
        let transaction = Transaction::begin(&db).unwrap();
        let mut rows = transaction.rows().unwrap();
        let mut expected = BTreeMap::new();
        // In the table, then staged, then pending; every layer adds, replaces and removes.
        for (layer, (puts, removals)) in [
            ([1, 2, 3, 4, 7], [9, 9]),
            ([2, 5, 8, 8, 8], [3, 9]),
            ([5, 6, 3, 0, 0], [4, 8]),
        ]
        .into_iter()
        .enumerate()
        {
            for n in puts {
                let row = (vec![1, n], vec![layer as u8]);
                rows.put(row.0.clone(), row.1.clone());
                expected.insert(row.0, row.1);
            }
            for n in removals {
                rows.remove(vec![1, n]);
                expected.remove(&vec![1, n]);
            }
            // Of another kind.
            rows.put(vec![2, 1], vec![]);
            if layer < 2 {
                rows.keep();
            }
            if layer == 0 {
                rows.settle().unwrap();
            }
        }
        let expected: Vec<Row> = expected.into_iter().collect();
        let mut visited = Vec::new();
        rows.for_each(&[1], &mut |key, value| {
            visited.push((key.to_vec(), value.to_vec()));
            Ok(())
        })
        .unwrap();
        assert_eq!(visited, expected);
        for after in 0..10 {
            for limit in 0..8 {
                let behind = expected.iter().filter(|(key, _)| key[1] > after);
                let behind: Vec<Row> = behind.take(limit).cloned().collect();
                let found = rows.scan(&[1], Some(&[1, after]), limit).unwrap();
                assert_eq!(found, behind, "{limit} behind {after}");
            }
            let value = expected.iter().find(|(key, _)| key[1] == after);
            let value = value.map(|(_, value)| value.clone());
            assert_eq!(rows.get(&[1, after]).unwrap(), value);
        }
    }
}
