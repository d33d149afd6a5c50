//! Files that take their name only when they are complete.
//!
//! Where the system and the file system have files without a name (`O_TMPFILE` of Linux), nothing is left of one whose program is
//! killed. Elsewhere it has a name beside its target, `.NAME.N.part`, and is locked as long as its program lives: what is not
//! locked was left behind, and the next file for the same target removes it.

use std::{
    fs::{self, File, Metadata},
    io::{self, Seek},
    path::{self, Path, PathBuf},
};

use crate::{Error, Result};

/// Links that are followed, as systems do.
const MAX_LINKS: usize = 40;

/// Bytes of a target's name that the name beside it begins with: systems take 255 in all.
const NAME_BYTES: usize = 100;

/// Names beside a target that are tried: as many files may be written to it at once.
const NAMES: usize = 1000;

/// Of these, those that are looked at for what others left behind.
const LEFT_BEHIND: usize = 8;

/// A file that takes its name only when it is finished, and goes if it never is.
pub(crate) struct Aside {
    file: File,
    /// The name that it has until then, if it has one.
    name: Option<PathBuf>,
    target: PathBuf,
    /// Of the file that it replaces.
    replaced: Option<Metadata>,
}

impl Aside {
    /// Refuses what cannot be a target, before the work for it.
    pub(crate) fn expect_target(target: &Path) -> Result<()> {
        follow(target).map(drop)
    }

    /// A file for what is made of `source`, which stays whatever it is called.
    pub(crate) fn new(target: &Path, source: &File) -> Result<Self> {
        let (target, replaced) = follow(target)?;
        remove_left_behind(&target, source);
        match without_name(folder_of(&target)) {
            Some(file) => Ok(Self { file, name: None, target, replaced }),
            None => Self::named(target, replaced),
        }
    }

    fn named(target: PathBuf, replaced: Option<Metadata>) -> Result<Self> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut last = None;
        for number in 0..NAMES {
            let name = beside(&target, number);
            match options.open(&name) {
                Ok(file) => {
                    if is_kept(&file) {
                        return Ok(Self { file, name: Some(name), target, replaced });
                    }
                    // Another program took it for left behind, before it was locked.
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = Some(error),
                Err(error) => return Err(Error::io(format!("creating {}", name.display()), &error)),
            }
        }
        let last = last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into());
        Err(Error::io(format!("creating {}", beside(&target, NAMES - 1).display()), &last))
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Makes sure that the contents are on the disk before they get the name.
    pub(crate) fn finish(mut self) -> Result<()> {
        let target = self.target.clone();
        self.complete().map_err(|error| Error::io(format!("completing {}", target.display()), &error))
    }

    fn complete(&mut self) -> io::Result<()> {
        self.settle()?;
        if self.name.is_none() && !self.link()? {
            let mut named = Self::named(self.target.clone(), self.replaced.clone()).map_err(io::Error::other)?;
            self.file.rewind()?;
            io::copy(&mut self.file, &mut named.file)?;
            std::mem::swap(self, &mut named);
            self.settle()?;
        }
        if let Some(name) = &self.name {
            fs::rename(name, &self.target)?;
        }
        self.name = None;
        Ok(())
    }

    /// Gives it the rights of what it replaces, and its contents to the disk.
    fn settle(&self) -> io::Result<()> {
        if let Some(replaced) = &self.replaced {
            keep_rights(&self.file, replaced, &self.target)?;
        }
        self.file.sync_all()
    }

    /// Gives a file without a name one beside the target, since only a rename replaces what is there. False where the system does
    /// not.
    #[cfg(target_os = "linux")]
    fn link(&mut self) -> io::Result<bool> {
        use std::os::fd::AsRawFd;

        use rustix::fs::{AtFlags, CWD, linkat};

        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        for number in 0..NAMES {
            let name = beside(&self.target, number);
            match linkat(CWD, &own, CWD, &name, AtFlags::SYMLINK_FOLLOW) {
                Ok(()) => {
                    self.name = Some(name);
                    return Ok(true);
                }
                Err(rustix::io::Errno::EXIST) => {}
                Err(_) => return Ok(false),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    #[cfg(not(target_os = "linux"))]
    fn link(&mut self) -> io::Result<bool> {
        Ok(false)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = fs::remove_file(name);
        }
    }
}

/// The name that a file for this target has until it is finished.
fn beside(target: &Path, number: usize) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let end = (0..=NAME_BYTES.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    target.with_file_name(format!(".{}.{number}.part", &name[..end]))
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file without a name in a folder, where there are such files.
#[cfg(target_os = "linux")]
fn without_name(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};

    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(open(folder, flags, Mode::RUSR | Mode::WUSR).ok()?);
    // It has a name for a moment at the end.
    let _ = file.try_lock();
    Some(file)
}

#[cfg(not(target_os = "linux"))]
fn without_name(_: &Path) -> Option<File> {
    None
}

/// Locks a file that was just made, and tells whether it still has its name.
#[cfg(unix)]
fn is_kept(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;

    // Where there are no locks, nobody takes it for left behind.
    let is_taken = matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock));
    !is_taken && file.metadata().is_ok_and(|metadata| metadata.nlink() > 0)
}

