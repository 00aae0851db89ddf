//! A crate of `init --scheme`, and one with copies of our schemes. Both are compiled against the library of this build, without
//! cargo, and the slow form with it.

use crate::common::{Folder, assert_output, json, stderr, stdout};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

const COPIES: &str = include_str!("copies.rs");

/// Runs the blocks of the tutorial after `<!-- run: own scheme -->`, with `with` done to each.
fn tutorial(folder: &Folder, with: impl Fn(&str) -> String) {
    let page = include_str!("../../../../../docs/tutorials/own-scheme.md");
    let blocks = page.split("<!-- run: own scheme -->\n```text\n").skip(1);
    let blocks: Vec<&str> = blocks.filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 4, "to write, compare, replay and send");
    for block in blocks {
        let beside = Path::new(env!("CARGO_BIN_EXE_anabranch")).parent().unwrap();
        let path = format!("{}:{}", beside.display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", &with(block)]).current_dir(&folder.0).env("PATH", path).stdin(Stdio::null());
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{block}: {}", stdout(&output) + &stderr(&output));
    }
}

/// A crate in `folder` of which the files are compiled to `target`.
struct Own(Folder);

impl Own {
    /// Writes the crate of `init --scheme my-scheme`. `None`: there is no compiler.
    fn new(name: &str) -> Option<Self> {
        if Command::new("rustc").arg("--version").output().is_err() {
            anabranch_testkit::skip("the program `rustc` is missing", "install rustc");
            return None;
        }
        let folder = Folder::new(name);
        folder.ok("init --scheme my-scheme");
        fs::create_dir_all(folder.0.join("target/examples")).unwrap();
        Some(Own(folder))
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.0.join(file)
    }

    /// Compiles a file as cargo would, to `target/NAME`.
    fn compile(&self, file: &str, kind: &[&str], name: &str) -> PathBuf {
        let deps = Path::new(env!("CARGO_BIN_EXE_anabranch")).parent().unwrap().join("deps");
        let is_ours = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("libanabranch-") && name.ends_with(".rlib")
        };
        let built = fs::read_dir(&deps).unwrap().map(|entry| entry.unwrap().path()).filter(is_ours);
        let library = built.max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap()).unwrap();
        let out = self.path("target").join(name);
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "--cap-lints", "allow"]).args(kind).arg(self.path("my-scheme").join(file));
        rustc.arg("-L").arg(format!("dependency={}", deps.display())).arg("-o").arg(&out);
        rustc.arg("--extern").arg(format!("anabranch={}", library.display()));
        if name != "libmy_scheme.rlib" {
            rustc.arg("--extern").arg(format!("my_scheme={}", self.path("target/libmy_scheme.rlib").display()));
        }
        rustc.env("CARGO_BIN_EXE_my-scheme", self.path("target/my-scheme")).env("CARGO_TARGET_TMPDIR", &self.0.0);
        let output = rustc.output().unwrap();
        assert!(output.status.success(), "{file}: {}", stderr(&output));
        out
    }

    fn library_and_command(&self) {
        self.compile(
            "src/lib.rs",
            &["--crate-name=my_scheme", "--crate-type=rlib", "-Copt-level=1"],
            "libmy_scheme.rlib",
        );
        self.compile("src/main.rs", &[], "my-scheme");
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(self.path("target/my-scheme"));
        command.args(anabranch_testkit::words(line)).current_dir(&self.0.0).stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    fn says(&self, line: &str, exit: i32, words: &[&str]) {
        let output = self.run(line);
        let text = stdout(&output) + &stderr(&output);
        assert_eq!(output.status.code(), Some(exit), "{line}: {text}");
        words.iter().for_each(|word| assert!(text.contains(word), "{line}: no `{word}` in {text}"));
    }
}

