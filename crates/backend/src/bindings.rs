//! The buffers of a kernel: their declaration, and their form in its body for the CPU.

use crate::cpu_arg::CpuArg;

/// How a kernel uses a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// The kernel only reads it.
    Read,
    /// The kernel writes it, and may read it.
    Write,
}

/// The unit in which WGSL sees a buffer. CUDA and CPU bodies cast as they like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BindingType {
    /// `u32`.
    U32,
    /// `vec2<u32>`.
    Vec2,
    /// `vec4<u32>`.
    Vec4,
    /// `atomic<u32>`, of a buffer that is written.
    Atomic,
    /// `vec4<u32>`, for a view of bytes that may start and end within such a word. Word 0 contains the first byte
    /// ([`View::start`](crate::View::start) says where). CPU bodies get exactly the bytes of the view. The bytes
    /// around it may belong to others: kernels must not use or change them. In CUDA they write only those words of 4
    /// bytes that contain bytes of the view.
    Bytes,
}

impl BindingType {
    /// Returns the widest word that divides elements of `bytes` bytes (a multiple of 4).
    pub const fn of(bytes: usize) -> Self {
        match bytes {
            b if b % 16 == 0 => BindingType::Vec4,
            b if b % 8 == 0 => BindingType::Vec2,
            _ => BindingType::U32,
        }
    }

    /// Returns the bytes of a word.
    pub const fn bytes(self) -> u64 {
        match self {
            BindingType::U32 | BindingType::Atomic => 4,
            BindingType::Vec2 => 8,
            BindingType::Vec4 | BindingType::Bytes => 16,
        }
    }
}

/// A buffer of a kernel.
///
/// In WGSL, a binding `x` has the accessor `x_get(i: u32) -> W` and, if it is written, `x_set(i: u32, value: W)`. `W`
/// is the word of the [`BindingType`], and `i` counts words from the start of the view. The backend generates these
/// functions, since an allocation may consist of several buffers of its API, and a view may start anywhere in one. For
/// atomics `W` is `u32`, and `x_max(i: u32, value: u32)` is CUDA's `atomicMax`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Binding {
    /// Its name in the sources.
    pub name: &'static str,
    /// How it is used.
    pub access: Access,
    /// How WGSL sees it.
    pub binding_type: BindingType,
}

impl Binding {
    /// Declares a buffer that is only read.
    ///
    /// # Panics
    /// If it is of atomics, which are for words that threads write at once.
    pub const fn read(name: &'static str, binding_type: BindingType) -> Self {
        assert!(!matches!(binding_type, BindingType::Atomic), "atomics are written");
        Self { name, access: Access::Read, binding_type }
    }

    /// Declares a buffer that is written, and may be read.
    pub const fn write(name: &'static str, binding_type: BindingType) -> Self {
        Self { name, access: Access::Write, binding_type }
    }
}

/// The buffers of a kernel, in a shape that fixes their number. The CPU body receives them in the same shape.
///
/// | declared | in the body |
/// | --- | --- |
/// | [`Binding`] | `&mut CpuArg` |
/// | `[Binding; N]` | `&mut [CpuArg; N]` |
/// | `Option<Binding>`, which some variants of a kernel have | `Option<&mut CpuArg>` |
/// | `Vec<Binding>`, with a number that the variant fixes | `&mut [CpuArg]` |
/// | a pair, triple or quadruple of these, one after the other | a pair, triple or quadruple |
pub trait BindingList: Send + Sync + 'static {
    /// The buffers in the CPU body.
    type Args<'a>;

    /// Returns all of them, in order.
    fn list(&self) -> Vec<Binding>;

    /// Takes its buffers off the front of `args`.
    ///
    /// # Panics
    /// If `args` has too few. A launch has exactly the buffers that its kernel declares.
    fn args<'a>(&self, args: &mut &'a mut [CpuArg<'a>]) -> Self::Args<'a>;
}

