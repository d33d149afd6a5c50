//! Transforms over several devices: Bailey's four steps (D. H. Bailey, "FFTs in external or hierarchical memory",
//! 1990), with one exchange between the devices.
//!
//! Let n = D·m for D devices. With i = b + m·a and k = k₁ + D·k₂, a transform on the coset g·H is
//!
//! ```text
//! X[k₁ + D k₂] = Σ_b (g w_n^(k₁))^b w_m^(b k₂) Σ_a (g^m)^a x[b + m a] w_D^(a k₁)
//! ```
//!
//! So the inner sum is a transform of D points on the coset of g^m, and the outer one a transform of m points on the
//! coset of g·w_n^(k₁): cosets bring all twiddles. The distribution of both sides is cyclic (M. A. Inda and
//! R. H. Bisseling, "A simple and efficient parallel FFT algorithm using the BSP model", 2001). Device e has the indices
//! b ≡ e (mod D) with all a, and so computes whole inner sums. Device k₁ needs the inner sums for k₁, one run of m/D
//! elements of each device. Hence n ≥ D².
//!
//! Local index j + (m/D)·a of device e is b = e + D·j. The inner sums are columns of a matrix of D rows, and rows k₁ are
//! the runs that are sent. What a device receives, a row for each e, is transposed to the order of b. In bit-reversed
//! order, index i lies in block e' = rev(e), at the local place rev(b) · D + rev(a). The inner sums are then runs of D
//! elements, the matrix is transposed before it is sent, and the rows are received in the order of b.
//!
//! The inverse does the same steps backwards.

use std::fmt;

use ark_ff::FftField;
use evariste_backend::{Buffer, Devices, Distribution, Element, Error as DeviceError, Sharded};
use evariste_field::{DeviceField, Mont, Vector};

use crate::{
    config::NttConfig,
    error::{Error, Result},
    layout::Direction,
    order::{Order, reverse_bits},
    plan::Ntt,
    tables::unity,
    transform::{PassBuffers, Transform},
};

/// A plan for transforms of n = 2^`log_n` elements that are divided among a power of two of devices.
///
/// The values are those of [`Ntt`]. In natural order the elements have a cyclic distribution
/// ([`Distribution::Cyclic`]), in bit-reversed order they lie in blocks ([`Distribution::Blocks`]). Devices that are no
/// power of two have several places each: [`Devices::over`].
///
/// Each device does (n/D/2) log₂ n multiplications and sends n/D·(D − 1)/D elements, once. It holds its n/D elements
/// twice, with tables for n/D elements as [`Ntt`] has them: n may be larger than one device holds. To save memory, take
/// [`Twiddles::TwoLevel`](crate::Twiddles::TwoLevel).
///
/// ```
/// # fn main() -> Result<(), evariste_ntt::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::{Device, Devices, Distribution, Sharded};
/// use evariste_field::Mont;
/// use evariste_ntt::{Order, ShardedNtt};
///
/// let devices = Devices::from(&Device::best()?).over(2)?;
/// let ntt = ShardedNtt::<Fr>::new(&devices, 4)?;
/// let coefficients: Vec<Fr> = (0..16).map(Fr::from).collect();
/// let mut x = Sharded::<Mont<Fr>>::upload(&devices, &coefficients, Distribution::Cyclic)?;
/// ntt.transform().output(Order::BitReversed).forward(&mut x)?;
/// ntt.transform().input(Order::BitReversed).inverse(&mut x)?;
/// assert_eq!(x.to_vec()?, coefficients);
/// # Ok(())
/// # }
/// ```
pub struct ShardedNtt<F: DeviceField> {
    devices: Devices,
    log_n: u32,
    places: Vec<Place<F>>,
}

/// What a place has.
struct Place<F: DeviceField> {
    /// Transforms over the devices, of one point for each.
    across: Ntt<F>,
    /// Transforms of the elements of the place.
    local: Ntt<F>,
    vector: Vector<F>,
}

impl<F: DeviceField + FftField> ShardedNtt<F> {
    /// Makes a plan for 2^`log_n` elements, with tables and kernels on each device.
    ///
    /// # Errors
    /// - [`Error::Devices`] unless their number is a power of two.
    /// - [`Error::TwoAdicity`] if the field has no root of unity of order 2^`log_n`.
    /// - [`Error::TooLarge`] if a device would have more than 2^31 elements.
    /// - [`Error::Device`] with `Length` inside for fewer elements than the square of the number of devices.
    /// - [`Error::Device`] if tables do not fit a device's memory, if a kernel does not compile, or if a device fails.
    pub fn new(devices: &Devices, log_n: u32) -> Result<Self> {
        Self::with_config(devices, log_n, NttConfig::default())
    }

