use std::{
    fmt,
    iter::Sum,
    ops::{Add, Mul, Neg, Sub},
};

use evariste_backend::{Buffer, Result, View, ViewMut, author::Arg};

use super::Vector;
use crate::{element::Mont, field::DeviceField};
use evariste_expression::Expression;

/// An [`Expression`] with the vectors that are its columns and the elements that are its constants, so that computing
/// with resident vectors reads like mathematics. Operators build the formula; a value of it takes one kernel, as in
/// [`Vector::evaluate_expression`].
///
/// Formulas that are built in the same way share a kernel, whatever their vectors and constants are, if the same ones
/// are equal in both.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::Device;
/// use evariste_field::{Formula, Mont, Vector};
///
/// let device = Device::best()?;
/// let vector = Vector::<Fr>::new(&device);
/// let a = device.upload::<Mont<Fr>>(&[1, 2, 3, 4].map(Fr::from))?;
/// let b = device.upload::<Mont<Fr>>(&[5, 6, 7, 8].map(Fr::from))?;
///
/// let [x, y] = [&a, &b].map(Formula::from);
/// let c = (&x * &y - &x * Fr::from(9) + 1).to_buffer(&vector)?;
/// assert_eq!(c.to_vec()?, [-3, -5, -5, -3].map(Fr::from));
///
/// // One pass over a and b, without a vector for the products.
/// assert_eq!((x * y).sum(&vector)?, Fr::from(5 + 12 + 21 + 32));
///
/// // The halves of a vector are vectors.
/// let (low, high) = (Formula::from(a.view(..2)?), Formula::from(a.view(2..)?));
/// let folded = (&low + (&high - &low) * Fr::from(10)).to_buffer(&vector)?;
/// assert_eq!(folded.to_vec()?, [21, 22].map(Fr::from));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Formula<'a, F: DeviceField> {
    expression: Expression,
    /// None twice.
    columns: Vec<View<'a, Mont<F>>>,
    /// None twice.
    constants: Vec<F>,
}

impl<'a, F: DeviceField> Formula<'a, F> {
    /// The same element in every row.
    pub fn constant(value: F) -> Self {
        Self { expression: Expression::constant(0), columns: Vec::new(), constants: vec![value] }
    }

    /// This to the power `exponent`; 0⁰ is 1.
    #[must_use]
    pub fn pow(&self, exponent: u32) -> Self {
        Self { expression: self.expression.pow(exponent), ..self.clone() }
    }

    /// The values in a new vector, as long as the vectors are, and secret if one of them is.
    ///
    /// # Errors
    /// - [`Error::Length`](evariste_backend::Error::Length) if there are no vectors or not all have the same length.
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if there is no room for the values.
    /// - The errors [of every operation](Vector#errors).
    pub fn to_buffer(&self, vector: &Vector<F>) -> Result<Buffer<Mont<F>>> {
        self.expect_lengths(vector, self.columns.first().map_or(0, View::len))?;
        vector.compute(&self.expression, &self.columns, &self.constants)
    }

