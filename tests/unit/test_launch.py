"""The launch line: what it is for each release, and how a user's own command is read.

A shell is the oracle for words, argparse for options, and vLLM 0.32.0 for methods and arguments:
its own parser and its own SpeculativeConfig printed what stands here.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies
from packaging.version import Version

from eagle3_lint.checking import check
from eagle3_lint.checks.launch_method import Taken, taken
from eagle3_lint.contract.runtime import runtime_file
from eagle3_lint.diagnostic import Diagnostic
from eagle3_lint.errors import InputError
from eagle3_lint.launch.line import Line, Wanted, write_line
from eagle3_lint.launch.options import Given, interpret, whole_number
from eagle3_lint.launch.parse import read_launch
from eagle3_lint.launch.render import shell
from eagle3_lint.launch.serving import PLACEHOLDER, model_argument
from eagle3_lint.launch.shell import UNKNOWN, commands
from eagle3_lint.launch.statements import LaunchRelease, launch_file, launch_runtimes
from eagle3_lint.models import known_model
from tests.drafts import llama_config, llama_tensors, write_draft

RELEASES = [(r, release) for r in launch_runtimes() for release in runtime_file(r).releases]
SGLANG, VLLM = ("-m", "sglang.launch_server"), ("vllm", "serve")
EAGLE3 = ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/d"]


def of(runtime: str, release: str) -> LaunchRelease:
    return launch_file(runtime).release(release)


def given(runtime: str, release: str, *words: str) -> Given:
    form = {"sglang": SGLANG, "vllm": VLLM}[runtime]
    return interpret(words, form, of(runtime, release))


# -- words: a shell is the oracle ------------------------------------------------------------------

TEXTS = [
    "server a b",
    "server 'a b' \"c d\" e\\ f ''",
    "server a \\\n  b \\\n  c\n",
    "server a # a comment, don't read it\n",
    "# server x\nserver a#b c # d\n",
    # A comment between continued lines ends the command; the next line is one of its own.
    "server a \\\n # b \\\n  true c\n",
    "X=1 Y='a b' server a",
    "D=/models/draft\nserver --draft $D --more=${D}/x \"$D y\" '$D'",
    'ARGS="--a 1 --b"\nserver $ARGS "$ARGS"',
    'server --json "{\\"a\\": \\"b c\\"}" \'{"d": 1}\' {"e":2}',
    'S=\'{"method": "eagle3"}\'\nserver --config "$S" z',
    "server ${NOTHING:-default} ${ALSO:-/a/b}/c",
    "export D=/x\nserver $D",
    "true && server a > /dev/stderr 2>&1",
    "server a; true",
    "cd . && server '\\$x' \\$y \"\\$z\"",
    "server \"a\\\nb\" 'c\\d'",
    "server a |& cat -",
]


def words_of_a_shell(text: str) -> list[str]:
    """What a function called ``server`` is given."""
    script = "server() { printf '%s\\0' \"$@\" >&3; }\n" + text
    run = ["bash", "--norc", "-c", f"exec 3>&1 >/dev/null 2>&1\n{script}"]
    done = subprocess.run(run, capture_output=True, check=False)
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("text", TEXTS)
def test_words_are_those_of_a_shell(text: str) -> None:
    [found] = [c.words[1:] for c in commands(text) if c.words[:1] == ("server",)]
    assert list(found) == words_of_a_shell(text)


@pytest.mark.parametrize(
    "text", ["server $UNSET", "server $(date)", "server `date`", 'server "${A[@]}"', "server $1 $@"]
)
def test_what_only_a_shell_knows_is_unknown(text: str) -> None:
    [command] = commands(text)
    assert all(word == UNKNOWN for word in command.words[1:])
    assert len(command.words) > 1


def test_the_environment_of_a_command() -> None:
    found = {
        c.words[0]: dict(c.env) for c in commands("export A=1 B=2\nC=3\nB=4 D=5 server\nafter")
    }
    # C is set and not exported; B and D are the server's alone.
    assert found == {
        "server": {"A": "1", "B": "4", "D": "5"},
        "after": {"A": "1", "B": "2"},
    }


def test_a_quote_without_an_end() -> None:
    with pytest.raises(ValueError, match="quotation"):
        list(commands("server 'a"))


# -- the server among them -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "runtime", "words", "env"),
    [
        ("python -m sglang.launch_server --x", "sglang", ("--x",), {}),
        ("/usr/bin/python3 -m sglang.launch_server --x", "sglang", ("--x",), {}),
        ("sglang serve m --x", "sglang", ("m", "--x"), {}),
        ("A=1 env B=2 vllm serve m", "vllm", ("m",), {"A": "1", "B": "2"}),
        ("nohup /usr/local/bin/vllm serve m &", "vllm", ("m",), {}),
        ("python3 -m vllm.entrypoints.openai.api_server --model m", "vllm", ("--model", "m"), {}),
        ("export A=1\ncd /x && vllm serve m | tee log", "vllm", ("m",), {"A": "1"}),
        (
            "docker run --gpus all -e A=1 --env B=2 --env=C=3 lmsysorg/sglang:latest"
            " python3 -m sglang.launch_server --x",
            "sglang",
            ("--x",),
            {"A": "1", "B": "2", "C": "3"},
        ),
        ("docker run -p 1:1 vllm/vllm-openai:v0.20.0 --model m", "vllm", ("--model", "m"), {}),
        ("docker run vllm/vllm-openai bash -c 'A=1 vllm serve m'", "vllm", ("m",), {"A": "1"}),
    ],
)
def test_the_server_is_found(
    text: str, runtime: str, words: tuple[str, ...], env: dict[str, str]
) -> None:
    launch = read_launch(text)
    assert (launch.runtime, launch.words, dict(launch.env)) == (runtime, words, env)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("echo nothing here", "no server is started"),
        ("vllm serve a & vllm serve b", "2 servers"),
        ("vllm serve 'a", "a quote has no end"),
        ("", "neither a file nor a command"),
        ("no-such-file.sh", "neither a file nor a command"),
        ("a\0b c", "no server"),
        ("vllm serve m --speculative-config '{method: eagle3}'", "is no JSON"),
        ('vllm serve m --speculative-config {"method":"eagle3"}', "put it in single quotes"),
        ("vllm serve m -sc '[1]'", "no object"),
        ("vllm serve m --speculative-config '" + "[" * 100_000 + "'", "is no JSON"),
        ('vllm serve m --speculative-config \'{"a": ' + "1" * 5000 + "}'", "is no JSON"),
    ],
)
def test_bad_commands(text: str, what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        read_launch(text)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


WORDS = ('"model":1', "-sc.", "-sc", "--speculative-config", "$A", "${", "$(", "2>", "A=1", "m")
PIECES = strategies.sampled_from([*"'\"\\\n$)`#;&>= {}\0", *WORDS])


@hypothesis.given(strategies.lists(PIECES | strategies.text(max_size=3), max_size=12))
@hypothesis.settings(max_examples=300, deadline=None)
def test_any_text_is_a_command_or_bad_input(pieces: list[str]) -> None:
    try:
        launch = read_launch("vllm serve " + " ".join(pieces))
        for release in runtime_file(launch.runtime).releases[::20]:
            launch.given(release)
    except InputError as error:
        message = str(error)
        assert message.startswith("launch command"), message


def test_bad_files(tmp_path: Path) -> None:
    binary, large = tmp_path / "a", tmp_path / "b"
    binary.write_bytes(b"\xff\xfe vllm serve")
    large.write_text("# x\n" * 2**19)
    for path, what in ((tmp_path, "regular"), (binary, "UTF-8"), (large, "too large")):
        with pytest.raises(InputError, match=what):
            read_launch(str(path))


# -- options: argparse is the oracle ---------------------------------------------------------------


def by_argparse(release: LaunchRelease, words: list[str]) -> dict[str, Any] | None:
    """What argparse makes of the words, with the options that the data have; None: it ends."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    for option in release.all("option"):
        how: dict[str, Any] = {"action": "store_const", "const": ""} if option.get("flag") else {}
        parser.add_argument(*option["names"], dest=option["is"], **how)
    for other in release.all("other"):
        for name in other["names"]:
            parser.add_argument(name)
    try:
        found, rest = parser.parse_known_args(words)
    except (argparse.ArgumentError, SystemExit):
        return None
    if any(word.startswith(release.watched) for word in rest):
        return None
    meanings = {option["is"] for option in release.all("option")}
    return {k: v for k, v in vars(found).items() if k in meanings and v is not None}