    /// Makes a plan as [`ShardedNtt::new`] does. `config` is that of the transforms of n/D elements.
    ///
    /// # Errors
    /// Fails under the conditions of [`ShardedNtt::new`].
    pub fn with_config(devices: &Devices, log_n: u32, config: NttConfig) -> Result<Self> {
        let log_devices = log_devices::<F>(devices, log_n)?;
        let places = devices.run(|_, device| {
            let (across, local) =
                (Ntt::new(device, log_devices)?, Ntt::with_config(device, log_n - log_devices, config)?);
            Ok::<_, Error>(Place { across, local, vector: Vector::new(device) })
        })?;
        Ok(Self { devices: devices.clone(), log_n, places })
    }

    /// Returns the bytes of device memory that a plan and a call take on each device beside the data, by place: tables
    /// of both directions, and memory for what the device receives.
    ///
    /// # Errors
    /// Fails under the conditions of [`ShardedNtt::new`] that concern numbers.
    pub fn required_bytes(devices: &Devices, log_n: u32, config: NttConfig) -> Result<Vec<u64>> {
        let log_local = log_n - log_devices::<F>(devices, log_n)?;
        let own = |device| {
            // Its scratch is the memory for what is received.
            let tables = Ntt::<F>::required_bytes(device, log_local, 0, config)?;
            Ok(tables + ((Mont::<F>::BYTES as u64) << log_local))
        };
        devices.iter().map(own).collect()
    }

    /// Returns the devices of the plan.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Returns the number of elements of a transform, on all devices.
    pub fn size(&self) -> u64 {
        1 << self.log_n
    }

    /// Evaluates a polynomial in place: the coefficients `x` become its values, both in natural order.
    ///
    /// # Errors
    /// Fails under the conditions of [`ShardedTransform::forward`].
    pub fn forward(&self, x: &mut Sharded<Mont<F>>) -> Result<()> {
        self.transform().forward(x)
    }

    /// Interpolates in place: the inverse of [`ShardedNtt::forward`].
    ///
    /// # Errors
    /// Fails under the conditions of [`ShardedTransform::forward`].
    pub fn inverse(&self, x: &mut Sharded<Mont<F>>) -> Result<()> {
        self.transform().inverse(x)
    }

    /// Starts a transform: set orders or a coset on it, then apply it.
    pub fn transform(&self) -> ShardedTransform<'_, F> {
        ShardedTransform { plan: self, input: Order::Natural, output: Order::Natural, coset: F::ONE }
    }

    /// Starts a transform on the coset of `generator`.
    pub fn coset(&self, generator: F) -> ShardedTransform<'_, F> {
        self.transform().coset(generator)
    }
}

impl<F: DeviceField> fmt::Debug for ShardedNtt<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedNtt").field("devices", &self.devices).field("log_n", &self.log_n).finish_non_exhaustive()
    }
}

/// log₂ of the number of devices, which must suit the number of elements.
fn log_devices<F: FftField>(devices: &Devices, log_n: u32) -> Result<u32> {
    if !devices.len().is_power_of_two() {
        return Err(Error::Devices { actual: devices.len() });
    }
    let log_devices = devices.len().ilog2();
    if log_n < 2 * log_devices {
        let (expected, actual) = (devices.len() as u64 * devices.len() as u64, 1 << log_n);
        let what = "the elements of a transform, at least the square of the number of devices";
        return Err(DeviceError::Length { what, expected, actual }.into());
    }
    // The root of the whole, which no device's own transforms ask for.
    unity::<F>(log_n)?;
    Ok(log_devices)
}

/// One way of applying a plan: orders and coset. Set these, then call [`ShardedTransform::forward`] or
/// [`ShardedTransform::inverse`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `forward` or `inverse`"]
pub struct ShardedTransform<'a, F: DeviceField> {
    plan: &'a ShardedNtt<F>,
    input: Order,
    output: Order,
    coset: F,
}

