//! Lengths around 2³¹ and 2³², on a device without memory: what is accepted is launched in full, and what is not has
//! launched nothing.

use evariste::backend::{Error, Result};

use crate::{
    expect::expect,
    harness::Outcome,
    null_device::{Launch, NullDevice},
};

/// Runs `work` on lengths around `most`, and checks that those above are refused before anything is launched.
pub(crate) fn check(
    stub: &NullDevice,
    what: &str,
    most: usize,
    lengths: &[usize],
    mut work: impl FnMut(usize) -> Result<()>,
    covers: impl Fn(&Launch, usize) -> bool,
) -> Outcome {
    stub.take_calls();
    for len in lengths {
        let outcome = work(*len);
        let launches = stub.take_launches();
        let what = format!("{what} of {len}: {outcome:?}, {launches:?}");
        match *len <= most {
            true => expect(&what, outcome.is_ok() && launches.iter().any(|launch| covers(launch, *len)))?,
            false => {
                let is_refused = matches!(outcome, Err(Error::TooLarge { actual, .. }) if actual == *len as u64);
                expect(&what, is_refused && launches.is_empty())?;
            }
        }
    }
    Ok(())
}
