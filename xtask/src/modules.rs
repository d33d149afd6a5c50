//! That no modules beside each other use each other in a circle, so that each can be read, and changed, with nothing in
//! mind but what it uses; and that imports name the module that declares an item, so that they tell what a file depends
//! on.
//!
//! This is read off the sources: a module uses another one where it has a path into it from `crate`, `super` or `self`.
//! A module and those inside of it count as one to the modules beside it, and may use each other. Names at the root of
//! a crate, such as its error, are not followed to where they come from: they are the interface that its modules make
//! together. What is compiled for tests alone does not count.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::{Path, PathBuf},
};

/// A module's names from the root of its crate on.
type Module = Vec<String>;

/// For each module those beside it that it uses, with one path that says so.
type Uses = BTreeMap<Module, BTreeMap<Module, String>>;

#[test]
fn modules_do_not_use_each_other_in_circles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace");
    let (mut count, mut circles) = (0, Vec::new());
    for package in packages(root) {
        let mut modules = BTreeMap::new();
        read(&package.join("src"), &mut Vec::new(), &mut modules);
        let modules = without_tests(&modules);
        count += modules.len();
        let name = package.strip_prefix(root).unwrap_or(&package).display();
        circles.extend(circles_of(&modules).into_iter().map(|circle| format!("in {name}: {circle}")));
    }
    assert!(count > 100, "only {count} modules were found");
    assert!(circles.is_empty(), "modules use each other in circles:\n{}", circles.join("\n"));
}

#[test]
fn circles_are_found() {
    let circles = |files: &[(&str, &str)]| {
        let module = |name: &str| name.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let modules = files.iter().map(|(name, text)| (module(name), (*text).to_owned())).collect();
        circles_of(&without_tests(&modules))
    };
    let above = ("a", "use std::fmt;\nuse crate::{\n    Error,\n    b::{self, X as Y},\n};");
    assert!(circles(&[above, ("b", "use crate::Error;"), ("", "pub use a::Error;")]).is_empty());
    let found = circles(&[above, ("b", "fn f() { super::c::f() }"), ("c", "use crate::{X, a::Z as V};")]);
    assert_eq!(found, ["a → b → c → a (a has crate::b::self, b has super::c::f, c has crate::a::Z)"]);
    let inner = ("b::c::d", "//! crate::a\nuse crate::b::X;\nuse crate::a::{Y, Z};");
    assert_eq!(circles(&[above, ("b", "mod c;"), ("b::c", "mod d;"), inner]).len(), 1);
    let tests = "#[cfg(test)]\nmod c;\n#[cfg(test)]\nmod tests {\n    use crate::a::X;\n}\nstruct Y;";
    assert!(circles(&[above, ("b", tests), ("b::c", "use crate::a::X;")]).is_empty());
}

/// Packages with one module, or whose few items are declared at the root.
const AT_THE_ROOT: [&str; 5] = ["bls24-315", "emulator", "evariste", "kernels", "microbench"];

#[test]
fn imports_name_the_module() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace");
    for package in packages(&root.join("crates")) {
        if AT_THE_ROOT.iter().any(|name| package.ends_with(name)) {
            continue;
        }
        let mut modules = BTreeMap::new();
        read(&package.join("src"), &mut Vec::new(), &mut modules);
        assert_eq!(through_the_root(&without_tests(&modules)), Vec::<String>::new(), "in {}", package.display());
    }
}

#[test]
fn imports_through_the_root_are_found() {
    let texts = [
        ("", "pub use a::X; mod a; mod b;"),
        ("a", "use crate::b;"),
        ("b", "use crate::{X, a::Y};\nfn f() -> crate::Z { m!($crate::X) }"),
    ];
    let module = |name: &str| name.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let modules = texts.iter().map(|(name, text)| (module(name), (*text).to_owned())).collect();
    assert_eq!(through_the_root(&modules), ["b has crate::X", "b has crate::Z"]);
}

/// The paths of modules to names at the root of their crate that are no modules.
fn through_the_root(modules: &BTreeMap<Module, String>) -> Vec<String> {
    let mut found = Vec::new();
    for (module, text) in modules.iter().filter(|(module, _)| !module.is_empty()) {
        // Macros name what they need of the root, which others see.
        for path in paths(&text.replace("$crate", "")).into_iter().filter(|path| path[0] == "crate") {
            if path.len() > 1 && !modules.keys().any(|module| module[..1.min(module.len())] == path[1..2]) {
                found.push(format!("{} has {}", module.join("::"), path.join("::")));
            }
        }
    }
    found
}

/// The folders of packages below one.
fn packages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder).into_iter().filter(|path| path.is_dir()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        match path.join("Cargo.toml").is_file() && path.join("src").is_dir() {
            true => found.push(path),
            false => found.extend(packages(&path)),
        }
    }
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("an entry of a folder").path()).collect()
}

/// Adds the texts of the modules in a folder.
fn read(folder: &Path, place: &mut Module, modules: &mut BTreeMap<Module, String>) {
    for path in entries(folder) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            place.push(name);
            read(&path, place, modules);
            place.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let mut module = place.clone();
            if !["lib", "main", "mod"].contains(&name.as_str()) {
                module.push(name);
            }
            modules.entry(module).or_default().push_str(&text);
        }
    }
}