impl<F: DeviceField + FftField> ShardedTransform<'_, F> {
    /// Sets the order of the data before the transform; the default is natural.
    pub fn input(mut self, order: Order) -> Self {
        self.input = order;
        self
    }

    /// Sets the order of the data after the transform; the default is natural.
    pub fn output(mut self, order: Order) -> Self {
        self.output = order;
        self
    }

    /// Sets the generator of the coset of evaluation points; the default is 1, the subgroup itself.
    pub fn coset(mut self, generator: F) -> Self {
        self.coset = generator;
        self
    }

    /// Evaluates a polynomial in place. The data gets the distribution of the output's order.
    ///
    /// # Errors
    /// - [`Error::ZeroCoset`] if the generator of the coset is 0.
    /// - [`Error::Distribution`] if the data has another distribution than its order.
    /// - [`Error::Device`] if the data has another length, or lies on other devices.
    /// - [`Error::Device`] if memory is exhausted, if a kernel does not compile at its first use, or if a device fails.
    ///
    /// The data is unchanged then, unless a device or an allocation failed between the steps.
    pub fn forward(&self, x: &mut Sharded<Mont<F>>) -> Result<()> {
        self.check(x)?;
        let (steps, places) = (self.steps()?, &self.plan.places);
        let mut received = self.memory(x)?;
        for (place, part) in places.iter().zip(x.parts_mut()) {
            steps.across(place, self.input, Direction::Forward).forward(part)?;
        }
        match self.input {
            Order::Natural => {
                steps.exchange(x.parts(), &mut received, |from, to| (steps.residue(to, self.output), from))?;
                for ((place, part), received) in places.iter().zip(x.parts_mut()).zip(&received) {
                    place.vector.transpose(received, steps.rows, part)?;
                }
            }
            Order::BitReversed => {
                for ((place, part), sent) in places.iter().zip(x.parts()).zip(&mut received) {
                    place.vector.transpose(part, steps.columns, sent)?;
                }
                steps.exchange(&received, x.parts_mut(), |from, to| (steps.residue(to, self.output), from))?;
            }
        }
        self.local(&steps, x, &mut received, self.output, Direction::Forward)?;
        x.assume_distribution(distribution(self.output));
        Ok(())
    }

    /// Interpolates: the inverse of [`ShardedTransform::forward`] with the orders exchanged.
    ///
    /// # Errors
    /// Fails under the conditions of [`ShardedTransform::forward`].
    pub fn inverse(&self, x: &mut Sharded<Mont<F>>) -> Result<()> {
        self.check(x)?;
        let (steps, places) = (self.steps()?, &self.plan.places);
        let mut received = self.memory(x)?;
        self.local(&steps, x, &mut received, self.input, Direction::Inverse)?;
        match self.output {
            Order::Natural => {
                for ((place, part), sent) in places.iter().zip(x.parts()).zip(&mut received) {
                    place.vector.transpose(part, steps.columns, sent)?;
                }
                steps.exchange(&received, x.parts_mut(), |from, to| (to, steps.residue(from, self.input)))?;
            }
            Order::BitReversed => {
                steps.exchange(x.parts(), &mut received, |from, to| (to, steps.residue(from, self.input)))?;
                for ((place, part), received) in places.iter().zip(x.parts_mut()).zip(&received) {
                    place.vector.transpose(received, steps.rows, part)?;
                }
            }
        }
        for (place, part) in places.iter().zip(x.parts_mut()) {
            steps.across(place, self.output, Direction::Inverse).inverse(part)?;
        }
        x.assume_distribution(distribution(self.output));
        Ok(())
    }

    /// Compiles the kernels of transforms like this one, forward and inverse, and computes their tables. Later calls
    /// compile nothing.
    ///
    /// # Errors
    /// [`Error::ZeroCoset`] if the generator of the coset is 0; [`Error::Device`] if memory is exhausted, if a kernel
    /// does not compile, or if a device fails.
    pub fn prepare(&self) -> Result<()> {
        let steps = self.steps()?;
        self.plan.devices.run(|at, _| {
            let place = &self.plan.places[at];
            steps.across(place, self.input, Direction::Forward).prepare()?;
            steps.across(place, self.output, Direction::Inverse).prepare()?;
            for values in [self.input, self.output] {
                steps.local(place, at, values).input(self.input).output(self.output).prepare()?;
            }
            Ok::<_, Error>(())
        })?;
        Ok(())
    }

    /// The transforms over b, whose values have this order.
    fn local(
        &self,
        steps: &Steps<F>,
        x: &mut Sharded<Mont<F>>,
        scratch: &mut [Buffer<Mont<F>>],
        values: Order,
        direction: Direction,
    ) -> Result<()> {
        for (at, (place, (part, scratch))) in
            self.plan.places.iter().zip(x.parts_mut().iter_mut().zip(scratch)).enumerate()
        {
            let transform = steps.local(place, at, values).input(self.input).output(self.output);
            let data = part.as_view_mut();
            let Some(run) = transform.ready(data.as_view(), direction, None)? else { continue };
            let scratch = Some(scratch.as_view_mut());
            run.launch_all(data.len(), PassBuffers { source: None, data, scratch })?;
        }
        Ok(())
    }

    /// Refuses data that is none of this transform.
    fn check(&self, x: &Sharded<Mont<F>>) -> Result<()> {
        let expected = distribution(self.input);
        x.expect_on("the data of a transform", &self.plan.devices)?;
        let (len, actual) = (self.plan.size(), x.len() as u64);
        if actual != len {
            return Err(DeviceError::Length { what: "the data of a transform", expected: len, actual }.into());
        }
        if self.coset.is_zero() {
            return Err(Error::ZeroCoset);
        }
        // Of one place, both are the same.
        match x.distribution() == expected || self.plan.places.len() == 1 {
            true => Ok(()),
            false => Err(Error::Distribution { expected, actual: x.distribution() }),
        }
    }

    /// Memory for what each place receives, which is scratch of its own transforms as well.
    fn memory(&self, x: &Sharded<Mont<F>>) -> Result<Vec<Buffer<Mont<F>>>> {
        let secrecy = x.secrecy();
        let lowest = x.parts().iter().map(Buffer::secrecy).min().unwrap_or_default();
        secrecy.expect_to(lowest, "transform", ["a part of the data", "another part"])?;
        let own = |part: &Buffer<Mont<F>>| Ok(part.device().alloc_with(part.len(), secrecy)?);
        x.parts().iter().map(own).collect()
    }

    fn steps(&self) -> Result<Steps<F>> {
        let (log_n, log_devices) = (self.plan.log_n, self.plan.places.len().ilog2());
        let local = 1u64 << (log_n - log_devices);
        Ok(Steps {
            rows: 1 << log_devices,
            columns: (local >> log_devices) as usize,
            generator: self.coset,
            across: self.coset.pow([local]),
            root: unity::<F>(log_n)?,
        })
    }
}