#[cfg(not(unix))]
fn is_kept(_: &File) -> bool {
    true
}

/// Removes files of this user for the same target that no program works on: whoever wrote them was ended. What cannot be found
/// out stays, and so does what is being read.
#[cfg(unix)]
fn remove_left_behind(target: &Path, source: &File) {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

    use rustix::fs::OFlags;

    let Ok(source) = source.metadata() else { return };
    let same = |a: &Metadata, b: &Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    let is_own = |found: &Metadata| {
        found.is_file() && found.uid() == rustix::process::geteuid().as_raw() && !same(found, &source)
    };
    for number in 0..LEFT_BEHIND {
        let name = beside(target, number);
        if !fs::symlink_metadata(&name).is_ok_and(|found| is_own(&found)) {
            continue;
        }
        let mut options = File::options();
        options.read(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
        let Ok(file) = options.open(&name) else { continue };
        if file.try_lock().is_err() {
            continue;
        }
        // Its program may have given it the target's name meanwhile, and another one this name to its own: from here on, who finds
        // the file under this name waits for the lock.
        if let (Ok(open), Ok(found)) = (file.metadata(), fs::symlink_metadata(&name))
            && is_own(&found)
            && same(&open, &found)
        {
            let _ = fs::remove_file(&name);
        }
    }
}

#[cfg(not(unix))]
fn remove_left_behind(_: &Path, _: &File) {}

/// Where a path leads through links, and what is there. A path that no file can have is refused.
fn follow(target: &Path) -> Result<(PathBuf, Option<Metadata>)> {
    let refuse = |path: &Path, kind, reason: &str| {
        Err(Error::Io { what: format!("replacing {}", path.display()), kind, reason: reason.into() })
    };
    let fail = |path: &Path, error| Err(Error::io(format!("replacing {}", path.display()), &error));
    let mut path = target.to_owned();
    for _ in 0..=MAX_LINKS {
        if !names_a_file(&path) {
            return refuse(&path, io::ErrorKind::InvalidInput, "it is not the name of a file");
        }
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match fs::metadata(folder_of(&path)) {
                    Ok(folder) if folder.is_dir() => Ok((path, None)),
                    Ok(_) => refuse(&path, io::ErrorKind::NotADirectory, "it is not in a folder"),
                    Err(error) => fail(&path, error),
                };
            }
            Err(error) => return fail(&path, error),
        };
        if found.is_file() {
            return Ok((path, Some(found)));
        }
        if !found.is_symlink() {
            return refuse(&path, io::ErrorKind::InvalidInput, "it is not a file");
        }
        let next = fs::read_link(&path).map_err(|error| Error::io(format!("reading {}", path.display()), &error))?;
        // A link is relative to the folder that it lies in.
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    refuse(target, io::ErrorKind::InvalidInput, "it has too many links")
}

/// Whether a path ends with a name, other than those of folders.
fn names_a_file(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let last = bytes.rsplit(|byte| byte.is_ascii() && path::is_separator(char::from(*byte))).next();
    !matches!(last, None | Some(b"" | b"." | b".."))
}

