//! Parameters, buffers and constants of kernels: declared once, in Rust, for all languages.

use std::fmt::Write;

use bytemuck::Pod;

use crate::bindings::{Access, Binding};

/// The type of a kernel's parameter: a word, or an array of words.
///
/// # Safety
/// The type consists of words of 32 bits, without padding, and is aligned as one.
pub unsafe trait ParamType: Pod {
    /// The number of words of an array; `None` for a word.
    const LEN: Option<usize>;
}

// SAFETY: one word.
unsafe impl ParamType for u32 {
    const LEN: Option<usize> = None;
}

// SAFETY: N words.
unsafe impl<const N: usize> ParamType for [u32; N]
where
    Self: Pod,
{
    const LEN: Option<usize> = Some(N);
}

/// A field of [`Params`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamField {
    /// Its name in all languages.
    pub name: &'static str,
    /// The number of words of an array; `None` for a word.
    pub len: Option<usize>,
}

impl ParamField {
    /// Declares a field of type `T`.
    pub const fn of<T: ParamType>(name: &'static str) -> Self {
        Self { name, len: T::LEN }
    }
}

/// The parameters of a kernel, which [`params!`](crate::params) declares. Those of a kernel without any are `()`.
///
/// # Safety
/// The fields are those of the type, in their order and without padding.
pub unsafe trait Params: Pod {
    /// The fields, in order.
    const FIELDS: &'static [ParamField];
}

// SAFETY: there are none.
unsafe impl Params for () {
    const FIELDS: &'static [ParamField] = &[];
}

/// Words of all fields.
pub(crate) const fn words(fields: &[ParamField]) -> usize {
    let (mut words, mut i) = (0, 0);
    while i < fields.len() {
        words += match fields[i].len {
            Some(len) => len,
            None => 1,
        };
        i += 1;
    }
    words
}

/// Whether a type of this size and alignment has the words of these fields and nothing else.
#[doc(hidden)]
pub const fn is_packed<P: Params>() -> bool {
    size_of::<P>() == 4 * words(P::FIELDS) && align_of::<P>() <= 4
}

/// Declares the parameters of kernels. Each is a struct with fields of type `u32`, arrays of it, or another
/// [`ParamType`]. It is `Copy`, `Debug`, `Default` and [`Params`].
///
/// Kernels see it as `params`. CUDA has the same fields. WGSL has the fields that are words, and word i of an array `x`
/// (of at most 32 words) as `x_i`. A name must not be a keyword of any of the languages; WGSL reserves many, such as
/// `from` and `pass`. It must not end like a word of another array (`x_0`), or like the names that the backend adds for
/// a binding (`x_base`).
///
/// ```
/// evariste_backend::params! {
///     /// What a kernel that scales takes.
///     pub struct ScaleParams {
///         /// How many elements.
///         pub len: u32,
///         /// The factor, the low word first.
///         pub factor: [u32; 2],
///     }
/// }
/// assert_eq!(size_of::<ScaleParams>(), 12);
/// ```
#[macro_export]
macro_rules! params {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty),* $(,)?
    })+) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default)]
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type),*
        }

        // SAFETY: all fields are words, which may be zero.
        unsafe impl $crate::bytemuck::Zeroable for $name {}

        // SAFETY: all fields are words, which may have any value, without padding between them.
        unsafe impl $crate::bytemuck::Pod for $name {}

        // SAFETY: these are the fields, which are words.
        unsafe impl $crate::author::Params for $name {
            const FIELDS: &'static [$crate::author::ParamField] =
                &[$($crate::author::ParamField::of::<$type>(stringify!($field))),*];
        }

        const _: () = assert!($crate::is_packed::<$name>(), "parameters are 32-bit words, without attributes that change this");
    )+};
}

