//! Whether memory holds secrets.

use crate::error::{Error, Result};

/// Whether memory is zeroed before another owner can read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Secrecy {
    /// The contents are no secret. They stay in memory that a pool keeps for reuse.
    #[default]
    Public,
    /// The contents are secret, such as keys and witnesses. The memory is zeroed before it returns to a pool, and so
    /// is the staging memory that its contents pass through.
    Secret,
}

impl Secrecy {
    /// Returns the secrecy of a result computed or copied from memory of these: secret if any of them is.
    ///
    /// The scratch memory of an operation has the secrecy of all its inputs and outputs. A buffer that it returns has
    /// the secrecy of its inputs. A target from the caller must be secret already if an input is
    /// ([`Error::SecretInput`]).
    pub fn of(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().max().unwrap_or_default()
    }

    /// Returns an error if memory of this secrecy is secret and `target` is not. `operation`, `input` and `output`
    /// name them. Every launch and copy checks this; an operation of several launches calls it before the first.
    ///
    /// # Errors
    /// [`Error::SecretInput`], with these names.
    pub fn expect_to(self, target: Self, operation: &'static str, [input, output]: [&'static str; 2]) -> Result<()> {
        match self > target {
            true => Err(Error::SecretInput { operation, input, output }),
            false => Ok(()),
        }
    }
}