@pytest.mark.parametrize("release", ["0.4.4.post2", "0.5.1.post3", "0.5.2", "0.5.7", "0.5.23"])
@pytest.mark.parametrize(
    "text",
    [
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path /d",
        "--speculative-algorithm=EAGLE3 --speculative-draft-model-path=/d --trust-remote-code",
        "--speculative-algo EAGLE --speculative-algorithm EAGLE3",
        "--speculative-draft /d",
        "--speculative-draft-model /d",
        "--speculative-num-steps 3 --speculative-eagle 1 --speculative-num-draft 4",
        "--speculative-num 3",
        "--speculative-draft-model-quantization unquant",
        "--speculative-draft-q unquant --quantization awq",
        "--speculative-nonsense 3",
        "--context-length 4096 --port 3 --host x --model-path m",
    ],
)
def test_options_are_those_of_argparse(release: str, text: str) -> None:
    words, statements = text.split(), of("sglang", release)
    found = interpret(words, SGLANG, statements)
    ended = bool(found.unknown or found.ambiguous)
    assert (None if ended else dict(found.values)) == by_argparse(statements, words)


#: Arguments → what vLLM 0.32.0's own parser had as speculative_config (with --spec-* joined in).
PARSED = [
    ("-sc.method eagle3 -sc.model /x", {"method": "eagle3", "model": "/x"}),
    ("--speculative_config.method eagle3", {"method": "eagle3"}),
    ("--speculative-config.num_speculative_tokens 3", {"num_speculative_tokens": 3}),
    ('-sc {"method":"eagle3"}', {"method": "eagle3"}),
    ('--speculative {"method":"eagle3"}', {"method": "eagle3"}),
    # Given in both ways, the fields take the place of the object.
    ('--speculative-config {"method":"eagle3"} --speculative-config.model /x', {"model": "/x"}),
    (
        "--spec-method eagle3 --spec-model /x --spec-tokens 3",
        {"method": "eagle3", "model": "/x", "num_speculative_tokens": 3},
    ),
    ("--speculative-config=None", None),
    ("--enforce-eager", None),
]