/// The numbers of a transform.
struct Steps<F> {
    /// Of the matrix that is exchanged: a row for each place, of runs.
    rows: usize,
    columns: usize,
    generator: F,
    /// g^m.
    across: F,
    /// Of the whole transform.
    root: F,
}

impl<F: DeviceField + FftField> Steps<F> {
    /// The transforms over a. `order` is that of the coefficients.
    fn across<'a>(&self, place: &'a Place<F>, order: Order, direction: Direction) -> Transform<'a, F> {
        let transform = place.across.coset(self.across);
        match (order, direction) {
            (Order::Natural, _) => transform.columns(self.columns),
            (Order::BitReversed, Direction::Forward) => transform.input(order),
            (Order::BitReversed, Direction::Inverse) => transform.output(order),
        }
    }

    /// The transform over b of the place number `at`, whose values have this order.
    fn local<'a>(&self, place: &'a Place<F>, at: usize, values: Order) -> Transform<'a, F> {
        place.local.coset(self.generator * self.root.pow([self.residue(at, values) as u64]))
    }

    /// The residue class modulo the number of places that the place number `at` has of data in this order.
    fn residue(&self, at: usize, order: Order) -> usize {
        match order {
            Order::Natural => at,
            Order::BitReversed => reverse_bits(at as u32, self.rows.ilog2()) as usize,
        }
    }

    /// Copies a row of each place to each place. `rows` gives the row that the first place sends to the second, and the
    /// row that it is there.
    fn exchange(
        &self,
        from: &[Buffer<Mont<F>>],
        to: &mut [Buffer<Mont<F>>],
        rows: impl Fn(usize, usize) -> (usize, usize),
    ) -> Result<()> {
        let run = |row: usize| row * self.columns..(row + 1) * self.columns;
        // Places take turns, so that no two of them read from the same one.
        for turn in 0..from.len() {
            for (target, memory) in to.iter_mut().enumerate() {
                let source = (target + turn) % from.len();
                let (sent, received) = rows(source, target);
                memory.view_mut(run(received))?.copy_from(from[source].view(run(sent))?)?;
            }
        }
        Ok(())
    }
}

