use std::{
    env,
    io::Write,
    process::{self, Command},
    sync::atomic::{AtomicU32, Ordering},
};

use super::{rights::*, *};

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
    // A program that another test starts holds the file too, until it runs.
    lock.unlock().unwrap();
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
    // The owner of the file, the user that replaces it, and its owner then.
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
    let set = |path: &Path, name, list: &[u8]| rustix::fs::setxattr(path, name, list, rustix::fs::XattrFlags::empty());
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
