"""What ``-t`` takes."""

from __future__ import annotations

import pytest

from eagle3_lint.contract.runtime import runtime_file
from eagle3_lint.errors import InputError
from eagle3_lint.releases import Target, every, parse_target, parse_targets


def releases(text: str) -> list[str]:
    return [target.release for target in parse_target(text)]


def test_exact() -> None:
    assert parse_target("sglang==0.5.9") == [Target("sglang", "0.5.9")]
    assert parse_target(" SGLang == 0.5.9 ") == [Target("sglang", "0.5.9")]


def test_a_range_gives_every_known_release_in_it_oldest_first() -> None:
    # The releases of SGLang on PyPI between these two, both included.
    assert releases("sglang>=0.5.8,<=0.5.10") == ["0.5.8", "0.5.8.post1", "0.5.9", "0.5.10"]


def test_pep_440_rules_hold_for_what_a_user_types() -> None:
    # PEP 440: >0.5.10 excludes its own post-releases, ~=0.5.9 means >=0.5.9, ==0.5.*.
    assert "0.5.10.post1" not in releases("sglang>0.5.10")
    assert releases("sglang~=0.5.22") == ["0.5.22", "0.5.23"]


def test_a_bare_name_is_the_newest() -> None:
    assert releases("sglang") == [runtime_file("sglang").releases[-1]]


def test_an_unknown_release_is_not_an_error() -> None:
    [target] = parse_target("sglang==0.6.1")
    assert not target.known


def test_each_target_once() -> None:
    assert len(parse_targets(["sglang==0.5.9", "sglang>=0.5.9,<0.5.10"])) == 1


def test_nothing_asked_for_is_the_newest_of_both() -> None:
    assert [t.runtime for t in parse_targets([])] == ["sglang", "vllm"]


def test_every_release_is_in_order() -> None:
    from packaging.version import Version

    for runtime in ("sglang", "vllm"):
        mine = [Version(t.release) for t in every() if t.runtime == runtime]
        assert mine == sorted(mine)
        assert len(set(mine)) == len(mine)


@pytest.mark.parametrize("text", ["", "==1", "sglang 0.5.9", "nothing==1", "sglang==0.5.9;x"])
def test_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_target(text)
