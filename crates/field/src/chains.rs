//! Products, squares, sums and differences in prime fields of 2 to 6 words of 64 bits, by the instructions `mulx`,
//! `adcx` and `adox` of x86-64 (BMI2 and ADX).
//!
//! A row of a product adds a · b\[i\] to the sum, and then the multiple of p that makes its lowest word 0. In each half,
//! one chain of carries adds the low halves of products of words, and another one the high halves. Compilers know one
//! flag for carries, so the rows are assembly. The modulus is data.
//!
//! Values are integers below p, in the form x · 2^(64 N) mod p. The time does not depend on them.

use std::arch::asm;

use evariste_backend::author::cpu_has_carry_chains;

/// A modulus, as the assembly reads it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Modulus<const N: usize> {
    /// −p⁻¹ mod 2^64.
    inverse: u64,
    words: [u64; N],
}

impl<const N: usize> Modulus<N> {
    /// Describes an odd modulus, given −p⁻¹ mod 2^64. There is none of other numbers of words, nor of a modulus without
    /// a spare bit: no word has the carry out of the sum of a row.
    pub(crate) const fn new(words: [u64; N], inverse: u64) -> Option<Self> {
        if N >= 2 && N <= 6 && words[N - 1] < u64::MAX >> 1 { Some(Self { inverse, words }) } else { None }
    }

    /// Whether 4p fits the words. [`square`] needs it: its rows count products of different words twice, so that a sum
    /// may reach 3p and more.
    pub(crate) const fn has_two_bits(&self) -> bool {
        self.words[N - 1] < u64::MAX >> 2
    }
}

/// What ends a sum r, in `$t`: it becomes r − p unless that is negative. It is below 2p.
macro_rules! reduce {
    ([$t0:literal $($t:literal)*] [$u0:literal $($u:literal)*] [$($at:literal)*]) => {
        concat!(
            "mov ", $u0, ", ", $t0, "\n", $("mov ", $u, ", ", $t, "\n",)*
            "sub ", $u0, ", [rcx + 8]\n", $("sbb ", $u, ", [rcx + 8 + ", $at, "]\n",)*
            "cmovnc ", $t0, ", ", $u0, "\n", $("cmovnc ", $t, ", ", $u, "\n",)*
        )
    };
}

/// The first half of the first row: a · b\[0\], in `$t` and r14.
macro_rules! first_row {
    ($t0:literal [$($t:literal)*] [$($at:literal)*]) => {
        concat!(
            "mov rdx, [rdi]\n",
            "xor eax, eax\n",
            "mulx r14, ", $t0, ", [rsi]\n",
            $(
                "mulx rax, ", $t, ", [rsi + ", $at, "]\n",
                "adc ", $t, ", r14\n",
                "mov r14, rax\n",
            )*
            "adc r14, 0\n",
        )
    };
}

/// The first half of another row: the sum in `$t` plus a · b\[i\], with the highest word in r14.
macro_rules! row {
    ($i:literal $t0:literal [$($t:literal)*] [$($at:literal)*]) => {
        concat!(
            "mov rdx, [rdi + ", $i, "]\n",
            "xor eax, eax\n",
            "mulx r14, rax, [rsi]\n",
            "adox ", $t0, ", rax\n",
            $(
                "adcx ", $t, ", r14\n",
                "mulx r14, rax, [rsi + ", $at, "]\n",
                "adox ", $t, ", rax\n",
            )*
            "mov eax, 0\n",
            "adcx r14, rax\n",
            "adox r14, rax\n",
        )
    };
}

/// The second half of a row: the sum plus a multiple of p, divided by 2^64.
macro_rules! divide {
    ($t0:literal $last:literal [$($low:literal)*] [$($high:literal)*] [$($at:literal)*]) => {
        concat!(
            "mov rdx, [rcx]\n",
            "imul rdx, ", $t0, "\n",
            "xor eax, eax\n",
            "mulx r15, rax, [rcx + 8]\n",
            "adcx rax, ", $t0, "\n",
            "mov ", $t0, ", r15\n",
            $(
                "adcx ", $low, ", ", $high, "\n",
                "mulx ", $high, ", rax, [rcx + 8 + ", $at, "]\n",
                "adox ", $low, ", rax\n",
            )*
            "mov eax, 0\n",
            "adcx ", $last, ", rax\n",
            "adox ", $last, ", r14\n",
        )
    };
}

