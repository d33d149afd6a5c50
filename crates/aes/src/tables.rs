//! The tables that kernels look up: public constants of the cipher.

/// Multiplication in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1, without branches on the factors.
pub(crate) const fn multiply(a: u8, b: u8) -> u8 {
    let (mut a, mut product, mut i) = (a, 0, 0);
    while i < 8 {
        product ^= a & (b >> i & 1).wrapping_neg();
        a = (a << 1) ^ (0x1b & (a >> 7).wrapping_neg());
        i += 1;
    }
    product
}

/// SubBytes by its definition: the inverse, which is x^254, then an affine map. No lookup and no branch depends on `x`.
pub(crate) const fn substitute(x: u8) -> u8 {
    let (mut power, mut inverse, mut i) = (x, 1, 0);
    // 254 = 2 + 4 + … + 128.
    while i < 7 {
        power = multiply(power, power);
        inverse = multiply(inverse, power);
        i += 1;
    }
    let b = inverse;
    b ^ b.rotate_left(1) ^ b.rotate_left(2) ^ b.rotate_left(3) ^ b.rotate_left(4) ^ 0x63
}

const SBOX: [u8; 256] = {
    let (mut table, mut x) = ([0; 256], 0);
    while x < 256 {
        table[x] = substitute(x as u8);
        x += 1;
    }
    table
};

const INVERSE_SBOX: [u8; 256] = {
    let (mut table, mut x) = ([0; 256], 0);
    while x < 256 {
        table[SBOX[x] as usize] = x as u8;
        x += 1;
    }
    table
};

/// What the kernels' binding `tables` holds: T_0 of encryption, T_0 of decryption, the S-box and its inverse.
pub(crate) fn words() -> Vec<u32> {
    let columns = |sbox: &'static [u8; 256], factors: [u8; 4]| {
        sbox.iter().map(move |&s| u32::from_le_bytes(factors.map(|factor| multiply(s, factor))))
    };
    let packed = |sbox: &'static [u8; 256]| sbox.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes));
    columns(&SBOX, [2, 1, 1, 3])
        .chain(columns(&INVERSE_SBOX, [14, 9, 13, 11]))
        .chain(packed(&SBOX))
        .chain(packed(&INVERSE_SBOX))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boxes_are_those_of_the_standard() {
        assert_eq!((SBOX[0x00], SBOX[0x01], SBOX[0x53], SBOX[0xff]), (0x63, 0x7c, 0xed, 0x16));
        assert!((0..256).all(|x| usize::from(INVERSE_SBOX[usize::from(SBOX[x])]) == x));
    }

    #[test]
    fn decryption_finds_the_inverse_box_in_its_table() {
        for (x, word) in words()[256..512].iter().enumerate() {
            assert_eq!(word.to_le_bytes().iter().fold(0, |sum, byte| sum ^ byte), INVERSE_SBOX[x]);
        }
    }
}