    /// The values in `out`.
    ///
    /// # Errors
    /// [`Error::Length`](evariste_backend::Error::Length) unless all vectors and `out` have the same length; and those
    /// [of every operation](Vector#errors).
    pub fn evaluate<'b>(&self, vector: &Vector<F>, out: impl Into<ViewMut<'b, Mont<F>>>) -> Result<()>
    where
        'a: 'b,
    {
        let out = out.into();
        self.expect_lengths(vector, out.len())?;
        vector.evaluate_expression(&self.expression, &self.columns, &self.constants, out)
    }

    /// The sum of the values, as [`Vector::sum_expression`] takes it. Waits for it.
    ///
    /// # Errors
    /// [`Error::Length`](evariste_backend::Error::Length) if there are no vectors or not all have the same length; and
    /// those [of every operation](Vector#errors).
    pub fn sum(&self, vector: &Vector<F>) -> Result<F> {
        self.expect_lengths(vector, self.columns.first().map_or(0, View::len))?;
        vector.sum_expression(&self.expression, &self.columns, &self.constants)
    }

    /// Refuses vectors of another device or length, those too that a power of 0 left without use.
    fn expect_lengths(&self, vector: &Vector<F>, len: usize) -> Result<()> {
        self.columns.iter().try_for_each(|column| {
            vector.device.expect_same("a column of an expression", column.device())?;
            column.expect_len("a column of an expression", len)
        })
    }

    /// Its expression, with the columns numbered in the order in which they come up.
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    fn map(self, operation: impl FnOnce(Expression) -> Expression) -> Self {
        Self { expression: operation(self.expression), ..self }
    }

    fn join(mut self, other: &Self, operation: impl FnOnce(Expression, Expression) -> Expression) -> Self {
        let columns = other.columns.iter().map(|view| number(&mut self.columns, *view, is_same)).collect::<Vec<_>>();
        let constants = other.constants.iter().map(|x| number(&mut self.constants, *x, |a, b| a == b));
        let other = other.expression.renumbered(&columns, &constants.collect::<Vec<_>>());
        self.map(|expression| operation(expression, other))
    }
}

/// The place of `new` in `known`, where it is put if it is not there.
fn number<T>(known: &mut Vec<T>, new: T, is_same: impl Fn(&T, &T) -> bool) -> u32 {
    let at = known.iter().position(|old| is_same(old, &new)).unwrap_or(known.len());
    if at == known.len() {
        known.push(new);
    }
    at as u32
}

/// Whether both are the same elements of the same memory.
fn is_same<F: DeviceField>(a: &View<'_, Mont<F>>, b: &View<'_, Mont<F>>) -> bool {
    let (a, b) = (Arg::read(*a), Arg::read(*b));
    let (x, y) = (a.span(), b.span());
    (x.at(), x.bytes()) == (y.at(), y.bytes()) && std::ptr::eq(a.memory(), b.memory())
}

impl<'a, F: DeviceField> From<View<'a, Mont<F>>> for Formula<'a, F> {
    fn from(column: View<'a, Mont<F>>) -> Self {
        Self { expression: Expression::column(0), columns: vec![column], constants: Vec::new() }
    }
}

impl<'a, F: DeviceField> From<&'a Buffer<Mont<F>>> for Formula<'a, F> {
    fn from(column: &'a Buffer<Mont<F>>) -> Self {
        column.as_view().into()
    }
}

impl<F: DeviceField> fmt::Debug for Formula<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut formula = f.debug_struct("Formula");
        formula.field("expression", &self.expression).field("columns", &self.columns.len()).finish_non_exhaustive()
    }
}

macro_rules! operators {
    ($($operator:ident $function:ident),*) => {$(
        impl<'a, F: DeviceField> $operator<&Formula<'a, F>> for Formula<'a, F> {
            type Output = Formula<'a, F>;

            fn $function(self, other: &Formula<'a, F>) -> Formula<'a, F> {
                self.join(other, $operator::$function)
            }
        }

        impl<'a, F: DeviceField> $operator for Formula<'a, F> {
            type Output = Formula<'a, F>;

            fn $function(self, other: Formula<'a, F>) -> Formula<'a, F> {
                self.$function(&other)
            }
        }

        impl<'a, F: DeviceField> $operator for &Formula<'a, F> {
            type Output = Formula<'a, F>;

            fn $function(self, other: &Formula<'a, F>) -> Formula<'a, F> {
                self.clone().$function(other)
            }
        }

        impl<'a, F: DeviceField> $operator<Formula<'a, F>> for &Formula<'a, F> {
            type Output = Formula<'a, F>;

            fn $function(self, other: Formula<'a, F>) -> Formula<'a, F> {
                self.clone().$function(&other)
            }
        }

        impl<'a, F: DeviceField> $operator<F> for Formula<'a, F> {
            type Output = Formula<'a, F>;

            fn $function(self, other: F) -> Formula<'a, F> {
                self.$function(&Formula::constant(other))
            }
        }

        impl<'a, F: DeviceField> $operator<F> for &Formula<'a, F> {
            type Output = Formula<'a, F>;

            fn $function(self, other: F) -> Formula<'a, F> {
                self.clone().$function(other)
            }
        }

        impl<'a, F: DeviceField> $operator<i64> for Formula<'a, F> {
            type Output = Formula<'a, F>;

            fn $function(self, other: i64) -> Formula<'a, F> {
                self.map(|expression| expression.$function(other))
            }
        }

        impl<'a, F: DeviceField> $operator<i64> for &Formula<'a, F> {
            type Output = Formula<'a, F>;

            fn $function(self, other: i64) -> Formula<'a, F> {
                self.clone().$function(other)
            }
        }
    )*};
}

