//! Plans of one device on a queue of another one: each call is refused before anything is uploaded, copied or launched.

use std::{
    fmt::{Debug, Display},
    result,
    sync::Arc,
};

use evariste::backend::{Device, Queue};
use libtest_mimic::Trial;

use crate::{
    expect::{expect, expect_same},
    harness::Outcome,
    recorder::Recorder,
    trials::AREAS,
};

/// A plan by its name, and a call of it.
pub(crate) type Plan = (&'static str, fn(&Misplaced) -> Outcome);

/// Two devices, which the CPU runs, and a queue of the second.
pub(crate) struct Misplaced {
    /// Where the plan and its operands are.
    pub(crate) device: Device,
    /// The queue that it is given.
    pub(crate) queue: Queue,
    recorders: [Arc<Recorder>; 2],
}

impl Misplaced {
    fn new() -> Self {
        let recorders = [(); 2].map(|()| Recorder::plain(&Device::cpu()));
        let [device, other] = recorders.each_ref().map(|recorder| Device::unregistered(Arc::clone(recorder) as _));
        Self { device, queue: other.default_queue(), recorders }
    }

    /// Checks that a call is refused as one of another device, and that it has written nothing.
    #[track_caller]
    pub(crate) fn refuses<T, E: Display>(&self, call: impl FnOnce() -> result::Result<T, E>) -> Outcome {
        for recorder in &self.recorders {
            recorder.written();
        }
        self.expect_refused(call().err().map(|error| error.to_string()))
    }

    /// Compiled once for all calls.
    #[track_caller]
    fn expect_refused(&self, error: Option<String>) -> Outcome {
        expect(
            &format!("{error:?} names another device: it"),
            error.is_some_and(|text| text.contains(" belongs to ") && !text.contains("another backend")),
        )?;
        let is_unwritten = self.recorders.iter().all(|recorder| recorder.written().is_empty());
        expect("a refused call has written nothing: it", is_unwritten)
    }

    /// [`Misplaced::refuses`] for a call on a slice, which stays as it is.
    #[track_caller]
    pub(crate) fn refuses_slice<X: Copy + PartialEq + Debug, T, E: Display>(
        &self,
        slice: &[X],
        call: impl FnOnce(&mut [X]) -> result::Result<T, E>,
    ) -> Outcome {
        let mut data = slice.to_vec();
        self.refuses(|| call(&mut data))?;
        expect_same("the slice of a refused call", &data, slice)
    }
}

/// The plans of all areas.
pub(crate) fn common() -> Trial {
    Trial::test("any::plans::refuse_a_queue_of_another_device", || {
        let plans = || AREAS.iter().flat_map(|area| area.plans);
        let failed: Vec<String> = plans()
            .filter_map(|(name, run)| {
                let error = run(&Misplaced::new()).err()?;
                Some(format!("{name}: {}", error.message().unwrap_or("failed")))
            })
            .collect();
        if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
    })
}
