//! The owner, the group and the permissions of a file that replaces another one.

use std::{
    fs::{self, File, Metadata},
    io,
    path::Path,
};

/// Gives a file the owner, the group and the rights of another, as far as the system lets and `cp -p` does: a user who
/// may not give a file away writes one of their own, for which rights of others are not meant.
#[cfg(unix)]
pub(super) fn keep_rights(file: &File, replaced: &Metadata, target: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    let (owner, group) = (replaced.uid(), replaced.gid());
    if fchown(file, Some(owner), Some(group)).is_err() {
        let _ = fchown(file, None, Some(group));
    }
    // What there is now: systems may ignore what they do not know.
    let now = file.metadata()?;
    let (has_owner, has_group) = (now.uid() == owner, now.gid() == group);
    let list = access_list(target);
    set_access_list(file, None);
    let mut mode = kept_mode(replaced.mode(), has_owner, has_group);
    if list.is_some() {
        // They are the most that anyone in the list has, and not the group's.
        mode &= !0o070;
    }
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    if let Some(list) = list.filter(|_| has_owner && has_group) {
        set_access_list(file, Some(&list));
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn keep_rights(file: &File, replaced: &Metadata, _: &Path) -> io::Result<()> {
    file.set_permissions(replaced.permissions())
}

/// The rights that are left of a mode for a file of the same owner, of the same group, of both or of neither. A program
/// runs as its owner or group only if that is the same; the rights of a group are for that group, whose members count
/// among all others now, and get no more so than they had.
#[cfg(unix)]
pub(super) fn kept_mode(mode: u32, has_owner: bool, has_group: bool) -> u32 {
    let group = mode >> 3 & 0o7;
    match (has_owner, has_group) {
        (true, true) => mode & 0o7777,
        (false, true) => mode & 0o777,
        (_, false) => mode & (0o700 | group),
    }
}

/// The list of further users and groups with rights to a file, as the system stores it.
#[cfg(target_os = "linux")]
pub(super) fn access_list(path: &Path) -> Option<Vec<u8>> {
    let mut list = Vec::with_capacity(rustix::fs::lgetxattr_query(path, ACCESS_LIST).ok()?);
    rustix::fs::lgetxattr(path, ACCESS_LIST, rustix::buffer::spare_capacity(&mut list)).ok()?;
    Some(list)
}

/// Replaces the list, or removes what a file has of its folder's.
#[cfg(target_os = "linux")]
fn set_access_list(file: &File, list: Option<&[u8]>) {
    // Where it fails, there are only the rights of the mode.
    let _ = match list {
        Some(list) => rustix::fs::fsetxattr(file, ACCESS_LIST, list, rustix::fs::XattrFlags::empty()),
        None => rustix::fs::fremovexattr(file, ACCESS_LIST),
    };
}

#[cfg(target_os = "linux")]
pub(super) const ACCESS_LIST: &str = "system.posix_acl_access";

#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn access_list(_: &Path) -> Option<Vec<u8>> {
    None
}

#[cfg(all(unix, not(target_os = "linux")))]
fn set_access_list(_: &File, _: Option<&[u8]>) {}