operators!(Add add, Sub sub, Mul mul);

impl<'a, F: DeviceField> Neg for Formula<'a, F> {
    type Output = Formula<'a, F>;

    fn neg(self) -> Formula<'a, F> {
        self.map(Neg::neg)
    }
}

impl<'a, F: DeviceField> Neg for &Formula<'a, F> {
    type Output = Formula<'a, F>;

    fn neg(self) -> Formula<'a, F> {
        -self.clone()
    }
}

impl<F: DeviceField> Sum for Formula<'_, F> {
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        terms.reduce(Add::add).unwrap_or_else(|| Self::constant(F::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::UniformRand;
    use evariste_backend::{Device, Error};

    use super::*;

    #[test]
    fn formulas_are_their_expressions_over_columns_that_come_once() {
        let device = Device::cpu();
        let mut rng = ark_std::test_rng();
        let hosts: Vec<Vec<Fr>> = (0..3).map(|_| (0..700).map(|_| Fr::rand(&mut rng)).collect()).collect();
        let buffers: Vec<_> = hosts.iter().map(|host| device.upload::<Mont<Fr>>(host).unwrap()).collect();
        let vector = Vector::<Fr>::new(&device);
        let [x, y, z] = [0, 1, 2].map(|i| Formula::from(&buffers[i]));
        let [r, s] = [Fr::rand(&mut rng), Fr::rand(&mut rng)];
        let formula = (&z - &y * r) * (&x * s + &y * r - 7) + -&z.pow(5) - (Formula::constant(r) - &z * 2) + r;
        let [a, b, c] = [0, 1, 2].map(Expression::column);
        let [u, v] = [0, 1].map(Expression::constant);
        let expected = (&a - &b * &u) * (&c * &v + &b * &u - 7) + -&a.pow(5) - (&u - &a * 2) + &u;
        assert_eq!(formula.expression(), &expected);
        assert_eq!((formula.columns.len(), &formula.constants), (3, &vec![r, s]));
        // Operands stay on their sides.
        assert_eq!((&z + (&y * &x + &x)).expression(), &(&a + (&Expression::column(1) * &c + &c)));
        let values: Vec<Fr> =
            (0..700).map(|i| expected.value(&[hosts[2][i], hosts[1][i], hosts[0][i]], &[r, s])).collect();
        assert_eq!(formula.to_buffer(&vector).unwrap().to_vec().unwrap(), values);
        assert_eq!(formula.sum(&vector).unwrap(), values.iter().sum::<Fr>());
        let mut out = device.alloc(700).unwrap();
        formula.evaluate(&vector, &mut out).unwrap();
        assert_eq!(out.to_vec().unwrap(), values);

        let parts = [buffers[0].view(..350).unwrap(), buffers[0].view(350..).unwrap(), buffers[0].view(..350).unwrap()];
        let sum: Formula<'_, Fr> = parts.into_iter().map(Formula::from).sum();
        assert_eq!(sum.columns.len(), 2);
        let mixed = (sum + Formula::from(&buffers[1])).to_buffer(&vector).unwrap_err();
        assert_eq!(mixed, Error::Length { what: "a column of an expression", expected: 350, actual: 700 });
        let none = Formula::<Fr>::constant(r).sum(&vector).unwrap_err();
        assert_eq!(none, Error::Length { what: "the columns of an expression", expected: 1, actual: 0 });
    }
}