/// The rows of a square from a word on, with the second half of each: a\[i\] · (a\[i\] + 2 · the words above). rdi has
/// 2a, whose word i + 1 loses the bit that comes of a\[i\].
macro_rules! square_rows {
    ($divide:tt [$t:literal] [$at:literal]) => {
        concat!(
            "mov rdx, [rsi + ", $at, "]\n",
            "xor eax, eax\n",
            "mulx r14, rax, rdx\n",
            "adox ", $t, ", rax\n",
            "mov eax, 0\n",
            "adox r14, rax\n",
            divide! $divide,
        )
    };
    ($divide:tt [$t0:literal $t1:literal $($t:literal)*] [$at0:literal $at1:literal $($at:literal)*]) => {
        concat!(
            "mov rdx, [rsi + ", $at0, "]\n",
            "mov r15, [rdi + ", $at1, "]\n",
            "and r15, -2\n",
            "xor eax, eax\n",
            "mulx r14, rax, rdx\n",
            "adox ", $t0, ", rax\n",
            "adcx ", $t1, ", r14\n",
            "mulx r14, rax, r15\n",
            "adox ", $t1, ", rax\n",
            $(
                "adcx ", $t, ", r14\n",
                "mulx r14, rax, [rdi + ", $at, "]\n",
                "adox ", $t, ", rax\n",
            )*
            "mov eax, 0\n",
            "adcx r14, rax\n",
            "adox r14, rax\n",
            divide! $divide,
            square_rows!($divide [$t1 $($t)*] [$at1 $($at)*]),
        )
    };
}

/// The functions of a number of words. The words of a sum lie in `$reg`: the first, the others, the last, and all but
/// the last. `$u` is where differences go, and `$at` are the places of the words but for the first.
macro_rules! functions {
    (
        $name:ident, $n:literal,
        [$($word:ident $reg:tt)*] $t0:literal [$($t:literal)*] $last:literal $low:tt
        [$u0:literal $($u:literal)*] [$($at:literal)*]
    ) => {
        mod $name {
            use super::*;

            /// Runs assembly on `a`, `b` and `p`, which lie in rsi, rdi and rcx, for the words of the result.
            macro_rules! words_of {
                ($a:expr, $b:expr, $p:expr, $text:expr) => {{
                    assert_eq!(N, $n);
                    $(let $word: u64;)*
                    // SAFETY: the caller vouches for the instructions. They read N words at each, and N + 1 at `p`.
                    unsafe {
                        asm!(
                            $text,
                            inout("rsi") $a.as_ptr() => _,
                            inout("rdi") $b.as_ptr() => _,
                            in("rcx") std::ptr::from_ref($p),
                            $(out($reg) $word,)*
                            out("rax") _,
                            out("rdx") _,
                            out("r14") _,
                            out("r15") _,
                            options(pure, readonly, nostack),
                        );
                    }
                    let mut words = [0; N];
                    words.copy_from_slice(&[$($word),*]);
                    words
                }};
            }

            #[inline]
            pub(super) unsafe fn mul<const N: usize>(a: &[u64; N], b: &[u64; N], p: &Modulus<N>) -> [u64; N] {
                words_of!(a, b, p, concat!(
                    first_row!($t0 [$($t)*] [$($at)*]),
                    divide!($t0 $last $low [$($t)*] [$($at)*]),
                    functions!(rows [$($at)*] $t0 $last [$($t)*] $low [$($at)*]),
                    reduce!([$t0 $($t)*] [$u0 $($u)*] [$($at)*]),
                ))
            }

            #[inline]
            pub(super) unsafe fn square<const N: usize>(a: &[u64; N], p: &Modulus<N>) -> [u64; N] {
                let mut below = 0;
                let twice = a.map(|word| {
                    let shifted = word << 1 | below;
                    below = word >> 63;
                    shifted
                });
                words_of!(a, twice, p, concat!(
                    "xor ", functions!(same $t0), "\n",
                    $("xor ", functions!(same $t), "\n",)*
                    square_rows!(($t0 $last $low [$($t)*] [$($at)*]) [$t0 $($t)*] [0 $($at)*]),
                    reduce!([$t0 $($t)*] [$u0 $($u)*] [$($at)*]),
                ))
            }

            #[inline]
            pub(super) unsafe fn add<const N: usize>(a: &[u64; N], b: &[u64; N], p: &Modulus<N>) -> [u64; N] {
                words_of!(a, b, p, concat!(
                    "mov ", $t0, ", [rsi]\n", $("mov ", $t, ", [rsi + ", $at, "]\n",)*
                    "add ", $t0, ", [rdi]\n", $("adc ", $t, ", [rdi + ", $at, "]\n",)*
                    reduce!([$t0 $($t)*] [$u0 $($u)*] [$($at)*]),
                ))
            }

            #[inline]
            pub(super) unsafe fn sub<const N: usize>(a: &[u64; N], b: &[u64; N], p: &Modulus<N>) -> [u64; N] {
                words_of!(a, b, p, concat!(
                    "mov ", $t0, ", [rsi]\n", $("mov ", $t, ", [rsi + ", $at, "]\n",)*
                    "sub ", $t0, ", [rdi]\n", $("sbb ", $t, ", [rdi + ", $at, "]\n",)*
                    // p where the difference is negative, else 0. The mask is lost last.
                    "sbb rax, rax\n",
                    "mov ", $u0, ", rax\n", "and ", $u0, ", [rcx + 8]\n",
                    functions!(masks [$($u)*] [$($at)*]),
                    "add ", $t0, ", ", $u0, "\n", functions!(sums [$($t)*] [$($u)*]),
                ))
            }
        }
    };
    (rows [$($i:literal)*] $t0:literal $last:literal $t:tt $low:tt $at:tt) => {
        concat!($(row!($i $t0 $t $at), divide!($t0 $last $low $t $at),)*)
    };
    (same $t:literal) => {
        concat!($t, ", ", $t)
    };
    (masks [$($u:literal)*] [$($at:literal)*]) => {
        concat!($("mov ", $u, ", rax\n", "and ", $u, ", [rcx + 8 + ", $at, "]\n",)*)
    };
    (sums [$($t:literal)*] [$($u:literal)*]) => {
        concat!($("adc ", $t, ", ", $u, "\n",)*)
    };
}

