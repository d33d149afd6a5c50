use std::fs;

use arbitrary::Unstructured;
use evariste_backend::fuzzing::Cache;

use crate::{choice, folder::Folder};

/// Files of the kernel cache: whatever lies there under the name of an entry, a program gets either what was stored
/// under that name or nothing.
///
/// # Panics
/// If it gets anything else.
pub fn cache_entries(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let folder = Folder::new();
    let cache = Cache::new(&folder.path().join("cache"));
    let (key, other): ([u8; 4], [u8; 4]) = (choice(input.arbitrary()), choice(input.arbitrary()));
    let mut contents: Vec<u8> = choice(input.arbitrary());
    // No kernel is empty.
    contents.push(choice(input.arbitrary()));
    cache.put(&key, &contents);
    assert_eq!(cache.get(&key).as_deref(), Some(&contents[..]));
    let path = cache.path(&key);
    let good = fs::read(&path).unwrap_or_default();
    if key != other {
        assert_eq!(cache.get(&other), None, "nothing was stored there");
        fs::write(cache.path(&other), &good).expect("the cache's folder is there");
        assert_eq!(cache.get(&other), None, "an entry under another name");
    }

    let mut file = good.clone();
    for _ in 0..choice(input.int_in_range(0..=3)) {
        match choice(input.int_in_range(0..=4)) {
            0 => file.truncate(choice(input.arbitrary::<u8>()).into()),
            1 => file.extend(choice(input.arbitrary::<Vec<u8>>())),
            2 => file = choice(input.arbitrary()),
            3 => file = file.split_off(file.len().min(choice(input.arbitrary::<u8>()).into())),
            _ => {
                let (at, value): (u8, u8) = (choice(input.arbitrary()), choice(input.arbitrary()));
                if let Some(byte) = file.get_mut(usize::from(at)) {
                    *byte ^= value;
                }
            }
        }
    }
    fs::write(&path, &file).expect("the cache's folder is there");
    let expected = (file == good).then_some(&contents[..]);
    assert_eq!(cache.get(&key).as_deref(), expected);
    cache.put(&key, b"again");
    assert_eq!(cache.get(&key).as_deref(), Some(&b"again"[..]), "a damaged entry is replaced");
}
