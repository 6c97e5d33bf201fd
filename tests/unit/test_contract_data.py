"""The contracts as data: whole, closed under their names, one of what there must be one of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from eagle3_lint.contract.expression import ExpressionError, compile_expression, names_in
from eagle3_lint.contract.model import Contract, KeyCondition, Raise
from eagle3_lint.contract.ranges import covers, version
from eagle3_lint.contract.read import ContractFile, contract_file
from eagle3_lint.contract.rules_folder import read_json, read_toml, rules_folder
from eagle3_lint.contract.runtime import known_runtimes, runtime_file
from eagle3_lint.forward import switches

FOLDER = rules_folder()
FILES = sorted(p for p in (FOLDER / "contracts").glob("*/*.toml") if p.name != "runtime.toml")
RUNTIMES = known_runtimes()

#: Names that whoever plays a contract gives it.
OUTSIDE = {"config_class", "target_hidden", "target_vocab", "target_layers", "tp"}
#: Names that only the text of an exception about a shape may use.
OF_SHAPES = {
    "loaded", "narrowed", "expected", "loaded_list", "expected_list", "loaded_rows",
    "loaded_columns", "expected_rows", "expected_columns", "start", "length",
}  # fmt: skip
OF_LOOKUPS = {"key", "tensor", "unknown"}
OF_RESOLVING = {
    "architectures", "architectures_type", "first_of_architectures", "architecture", "written",
    "model_type", "has_model_type", "has_auto_map", "has_auto_config", "speculators",
    "has_speculators_config", "speculators_model_type", "listed", "replaced",
    "base_model", "layer_type", "architectures_count",
}  # fmt: skip
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def files() -> list[Any]:
    return [pytest.param(path, id=f"{path.parent.name}/{path.stem}") for path in FILES]


def contracts(path: Path) -> Iterator[Contract]:
    """The contract of each known release that the file speaks of, equal ones once."""
    file = ContractFile(path)
    seen: set[int] = set()
    for release in runtime_file(file.runtime).releases:
        if file.knows(release):
            contract = file.contract(release)
            if id(contract) not in seen:
                seen.add(id(contract))
                yield contract


def placeholders(errors: Iterable[object]) -> set[str]:
    return {n for e in errors if isinstance(e, Raise) for n in PLACEHOLDER.findall(e.message)}


# -- schemas --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["contract", "runtime"])
def test_the_schema_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(read_json(FOLDER / "schema" / f"{name}.schema.json"))


def test_every_file_fits_its_schema() -> None:
    for path in sorted((FOLDER / "contracts").glob("*/*.toml")):
        name = "runtime" if path.name == "runtime.toml" else "contract"
        validator = Draft202012Validator(read_json(FOLDER / "schema" / f"{name}.schema.json"))
        found = [f"{c.json_path}: {c.message}" for c in validator.iter_errors(read_toml(path))]
        assert found == [], path


SPOILED: list[tuple[str, Mapping[str, Any]]] = [
    ("config", {"name": "x", "source": "0.5.9 a.py:1"}),  # neither read nor computed
    ("config", {"refuse": "ValueError: no", "source": "0.5.9 a.py:1"}),  # always
    ("config", {"name": "x", "read": ["x"], "value": "1", "source": "0.5.9 a.py:1"}),
    ("config", {"name": "x", "read": ["x"], "sources": "0.5.9 a.py:1"}),  # misspelt
    ("keys", {"do": "fuse", "find": ".q_proj", "with": ".qkv_proj", "source": "0.5.9 a.py:1"}),
    ("keys", {"do": "drop", "source": "0.5.9 a.py:1"}),
    ("shapes", {"loader": "x", "rows": "cut", "source": "0.5.9 a.py:1"}),  # columns left open
    ("shapes", {"loader": "x", "differs": "it fails", "source": "0.5.9 a.py:1"}),  # no exception
    ("lookup", {"try": ["{key}"], "missing": "drop", "source": "0.5.9 a.py:1"}),
    ("after", {"refuse": "ValueError: no", "when": "1", "source": "0.5.9 a.py:1", "in": "0.5.9"}),
]


@pytest.mark.parametrize(("section", "statement"), SPOILED)
def test_the_schema_refuses(section: str, statement: Mapping[str, Any]) -> None:
    raw = read_toml(FILES[0])
    validator = Draft202012Validator(read_json(FOLDER / "schema" / "contract.schema.json"))
    assert validator.is_valid(raw)
    assert not validator.is_valid({**raw, section: [*raw.get(section, ()), statement]})


# -- releases -------------------------------------------------------------------------------------


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_releases_stand_in_order(runtime: str) -> None:
    releases = [version(r) for r in runtime_file(runtime).releases]
    assert all(a < b for a, b in pairwise(releases))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_release_resolves_and_every_draft_class_has_a_contract(runtime: str) -> None:
    for release in runtime_file(runtime).releases:
        known = runtime_file(runtime).release(release)
        for draft_class in known.drafts.values():
            assert contract_file(runtime, draft_class).knows(release), (release, draft_class)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_one_transformers_per_release(runtime: str) -> None:
    file = runtime_file(runtime)
    for release in file.releases:
        assert sum(covers(p["in"], release) for p in file.raw["transformers"]) == 1, release


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_names_in_resolve_steps_are_known(runtime: str) -> None:
    for release in runtime_file(runtime).releases:
        known = runtime_file(runtime).release(release)
        for step in known.steps:
            known_here = OF_RESOLVING | {*step.reads, *(f"{name}_type" for name in step.reads)}
            assert names_in(step.when or "1") <= known_here, (release, step.source)
            assert placeholders([step.error]) <= known_here, (release, step.source)
        assert placeholders([known.unknown, known.not_a_draft]) <= OF_RESOLVING
        for state in known.aux["default"]:
            assert names_in(state) <= {"layers"}


# -- contracts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", files())
def test_the_file_is_where_its_class_is_looked_for(path: Path) -> None:
    file = ContractFile(path)
    assert (file.runtime, file.draft_class) == (path.parent.name, path.stem)


@pytest.mark.parametrize("path", files())
def test_every_release_in_range_builds(path: Path) -> None:
    # Not one or more than one [[layer]] for a release raises in ContractFile.contract.
    file = ContractFile(path)
    built = [r for r in runtime_file(file.runtime).releases if file.knows(r) and file.contract(r)]
    assert built


@pytest.mark.parametrize("path", files())
def test_every_statement_holds_for_some_release(path: Path) -> None:
    file = ContractFile(path)
    releases = [r for r in runtime_file(file.runtime).releases if file.knows(r)]
    for section, statements in file.raw.items():
        for entry in statements if isinstance(statements, list) else ():
            if isinstance(entry, dict):
                holds = [r for r in releases if covers(entry.get("in", ""), r)]
                assert holds, (section, entry)


@pytest.mark.parametrize("path", files())
def test_each_switch_has_one_statement_in_every_release(path: Path) -> None:
    file = ContractFile(path)
    named = {entry["name"] for entry in file.raw["switch"]}
    assert named >= {switch.name for switch in switches()}
    for release in runtime_file(file.runtime).releases:
        if file.knows(release):
            holding = [e["name"] for e in file.raw["switch"] if covers(e.get("in", ""), release)]
            assert sorted(holding) == sorted(named), release


@pytest.mark.parametrize("path", files())
def test_every_name_in_an_expression_is_defined(path: Path) -> None:
    for contract in contracts(path):
        defined = OUTSIDE | {s.name for s in contract.present}
        for statement in contract.config:
            used = names_in(statement.when or "1") | names_in(statement.value or "1")
            for instead in (statement.absent, statement.null):
                if isinstance(instead, str):
                    used |= names_in(instead)
            used |= placeholders([statement.refuse, statement.absent, statement.null])
            assert used <= defined, (contract.release, statement)
            assert statement.name not in OUTSIDE, (contract.release, statement)
            if statement.name:
                defined.add(statement.name)
        _check_the_rest(contract, defined)


def _check_the_rest(contract: Contract, defined: set[str]) -> None:
    assert names_in(contract.layer.each) <= defined
    for parameter in contract.parameters:
        here = defined | {"index"}
        sizes = (*parameter.shape, *parameter.parts.values(), parameter.when, parameter.used)
        for text in sizes:
            assert names_in(text or "1") <= here, (contract.release, parameter.name, text)
        assert names_in(parameter.each or "1") <= defined
        assert names_in(parameter.from_target or "1") <= here | {"missing", "mapped"}
    for key in contract.keys:
        assert names_in(key.when or "1") <= defined, (contract.release, key)
    emptiness = {"halved", "shadowed", *(f"empty_{loader}" for loader in contract.shapes)}
    for after in contract.after:
        assert names_in(after.when) <= defined | {"mapped", "untouched"} | emptiness
        assert placeholders([after.refuse]) <= defined | {"untouched"}
        assert set(re.findall(r"{(\w+)}", after.because)) <= {"lacking"}
    for lookup in contract.lookups:
        assert placeholders([lookup.missing, lookup.fused_missing]) <= OF_LOOKUPS
    for shape in (*contract.shapes.values(), *contract.shapes_of_whole.values()):
        fields = (getattr(shape, name) for name in shape.__dataclass_fields__)
        assert placeholders(fields) <= OF_SHAPES, (contract.release, shape)


@pytest.mark.parametrize("path", files())
def test_every_loader_has_one_shape_statement(path: Path) -> None:
    file = ContractFile(path)
    for contract in contracts(path):
        loaders = [p.loader for p in contract.parameters]
        assert set(loaders) <= set(contract.shapes), contract.release
        stated = [
            (e["loader"], e.get("of_whole", False))
            for e in file.raw["shapes"]
            if covers(e.get("in", ""), contract.release)
        ]
        assert len(stated) == len(set(stated)), contract.release


@pytest.mark.parametrize("path", files())
def test_names_and_roles_are_never_doubled(path: Path) -> None:
    """Of two statements for one parameter, at most one may come without a condition."""
    for contract in contracts(path):
        for attribute in ("name", "role"):
            plain = [getattr(p, attribute) for p in contract.parameters if p.when is None]
            assert len(plain) == len(set(plain)), (contract.release, attribute)


@pytest.mark.parametrize("path", files())
def test_parts_add_up_to_the_rows(path: Path) -> None:
    """Checked on numbers: sizes of which no two products agree by chance."""
    for contract in contracts(path):
        for parameter in contract.parameters:
            if not parameter.parts:
                continue
            rows = " + ".join(f"({p})" for p in parameter.parts.values())
            wanted = names_in(rows) | names_in(parameter.shape[0])
            primes = dict(zip(sorted(wanted), (101, 103, 107, 109, 113, 127), strict=False))
            whole, sum_of_parts = compile_expression(parameter.shape[0]), compile_expression(rows)
            assert sum_of_parts(primes) == whole(primes), (contract.release, parameter.name)


@pytest.mark.parametrize("path", files())
def test_every_key_is_spoken_of(path: Path) -> None:
    for contract in contracts(path):
        always = [s for s in contract.lookups if s.condition == KeyCondition()]
        assert any(s.unknown == KeyCondition() for s in always), contract.release
        last = contract.keys[-1]
        assert last.do == "load", contract.release
        assert (last.condition, last.when) == (KeyCondition(), None), contract.release


@pytest.mark.parametrize("path", files())
def test_fused_parts_exist(path: Path) -> None:
    """A part that [[keys]] loads is a part of some parameter."""
    for contract in contracts(path):
        parts = {part for p in contract.parameters for part in p.parts}
        loaded = {key.part for key in contract.keys if key.do == "fuse"}
        assert loaded == parts, contract.release


def test_an_unknown_name_is_noticed() -> None:
    """The checks above rest on this: names are found wherever they stand."""
    assert names_in("not (a + b // 2 == null) or 'c' == d") == {"a", "b", "d"}
    with pytest.raises(ExpressionError):
        names_in("a ? b")