@pytest.mark.parametrize(("text", "speculation"), PARSED)
def test_speculative_configurations(text: str, speculation: dict[str, Any] | None) -> None:
    found = given("vllm", "0.32.0", "m", *text.split())
    assert (found.speculation, found.first, found.unknown) == (speculation, "m", ())


def test_dashes_in_fields() -> None:
    words = ("m", "--speculative-config.num-speculative-tokens", "3")
    # 0.26.0 engine/arg_utils.py:1768 turns them round; before, it is a field that is not there.
    assert given("vllm", "0.26.0", *words).speculation == {"num_speculative_tokens": 3}
    assert given("vllm", "0.25.1", *words).speculation == {"num-speculative-tokens": 3}


def test_options_come_and_go() -> None:
    # vLLM 0.22.0 engine/arg_utils.py:1464; 0.19.0 :1304.
    assert given("vllm", "0.21.0", "m", "--spec-model", "/x").unknown == ("--spec-model",)
    assert given("vllm", "0.18.1", "m", "-sc", "{}").speculation is None
    # As vLLM 0.32.0's parser says: unrecognized arguments.
    for gone in ("--speculative-model", "--num-speculative-tokens"):
        assert given("vllm", "0.32.0", "m", gone, "3").unknown == (gone,)
    # Dotted fields: 0.9.0 utils.py:1452.
    assert given("vllm", "0.8.5", "m", "--speculative-config.model", "/x").speculation is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4096", 4096),
        ("32k", 32_000),
        ("1K", 1024),
        ("25.6k", 25_600),
        ("1.5K", None),
        ("auto", None),
    ],
)
def test_readable_numbers(text: str, number: int | None) -> None:
    # The docstring of vLLM 0.32.0 utils/argparse_utils.py:29.
    assert whole_number(text) == number


