"""Scenarios: classes, files and text are equivalent; the simulator validates them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import anabranch as ab
from anabranch import _native

READY_MADE = dict(_native.ready_made())


@pytest.mark.parametrize("name", READY_MADE)
def test_ready_made_scenarios_go_through_the_classes_and_keep_their_hash(name: str) -> None:
    scenario = ab.Scenario(name)
    again = ab.Scenario(**scenario.keywords())
    assert again.hash == scenario.hash
    assert again.to_toml() == scenario.to_toml()
    assert ab.Scenario.from_toml(READY_MADE[name], name=name).hash == scenario.hash


def test_classes_and_files_say_the_same() -> None:
    of_classes = ab.Scenario(
        name="mine",
        topology=ab.FatTree(tiers=2, radix=8, link_rate="400Gbps"),
        load_balancer=ab.Prime(p_ecn=10, decay_on="sent"),
        workloads=[ab.Poisson(sizes="web-search", load=0.6, duration="1ms"), ab.Incast(senders=8, receivers=1, size="64KiB")],
        faults=[ab.Fault(at="20us", kind="link-down", links=["leaf0-spine1"])],
        run=ab.RunOptions(warmup="10us"),
    )
    of_text = ab.Scenario.from_toml("""
        name = "mine"
        topology = { kind = "fat-tree", tiers = 2, radix = 8, link_rate = "400Gbps" }
        [load_balancer]
        scheme = "prime"
        [load_balancer.prime]
        p_ecn = 10
        [[workload]]
        kind = "poisson"
        sizes = "web-search"
        load = 0.6
        duration = "1ms"
        [[workload]]
        kind = "incast"
        senders = 8
        receivers = 1
        size = "64KiB"
        [[fault]]
        at = "20us"
        kind = "link-down"
        links = ["leaf0-spine1"]
        [run]
        warmup = "10us"
    """)
    assert of_classes.hash == of_text.hash and of_classes == of_text
    of_words = ab.Scenario(
        name="mine",
        topology={"kind": "fat-tree", "tiers": 2, "radix": 8},
        load_balancer={"scheme": "prime", "prime": {"p_ecn": 10}},
        workloads=[{"kind": "permutation", "size": "64KiB"}],
    )
    assert of_words.scheme == "prime" and isinstance(of_words.topology, ab.FatTree) and of_words.topology.radix == 8


def test_load_balancers_by_word_by_scheme_and_whole() -> None:
    def of(balancer: object) -> ab.Scenario:
        return ab.Scenario(
            topology=ab.LeafSpine(leaves=2, spines=2, hosts_per_leaf=2),
            load_balancer=balancer,  # type: ignore[arg-type]
            workloads=[ab.Permutation(size="64KiB")],
        )

    assert of("hopper").scheme == "hopper"
    assert of("hf2t+letflow").scheme == "hf2t+letflow"
    assert of(ab.Hopper(th_probe=1.5)).load_balancer.hopper == of(ab.LoadBalancer(scheme="hopper", hopper=ab.Hopper(th_probe=1.5))).load_balancer.hopper
    both = of(ab.LoadBalancer(host="hf2t", switch="letflow", letflow=ab.Letflow(flowlet_timeout="50us")))
    assert both.load_balancer.letflow is not None and both.load_balancer.letflow.flowlet_timeout == "50us"


def test_with_changes_keys_as_set_does() -> None:
    base = ab.Scenario("first-run")
    assert base.with_({"topology.radix": 8}).hash != base.hash == base.with_({}).hash == base.with_({"seed": base.seed}).hash
    assert base.with_(scheme="ecmp").scheme == "ecmp"
    changed = base.with_({"workload.0.size": "1MB", "load_balancer.prime.p_ecn": 10, "measure.series_scheme": True})
    (workload,) = changed.workloads
    assert isinstance(workload, ab.Permutation) and workload.size == "1MB"


def test_they_travel() -> None:
    scenario = ab.Scenario("incast").with_({"seed": 3})
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    assert len({scenario, pickle.loads(pickle.dumps(scenario))}) == 1


def test_relative_paths_mean_what_they_mean_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "flows.csv").write_text("src,dst,size_bytes,start_ps\n0,1,4096,0\n")
    text = """
        topology = { kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 2 }
        load_balancer = { scheme = "ecmp" }
        workload = [{ kind = "file", path = "flows.csv" }]
    """
    (tmp_path / "scenario.toml").write_text(text)
    of_file = ab.Scenario(tmp_path / "scenario.toml")
    assert ab.Scenario.from_toml(text, folder=tmp_path).hash == of_file.hash == pickle.loads(pickle.dumps(of_file)).hash
    monkeypatch.chdir(tmp_path)
    of_keywords = ab.Scenario(
        name="scenario",
        topology=ab.LeafSpine(leaves=2, spines=2, hosts_per_leaf=2),
        load_balancer="ecmp",
        workloads=[ab.WorkloadFile(path="flows.csv")],
    )
    assert of_keywords.hash == of_file.hash
    assert len(ab.run(of_file).flows) == 1


def test_parts_do_not_change_and_compare_by_what_they_say() -> None:
    tree = ab.FatTree(radix=8)
    assert tree == ab.FatTree(radix=8) != ab.FatTree(radix=16)
    assert tree.replace(tiers=2) == ab.FatTree(radix=8, tiers=2) and tree.tiers is None
    assert repr(tree) == "FatTree(radix=8)"
    with pytest.raises(AttributeError, match="replace"):
        tree.radix = 4


def wrong(**given: object) -> ab.ScenarioError:
    parts = {
        "topology": ab.FatTree(tiers=2, radix=8),
        "load_balancer": "ecmp",
        "workloads": [ab.Permutation(size="64KiB")],
    }
    with pytest.raises(ab.ScenarioError) as caught:
        ab.Scenario(**{**parts, **given})  # type: ignore[arg-type]
    assert isinstance(caught.value, ValueError)
    return caught.value


def test_mistakes_name_the_argument_the_remedy_and_the_nearest() -> None:
    error = wrong(topology=ab.FatTree(tiers=2, radix=8, link_rate="400"))
    assert error.place == "topology.link_rate" and "expected" in str(error)
    error = wrong(workloads=[ab.Permutation(size="64KiB"), ab.Permutation(size="64KiB", scope="other-laef")])  # type: ignore[arg-type]
    assert error.place == "workloads[1].scope" and error.nearest == "other-leaf"
    error = wrong(load_balancer="prme")
    assert error.place == "load_balancer.scheme" and error.nearest == "prime"
    error = wrong(topology=ab.Poisson(load=0.5))
    assert error.place == "topology" and "FatTree" in str(error)
    error = wrong(workloads=ab.Poisson(load=0.5))
    assert error.place == "workloads" and "list" in str(error)
    error = wrong(faults=[ab.Fault(at="1us", kind="link-dwon")])  # type: ignore[arg-type]
    assert error.place == "faults[0].kind" and error.nearest == "link-down"
    error = wrong(topology=ab.FatTree(tiers=2, radix=object()))  # type: ignore[arg-type]
    assert error.place == "topology.radix"
    with pytest.raises(ab.ScenarioError) as caught:
        ab.FatTree(raidx=8)  # type: ignore[call-arg]
    assert caught.value.nearest == "radix" and caught.value.place == "topology.raidx"


def test_mistakes_in_names_files_and_changes(tmp_path: Path) -> None:
    with pytest.raises(ab.ScenarioError) as caught:
        ab.Scenario("first-rnu")
    assert caught.value.nearest == "first-run"
    (tmp_path / "wrong.toml").write_text('seed = 1\n[topology]\nkind = "fat-tree"\nraidx = 8\n')
    with pytest.raises(ab.ScenarioError) as caught:
        ab.Scenario(tmp_path / "wrong.toml")
    assert caught.value.place == f"{tmp_path / 'wrong.toml'}:4:1" and caught.value.nearest == "radix"
    with pytest.raises(ab.ScenarioError) as caught:
        ab.Scenario("first-run").with_({"topology.raidx": 8})
    assert caught.value.nearest == "radix" and caught.value.place == "topology.raidx"
    with pytest.raises(ab.ScenarioError, match="written as text with its unit") as caught:
        ab.Scenario("first-run").with_({"seed": 3, "topology.link_delay": 5})
    assert caught.value.place == "topology.link_delay"
    with pytest.raises(ab.ScenarioError, match="expected a name, a file or a Scenario"):
        ab.run(3)  # type: ignore[arg-type]
    with pytest.raises(ab.ScenarioError, match="given beside it"):
        ab.Scenario("first-run", seed=2)
    with pytest.raises(ab.ScenarioError, match="topology"):
        ab.Scenario()
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value) and copy.place == caught.value.place


def test_check_says_what_a_run_would_refuse() -> None:
    assert ab.Scenario("first-run").check() == []
    with pytest.raises(ab.ScenarioError):
        ab.Scenario("first-run").with_({"measure.trace_flows": [10_000_000]}).check()


def test_the_catalogue() -> None:
    assert "prime" in {entry.name for entry in ab.list("schemes")}
    assert {entry.name for kind in ("scenarios", "paper-scenarios") for entry in ab.list(kind)} == set(READY_MADE)
    prime = ab.explain("prime")
    parameters = {parameter.name: parameter for part in prime.parts for parameter in part.parameters}
    assert "PRIME" in parameters["p_ecn"].source and "p_ecn" in str(prime)
    with pytest.raises(ab.ScenarioError):
        ab.explain("prmie-nothing-like-it")
    with pytest.raises(ab.ScenarioError) as caught:
        ab.list("schmes")
    assert caught.value.nearest == "schemes"
    graph = ab.topology("first-run", pair=(0, "host9"))
    assert graph["hosts"] > 9 and graph["pair"]["paths"]
    with pytest.raises(ab.ScenarioError):
        ab.topology("first-run", pair=(0, 0))
