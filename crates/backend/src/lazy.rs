//! Values that are made at their first use.

use std::{fmt, sync::OnceLock};

/// A value that is made at its first use, where making it can fail.
///
/// ```
/// use evariste_backend::{author::Lazy, Device, Error};
///
/// # fn main() -> Result<(), Error> {
/// let table = Lazy::default();
/// let make = || Device::cpu().upload::<u32>(&[1, 2, 3]);
/// assert_eq!(table.get_or_make(make)?.len(), 3);
/// // From now on it is there.
/// let failing = || Err(Error::Length { what: "a table", expected: 3, actual: 0 });
/// assert_eq!(table.get_or_make(failing)?.len(), 3);
/// # Ok(())
/// # }
/// ```
pub struct Lazy<T>(OnceLock<T>);

impl<T> Lazy<T> {
    /// Returns the value. The first call makes it. If several threads make one, all get the same value.
    ///
    /// # Errors
    /// The error of `make`. The next call tries again.
    pub fn get_or_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.0.get() {
            return Ok(value);
        }
        Ok(self.keep(make()?))
    }

    /// Apart from `make`, so that it is compiled once for all of these.
    fn keep(&self, value: T) -> &T {
        self.0.get_or_init(|| value)
    }

    /// Returns the value, if it was made.
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// Returns the value, if it was made.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.0.get_mut()
    }
}

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T: fmt::Debug> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lazy").field(&self.0.get()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_tried_again_and_values_are_made_once() {
        let mut lazy = Lazy::<u32>::default();
        assert_eq!((lazy.get_or_make(|| Err("no")), lazy.get()), (Err("no"), None));
        assert_eq!(lazy.get_mut(), None);
        assert_eq!(lazy.get_or_make(|| Ok::<_, ()>(1)), Ok(&1));
        assert_eq!((lazy.get_or_make(|| Ok::<_, ()>(2)), lazy.get()), (Ok(&1), Some(&1)));
        assert_eq!(lazy.get_mut(), Some(&mut 1));
    }
}
