use super::*;
use crate::{HostView, kinds::testing::view};

fn context<'a>(view: &'a HostView, used: &'a [bool], read_file: &'a crate::ReadFile<'a>) -> Context<'a> {
    Context { view, seed: 1, name: "test", used, room: u64::MAX, templates: false, read_file }
}

fn place(groups: &Groups<'_>, view: &HostView, file: &str) -> Result<Placed, WorkloadError> {
    groups.check()?;
    let used = vec![false; view.hosts as usize];
    groups.place(&context(view, &used, &|_| Ok(file.as_bytes().to_vec())))
}

fn groups<'a>(groups: u32, ranks: u32, hosts: &'a HostSet, placement: &'a Placement) -> Groups<'a> {
    Groups { groups, ranks: Ranks::Number(ranks), concurrent: Auto::Auto, hosts, placement }
}

#[test]
fn placements_are_read_and_written() {
    for (text, placement) in WORDS.map(|(word, placement)| (word, placement)) {
        assert_eq!(Placement::read(&Raw::Text(text.into())), Ok(placement.clone()));
        assert_eq!(placement.write(), Raw::Text(text.into()));
    }
    let file = Raw::Text("ranks.txt".into());
    assert_eq!(Placement::read(&file), Ok(Placement::File("ranks.txt".into())));
    assert_eq!(Placement::File("ranks.txt".into()).write(), file);
    let near = Placement::read(&Raw::Text("packd".into())).unwrap_err().to_string();
    assert!(near.contains("did you mean `packed`"), "{near}");
}

#[test]
fn groups_are_packed_strided_or_random() {
    let slice = HostSet::Slice { from: 2, to: 10, step: 1 };
    let of = |placement: Placement| place(&groups(2, 3, &slice, &placement), &view(12, 4, 1), "").unwrap().hosts;
    assert_eq!(of(Placement::Packed), [2, 3, 4, 5, 6, 7]);
    assert_eq!(of(Placement::Strided), [2, 4, 6, 3, 5, 7]);
    // Racks of four: 2 and 3 of the first, 4 to 7 of the second, 8 and 9 of the third.
    assert_eq!(of(Placement::AcrossRacks), [2, 4, 8, 3, 5, 9]);
    let random = of(Placement::Random);
    let mut sorted = random.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert!(sorted.len() == 6 && sorted.iter().all(|host| (2..10).contains(host)) && random != sorted);
}

#[test]
fn rails_are_filled_one_after_the_other() {
    // Four servers of four GPUs on two rails: GPUs 0 and 1 of a server are on rail 0.
    let view =
        HostView { servers: Some(ServerParameters { gpus: 4, nics: 2, ..Default::default() }), ..view(16, 4, 1) };
    let rail = Placement::Rail;
    let placed = place(&groups(3, 4, &HostSet::All, &rail), &view, "").unwrap();
    assert_eq!(placed.hosts, [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14]);
    // Eight ranks are all GPUs of a rail; five continue on the next rail at the second group.
    assert!(place(&groups(2, 8, &HostSet::All, &rail), &view, "").is_ok());
    let error = place(&groups(2, 5, &HostSet::All, &rail), &view, "").unwrap_err();
    assert_eq!(error.key.as_deref(), Some("ranks"));
    assert!(error.message.contains("group 1 has ranks on rails 0 and 1"), "{error}");
}

#[test]
fn groups_that_run_later_need_no_hosts_of_their_own() {
    let all = HostSet::All;
    let many = Groups { concurrent: Auto::Value(3), ..groups(10, 4, &all, &Placement::Packed) };
    let placed = place(&many, &view(12, 4, 1), "").unwrap();
    assert_eq!((placed.concurrent, placed.hosts.len()), (3, 12));
    let rest = Groups { ranks: Ranks::All, ..many };
    assert_eq!(place(&rest, &view(12, 4, 1), "").unwrap().ranks, 4);
}