def test_negative_numbers_are_values() -> None:
    found = given("vllm", "0.32.0", "m", "--max-model-len", "-1", "-tp", "2")
    assert (found.value("context"), found.number("tensor-parallel")) == ("-1", 2)


@pytest.mark.parametrize(
    ("words", "partial"),
    [
        (("m", UNKNOWN), True),
        (("m", "--trust-remote-code", UNKNOWN), True),
        (("m", "--config", "a.yaml"), True),
        (("m", "--port", UNKNOWN), False),
        (("m", "--port=1"), False),
        (("m", "--speculative-config", '{"model": ' + UNKNOWN + "}"), True),
    ],
)
def test_what_cannot_be_seen(words: tuple[str, ...], partial: bool) -> None:
    assert given("vllm", "0.32.0", *words).partial is partial


# -- methods: vLLM 0.32.0's SpeculativeConfig is the oracle ----------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        (None, "/x/draft", "draft_model"),
        (None, "/x/my-eagle3", "eagle3"),
        (None, "/x/eagle-head", "eagle"),
        (None, "Kimi-K2.5-eagle3", "eagle3"),
        (None, "/x/EAGLE-heads/EAGLE3-draft", "eagle"),
        ("eagle3", "/x/eagle-head", "eagle3"),
        ("eagle", "/x/my-eagle3", "eagle"),
        ("draft_model", "/x/my-eagle3", "eagle3"),
        ("draft_model", "/x/draft", "draft_model"),
        ("mtp", "/x/draft", None),
    ],
)
def test_the_method_that_vllm_arrives_at(
    method: str | None, path: str, expected: str | None
) -> None:
    statement = of("vllm", "0.32.0").first("method")
    assert statement is not None
    assert taken(statement, method, path).method == expected


@pytest.mark.parametrize(
    ("release", "path", "expected"),
    [
        # 0.8.5 config.py:2376: eagle3- is EAGLE-1 there, and anything else a draft model.
        ("0.8.5", "/x/EAGLE3-LLaMA3.1", Taken("eagle", "eagle3-")),
        ("0.9.2", "/x/kimi_eagle3", Taken("draft_model")),
        # 0.10.2 config/__init__.py:2136.
        ("0.10.2", "/x/kimi_eagle3", Taken("eagle3", "eagle3")),
        # 0.20.0 and 0.25.0 know two more kinds of drafts.
        ("0.19.1", "/x/dflash", Taken("draft_model")),
        ("0.20.0", "/x/dflash", Taken("dflash", "dflash")),
        ("0.25.0", "/x/dspark", Taken("dspark", "dspark")),
    ],
)
def test_the_method_of_other_releases(release: str, path: str, expected: Taken) -> None:
    statement = of("vllm", release).first("method")
    assert statement is not None
    assert taken(statement, None, path) == expected


@pytest.mark.parametrize("release", ["0.10.0", "0.14.1", "0.15.0", "0.16.0"])
def test_releases_that_raise_without_a_method(release: str) -> None:
    statement = of("vllm", release).first("method")
    assert statement is not None
    found = taken(statement, None, "/x/draft")
    assert found.method is None
    assert found.error.startswith("NotImplementedError")


