//! The buffers of a launch, as a kernel's body for the CPU gets them.

use bytemuck::Pod;

/// A buffer of a launch, in the CPU body of a kernel.
#[derive(Debug)]
pub enum CpuArg<'a> {
    /// A buffer that the kernel only reads.
    Read(&'a [u8]),
    /// A buffer that the kernel writes.
    Write(&'a mut [u8]),
}

impl CpuArg<'_> {
    /// Returns the buffer as elements of a type. A tail that does not fill an element is left out.
    pub fn read<T: Pod>(&self) -> &[T] {
        let bytes = match self {
            CpuArg::Read(bytes) => bytes,
            CpuArg::Write(bytes) => &**bytes,
        };
        bytemuck::cast_slice(&bytes[..bytes.len() / size_of::<T>() * size_of::<T>()])
    }

    /// Returns the buffer as elements of a type, for writing. A tail that does not fill an element is left out.
    ///
    /// # Panics
    /// If the kernel declares the buffer as read only, which is a defect of its body. The launch then returns an
    /// error.
    pub fn write<T: Pod>(&mut self) -> &mut [T] {
        match self {
            CpuArg::Read(_) => panic!("the kernel declares this buffer as read only"),
            CpuArg::Write(bytes) => {
                let len = bytes.len() / size_of::<T>() * size_of::<T>();
                bytemuck::cast_slice_mut(&mut bytes[..len])
            }
        }
    }
}
