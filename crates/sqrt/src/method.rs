/// A method for roots in a prime field, with p − 1 = 2^n · m for odd m, and b bits of p.
///
/// Costs count multiplications and squarings for one element, without the squaring that checks the root. W(b) ≈ b + b /
/// 6 + 9 is an exponentiation by b bits with sliding windows.
///
/// [`Sqrt`](crate::Sqrt) takes one of the first three methods if it applies, and otherwise the cheaper of
/// [`Table`](Self::Table) and [`Cipolla`](Self::Cipolla). The feature `compare` has more, for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// For p ≡ 3 (mod 4): a^((p + 1) / 4). W(b − 2) + 1.
    Power,
    /// For p ≡ 5 (mod 8): one exponentiation, which also gives a root of −1. W(b − 3) + 4. Atkin, "Probabilistic
    /// primality testing", INRIA 1992.
    Atkin,
    /// For p ≡ 9 (mod 16): one exponentiation, and a second case by multiplications with constants. W(b − 4) + 10.
    /// Müller, "On the computation of square roots in finite fields", Designs, Codes and Cryptography 31 (2004), with
    /// the constants of Kong, Cai, Yu and Li.
    Muller,
    /// For any p: Tonelli–Shanks with a logarithm of k = ⌈n / 8⌉ digits, each found in a table of 2^⌈n / k⌉ powers. All
    /// elements take the same steps. W(b − n) + (k − 1) ⌈n / k⌉ + k (k + 1) / 2 + 3. A hash finds a digit by one
    /// multiplication of the lowest limb. Bernstein, "Faster square roots in annoying finite fields" (2001); Sarkar,
    /// "Computing square roots faster than the Tonelli-Shanks/Bernstein algorithm" (2020).
    Table,
    /// For p ≡ 1 (mod 4): a Lucas sequence, after a search for t with non-residue t² a − 4. 2 b, and about 2 W(b) for
    /// two attempts. It suits p − 1 with a huge power of 2. It fails for one in 2^64 elements: the verdict is 0 then.
    /// Cipolla (1903), Lehmer (1969), in the form of Müller's paper above.
    Cipolla,
    /// For any p: one binary digit of the logarithm after the other, with the same number of squarings for all
    /// elements. W(b − n) + (n − 1) (n + 2) / 2 + 2. Shanks, "Five number-theoretic algorithms" (1972).
    #[cfg(any(test, feature = "compare"))]
    Serial,
    /// For n ≤ 64: Tonelli–Shanks where each digit updates all powers a^(m 2^j), by independent multiplications.
    /// W(b − n) + (n − 1) (n + 2) + 2.
    #[cfg(any(test, feature = "compare"))]
    PowerMatrix,
    /// For n ≤ 64: [`PowerMatrix`](Self::PowerMatrix) with only the powers that later digits read.
    /// W(b − n) + (n − 1) (n + 2) / 2 + 2, the number of [`Serial`](Self::Serial), with at most n in a row.
    #[cfg(any(test, feature = "compare"))]
    NeededColumns,
    /// For n ≤ 64: Tonelli–Shanks by the 32 threads of a warp together, for few elements. Thread j has the power a^(m
    /// 2^j), and each digit updates all powers by one product of all threads at once. While one thread squares, the
    /// others multiply by its squares. At most b + n − 2 products in a row for n ≤ 32, and n − 33 more above; a digit 0
    /// takes none.
    Warp,
    /// For p ≡ 1 (mod 4), or an odd prime factor of p − 1 below 32. It computes in the group of classes of u + v √a,
    /// with neither the root nor a non-residue known. It uses roots of unity of order 4 and of the orders of those
    /// primes.
    ///
    /// About 6 (b − n) for an attempt, 4 n, and W(b); and 6 b for each odd prime that it tries. It makes up to 64
    /// attempts, which fail for one in 2^64 random elements. An attacker can choose squares for which all attempts
    /// fail, and these get no root: use another method for such elements. Sze, "On taking square roots without
    /// quadratic nonresidues over finite fields", Mathematics of Computation 80 (2011).
    #[cfg(any(test, feature = "compare"))]
    Sze,
}

impl Method {
    /// All variants.
    pub const ALL: &[Self] = &[
        Method::Power,
        Method::Atkin,
        Method::Muller,
        Method::Table,
        Method::Cipolla,
        #[cfg(any(test, feature = "compare"))]
        Method::Serial,
        #[cfg(any(test, feature = "compare"))]
        Method::PowerMatrix,
        #[cfg(any(test, feature = "compare"))]
        Method::NeededColumns,
        Method::Warp,
        #[cfg(any(test, feature = "compare"))]
        Method::Sze,
    ];
}