# -- the line --------------------------------------------------------------------------------------


def line(runtime: str, release: str, **wanted: Any) -> Line:
    return write_line(of(runtime, release), Wanted(model="org/target", draft="/d", **wanted))


def test_the_line_of_sglang() -> None:
    assert line("sglang", "0.5.23").words == (
        *("python", "-m", "sglang.launch_server", "--model-path", "org/target"),
        *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/d"),
        *("--speculative-num-steps", "3", "--speculative-eagle-topk", "1"),
        *("--speculative-num-draft-tokens", "4"),
    )


def test_the_line_of_vllm() -> None:
    program, serve, model, option, text = line("vllm", "0.33.0").words
    assert (program, serve, model, option) == (
        "vllm",
        "serve",
        "org/target",
        "--speculative-config",
    )
    assert json.loads(text) == {"method": "eagle3", "model": "/d", "num_speculative_tokens": 3}


@pytest.mark.parametrize(
    ("runtime", "release", "wanted", "words", "env"),
    [
        # 0.5.7 server_args.py:3456.
        ("sglang", "0.5.7", {"unquantised": True},
         ("--speculative-draft-model-quantization", "unquant"), {}),
        ("sglang", "0.5.6.post2", {"unquantised": True}, (), {}),
        # 0.5.3 configs/model_config.py:268 makes the rotary table longer, 0.5.2 does not; before
        # 0.5.1 a warning was all.
        ("sglang", "0.5.3", {"positions": 2048, "theirs": 4096}, (),
         {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}),
        ("sglang", "0.5.2", {"positions": 2048, "theirs": 4096}, ("--context-length", "2048"), {}),
        ("sglang", "0.4.10.post2", {"positions": 2048, "theirs": 4096}, (), {}),
        ("sglang", "0.5.23", {"dtype": "bfloat16"}, ("--dtype", "bfloat16"), {}),
        ("sglang", "0.5.23", {"trust": True}, ("--trust-remote-code",), {}),
        ("vllm", "0.33.0", {"trust": True}, ("--trust-remote-code",), {}),
        # 0.8.5 engine/arg_utils.py:1488; 0.9.0 has no such condition.
        ("vllm", "0.8.5.post1", {}, (), {"VLLM_USE_V1": "1"}),
        ("vllm", "0.9.0", {}, (), {}),
        ("vllm", "0.17.0", {"runner": "v2"}, (), {"VLLM_USE_V2_MODEL_RUNNER": "1"}),
        ("vllm", "0.33.0", {"runner": "v1"}, (), {"VLLM_USE_V2_MODEL_RUNNER": "0"}),
    ],
)  # fmt: skip
def test_what_a_release_needs(
    runtime: str, release: str, wanted: dict[str, Any], words: tuple[str, ...], env: dict[str, str]
) -> None:
    plain, found = line(runtime, release), line(runtime, release, **wanted)
    assert found.words[len(plain.words) :] == words
    assert found.env == env
    assert len(found.notes) == bool(words) + bool(env)


def test_parallel_drafting_since_there_is_any() -> None:
    # 0.16.0 config/speculative.py:123.
    fields = [json.loads(line("vllm", r, parallel=True).words[-1]) for r in ("0.15.1", "0.16.0")]
    assert [f.get("parallel_drafting") for f in fields] == [None, True]


