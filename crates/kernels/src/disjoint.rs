//! Owns [`Disjoint`], the proof that no target byte is written twice, carried as a type.
//!
//! There are two ways to one: the structure of the nests shows it
//! ([`Program::prove_disjoint`]), or the program was compiled from a pair of projections that
//! `falls` built as well-formed sets (`compile_joint`). There is no way to claim it.
//! With it loops may run in any order and on several threads.

use std::ops::Deref;

use crate::program::Program;

/// A value whose target bytes are proved to be written at most once each.
#[derive(Clone, Debug)]
pub struct Disjoint<T>(T);

impl Disjoint<Program> {
    /// Only for modules that hold a proof.
    pub(crate) fn proved(program: Program) -> Self {
        Disjoint(program)
    }
}

impl<T> Disjoint<T> {
    /// Gives the proof up.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Disjoint<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl Program {
    /// Proves by structure that no target byte is written twice: siblings have disjoint spans
    /// and every stride is at least the extent of what it repeats. The program comes back
    /// unchanged where the structure does not show it (which does not mean that bytes
    /// overlap).
    ///
    /// ```
    /// use kernels::{Nest, Program};
    /// let apart = Nest::strided(0, 0, 4, 2, 3, 2)?;
    /// assert!(Program::compile(&[apart]).prove_disjoint().is_ok());
    /// let twice = Nest::strided(0, 0, 4, 2, 1, 2)?;
    /// assert!(Program::compile(&[twice]).prove_disjoint().is_err());
    /// # Ok::<(), kernels::NestError>(())
    /// ```
    // The error is the program itself, handed back for use without the proof.
    #[allow(clippy::result_large_err)]
    pub fn prove_disjoint(self) -> Result<Disjoint<Program>, Program> {
        if self.target_disjoint() {
            Ok(Disjoint(self))
        } else {
            Err(self)
        }
    }
}
