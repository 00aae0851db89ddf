//! Import cycles: at most three files of a crate may depend on one another, and folders of a crate not at all.
//!
//! A file depends on the files that define the items it names; `mod x;` and re-exports do not count. A file that defines a
//! type also depends on every other file with an inherent `impl` of it: a type spread over files is a cycle.

use petgraph::{algo::tarjan_scc, graphmap::DiGraphMap};
use proc_macro2::{TokenStream, TokenTree};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};
use syn::{Attribute, Item, ItemUse, UseTree, Visibility, visit::Visit};

const MAX_FILES: usize = 3;

#[derive(Default)]
struct Module {
    file: usize,
    items: BTreeSet<String>,
    aliases: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    paths: BTreeSet<Vec<String>>,
    implemented: BTreeSet<Vec<String>>,
}

#[derive(Default)]
struct Crate {
    files: Vec<PathBuf>,
    modules: BTreeMap<Vec<String>, Module>,
}

fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Returns `true` for `#[cfg(test)]` and the like.
fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string().contains("test"))
    })
}

/// Collects path and name (`None` for a glob) of the leaves of a `use`.
fn leaves(tree: &UseTree, before: &mut Vec<String>, out: &mut Vec<(Vec<String>, Option<String>)>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            leaves(&path.tree, before, out);
            before.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            out.push((before.clone(), before.last().cloned()));
        }
        UseTree::Name(name) => {
            let ident = name.ident.to_string();
            out.push(([before.as_slice(), std::slice::from_ref(&ident)].concat(), Some(ident)));
        }
        UseTree::Rename(rename) => {
            let mut path = before.clone();
            if rename.ident != "self" {
                path.push(rename.ident.to_string());
            }
            out.push((path, Some(rename.rename.to_string())));
        }
        UseTree::Glob(_) => out.push((before.clone(), None)),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, before, out)),
    }
}

struct Paths<'a>(&'a mut BTreeSet<Vec<String>>);

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        tokens(call.tokens.clone(), self.0);
    }
}