@pytest.mark.parametrize(
    "path",
    [
        "/a b/c",
        "/it's",
        '/a"b',
        "/$HOME/`x`",
        "/ä/\U0001f985",
        "/a\\b",
        "/{model}/{draft}",
        "/a\nb",
        "/-x",
    ],
)
@pytest.mark.parametrize("width", [40, 10_000])
def test_lines_can_be_pasted(path: str, width: int) -> None:
    for runtime, release in (("sglang", "0.5.23"), ("vllm", "0.8.5")):
        wanted = Wanted(path, path, positions=1, theirs=2)
        found = write_line(of(runtime, release), wanted)
        text = shell(found, width)
        env = [f"{name}={value}" for name, value in found.env.items()]
        assert shlex.split(text.replace(" \\\n", " ")) == [*env, *found.words]
        assert path in found.words or path in json.loads(found.words[-1]).values()


@pytest.mark.parametrize(("runtime", "release"), RELEASES)
def test_a_release_takes_its_own_line(runtime: str, release: str, tmp_path: Path) -> None:
    """The other half of this package reads what this half writes, and finds nothing wrong."""
    config = {**llama_config(), "max_position_embeddings": 2048, "auto_map": {}}
    draft = write_draft(tmp_path / "draft", config, llama_tensors())
    wanted = Wanted("meta-llama/Llama-3.1-8B-Instruct", str(draft), True, None, True, 2048, 131072)
    text = shell(write_line(of(runtime, release), wanted), 100)
    report = check(draft, [f"{runtime}=={release}"], launch=text)
    [result] = report.checkpoints[0].results
    assert result.target.model == "llama-3.1-8b", "the command names it"
    found = [d for d in result.diagnostics if d.rule.startswith("E3L61")]
    # vLLM's first runner stops drafting, and older releases overrun: nothing in a line helps.
    lengths = [d for d in found if d.rule == "E3L616" and d.effect in ("degraded", "none")]
    assert found == lengths, found[0].message


@pytest.mark.parametrize(("runtime", "release"), RELEASES)
def test_a_commit_is_named_where_the_release_can_be_told(runtime: str, release: str) -> None:
    """SGLang from 0.5.2 on, vLLM always, TensorRT-LLM never."""
    wanted = Wanted("org/target", "org/draft", revision="0123abc")
    found = write_line(of(runtime, release), wanted)
    has = runtime == "vllm" or (runtime == "sglang" and Version(release) >= Version("0.5.2"))
    assert any("0123abc" in word for word in found.words) == has


def test_how_a_line_names_the_target_model(tmp_path: Path) -> None:
    kimi = known_model("kimi-k2.5")
    assert model_argument("kimi-k2.5", {}, kimi) == "moonshotai/Kimi-K2.5"
    assert model_argument("nvidia/Kimi-K2.5-NVFP4", {}, kimi) == "nvidia/Kimi-K2.5-NVFP4"
    assert model_argument(None, {}, None) == PLACEHOLDER
    named = {"target_model_name_or_path": "/data/Kimi-K2.5"}
    assert model_argument(None, named, kimi) == "moonshotai/Kimi-K2.5"
    (tmp_path / "config.json").write_text("{}")
    for text in (str(tmp_path), str(tmp_path / "config.json")):
        assert model_argument(text, {}, None) == str(tmp_path)


# -- the data --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("runtime", "release"), RELEASES)
def test_one_statement_where_one_is_asked_for(runtime: str, release: str) -> None:
    statements = of(runtime, release)
    sections = {"sglang": ("line", "spelling"), "vllm": ("line", "method")}[runtime]
    for section in sections:
        assert len(statements.all(section)) == 1, section
    meanings = [option["is"] for option in statements.all("option")]
    assert len(meanings) == len(set(meanings))
    names = [n for s in ("option", "other") for e in statements.all(s) for n in e["names"]]
    assert len(names) == len(set(names))


# -- findings that no case of a rule shows ---------------------------------------------------------


def found(draft: Path, target: str, text: str, **how: Any) -> list[Diagnostic]:
    report = check(draft, [target], how.pop("model", "llama-3.1-8b"), launch=text, **how)
    return [d for d in report.diagnostics() if d.rule.startswith("E3L61")]


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    config = {**llama_config(), "max_position_embeddings": 131072}
    return write_draft(tmp_path / "draft", config, llama_tensors())