functions!(words2, 2, [a "r8" b "r9"] "r8" ["r9"] "r9" ["r8"] ["r14" "rax"] [8]);
functions!(words3, 3, [a "r8" b "r9" c "r10"] "r8" ["r9" "r10"] "r10" ["r8" "r9"] ["r14" "r15" "rax"] [8 16]);
functions!(
    words4, 4,
    [a "r8" b "r9" c "r10" d "r11"] "r8" ["r9" "r10" "r11"] "r11" ["r8" "r9" "r10"]
    ["r14" "r15" "rdx" "rax"] [8 16 24]
);
functions!(
    words5, 5,
    [a "r8" b "r9" c "r10" d "r11" e "r12"] "r8" ["r9" "r10" "r11" "r12"] "r12" ["r8" "r9" "r10" "r11"]
    ["r14" "r15" "rdx" "rsi" "rax"] [8 16 24 32]
);
functions!(
    words6, 6,
    [a "r8" b "r9" c "r10" d "r11" e "r12" f "r13"]
    "r8" ["r9" "r10" "r11" "r12" "r13"] "r13" ["r8" "r9" "r10" "r11" "r12"]
    ["r14" "r15" "rdx" "rsi" "rdi" "rax"] [8 16 24 32 40]
);

/// The arithmetic of a modulus of N words, on a processor that has the instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chains<const N: usize>(&'static Modulus<N>);

/// The function of a number of words.
macro_rules! by_words {
    ($n:ident, $function:ident($($argument:expr),*)) => {
        // SAFETY: there is such a value only where the processor has the instructions.
        unsafe {
            match $n {
                2 => words2::$function($($argument),*),
                3 => words3::$function($($argument),*),
                4 => words4::$function($($argument),*),
                5 => words5::$function($($argument),*),
                6 => words6::$function($($argument),*),
                _ => unreachable!("no modulus of {} words is made", $n),
            }
        }
    };
}

impl<const N: usize> Chains<N> {
    /// That of a modulus, if there is one and the processor has the instructions.
    #[inline]
    pub(crate) fn of(modulus: &'static Option<Modulus<N>>) -> Option<Self> {
        modulus.as_ref().filter(|_| cpu_has_carry_chains()).map(Self)
    }

    /// a · b / 2^(64 N) mod p.
    #[inline]
    pub(crate) fn mul(self, a: &[u64; N], b: &[u64; N]) -> [u64; N] {
        by_words!(N, mul(a, b, self.0))
    }

    /// a² / 2^(64 N) mod p.
    #[inline]
    pub(crate) fn square(self, a: &[u64; N]) -> [u64; N] {
        if self.0.has_two_bits() { by_words!(N, square(a, self.0)) } else { self.mul(a, a) }
    }

    /// a + b mod p.
    #[inline]
    pub(crate) fn add(self, a: &[u64; N], b: &[u64; N]) -> [u64; N] {
        by_words!(N, add(a, b, self.0))
    }

    /// a − b mod p.
    #[inline]
    pub(crate) fn sub(self, a: &[u64; N], b: &[u64; N]) -> [u64; N] {
        by_words!(N, sub(a, b, self.0))
    }
}

#[cfg(test)]
mod tests;