fn tokens(stream: TokenStream, paths: &mut BTreeSet<Vec<String>>) {
    let mut path: Vec<String> = Vec::new();
    let mut colons = 0;
    for token in stream {
        match token {
            TokenTree::Ident(ident) => {
                if colons != 2 {
                    paths.insert(std::mem::take(&mut path));
                }
                path.push(ident.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            TokenTree::Group(group) => {
                tokens(group.stream(), paths);
                colons = 0;
            }
            _ => colons = 0,
        }
    }
    paths.insert(path);
}

impl Crate {
    fn read(root: &Path) -> Self {
        let mut whole = Crate::default();
        whole.file(root.join("src/lib.rs"), Vec::new(), &root.join("src"));
        whole
    }

    fn file(&mut self, path: PathBuf, module: Vec<String>, folder: &Path) {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.files.push(path);
        let number = self.files.len() - 1;
        self.items(&parsed.items, module, number, folder);
    }

    fn items(&mut self, items: &[Item], path: Vec<String>, file: usize, folder: &Path) {
        let mut module = Module { file, ..Module::default() };
        for item in items {
            if let Some(name) = name(item) {
                module.items.insert(name);
            }
            match item {
                Item::Mod(inner) if !for_tests(&inner.attrs) => {
                    let name = inner.ident.to_string();
                    let below = [path.as_slice(), std::slice::from_ref(&name)].concat();
                    let inside = folder.join(&name);
                    match &inner.content {
                        Some((_, items)) => self.items(items, below, file, &inside),
                        None => {
                            let flat = folder.join(format!("{name}.rs"));
                            let source = if flat.is_file() { flat } else { inside.join("mod.rs") };
                            self.file(source, below, &inside);
                        }
                    }
                }
                Item::Mod(_) => {}
                Item::Use(ItemUse { vis, tree, attrs, .. }) if !for_tests(attrs) => {
                    let mut found = Vec::new();
                    leaves(tree, &mut Vec::new(), &mut found);
                    for (path, name) in found {
                        if matches!(vis, Visibility::Inherited) {
                            module.paths.insert(path.clone());
                        }
                        match name {
                            Some(name) => drop(module.aliases.insert(name, path)),
                            None => module.globs.push(path),
                        }
                    }
                }
                other => {
                    let attributes = match other {
                        Item::Fn(item) => &item.attrs,
                        Item::Impl(item) => &item.attrs,
                        _ => &Vec::new(),
                    };
                    if for_tests(attributes) {
                        continue;
                    }
                    if let Item::Impl(block) = other
                        && block.trait_.is_none()
                        && let syn::Type::Path(of) = block.self_ty.as_ref()
                    {
                        module.implemented.insert(of.path.segments.iter().map(|s| s.ident.to_string()).collect());
                    }
                    Paths(&mut module.paths).visit_item(other);
                }
            }
        }
        self.modules.insert(path, module);
    }

    /// Returns the file that defines `path` in the module `at`; `None` for items of other crates, modules and locals.
    fn definition(&self, at: &[String], path: &[String], depth: usize) -> Option<usize> {
        let mut here = at.to_vec();
        let mut rest = path;
        if depth == 0 {
            return None;
        }
        match rest.first()?.as_str() {
            "crate" => {
                here.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            _ => {}
        }
        while rest.first().is_some_and(|word| word == "super") {
            here.pop()?;
            rest = &rest[1..];
        }
        while let Some(word) = rest.first() {
            let module = self.modules.get(&here)?;
            let below = [here.as_slice(), std::slice::from_ref(word)].concat();
            let is_module = self.modules.contains_key(&below);
            // A function may have the name of a module; what follows `::` is then in the module.
            if module.items.contains(word) && !(is_module && rest.len() > 1) {
                return Some(module.file);
            }
            if is_module {
                here = below;
                rest = &rest[1..];
                continue;
            }
            if let Some(alias) = module.aliases.get(word) {
                let whole = [alias.as_slice(), &rest[1..]].concat();
                // `use a::b as b;` of another crate has no definition here.
                return (whole != path).then(|| self.definition(&here, &whole, depth - 1)).flatten();
            }
            return (module.globs.iter())
                .find_map(|glob| self.definition(&here, &[glob.as_slice(), rest].concat(), depth - 1));
        }
        None
    }

    fn needs(&self) -> DiGraphMap<usize, ()> {
        let mut graph = DiGraphMap::new();
        for (at, module) in &self.modules {
            let defined = |path: &Vec<String>| self.definition(at, path, 8).filter(|file| *file != module.file);
            for file in module.paths.iter().filter_map(defined) {
                graph.add_edge(module.file, file, ());
            }
            for file in module.implemented.iter().filter_map(defined) {
                graph.add_edge(file, module.file, ());
            }
        }
        graph
    }

    /// Returns the folder of a file below `src`, if any.
    fn folder(&self, file: usize) -> Option<&str> {
        let mut words = self.files[file].iter().skip_while(|word| *word != "src").skip(1);
        let folder = words.next()?;
        words.next().and(folder.to_str())
    }
}

fn crates() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folders = |of: &Path| -> Vec<PathBuf> {
        fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
    };
    let mut all: Vec<PathBuf> = folders(&root);
    all.extend(folders(&root).iter().flat_map(|folder| folders(folder)));
    all.retain(|path| path.join("Cargo.toml").is_file() && path.join("src/lib.rs").is_file());
    all.sort();
    all
}

fn circles(graph: &DiGraphMap<usize, ()>, limit: usize) -> Vec<Vec<usize>> {
    tarjan_scc(graph).into_iter().filter(|circle| circle.len() > limit).collect()
}

#[test]
fn no_circle_of_more_than_three_files() {
    let mut found = Vec::new();
    let all = crates();
    assert!(all.len() > 20, "{all:?}");
    for path in all {
        let whole = Crate::read(&path);
        for mut circle in circles(&whole.needs(), MAX_FILES) {
            circle.sort_by_key(|file| &whole.files[*file]);
            let files: Vec<_> = circle.iter().map(|file| whole.files[*file].strip_prefix(&path).unwrap()).collect();
            found.push(format!("{}: {} files: {files:?}", path.display(), files.len()));
        }
    }
    assert!(found.is_empty(), "files that need one another:\n{}", found.join("\n"));
}

#[test]
fn no_circle_of_folders() {
    let mut found = Vec::new();
    for path in crates() {
        let whole = Crate::read(&path);
        let needs = whole.needs();
        let mut names = BTreeSet::new();
        let folders: Vec<(&str, &str)> = (needs.all_edges())
            .filter_map(|(from, to, ())| Some((whole.folder(from)?, whole.folder(to)?)))
            .filter(|(from, to)| from != to)
            .collect();
        folders.iter().for_each(|(from, to)| names.extend([*from, *to]));
        let graph: DiGraphMap<&str, ()> = folders.into_iter().collect();
        for circle in tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > 1) {
            found.push(format!("{}: {circle:?}", path.display()));
        }
    }
    assert!(found.is_empty(), "folders that need one another:\n{}", found.join("\n"));
}

#[test]
fn circles_are_seen() {
    let folder = anabranch_testkit::folder();
    let write = |name: &str, text: &str| {
        let path = folder.join("src").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a; mod b; mod room; mod other; pub use room::Inside;");
    write("a.rs", "use crate::b::B; pub struct A;");
    write("b.rs", "pub struct B; impl B { fn f() { vec![crate::a::A]; } }");
    // Depends on the target of a re-export, not on the file of the re-export.
    write("room/mod.rs", "mod deep; pub use deep::Inside; pub(crate) fn door(_: super::other::Other) {}");
    write("room/deep.rs", "pub struct Inside;");
    write("other.rs", "pub struct Other; impl crate::Inside { fn far(self) { crate::room::door(Other) } }");
    let whole = Crate::read(&folder);
    let name = |file: &usize| whole.files[*file].strip_prefix(folder.join("src")).unwrap().display().to_string();
    let mut found: Vec<Vec<String>> =
        circles(&whole.needs(), 1).iter().map(|circle| circle.iter().map(name).collect()).collect();
    found.iter_mut().for_each(|circle| circle.sort());
    found.sort();
    assert_eq!(found, [vec!["a.rs", "b.rs"], vec!["other.rs", "room/deep.rs", "room/mod.rs"]]);
}