impl BindingList for Binding {
    type Args<'a> = &'a mut CpuArg<'a>;

    fn list(&self) -> Vec<Binding> {
        vec![*self]
    }

    fn args<'a>(&self, args: &mut &'a mut [CpuArg<'a>]) -> &'a mut CpuArg<'a> {
        let [arg] = front(args);
        arg
    }
}

impl<const N: usize> BindingList for [Binding; N] {
    type Args<'a> = &'a mut [CpuArg<'a>; N];

    fn list(&self) -> Vec<Binding> {
        self.to_vec()
    }

    fn args<'a>(&self, args: &mut &'a mut [CpuArg<'a>]) -> &'a mut [CpuArg<'a>; N] {
        front(args)
    }
}

impl BindingList for Option<Binding> {
    type Args<'a> = Option<&'a mut CpuArg<'a>>;

    fn list(&self) -> Vec<Binding> {
        self.iter().copied().collect()
    }

    fn args<'a>(&self, args: &mut &'a mut [CpuArg<'a>]) -> Option<&'a mut CpuArg<'a>> {
        self.as_ref().map(|binding| binding.args(args))
    }
}

impl BindingList for Vec<Binding> {
    type Args<'a> = &'a mut [CpuArg<'a>];

    fn list(&self) -> Vec<Binding> {
        self.clone()
    }

    fn args<'a>(&self, args: &mut &'a mut [CpuArg<'a>]) -> &'a mut [CpuArg<'a>] {
        match args.split_off_mut(..self.len()) {
            Some(front) => front,
            None => missing(),
        }
    }
}

macro_rules! binding_tuples {
    ($(($($list:ident $at:tt),+))+) => {$(
        impl<$($list: BindingList),+> BindingList for ($($list,)+) {
            type Args<'a> = ($($list::Args<'a>,)+);

            fn list(&self) -> Vec<Binding> {
                [$(self.$at.list()),+].concat()
            }

            fn args<'a>(&self, args: &mut &'a mut [CpuArg<'a>]) -> Self::Args<'a> {
                ($(self.$at.args(args),)+)
            }
        }
    )+};
}

binding_tuples! {
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
}

/// Takes `N` buffers off the front.
fn front<'a, const N: usize>(args: &mut &'a mut [CpuArg<'a>]) -> &'a mut [CpuArg<'a>; N] {
    match args.split_off_mut(..N).and_then(|front| front.try_into().ok()) {
        Some(front) => front,
        None => missing(),
    }
}

fn missing() -> ! {
    unreachable!("a launch has exactly the buffers that its kernel declares")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_in_the_shape_in_which_they_are_declared() {
        let [a, b, c, d, e] = ["a", "b", "c", "d", "e"].map(|name| Binding::write(name, BindingType::U32));
        let bytes = |args: &[CpuArg<'_>]| args.iter().map(|arg| arg.read::<u8>()[0]).collect::<Vec<_>>();
        let mut memory = [[0], [1], [2], [3], [4]];
        let mut args = memory.each_mut().map(|byte| CpuArg::Write(byte));
        let list = (vec![a, b], Some(c), [d], e);
        assert_eq!(list.list(), [a, b, c, d, e]);
        let rest = &mut &mut args[..];
        let (several, optional, [one], last) = list.args(rest);
        assert_eq!((bytes(several), optional.map(|arg| arg.read::<u8>()[0])), (vec![0, 1], Some(2)));
        assert_eq!((one.read::<u8>(), last.read::<u8>(), rest.len()), (&[3][..], &[4][..], 0));

        let mut args = memory.each_mut().map(|byte| CpuArg::Write(byte));
        let list = (vec![], None, [a, b, c]);
        assert_eq!(list.list(), [a, b, c]);
        let rest = &mut &mut args[..];
        let (several, optional, fixed) = list.args(rest);
        assert_eq!((several.len(), optional.is_none(), bytes(fixed), rest.len()), (0, true, vec![0, 1, 2], 2));
    }
}
