//! What clients have in files, and how much of it one client and one user may have.
//!
//! Locks held or waited for, handles in atomic mode, places behind the end and shared pointers are *claims*. The machines of
//! a file know how many a client has there; here the same number is counted for its user, over all files of the owner.
//!
//! Invariants
//! - A claim is counted before it is made. Whatever may end one settles the count of its client ([`State::settle_claims`]),
//!   so what is counted is what the machines have whenever the mutex of the file is free.
//! - What a dead client had counts until the machines have given it to others.

use std::collections::HashMap;
use std::sync::Arc;

use serving::{PerUser, Taken};
use wire::{ClientId, Status};

use super::file::State;
use super::{Asker, Refused, refuse};

/// What claims are, to those who have too many.
const WHAT: &str = "locks, handles in atomic mode, places behind the end and shared pointers";

/// How many claims there may be.
#[derive(Debug)]
pub(super) struct MostClaims {
    /// Of a client in one file.
    of_client: usize,
    /// Of a user, in all files.
    of_users: Arc<PerUser>,
}

impl MostClaims {
    /// So many for a client in one file.
    pub(super) fn new(of_client: usize) -> Self {
        let of_user = of_client.saturating_mul(serving::CLIENTS_OF_A_USER);
        MostClaims {
            of_client,
            of_users: PerUser::new(WHAT, "--locks", of_user),
        }
    }
}

/// What the clients of one file have of the shares of their users.
#[derive(Debug, Default)]
pub(super) struct Claims(HashMap<ClientId, Taken>);

impl State {
    fn claims_of(&self, client: ClientId) -> usize {
        let locks = self.locks.claims(client);
        locks + self.pointers.claims(client) + self.appends.claims(client)
    }

    /// Counts one more claim of a client, unless it has as many in this file as a client may, or its user as many in all.
    pub(super) fn demand_room(
        &mut self,
        asker: &Asker<'_>,
        most: &MostClaims,
    ) -> Result<(), Refused> {
        let client = asker.client;
        let has = self.claims_of(client);
        if has >= most.of_client {
            return refuse(
                Status::QuotaExceeded,
                format!(
                    "{client} has {has} {WHAT} in this file, as many as a client may have; release some, or start the \
                     server with more --locks"
                ),
            );
        }
        let refused = |(status, refusal)| Refused { status, refusal };
        let counted = match self.claims.0.remove(&client) {
            Some(counted) => Ok(counted),
            None => most.of_users.take_many(asker.user, 0),
        };
        let mut counted = counted.map_err(refused)?;
        let made = counted.set(has + 1).map_err(refused);
        if counted.count() > 0 {
            self.claims.0.insert(client, counted);
        }
        made
    }

    /// Claims of a client may have ended, or were not made.
    pub(super) fn settle_claims(&mut self, client: ClientId) {
        let has = self.claims_of(client);
        if let Some(counted) = self.claims.0.get_mut(&client) {
            counted.shrink(counted.count().saturating_sub(has));
            if has == 0 {
                self.claims.0.remove(&client);
            }
        }
    }

    /// Claims of any client may have ended: settles all counts.
    pub(super) fn settle_all_claims(&mut self) {
        let clients: Vec<ClientId> = self.claims.0.keys().copied().collect();
        for client in clients {
            self.settle_claims(client);
        }
    }
}