/// The distribution of data in this order.
fn distribution(order: Order) -> Distribution {
    match order {
        Order::Natural => Distribution::Cyclic,
        Order::BitReversed => Distribution::Blocks,
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use evariste_backend::{Device, DeviceId, Secrecy};
    use evariste_field::small::BabyBear;

    use super::*;
    use crate::{config::Twiddles, reference};

    const ORDERS: [Order; 2] = [Order::Natural, Order::BitReversed];

    /// Values by the definition, and back, in all orders.
    fn check<F: DeviceField + FftField>(devices: &Devices, log_n: u32, config: NttConfig) {
        let mut rng = ark_std::test_rng();
        let coefficients: Vec<F> = (0..1 << log_n).map(|_| F::rand(&mut rng)).collect();
        let ntt = ShardedNtt::<F>::with_config(devices, log_n, config).unwrap();
        for generator in [F::ONE, F::GENERATOR] {
            let values = reference::forward(&coefficients, generator);
            for (input, output) in ORDERS.map(|input| ORDERS.map(|output| (input, output))).into_iter().flatten() {
                let case = format!("2^{log_n} over {}, {input:?} to {output:?}", devices.len());
                let given = reference::reorder(&coefficients, Order::Natural, input);
                let mut x = Sharded::upload_with(devices, &given, distribution(input), Secrecy::Secret).unwrap();
                ntt.coset(generator).input(input).output(output).forward(&mut x).unwrap();
                assert_eq!(x.to_vec().unwrap(), reference::reorder(&values, Order::Natural, output), "{case}");
                ntt.coset(generator).input(output).output(input).inverse(&mut x).unwrap();
                assert_eq!(x.to_vec().unwrap(), given, "{case}, inverse");
            }
        }
    }

    fn group(places: usize) -> Devices {
        let devices: Vec<Device> = (0..places).map(|_| Device::another_cpu()).collect();
        Devices::new(devices).unwrap()
    }

    #[test]
    fn any_power_of_two_of_devices_gives_the_definition() {
        for (places, sizes) in [(1, 0..4), (2, 2..8), (4, 4..8), (8, 6..8)] {
            for log_n in sizes {
                check::<Fr>(&group(places), log_n, NttConfig::default());
            }
        }
        check::<BabyBear>(&group(2), 9, NttConfig::default().twiddles(Twiddles::TwoLevel));
        // Three devices in turn.
        check::<BabyBear>(&group(3).over(4).unwrap(), 6, NttConfig::default());
    }

    #[test]
    fn what_does_not_suit_is_refused_and_stays() {
        let devices = group(2);
        assert_eq!(ShardedNtt::<Fr>::new(&group(3), 8).err(), Some(Error::Devices { actual: 3 }));
        let error = ShardedNtt::<Fr>::new(&group(4), 3).unwrap_err();
        assert!(matches!(error, Error::Device(DeviceError::Length { expected: 16, actual: 8, .. })), "{error}");
        assert_eq!(
            ShardedNtt::<BabyBear>::new(&devices, 28).err(),
            Some(Error::TwoAdicity { expected: 27, actual: 28 })
        );
        assert_eq!(ShardedNtt::<Fr>::new(&devices, 64).err(), Some(Error::TwoAdicity { expected: 32, actual: 64 }));
        let ntt = ShardedNtt::<Fr>::new(&devices, 4).unwrap();
        let host: Vec<Fr> = (0..16).map(Fr::from).collect();
        let mut x = Sharded::<Mont<Fr>>::upload(&devices, &host, Distribution::Blocks).unwrap();
        let (expected, actual) = (Distribution::Cyclic, Distribution::Blocks);
        assert_eq!(ntt.forward(&mut x), Err(Error::Distribution { expected, actual }));
        assert_eq!(ntt.coset(Fr::from(0)).input(Order::BitReversed).forward(&mut x), Err(Error::ZeroCoset));
        let other = group(2);
        let foreign = ShardedNtt::<Fr>::new(&other, 4).unwrap().transform().input(Order::BitReversed).forward(&mut x);
        let id = DeviceId::CPU;
        let what = "the data of a transform";
        assert_eq!(foreign, Err(DeviceError::WrongDevice { what, expected: id, actual: id }.into()));
        assert_eq!(x.to_vec().unwrap(), host);
        let mut short = Sharded::<Mont<Fr>>::upload(&devices, &host[..8], Distribution::Cyclic).unwrap();
        assert_eq!(ntt.inverse(&mut short), Err(DeviceError::Length { what, expected: 16, actual: 8 }.into()));
        let least = ShardedNtt::<Fr>::required_bytes(&devices, 4, NttConfig::default()).unwrap();
        assert!(least.len() == 2 && least[0] >= 8 * 32, "{least:?}");
    }
}