#[test]
fn a_file_has_a_line_per_group() {
    let file = Placement::File("ranks.txt".into());
    let text = "# two groups\n3, 1,2\n\n0 5\t4  # the second\n";
    let placed = place(&groups(2, 3, &HostSet::All, &file), &view(6, 3, 1), text).unwrap();
    assert_eq!((placed.ranks, placed.hosts), (3, vec![3, 1, 2, 0, 5, 4]));
    let any = Groups { ranks: Ranks::All, ..groups(2, 3, &HostSet::All, &file) };
    assert_eq!(place(&any, &view(6, 3, 1), text).unwrap().ranks, 3);
    for (text, place_of, part) in [
        ("0 1 2\n3 4 1\n", Some("ranks.txt:2"), "host 1 is named twice, first in line 1"),
        ("0 1 6\n", Some("ranks.txt:1"), "host 6 does not exist; hosts are 0 to 5"),
        ("0 1 x\n", Some("ranks.txt:1"), "found `x`, expected the number of a host"),
        ("0 1 2\n3 4\n", Some("ranks.txt:2"), "found 2 host(s), expected 3"),
        ("0 1 2\n", None, "has 1 line(s) with hosts, expected 2"),
    ] {
        let error = place(&groups(2, 3, &HostSet::All, &file), &view(6, 3, 1), text).unwrap_err();
        assert_eq!((error.key.as_deref(), error.place.as_deref()), (Some("placement"), place_of), "{error}");
        assert!(error.message.contains(part), "{error}");
    }
    let slice = HostSet::Slice { from: 0, to: 6, step: 1 };
    let error = place(&groups(2, 3, &slice, &file), &view(6, 3, 1), text).unwrap_err();
    assert_eq!(error.key.as_deref(), Some("hosts"));
}

#[test]
fn errors_name_a_remedy() {
    let (all, packed) = (HostSet::All, Placement::Packed);
    let of = |groups_: u32, ranks| groups(groups_, ranks, &all, &packed);
    let list = |hosts: &[u32]| HostSet::List(hosts.to_vec());
    let (unknown, twice, one) = (list(&[0, 12]), list(&[3, 3]), list(&[3]));
    for (groups, key, part) in [
        (of(0, 2), "groups", "1 or more"),
        (of(1, 1), "ranks", "2 or more"),
        (of(1, 13), "ranks", "at most the 12 hosts there are"),
        (
            of(4, 4),
            "groups",
            "4 groups of 4 ranks at a time take 16 of the 12 hosts there are; expected `concurrent` of at most 3",
        ),
        (of(2, 20), "groups", "expected `ranks` of at most 12"),
        (Groups { concurrent: Auto::Value(4), ..of(5, 4) }, "concurrent", "expected `concurrent` of at most 3"),
        (Groups { concurrent: Auto::Value(0), ..of(5, 2) }, "concurrent", "1 to 5, the number of groups"),
        (Groups { concurrent: Auto::Value(6), ..of(5, 2) }, "concurrent", "1 to 5, the number of groups"),
        (Groups { ranks: Ranks::All, ..of(5, 2) }, "ranks", "12 hosts do not divide into 5 groups"),
        (Groups { placement: &Placement::Rail, ..of(2, 2) }, "placement", "add [servers] with `gpus` and `nics`"),
        (Groups { hosts: &unknown, ..of(1, 2) }, "hosts", "host 12 does not exist; hosts are 0 to 11"),
        (Groups { hosts: &twice, ..of(1, 2) }, "hosts", "host 3 is named twice"),
        (Groups { hosts: &one, ..of(1, 2) }, "hosts", "two or more"),
    ] {
        let error = place(&groups, &view(12, 4, 1), "").unwrap_err();
        assert_eq!(error.key.as_deref(), Some(key), "{error}");
        assert!(error.message.contains(part), "{error}");
    }
}