@pytest.mark.parametrize("topk", [2, 4])
@pytest.mark.parametrize("steps", [1, 3])
def test_no_more_tokens_than_the_tree_has(draft: Path, topk: int, steps: int) -> None:
    # 0.5.23 speculative/eagle_utils.py:106: scores of topk nodes, and of topk * topk for each
    # further step; one draft token is the root, which has none.
    nodes = topk + (steps - 1) * topk * topk
    numbers = f"--speculative-num-steps {steps} --speculative-eagle-topk {topk}"
    for tokens, wrong in ((nodes + 1, False), (nodes + 2, True)):
        text = f"python -m sglang.launch_server --speculative-algorithm EAGLE3 {numbers}"
        text += f" --speculative-draft-model-path {draft} --speculative-num-draft-tokens {tokens}"
        assert [d.rule for d in found(draft, "sglang==0.5.23", text)] == ["E3L617"] * wrong


def test_nothing_is_said_of_what_cannot_be_known(draft: Path) -> None:
    texts = {
        "sglang==0.5.23": "python -m sglang.launch_server --model-path $M"
        " --speculative-algorithm $A --speculative-draft-model-path $D --quantization $Q"
        " --context-length $L"
        " --speculative-num-steps $S --speculative-eagle-topk 1 --speculative-num-draft-tokens 9",
        "vllm==0.32.0": 'vllm serve $M --max-model-len $L --speculative-config "{\\"method\\": '
        '\\"$A\\", \\"model\\": \\"$D\\", \\"num_speculative_tokens\\": \\"$N\\"}"',
    }
    for target, text in texts.items():
        assert found(draft, target, text) == []


def test_a_path_is_looked_for_beside_its_script(draft: Path, tmp_path: Path) -> None:
    script = tmp_path / "serve.sh"
    start = "python -m sglang.launch_server --speculative-algorithm EAGLE3"
    script.write_text(f"{start} --speculative-draft-model-path ./draft\n")
    assert found(draft, "sglang==0.5.23", str(script)) == []
    script.write_text(f"{start} \\\n  --speculative-draft-model-path ./other\n")
    [wrong] = found(draft, "sglang==0.5.23", str(script))
    assert wrong.rule == "E3L614"
    [place] = wrong.where
    assert (place.file, place.line) == (str(script), 2)


def test_a_command_settles_what_no_file_tells(tmp_path: Path) -> None:
    config = {**llama_config(), "max_position_embeddings": 2048}
    draft = write_draft(tmp_path / "short", config, llama_tensors())
    start = f"python -m sglang.launch_server {' '.join(EAGLE3[:3])} {draft}"
    for length, rules in (("2048", set()), ("2049", {"E3L616"})):
        report = check(
            draft, ["sglang==0.5.23"], "llama-3.1-8b", launch=f"{start} --context-length {length}"
        )
        seen = {d.rule for d in report.diagnostics()} & {"E3L501", "E3L616"}
        assert seen == rules


def test_the_runner_is_that_of_the_command(tmp_path: Path) -> None:
    config = {**llama_config(), "max_position_embeddings": 2048}
    draft = write_draft(tmp_path / "short", config, llama_tensors())
    text = f"vllm serve m --spec-method eagle3 --spec-model {draft} --spec-tokens 3"
    effects = {
        value: [
            d.effect
            for d in found(draft, "vllm==0.28.0", f"VLLM_USE_V2_MODEL_RUNNER={value} {text}")
        ]
        for value in "01"
    }
    # 0.27.0 config/speculative.py:1165 raises the positions that the second runner counts with.
    assert effects == {"0": ["degraded"], "1": []}


def test_another_runtime_was_asked_for(draft: Path) -> None:
    with pytest.raises(InputError, match="it starts vllm"):
        found(draft, "sglang==0.5.23", "vllm serve m")