/// Gives a file the owner, the group and the rights of another, as far as the system lets and `cp -p` does: who may not give a
/// file away writes one of their own, for which rights of others are not meant.
#[cfg(unix)]
fn keep_rights(file: &File, replaced: &Metadata, target: &Path) -> io::Result<()> {
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
fn keep_rights(file: &File, replaced: &Metadata, _: &Path) -> io::Result<()> {
    file.set_permissions(replaced.permissions())
}

/// The rights that are left of a mode for a file of the same owner, of the same group, of both or of neither. A program runs as its
/// owner or group only if that is the same; the rights of a group are for that group, whose members count among all others now, and
/// get no more so than they had.
#[cfg(unix)]
fn kept_mode(mode: u32, has_owner: bool, has_group: bool) -> u32 {
    let group = mode >> 3 & 0o7;
    match (has_owner, has_group) {
        (true, true) => mode & 0o7777,
        (false, true) => mode & 0o777,
        (_, false) => mode & (0o700 | group),
    }
}

/// The list of further users and groups with rights to a file, as the system stores it.
#[cfg(target_os = "linux")]
fn access_list(path: &Path) -> Option<Vec<u8>> {
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
const ACCESS_LIST: &str = "system.posix_acl_access";

#[cfg(all(unix, not(target_os = "linux")))]
fn access_list(_: &Path) -> Option<Vec<u8>> {
    None
}

#[cfg(all(unix, not(target_os = "linux")))]
fn set_access_list(_: &File, _: Option<&[u8]>) {}

#[cfg(test)]
mod tests {
    use std::{
        env,
        io::Write,
        process::{self, Command},
        sync::atomic::{AtomicU32, Ordering},
    };

    use super::*;

    /// A folder that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);

            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = env::temp_dir().join(format!("evariste-aside-{}-{number}", process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn file(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort_unstable();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// With a name meanwhile, and without where the file system has such files.
    const MAKERS: [fn(&Path) -> Result<Aside>; 2] = [new, |target| {
        let (target, replaced) = follow(target)?;
        remove_left_behind(&target, &this_program());
        Aside::named(target, replaced)
    }];

    /// What is read in tests that read nothing.
    fn this_program() -> File {
        File::open(env::current_exe().unwrap()).unwrap()
    }

    fn new(target: &Path) -> Result<Aside> {
        Aside::new(target, &this_program())
    }

    #[test]
    fn contents_come_with_the_name_or_not_at_all() {
        for make in MAKERS {
            let folder = Folder::new();
            let target = folder.file("target");
            for contents in [&b"first"[..], b"second"] {
                let mut aside = make(&target).unwrap();
                aside.file().write_all(contents).unwrap();
                aside.finish().unwrap();
                assert_eq!((fs::read(&target).unwrap(), folder.names()), (contents.to_vec(), vec!["target".into()]));
                make(&target).unwrap().file().write_all(b"never").unwrap();
                assert_eq!((fs::read(&target).unwrap(), folder.names()), (contents.to_vec(), vec!["target".into()]));
            }
        }
    }

    /// What has no name and cannot be linked is copied.
    #[test]
    #[cfg(target_os = "linux")]
    fn contents_are_copied_where_they_cannot_be_linked() {
        let folder = Folder::new();
        let target = folder.file("target");
        // A file of another file system, if that is one, or one that has been removed.
        let path = folder.file("removed");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let mut aside = Aside { file, name: None, target: target.clone(), replaced: None };
        aside.file().write_all(b"contents").unwrap();
        assert!(!aside.link().unwrap(), "no link to what was removed");
        aside.finish().unwrap();
        assert_eq!((fs::read(&target).unwrap(), folder.names()), (b"contents".to_vec(), vec!["target".into()]));
    }

    #[test]
    fn targets_that_no_file_can_be_are_refused_first() {
        let folder = Folder::new();
        let path = |name: &str| folder.file("").join(name);
        fs::write(path("file"), b"contents").unwrap();
        fs::create_dir(path("folder")).unwrap();
        let names = ["new/", "new//", "new/.", "new/..", "folder/", "folder/.", "folder/..", "folder", ".", "..", ""];
        let empty = [PathBuf::new(), PathBuf::from("/"), PathBuf::from("."), PathBuf::from("new/")];
        for target in names.map(path).into_iter().chain(empty) {
            let error = Aside::expect_target(&target).unwrap_err();
            let is_kind = |error: &Error| matches!(error, Error::Io { kind: io::ErrorKind::InvalidInput, .. });
            assert!(is_kind(&error), "{}: {error}", target.display());
            assert!(new(&target).is_err(), "{}", target.display());
        }
        for (target, expected) in [
            ("file/new", io::ErrorKind::NotADirectory),
            ("file/", io::ErrorKind::InvalidInput),
            ("none/new", io::ErrorKind::NotFound),
        ] {
            let error = Aside::expect_target(&path(target)).unwrap_err();
            assert!(matches!(error, Error::Io { kind, .. } if kind == expected), "{target}: {error}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("new/", path("link")).unwrap();
            assert!(Aside::expect_target(&path("link")).is_err(), "a link to a folder that is not there");
        }
        for target in ["file", "new", "folder/new", ".hidden", "..."] {
            Aside::expect_target(&path(target)).unwrap();
        }
        Aside::expect_target(Path::new("a-file-in-this-folder")).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn what_was_left_behind_goes_and_what_is_being_written_stays() {
        let folder = Folder::new();
        let target = folder.file("target");
        let [left, held, other, link] =
            [".target.0.part", ".target.1.part", ".other.0.part", ".target.2.part"].map(|name| folder.file(name));
        for file in [&left, &held, &other] {
            fs::write(file, b"plaintext").unwrap();
        }
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let lock = File::open(&held).unwrap();
        lock.lock().unwrap();
        for make in MAKERS {
            fs::write(&left, b"plaintext").unwrap();
            let mut aside = make(&target).unwrap();
            aside.file().write_all(b"contents").unwrap();
            aside.finish().unwrap();
            assert_eq!(folder.names(), [".other.0.part", ".target.1.part", ".target.2.part", "target"]);
            assert_eq!(fs::read(&target).unwrap(), b"contents");
        }
        drop(lock);
        // Those that are at work at once.
        let first = MAKERS[1](&target).unwrap();
        assert!(!held.exists(), "its program has ended");
        let second = MAKERS[1](&target).unwrap();
        assert!(first.name != second.name && first.name.as_ref().is_some_and(|name| name.exists()));
        first.finish().unwrap();
        second.finish().unwrap();
        assert_eq!(folder.names(), [".other.0.part", ".target.2.part", "target"]);
    }

    #[test]
    #[cfg(unix)]
    fn what_is_read_stays_whatever_it_is_called() {
        let folder = Folder::new();
        let [source, target] = [".target.0.part", "target"].map(|name| folder.file(name));
        fs::write(&source, b"source").unwrap();
        drop(Aside::new(&target, &File::open(&source).unwrap()).unwrap());
        assert_eq!(folder.names(), [".target.0.part"]);
        Aside::new(&target, &File::open(&source).unwrap()).unwrap().finish().unwrap();
        assert_eq!(folder.names(), [".target.0.part", "target"]);
        assert_eq!(fs::read(&source).unwrap(), b"source");
    }

    /// Where a test starts this program once more, for its part in it.
    const CHILD: &str = "EVARISTE_ASIDE_TEST";

    /// This program with one test alone, which finds a path.
    fn child(test: &str, path: &Path) -> Command {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", &format!("aside::tests::{test}"), "--nocapture"]).env(CHILD, path);
        command
    }

    #[test]
    #[cfg(unix)]
    fn a_program_that_is_killed_leaves_nothing_for_good() {
        if let Some(target) = env::var_os(CHILD) {
            let mut aside = new(target.as_ref()).unwrap();
            aside.file().write_all(b"plaintext").unwrap();
            aside.file().sync_all().unwrap();
            process::abort();
        }
        let folder = Folder::new();
        let target = folder.file("target");
        let output = child("a_program_that_is_killed_leaves_nothing_for_good", &target).output().unwrap();
        assert!(output.status.code().is_none(), "it was killed: {output:?}");
        let has_nameless = without_name(&folder.0).is_some();
        assert_eq!(folder.names().len(), usize::from(!has_nameless));
        new(&target).unwrap().finish().unwrap();
        assert_eq!(folder.names(), ["target"]);
    }

    #[test]
    #[cfg(unix)]
    fn rights_are_kept_for_those_that_they_were_for() {
        for (mode, has_owner, has_group, expected) in [
            (0o100_644, true, true, 0o644),
            (0o106_755, true, true, 0o6755),
            (0o101_777, true, true, 0o1777),
            (0o106_755, false, true, 0o755),
            (0o104_750, false, true, 0o750),
            (0o102_070, false, true, 0o070),
            (0o100_640, true, false, 0o600),
            (0o106_755, true, false, 0o705),
            (0o100_664, true, false, 0o604),
            (0o100_646, true, false, 0o604),
            (0o104_750, false, false, 0o700),
            (0o102_770, false, false, 0o700),
            // The group had less than all others.
            (0o100_604, false, false, 0o600),
            (0o107_777, false, false, 0o707),
        ] {
            let kept = kept_mode(mode, has_owner, has_group);
            assert_eq!(kept, expected, "{mode:o}, {has_owner}, {has_group}: {kept:o}");
        }
    }

    /// Only root can give files away: with another user, the table above has to do.
    #[test]
    #[cfg(unix)]
    fn content_does_not_go_to_other_people_with_the_rights_of_a_file() {
        use std::os::unix::{
            fs::{MetadataExt, PermissionsExt, chown},
            process::CommandExt,
        };

        if let Some(target) = env::var_os(CHILD) {
            let mut aside = new(target.as_ref()).unwrap();
            aside.file().write_all(b"plaintext").unwrap();
            return aside.finish().unwrap();
        }
        if !rustix::process::geteuid().is_root() {
            eprintln!("not root: files cannot be given to others here");
            return;
        }
        const OTHER: u32 = 54_321;

        let folder = Folder::new();
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
        let target = folder.file("target");
        // Whose file it is, who replaces it, and what it is then.
        for ((owner, group, mode), writer, expected) in [
            ((0, 0, 0o6755), None, (0, 0, 0o6755)),
            ((OTHER, OTHER, 0o6750), None, (OTHER, OTHER, 0o6750)),
            ((0, 0, 0o4750), Some(OTHER), (OTHER, OTHER, 0o700)),
            ((0, 0, 0o2770), Some(OTHER), (OTHER, OTHER, 0o700)),
            ((0, 0, 0o644), Some(OTHER), (OTHER, OTHER, 0o604)),
            ((0, OTHER, 0o6770), Some(OTHER), (OTHER, OTHER, 0o770)),
            ((OTHER, 0, 0o6770), Some(OTHER), (OTHER, OTHER, 0o700)),
            ((OTHER, OTHER, 0o2640), Some(OTHER), (OTHER, OTHER, 0o2640)),
        ] {
            fs::write(&target, b"before").unwrap();
            chown(&target, Some(owner), Some(group)).unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
            let mut command = child("content_does_not_go_to_other_people_with_the_rights_of_a_file", &target);
            if let Some(user) = writer {
                command.uid(user).gid(user);
            }
            let output = command.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let found = fs::metadata(&target).unwrap();
            let found = (found.uid(), found.gid(), found.mode() & 0o7777);
            assert_eq!(found, expected, "{owner}:{group} {mode:o} by {writer:?}: {:o}", found.2);
            assert_eq!(fs::read(&target).unwrap(), b"plaintext");
            fs::remove_file(&target).unwrap();
        }
        assert_eq!(folder.names(), [""; 0]);
    }

    /// The list that Linux stores: its version, and a tag, rights and an id for each entry.
    #[cfg(target_os = "linux")]
    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let entry = |(tag, rights, id): &(u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        [&2u32.to_le_bytes()[..], &entries.iter().flat_map(entry).collect::<Vec<u8>>()].concat()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn lists_of_further_users_are_kept_and_none_comes_from_the_folder() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};

        const NONE: u32 = u32::MAX;

        let folder = Folder::new();
        let [listed, plain] = ["listed", "plain"].map(|name| folder.file(name));
        for target in [&listed, &plain] {
            fs::write(target, b"before").unwrap();
            fs::set_permissions(target, fs::Permissions::from_mode(0o640)).unwrap();
        }
        // A user may read and write, the group may not.
        let own = list(&[(1, 6, NONE), (2, 6, 1234), (4, 0, NONE), (0x10, 6, NONE), (0x20, 0, NONE)]);
        let set =
            |path: &Path, name, list: &[u8]| rustix::fs::setxattr(path, name, list, rustix::fs::XattrFlags::empty());
        if let Err(error) = set(&listed, ACCESS_LIST, &own) {
            eprintln!("this file system has no lists: {error}");
            return;
        }
        let inherited = list(&[(1, 7, NONE), (2, 7, 4321), (4, 7, NONE), (0x10, 7, NONE), (0x20, 7, NONE)]);
        set(&folder.0, "system.posix_acl_default", &inherited).unwrap();
        for make in MAKERS {
            for (target, mode, expected) in [(&listed, 0o660, Some(&own)), (&plain, 0o640, None)] {
                let mut aside = make(target).unwrap();
                aside.file().write_all(b"plaintext").unwrap();
                aside.finish().unwrap();
                assert_eq!(access_list(target).as_ref(), expected);
                assert_eq!(fs::metadata(target).unwrap().mode() & 0o7777, mode);
            }
        }
        let mut aside = new(&folder.file("new")).unwrap();
        aside.file().write_all(b"plaintext").unwrap();
        aside.finish().unwrap();
        assert_eq!(fs::metadata(folder.file("new")).unwrap().mode() & 0o7777, 0o600);
    }
}
