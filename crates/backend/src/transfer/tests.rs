//! Copies of views on the CPU.

use std::ops::Range;

use crate::{buffer::Buffer, device::Device, error::Error, info::Transfer, secrecy::Secrecy, view::staging_len};

#[test]
fn parts_are_checked_and_do_not_overlap() {
    let device = Device::cpu();
    let mut x = device.upload::<u8>(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
    assert_eq!(x.view(1..=2).unwrap().to_vec().unwrap(), [1, 2]);
    assert_eq!(x.view(10..).unwrap().to_vec().unwrap(), []);
    let inverted = Range { start: 4, end: 3 };
    for (view, offset, count) in [(x.view(9..11), 9, 2), (x.view(inverted), 4, 0), (x.view(..=usize::MAX), 0, u64::MAX)]
    {
        assert_eq!(view.unwrap_err(), Error::OutOfRange { what: "a view", offset, count, len: 10 });
    }
    // Words that two could write are not divided.
    let unaligned = x.view_mut(2..).unwrap().split_at(1).unwrap_err();
    assert_eq!(unaligned, Error::Unaligned { what: "a view", expected: 4, offset: 3, count: 8 });
    let (mut low, mut high) = x.view_mut(1..).unwrap().split_at(3).unwrap();
    low.view_mut(1..).unwrap().write(&[22, 33]).unwrap();
    high.write(&[44, 55, 66, 77, 88, 99]).unwrap();
    assert_eq!(x.to_vec().unwrap(), [0, 1, 22, 33, 44, 55, 66, 77, 88, 99]);
    let (_, end) = x.view_mut(..).unwrap().split_at(10).unwrap();
    assert!(end.is_empty());
    let refused = x.view_mut(..3).unwrap().clear().unwrap_err();
    assert_eq!(refused, Error::Unaligned { what: "clear", expected: 4, offset: 0, count: 3 });
}

#[test]
fn pieces_fill_staging_memory_and_no_more() {
    let staging = 8 << 20;
    for size in [1, 2, 3, 4, 8, 12, 16, 20, 24, 32, 40, 48, 96, 144, 192, 288] {
        for start in [0, 1, 2, 3, 4].map(|element| element * size) {
            let bytes = staging_len(staging, start, size) as u64 * size;
            let words = (start + bytes).next_multiple_of(4) - start / 4 * 4;
            assert!(bytes.is_multiple_of(4) && words <= staging, "{size} bytes from {start} on: {words}");
            assert!(words + 4 * size > staging, "{size} bytes from {start} on: {words}");
        }
    }
    assert_eq!(staging_len(staging, 0, 4 << 20), 4);
    assert_eq!(staging_len(isize::MAX as u64, 1, 1), isize::MAX as usize / 2 / 4 * 4);
    assert_eq!(staging_len(0, 1, 1), 4);
}

#[test]
fn contents_are_replaced_without_a_copy_where_that_can_be() {
    let device = Device::cpu();
    let mut x = device.upload::<u32>(&[1, 2, 3]).unwrap();
    let address = |x: &Buffer<u32>| x.memory.address();
    let other = device.upload::<u32>(&[4, 5, 6]).unwrap();
    let taken = address(&other);
    device.default_queue().replace(&mut x, other).unwrap();
    assert_eq!((address(&x), x.to_vec().unwrap()), (taken, vec![4, 5, 6]));
    let mut secret = device.upload_with::<u32>(&[0, 0, 0], Secrecy::Secret).unwrap();
    let own = address(&secret);
    device.default_queue().replace(&mut secret, device.upload::<u32>(&[7, 8, 9]).unwrap()).unwrap();
    assert_eq!((address(&secret), secret.to_vec().unwrap()), (own, vec![7, 8, 9]));
    assert!(matches!(device.default_queue().replace(&mut x, secret).unwrap_err(), Error::SecretInput { .. }));
    let part = device.upload::<u32>(&[1, 2]).unwrap();
    device.default_queue().replace(x.view_mut(1..).unwrap(), part).unwrap();
    assert_eq!((address(&x), x.to_vec().unwrap()), (taken, vec![4, 1, 2]));
}

#[test]
fn copies_keep_secrets_in_secret_memory() {
    let device = Device::cpu();
    let secret = device.upload_with::<u32>(&[1, 2, 3, 4], Secrecy::Secret).unwrap();
    let mut public = device.zeros::<u32>(4).unwrap();
    let host = |secrecy| device.host_buffer(16, Transfer::Both, secrecy).unwrap();
    let names = |refused: Error| match refused {
        Error::SecretInput { operation, input, output } => (operation, input, output),
        other => panic!("{other}"),
    };
    let copied = public.copy_from(&secret).unwrap_err();
    assert_eq!(names(copied), ("copy", "the source of a copy", "the target of a copy"));
    let written = public.write_pinned(host(Secrecy::Secret)).unwrap_err();
    assert_eq!(names(written), ("write", "the host memory of a write", "the view"));
    let columns = device.default_queue().write_pinned_columns(&mut public, host(Secrecy::Secret), 1, 1).unwrap_err();
    assert_eq!(names(columns).0, "write");
    let read = secret.read_pinned(host(Secrecy::Public)).unwrap_err();
    assert_eq!(names(read), ("read", "the view", "the host memory of a read"));
    let columns = device.default_queue().read_pinned_columns(&secret, host(Secrecy::Public), 1, &[]).unwrap_err();
    assert_eq!(names(columns).0, "read");
    assert_eq!(public.to_vec().unwrap(), [0; 4]);

    // What is secret already, what the caller says is no secret, and slices.
    assert_eq!(secret.duplicate().unwrap().secrecy(), Secrecy::Secret);
    assert_eq!(secret.view(1..).unwrap().duplicate().unwrap().secrecy(), Secrecy::Secret);
    secret.read_pinned(host(Secrecy::Secret)).unwrap().wait().unwrap();
    assert_eq!(secret.to_vec().unwrap(), [1, 2, 3, 4]);
    assert_eq!(secret.as_view().declassify().duplicate().unwrap().secrecy(), Secrecy::Public);
    public.copy_from(secret.as_view().declassify()).unwrap();
    assert_eq!(public.to_vec().unwrap(), [1, 2, 3, 4]);
    assert_eq!(secret.as_view().declassify().view(1..).unwrap().secrecy(), Secrecy::Public);
}

/// The CPU exchanges host memory and its own, where that tells nothing.
#[test]
fn public_memory_comes_back_public() {
    let device = Device::cpu();
    let mut secret = device.upload_with::<u32>(&[1, 2, 3, 4], Secrecy::Secret).unwrap();
    let mut host = device.host_buffer(16, Transfer::Both, Secrecy::Public).unwrap();
    host.fill(9);
    let host = secret.write_pinned(host).unwrap().wait().unwrap();
    assert_eq!((host.secrecy(), &host[..]), (Secrecy::Public, &[9; 16][..]));
    assert_eq!(secret.secrecy(), Secrecy::Secret);
}