#[test]
fn a_crate_of_init_passes_its_tests_and_is_in_every_command() {
    let Some(own) = Own::new("own") else { return };
    own.library_and_command();
    let kit = own.compile("tests/kit.rs", &["--test"], "kit");
    assert_output(&Command::new(kit).output().unwrap(), 0, &[]);
    own.says("explain my-scheme", 0, &["entropy_values", "A flow keeps its entropy value", "from 1 to 65536"]);
    own.says("list schemes", 0, &["my-scheme", "random paths, kept while nothing comes back marked"]);
    own.says("schema", 0, &["my-scheme"]);
    own.says("run tiny --set load_balancer.scheme=my-schem", 2, &["did you mean `my-scheme`?"]);
    own.says("run tiny --set load_balancer.my-scheme.entropy_value=4", 2, &["did you mean `entropy_values`?"]);
    own.says("check tiny --set load_balancer.my-scheme.entropy_values=0", 2, &["from 1 to 65536"]);
    let mut complete = own.command("-- my-scheme run --set load_balancer.scheme=my");
    complete.env("ANABRANCH_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "3");
    let completed = complete.output().unwrap();
    assert!(stdout(&completed).contains("my-scheme"), "{}", stdout(&completed) + &stderr(&completed));
    tutorial(&own.0, |block| {
        let command = own.path("target/my-scheme").display().to_string();
        block.replace("init --scheme", "init --replace --scheme").replace("cargo run --release --", &command)
    });
}

/// With cargo, from the crates as they would be published, in place of those of crates.io.
#[test]
#[ignore = "20 minutes: packages all crates and builds a crate of `init --scheme` with them, optimised"]
fn the_tutorial_from_an_empty_directory_with_the_packaged_crates() {
    let folder = Folder::new("own-published");
    let root = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
    let ok = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", stdout(&output) + &stderr(&output));
    };
    let packaged = folder.0.join("packaged");
    ok(Command::new(root.join("tools/package")).arg("crates").env("CARGO_TARGET_DIR", &packaged));
    let mut patches = String::new();
    for entry in fs::read_dir(packaged.join("package")).unwrap().map(|entry| entry.unwrap().path()) {
        let Some(name) = entry.file_name().and_then(|name| name.to_str()?.strip_suffix("-0.1.0.crate")) else {
            continue;
        };
        ok(Command::new("tar").arg("-xzf").arg(&entry).arg("-C").arg(&folder.0));
        patches += &format!("{name} = {{ path = {:?} }}\n", folder.0.join(format!("{name}-0.1.0")));
    }
    let ours = patches.lines().find(|line| line.starts_with("anabranch =")).unwrap();
    fs::create_dir(folder.0.join(".cargo")).unwrap();
    let repository = env!("CARGO_PKG_REPOSITORY");
    folder.file(".cargo/config.toml", &format!("[patch.crates-io]\n{patches}[patch.{repository:?}]\n{ours}\n"));
    tutorial(&folder, |block| {
        let tests = format!("cp {}/Cargo.lock my-scheme\ncd my-scheme\ncargo test --release\n", root.display());
        if block.contains("init") { format!("{block}{tests}") } else { block.into() }
    });
}

#[test]
fn names_of_crates_are_checked() {
    let folder = Folder::new("own-names");
    folder.refused("init --scheme prime", &["found `prime`, a name of anabranch"]);
    folder.refused("init --scheme My_Scheme", &["found `My_Scheme`, expected words of a to z and 0 to 9"]);
    folder.ok("init --scheme other");
    folder.refused("init --scheme other", &["other/Cargo.toml", "--replace"]);
    assert!(folder.read("other/src/lib.rs").contains("pub struct OtherParameters"));
}

#[test]
fn copies_of_our_schemes_have_our_fingerprints() {
    let Some(own) = Own::new("copies") else { return };
    fs::write(own.path("my-scheme/src/lib.rs"), COPIES).unwrap();
    own.library_and_command();
    let fingerprint = |line: &str| {
        let output = own.run(&format!("run {line} --seed 3 --format json"));
        assert_output(&output, 0, &[]);
        json(&output)["fingerprint"].as_str().unwrap().to_string()
    };
    own.0.file("d.toml", "[topology]\nkind = \"dragonfly\"\na = 2\nh = 1\np = 1\n[[workload]]\nkind = \"permutation\"\nsize = \"64KiB\"\n");
    let roce = "tiny --set fabric.profile=roce-lossless --set load_balancer.scheme=ecmp";
    for (scenario, key, ours, copy) in [
        ("tiny", "load_balancer.scheme", "ops", "ops-copy"),
        ("tiny", "load_balancer.scheme", "packet-random", "random-copy"),
        ("tiny", "load_balancer.scheme", "ops+random", "ops-copy+random-copy"),
        ("d.toml", "load_balancer.scheme", "minimal", "minimal-copy"),
        ("tiny", "transport.congestion_control", "none", "none-copy"),
        (roce, "transport.congestion_control", "none", "line-rate-copy"),
    ] {
        let [ours, copied] = [ours, copy].map(|name| fingerprint(&format!("{scenario} --set {key}={name}")));
        assert_eq!(ours, copied, "{scenario} {copy}");
    }

    let twice = own.command("list schemes").env("COPIES_TWICE", "1").output().unwrap();
    assert_output(&twice, 2, &["host scheme `ops-copy`: another one that was registered has this name"]);

    let mut serve = own.command("serve --at 127.0.0.1:0 --once --set wire.labels=4");
    let mut server = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let at = line.strip_prefix("listening at ").and_then(|rest| rest.split(' ').next()).expect(&line);
    own.says(&format!("send --to {at} --bytes 1MB --scheme ops-copy --set wire.labels=4"), 0, &[]);
    assert_output(&server.wait_with_output().unwrap(), 0, &[]);

    let ring = "collective ring --ranks 2 --bytes 100KB --rounds 1 --each ANABRANCH_SCHEME=ops-copy";
    own.says(ring, 2, &["examples/libplugin.so", "cargo build --release --example plugin"]);
    own.compile("examples/plugin.rs", &["--crate-type=cdylib", "--crate-name=plugin"], "examples/libplugin.so");
    let mut ring = own.command(ring);
    ring.env("ANABRANCH_IFNAME", "=lo").env("ANABRANCH_RATE", "2Gbps");
    let output = ring.output().unwrap();
    let text = stdout(&output) + &stderr(&output);
    assert!(output.status.success() && text.contains("all correct"), "{text}");
}