/// The modules of a crate without comments and without what is compiled for tests alone.
fn without_tests(modules: &BTreeMap<Module, String>) -> BTreeMap<Module, String> {
    let (mut left, mut tests) = (BTreeMap::new(), BTreeSet::new());
    for (module, text) in modules {
        let mut kept = String::new();
        let mut lines = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end());
        while let Some(line) = lines.next() {
            let depth = |line: &str| line.len() - line.trim_start().len();
            if !["#[cfg(test)]", "#[cfg(all(test,"].iter().any(|start| line.trim_start().starts_with(start)) {
                kept.extend([line, "\n"]);
                continue;
            }
            // Sources are formatted: an item ends with the first line of its own depth that can end one.
            let own = depth(line);
            for line in lines.by_ref() {
                let declared = line.strip_suffix(';').and_then(|line| line.split_once("mod "));
                tests.extend(declared.map(|(_, name)| [module.as_slice(), &[name.to_owned()]].concat()));
                if depth(line) == own && line.ends_with([';', ',', '}']) {
                    break;
                }
            }
        }
        left.insert(module.clone(), kept);
    }
    left.retain(|module, _| !tests.iter().any(|test: &Module| module.starts_with(test)));
    left
}

/// Circles, at least one of each set of modules that use each other.
fn circles_of(modules: &BTreeMap<Module, String>) -> Vec<String> {
    let mut uses = Uses::new();
    for (module, text) in modules {
        for path in paths(text) {
            let used = target(module, &path, modules);
            let common = module.iter().zip(&used).take_while(|(a, b)| a == b).count();
            if common < module.len().min(used.len()) {
                let [from, to] = [module, &used].map(|module| module[..=common].to_vec());
                let why = || format!("{} has {}", module.join("::"), path.join("::"));
                uses.entry(from).or_default().entry(to).or_insert_with(why);
            }
        }
    }
    // Only of the first of its modules, or each would tell of it.
    let circles = uses
        .keys()
        .filter_map(|start| circle_through(start, &uses).filter(|circle| circle.iter().all(|m| *m >= start)));
    circles.map(|circle| told(&circle, &uses)).collect()
}

/// The shortest circle through a module.
fn circle_through<'a>(start: &'a Module, uses: &'a Uses) -> Option<Vec<&'a Module>> {
    let mut before = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(module) = next.pop_front() {
        for used in uses.get(module).into_iter().flat_map(BTreeMap::keys) {
            if used == start {
                let mut circle = vec![module];
                while let Some(module) = circle.last().and_then(|module| before.get(module).copied()) {
                    circle.push(module);
                }
                circle.reverse();
                return Some(circle);
            }
            before.entry(used).or_insert_with(|| {
                next.push_back(used);
                module
            });
        }
    }
    None
}

/// A circle by the names of its modules, and why each step is one.
fn told(circle: &[&Module], uses: &Uses) -> String {
    let steps = || circle.iter().zip(circle.iter().cycle().skip(1));
    let names: Vec<String> = circle.iter().chain(&circle[..1]).map(|module| module.join("::")).collect();
    let why: Vec<&str> = steps().map(|(from, to)| uses[*from][*to].as_str()).collect();
    format!("{} ({})", names.join(" → "), why.join(", "))
}

/// The module that a path leads into.
fn target(module: &Module, path: &[String], modules: &BTreeMap<Module, String>) -> Module {
    let mut place = module.clone();
    for (i, name) in path.iter().enumerate() {
        match name.as_str() {
            "crate" => place.clear(),
            "super" => drop(place.pop()),
            "self" if i == 0 => {}
            _ => {
                place.push(name.clone());
                if !modules.contains_key(&place) {
                    place.pop();
                    break;
                }
            }
        }
    }
    place
}

/// The paths in a text that start at the crate, the module itself or the one above it.
fn paths(text: &str) -> Vec<Vec<String>> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        let starts = ["crate", "super", "self"].contains(token) && tokens.get(i + 1) == Some(&"::");
        // Another `super` of a path is none of its own.
        if starts && (i == 0 || tokens[i - 1] != "::") {
            tree(&tokens, i, Vec::new(), &mut found);
        }
    }
    found
}

/// Names, `::`, and any other character on its own.
fn tokens(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = match first {
            _ if is_name(first) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
            _ if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(len);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// Adds the paths of a tree of names from token `at` on, and gives the token behind it.
fn tree(tokens: &[&str], mut at: usize, mut path: Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    loop {
        match tokens.get(at) {
            None => return at,
            Some(&"{") => break,
            Some(name) => path.push((*name).to_owned()),
        }
        at += 1;
        if tokens.get(at) != Some(&"::") {
            found.push(path);
            return at;
        }
        at += 1;
    }
    at += 1;
    while at < tokens.len() && tokens[at] != "}" {
        at = tree(tokens, at, path.clone(), found);
        // Another name that it gets.
        while at < tokens.len() && ![",", "}"].contains(&tokens[at]) {
            at += 1;
        }
        at += usize::from(tokens.get(at) == Some(&","));
    }
    at + 1
}
