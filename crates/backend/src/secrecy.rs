//! Whether memory holds secrets.

use crate::error::{Error, Result};

/// Whether memory must be zeroed before anyone else sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Secrecy {
    /// Its contents are no secret, and stay in memory that a pool keeps for reuse.
    #[default]
    Public,
    /// It holds secrets, such as keys and witnesses, and is zeroed before it returns to a pool; so is the staging memory
    /// that its contents pass through.
    Secret,
}

impl Secrecy {
    /// Returns the secrecy of what is computed from or copied to memory of these: secret if any of them is. What an
    /// operation keeps for itself has that of all its inputs and outputs, and what it returns that of its inputs. A target that
    /// the caller gives must have it already: [`Error::SecretInput`].
    pub fn of(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().max().unwrap_or_default()
    }

    /// Refuses that the operation called `operation` puts what it makes of memory of this secrecy into memory of another, unless
    /// that is as secret. Every launch and copy refuses it, too: this is for operations of several, which are to refuse it before
    /// the first.
    ///
    /// # Errors
    /// [`Error::SecretInput`], with the names of the input and the output, if this is secret and the target is not.
    pub fn expect_to(self, target: Self, operation: &'static str, [input, output]: [&'static str; 2]) -> Result<()> {
        match self > target {
            true => Err(Error::SecretInput { operation, input, output }),
            false => Ok(()),
        }
    }
}
