//! `collective`, `nccl` and `explain nccl` as a user types them.

use std::{
    path::Path,
    process::{Command, Output},
};

fn anabranch(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(arguments)
        .env("ANABRANCH_IFNAME", "=lo")
        .env("ANABRANCH_PATHS", "2")
        .env("ANABRANCH_RATE", "2Gbps")
        .output()
        .expect("the command")
}

fn said(arguments: &[&str], code: i32, words: &[&str]) {
    let output = anabranch(arguments);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "no `{word}` in {text}");
    }
}

#[test]
fn a_ring_is_correct_and_has_its_rows() {
    let rows = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rows.csv");
    let rows = rows.to_str().expect("a path");
    let ring = ["collective", "ring", "--ranks", "3", "--bytes", "300KB", "--rounds", "2"];
    let arguments = [&ring[..], &["--abi", "v9", "--type", "int", "--rows", rows, "--format", "json"]].concat();
    said(&arguments, 0, &["\"abi\": 9", "\"wrong_elements\": 0", "\"closed\": 3"]);
    let text = std::fs::read_to_string(rows).expect("rows");
    // Two rounds, two channels, three ranks, four steps of one chunk, both ends; and the line of names.
    assert_eq!(text.lines().count(), 1 + 2 * 2 * 3 * 4 * 2);
    assert!(text.starts_with("round,rank,channel,peer,direction,step,bytes,start_ns,end_ns\n"));
}

#[test]
fn what_cannot_be_is_one_message() {
    said(&["collective", "rign"], 2, &["did you mean `ring`?"]);
    said(&["collective", "ring", "--bytes", "3B"], 2, &["--bytes", "4 B"]);
    said(&["collective", "ring", "--plugin", "/no/such.so"], 2, &["/no/such.so"]);
    said(&["collective", "ring", "--kill", "4@1s"], 2, &["--kill", "no rank 4"]);
    said(&["nccl", "install", "/tmp", "--plugin", "/no/such.so"], 2, &["/no/such.so"]);
}

#[test]
fn the_plugin_is_installed_and_explained() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
    said(&["nccl", "install", folder.to_str().expect("a path")], 0, &["libnccl-net.so", "NCCL_NET_PLUGIN=anabranch"]);
    let plugin = folder.join("libnccl-net-anabranch.so");
    let arguments = ["collective", "pairs", "--ranks", "2", "--bytes", "4KB", "--plugin"];
    said(&[&arguments[..], &[plugin.to_str().expect("a path")]].concat(), 0, &["all correct", "ncclNetPlugin_v12"]);
    said(&["explain", "nccl"], 0, &["ANABRANCH_SCHEME", "ANABRANCH_GIVE_UP"]);
}
