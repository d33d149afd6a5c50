//! Proofs of witnesses in pinned memory.

use std::fmt;

use ark_ff::PrimeField;
use ark_groth16::Proof;
use evariste_backend::{Buffer, Element as _, Error as DeviceError, HostBuffer, Secrecy, Transfer, parallel};
use evariste_field::Mont;

use super::{Prover, blinding, system_rng};
use crate::{
    curve::DevicePairing,
    error::{Error, Result},
    witness::Witness,
};

const MEMORY: &str = "the pinned memory of a witness, in bytes";

/// Of elements in memory.
const ALIGNMENT: usize = 16;

/// Elements that a thread copies at a time.
const GRAIN: usize = 1 << 12;

/// A witness in pinned memory in the device's form: [`Prover::pin`]. It is for provers of one device with as many variables
/// and public inputs. Its memory is zeroed when it is dropped, as is that which comes back from it or from a proof. Until then
/// that may still hold the witness.
pub struct PinnedWitness<F: PrimeField> {
    values: HostBuffer,
    public: Vec<F>,
}

impl<F: PrimeField> PinnedWitness<F> {
    /// Gives the memory back, for another witness.
    #[must_use = "dropping it gives the memory back to the device"]
    pub fn into_memory(self) -> HostBuffer {
        self.values
    }
}

impl<E: DevicePairing> Prover<E> {
    /// Returns pinned memory for one witness, for [`Prover::pin`]. Pinning new memory is slow: keep it for many
    /// witnesses.
    ///
    /// # Errors
    /// [`Error::Device`] if there is not enough memory that the device can use, or if it fails.
    pub fn pinned_memory(&self) -> Result<HostBuffer> {
        Ok(self.device().host_buffer(self.witness_bytes(), Transfer::Upload, Secrecy::Secret)?)
    }

    fn witness_bytes(&self) -> usize {
        self.variables() * Mont::<E::ScalarField>::BYTES
    }

    /// Copies a witness to pinned memory in the device's form, on all cores. The device fetches it from there at the speed
    /// of the link: [`Prover::prove_pinned`]. Altogether that takes as long as [`Prover::prove`]: it pays where another
    /// proof is under way meanwhile.
    ///
    /// # Errors
    /// - [`Error::WitnessLength`] if the witness has another number of variables.
    /// - [`Error::Device`] if `memory` is another device's, has another length than that of [`Prover::pinned_memory`], is
    ///   not secret, or is a part of other memory that does not start at a multiple of 16 bytes.
    ///
    /// `memory` is dropped then.
    pub fn pin(
        &self,
        witness: &Witness<E::ScalarField>,
        mut memory: HostBuffer,
    ) -> Result<PinnedWitness<E::ScalarField>> {
        let values = witness.values();
        self.expect_variables(values.len())?;
        let public = witness.public(self.public_inputs())?.to_vec();
        let (expected, actual) = (self.device().info().id, memory.device());
        if expected != actual {
            return Err(DeviceError::WrongDevice { what: "the pinned memory of a witness", expected, actual }.into());
        }
        let (expected, actual) = (self.witness_bytes() as u64, memory.len() as u64);
        if expected != actual {
            return Err(DeviceError::Length { what: MEMORY, expected, actual }.into());
        }
        memory.expect_secrecy("the pinned memory of a witness", Secrecy::Secret)?;
        let offset = (memory.as_ptr() as usize % ALIGNMENT) as u64;
        if offset != 0 {
            let (what, expected, count) = ("pinned memory of a witness", ALIGNMENT as u64, actual);
            return Err(DeviceError::Unaligned { what, expected, offset, count }.into());
        }
        let bytes = Mont::<E::ScalarField>::BYTES;
        parallel::chunks(&mut memory, GRAIN * bytes, &|i, encoded| {
            Mont::<E::ScalarField>::encode(&values[i * GRAIN..][..encoded.len() / bytes], encoded);
        });
        Ok(PinnedWitness { values: memory, public })
    }

    /// Proves as [`Prover::prove`] does, of a witness in pinned memory, and returns that memory for the next one.
    ///
    /// # Errors
    /// - [`Error::WitnessLength`] and [`Error::PublicInputs`] if the witness was pinned for a prover with other numbers of
    ///   variables or public inputs.
    /// - [`Error::Device`] if it was pinned for another device.
    /// - Those of [`Prover::prove`].
    ///
    /// The memory is dropped then.
    pub fn prove_pinned(&self, witness: PinnedWitness<E::ScalarField>) -> Result<(Proof<E>, HostBuffer)> {
        let PinnedWitness { values, public } = witness;
        self.expect_variables(values.len() / Mont::<E::ScalarField>::BYTES)?;
        let (expected, actual) = (self.public_inputs(), public.len());
        if expected != actual {
            return Err(Error::PublicInputs { expected, actual });
        }
        let blinding = blinding(&mut system_rng()?);
        let mut w: Buffer<Mont<E::ScalarField>> = self.device().alloc_with(self.variables(), Secrecy::Secret)?;
        let upload = self.queue.write_pinned(&mut w, values)?;
        let started = self.start_on_device(public, &w, blinding, &mut |_| Ok(()))?;
        // It is there before the first sum is.
        let memory = upload.wait()?;
        Ok((self.finish(started)?.0, memory))
    }
}

impl<F: PrimeField> fmt::Debug for PinnedWitness<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedWitness").field("bytes", &self.values.len()).finish_non_exhaustive()
    }
}