/// A constant in a kernel's sources: its name in all languages, and its value.
pub type Constant = (&'static str, u32);

/// Declares constants that the host and kernels share, such as bits of a parameter: a module of `u32` constants, with
/// the list `ALL` for [`KernelSpec::constants`](crate::author::KernelSpec::constants).
///
/// ```
/// evariste_backend::constants! {
///     mod flags {
///         /// Elements are read from the highest down.
///         DOWN = 1,
///         TWICE = 2,
///     }
/// }
/// assert_eq!(flags::ALL, [("DOWN", flags::DOWN), ("TWICE", 2)]);
/// ```
#[macro_export]
macro_rules! constants {
    ($(#[$meta:meta])* $vis:vis mod $module:ident { $($(#[$doc:meta])* $name:ident = $value:expr),* $(,)? }) => {
        $(#[$meta])*
        $vis mod $module {
            #[allow(unused_imports, reason = "values may be those of types beside the module")]
            use super::*;

            $($(#[$doc])* pub(crate) const $name: u32 = $value;)*

            /// All of them, by name.
            pub(crate) const ALL: &[$crate::author::Constant] = &[$((stringify!($name), $name)),*];
        }
    };
}

/// The constants in CUDA C++, a line each.
pub(crate) fn cuda_constants(constants: &[Constant]) -> String {
    constants.iter().map(|(name, value)| format!("#define {name} {value}u\n")).collect()
}

/// The constants in WGSL, on one line.
#[cfg(any(test, feature = "wgpu"))]
pub(crate) fn wgsl_constants(constants: &[Constant]) -> String {
    constants.iter().map(|(name, value)| format!("const {name} = {value}u; ")).collect()
}

/// `BUFFERS(T, …)` in CUDA C++: the buffers as the entry takes them, each a pointer to the type that is given for it.
pub(crate) fn cuda_buffers(bindings: &[Binding]) -> String {
    let types: Vec<String> = (0..bindings.len()).map(|i| format!("T{i}")).collect();
    let pointers = bindings.iter().zip(&types).map(|(binding, of)| match binding.access {
        Access::Read => format!("const {of}* {}", binding.name),
        Access::Write => format!("{of}* {}", binding.name),
    });
    let pointers: Vec<String> = pointers.collect();
    // What is given may be a macro of several types.
    format!(
        "#define BUFFERS(...) BUFFERS_OF(__VA_ARGS__)\n#define BUFFERS_OF({}) {}\n",
        types.join(", "),
        pointers.join(", ")
    )
}

/// The struct in CUDA C++, on one line.
pub(crate) fn cuda(fields: &[ParamField]) -> String {
    let mut text = String::from("struct Params {");
    for ParamField { name, len } in fields {
        let _ = match len {
            Some(len) => write!(text, " uint32_t {name}[{len}];"),
            None => write!(text, " uint32_t {name};"),
        };
    }
    text + " };"
}

/// The fields of the struct in WGSL, each with its type, on one line.
#[cfg(any(test, feature = "wgpu"))]
pub(crate) fn wgsl(fields: &[ParamField]) -> String {
    let mut text = String::new();
    for ParamField { name, len } in fields {
        let _ = match len {
            Some(len) => (0..*len).try_for_each(|i| write!(text, "{name}_{i}: u32, ")),
            None => write!(text, "{name}: u32, "),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    params! {
        struct Several {
            len: u32,
            place: [u32; 2],
            last: u32,
        }
    }

    constants! {
        mod flags {
            DOWN = 1,
            TWICE = 2,
        }
    }

    #[test]
    fn constants_are_the_same_in_all_languages() {
        assert_eq!(cuda_constants(flags::ALL), "#define DOWN 1u\n#define TWICE 2u\n");
        assert_eq!(wgsl_constants(flags::ALL), "const DOWN = 1u; const TWICE = 2u; ");
        assert_eq!(flags::DOWN | flags::TWICE, 3);
    }

    #[test]
    fn buffers_have_the_names_and_the_access_of_their_bindings() {
        let bindings = [
            Binding::read("a", crate::bindings::BindingType::U32),
            Binding::write("out", crate::bindings::BindingType::Vec4),
        ];
        let text = cuda_buffers(&bindings);
        assert!(text.ends_with("#define BUFFERS_OF(T0, T1) const T0* a, T1* out\n"), "{text}");
    }

    #[test]
    fn fields_are_the_same_in_all_languages() {
        assert_eq!(words(Several::FIELDS), 4);
        assert_eq!(cuda(Several::FIELDS), "struct Params { uint32_t len; uint32_t place[2]; uint32_t last; };");
        assert_eq!(wgsl(Several::FIELDS), "len: u32, place_0: u32, place_1: u32, last: u32, ");
        assert_eq!(bytemuck::cast::<_, [u32; 4]>(Several { len: 1, place: [2, 3], last: 4 }), [1, 2, 3, 4]);
    }
}
