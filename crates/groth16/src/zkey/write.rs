//! Writing of keys.

use std::io::{self, Write};

use ark_ec::{AffineRepr, short_weierstrass::Affine};
use ark_ff::{BigInteger, Field, PrimeField};
use evariste_curve::DeviceCurve;
use evariste_field::DeviceField;

use super::{FORMAT, GROTH16, PLACE_BYTES};
use crate::{
    curve::CircomCurve,
    error::{Error, Result},
    key::{Key, Quotient},
    order::CircomOrder,
    words,
};

/// Elements that are encoded before they are written.
const PIECE: usize = 1 << 10;

impl<E: CircomCurve> Key<E> {
    /// Writes the key as snarkjs reads it (`.zkey`). The file has no list of contributions to the set-up, so
    /// `snarkjs zkey verify` does not take it, while `snarkjs groth16 prove` does.
    ///
    /// The number of bytes is about 10 field elements a variable, 2 a point of the domain and 1 an entry of A and B.
    ///
    /// # Errors
    /// [`Error::Quotient`] if the key is not of circom's form, and [`Error::Io`] if `out` fails.
    pub fn write_zkey(&self, out: &mut impl Write) -> Result<()> {
        if self.quotient != Quotient::Circom {
            return Err(Error::Quotient);
        }
        self.write_sections(out).map_err(|error| Error::io(None, &error))
    }

    fn write_sections(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(FORMAT.name.as_bytes())?;
        out.write_all(&FORMAT.version.to_le_bytes())?;
        out.write_all(&(FORMAT.sections.len() as u32).to_le_bytes())?;
        begin(out, 1, 4)?;
        out.write_all(&GROTH16.to_le_bytes())?;

        let mut header = Vec::new();
        field::<E::BaseField>(&mut header);
        field::<E::ScalarField>(&mut header);
        for number in [self.variables(), self.public_inputs(), self.domain_size()] {
            header.extend((number as u32).to_le_bytes());
        }
        let key = &self.verifying_key;
        point(&mut header, &key.alpha_g1);
        point(&mut header, &self.beta_g1);
        point(&mut header, &key.beta_g2);
        point(&mut header, &key.gamma_g2);
        point(&mut header, &self.delta_g1);
        point(&mut header, &key.delta_g2);
        begin(out, 2, header.len())?;
        out.write_all(&header)?;

        let order = CircomOrder::new::<E::ScalarField>(self.log_domain);
        points(out, 3, &key.gamma_abc_g1)?;
        self.write_coefficients(out, &order)?;
        points(out, 5, &self.a_query)?;
        points(out, 6, &self.b_g1_query)?;
        points(out, 7, &self.b_g2_query)?;
        points(out, 8, &self.l_query)?;
        begin(out, 9, self.h_query.len() * words::point_bytes::<E::G1Config>())?;
        let h = (0..self.h_query.len() as u32).map(|i| &self.h_query[order.coset(i) as usize]);
        pieces(out, h, point)
    }

    /// Writes section 4, row by row, as snarkjs searches it.
    fn write_coefficients(&self, out: &mut impl Write, order: &CircomOrder) -> io::Result<()> {
        let count = self.a.values().len() + self.b.values().len();
        begin(out, 4, 4 + count * (PLACE_BYTES + words::bytes::<E::ScalarField>()))?;
        out.write_all(&(count as u32).to_le_bytes())?;
        let factor = E::ScalarField::from(2_u64).pow([32 * E::ScalarField::LIMBS as u64]);
        let entries = (0..self.domain_size() as u32).flat_map(|row| {
            [&self.a, &self.b].into_iter().zip(0_u32..).flat_map(move |(matrix, number)| {
                let entries = matrix.row(order.row(row) as usize);
                entries.map(move |(column, value)| ([number, row, column], value))
            })
        });
        pieces(out, entries, |bytes, (place, value)| {
            place.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
            element(bytes, &(value * factor));
        })
    }
}

fn begin(out: &mut impl Write, number: u32, bytes: usize) -> io::Result<()> {
    out.write_all(&number.to_le_bytes())?;
    out.write_all(&(bytes as u64).to_le_bytes())
}

/// Writes the length of elements and the modulus.
fn field<F: PrimeField>(bytes: &mut Vec<u8>) {
    let modulus = F::MODULUS.to_bytes_le();
    bytes.extend((modulus.len() as u32).to_le_bytes());
    bytes.extend(modulus);
}

fn points<C: DeviceCurve>(out: &mut impl Write, number: u32, list: &[Affine<C>]) -> io::Result<()> {
    begin(out, number, list.len() * words::point_bytes::<C>())?;
    pieces(out, list.iter(), point)
}

/// Writes encodings piece by piece.
fn pieces<T>(
    out: &mut impl Write,
    mut items: impl Iterator<Item = T>,
    encode: impl Fn(&mut Vec<u8>, T),
) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        items.by_ref().take(PIECE).for_each(|item| encode(&mut bytes, item));
        if bytes.is_empty() {
            return Ok(());
        }
        out.write_all(&bytes)?;
    }
}

fn point<C: DeviceCurve>(bytes: &mut Vec<u8>, point: &Affine<C>) {
    let (x, y) = point.xy().unwrap_or_default();
    element(bytes, &x);
    element(bytes, &y);
}

fn element<F: DeviceField>(bytes: &mut Vec<u8>, element: &F) {
    let mut limbs = [0; words::MOST_LIMBS];
    element.store(&mut limbs);
    limbs[..F::LIMBS].iter().for_each(|limb| bytes.extend(limb.to_le_bytes()));
}
