"""Values at the edges: zones, sizes, depths, paths, plain JSON, fingerprints, display."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import json
import math
import os
import pathlib
import pickle
import zoneinfo
from collections.abc import Callable

import pydantic
import pytest

from ninelives import codec, errors


@dataclasses.dataclass
class Cell:
    inner: object = 1


@dataclasses.dataclass
class Bare:
    z: int = 0


class Model(pydantic.BaseModel):
    when: dt.date


REGISTRY = codec.Registry()
REGISTRY.register(Cell)
VIENNA = zoneinfo.ZoneInfo("Europe/Vienna")


def back(value: object) -> object:
    return codec.decode(codec.encode(value, REGISTRY), REGISTRY)


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2026, 10, 25, 2, 30, tzinfo=VIENNA, fold=1),
        dt.datetime(2026, 10, 25, 2, 30, tzinfo=dt.timezone(dt.timedelta(hours=1), "CET")),
        dt.datetime(2026, 1, 1, 0, 0, 0, 7, tzinfo=dt.timezone(dt.timedelta(seconds=-1))),
        dt.datetime(2026, 10, 25, 2, 30, fold=1),  # noqa: DTZ001 - a naive one
        dt.time(2, 30, fold=1),
        dt.time(2, 30, tzinfo=VIENNA),
        dt.time(2, 30, tzinfo=dt.timezone(dt.timedelta(hours=1), "CET")),
        dt.timedelta.min,
        dt.timedelta(microseconds=-1),
        pathlib.Path(os.fsdecode(b"a\xff")),
        pathlib.PurePosixPath("/a"),
        1 << 20_000,
        -(1 << 20_000),
        2**63 - 1,
        2**63,
        -(2**63),
        2**64,
        decimal.Decimal("-0.00"),
        decimal.Decimal("sNaN12"),
        decimal.Decimal("1E+999999"),
        "\ud83d\ude00 as two \x00",
        {"\ud800": 1, "$": 2, "": 3},
        {"$": "tuple", "v": [1]},
        {1: "a", "1": "b", (1, (2,)): {"$": 1}, None: -0.0},
        {"a": {1: {"b": {2: [(), set(), frozenset(), {}]}}}},
    ],
    ids=lambda value: repr(value)[:60] if not isinstance(value, int) else "int",
)
def test_a_value_at_the_edge_comes_back(value: object) -> None:
    if isinstance(value, int):
        assert back(value) == value
    else:
        assert repr(back(value)) == repr(value)
        assert type(back(value)) is type(value)
    json.dumps(codec.plain(codec.encode(value, REGISTRY)), allow_nan=False).encode()


def deep(levels: int, wrap: Callable[[object], object]) -> object:
    value: object = 1
    for _ in range(levels):
        value = wrap(value)
    return value


WRAPS: dict[str, Callable[[object], object]] = {
    "list": lambda inner: [inner],
    "tuple": lambda inner: (inner,),
    "dict": lambda inner: {"a": inner},
    "pairs": lambda inner: {1: inner},
    "dataclass": Cell,
    "frozenset": lambda inner: frozenset({inner}),
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_two_hundred_levels_come_back_and_more_are_refused(
    wrap: Callable[[object], object],
) -> None:
    value = deep(200, wrap)
    data = codec.encode(value, REGISTRY)
    assert codec.encode(codec.decode(data, REGISTRY), REGISTRY) == data
    codec.plain(data)
    codec.fingerprint(value, REGISTRY)
    with pytest.raises(errors.Unencodable, match="deeper than 200") as caught:
        codec.encode(deep(202, wrap), REGISTRY)
    assert len(caught.value.path) <= 200


def test_a_circle_through_an_object_is_refused() -> None:
    cell = Cell()
    cell.inner = {"back": [cell]}
    with pytest.raises(errors.Unencodable, match="circle"):
        codec.encode(cell, REGISTRY)


@pytest.mark.parametrize("call", [codec.decode, lambda data, _: codec.plain(data)])
def test_data_nested_without_an_end_is_refused_and_crashes_nothing(
    call: Callable[[bytes, codec.Registry], object],
) -> None:
    for levels in (450, 900, 100_000):
        data = b'{"$":"tuple","v":[' * levels + b"]}" * levels
        with pytest.raises(errors.Undecodable):
            call(data, REGISTRY)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"items": [0, 1, 2, Cell(1j)]}, "$.items[3].inner"),
        ({"a b": [1j]}, "$['a b'][0]"),
        ({1: [1j]}, "$[1][0]"),
        ({(1,): 1j}, "$[tuple]"),
        ({1j: 1}, "$[complex]"),
        (({1j},), "$[0]{}"),
        (1j, "$"),
    ],
)
def test_a_refusal_names_the_path(value: object, path: str) -> None:
    with pytest.raises(errors.Unencodable) as caught:
        codec.encode(value, REGISTRY)
    assert caught.value.path == path


def test_a_call_names_the_argument() -> None:
    for args, kwargs, path in (
        ((1, Cell([1j])), {}, "argument 2.inner[0]"),
        ((), {"to": {"x": 1j}}, "argument to.x"),
        ((), {"\ud800": 1}, "argument '\\ud800'"),
    ):
        with pytest.raises(errors.Unencodable) as caught:
            codec.encode_arguments(args, kwargs, REGISTRY)
        assert caught.value.path == path


def test_arguments_come_back_as_they_were_given() -> None:
    args, kwargs = (1, (2,), Cell()), {"$": b"x", "v": None}
    data = codec.encode_arguments(args, kwargs, REGISTRY)
    assert codec.decode_arguments(data, REGISTRY) == (args, kwargs)
    assert codec.decode_arguments(codec.encode_arguments((), {}, REGISTRY), REGISTRY) == ((), {})


@pytest.mark.parametrize("data", [b"[]", b"null", b'{"args":1,"kwargs":{}}', b"{}", b"\xff"])
def test_damaged_arguments_are_refused(data: bytes) -> None:
    with pytest.raises(errors.Undecodable):
        codec.decode_arguments(data, REGISTRY)


def test_fingerprints_of_calls_tell_calls_apart() -> None:
    calls: list[tuple[tuple[object, ...], dict[str, object]]] = [
        ((), {}),
        ((1,), {}),
        ((1.0,), {}),
        ((True,), {}),
        (("1",), {}),
        ((), {"a": 1}),
        (({"a": 1},), {}),
        ((1, 2), {}),
        (((1, 2),), {}),
        (([1, 2],), {}),
    ]
    assert len({codec.fingerprint_arguments(*call, REGISTRY) for call in calls}) == len(calls)
    one = codec.fingerprint_arguments((), {"a": 1, "b": {2, 3}}, REGISTRY)
    assert one == codec.fingerprint_arguments((), {"b": {3, 2}, "a": 1}, REGISTRY)
    assert len(one) == 32


class Harmful:
    def __init__(self, mark: pathlib.Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.mark}",)


def test_pickled_bytes_are_refused_and_run_nothing(tmp_path: pathlib.Path) -> None:
    mark = tmp_path / "mark"
    for data in (pickle.dumps(Harmful(mark)), pickle.dumps(Harmful(mark), protocol=0)):
        with pytest.raises(errors.Undecodable):
            codec.decode(data, REGISTRY)
        assert back(data) == data  # as bytes they are only bytes
    with pytest.raises(errors.Unencodable):
        codec.encode(Harmful(mark), REGISTRY)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ((1, [2], {3}), [1, [2], [3]]),
        (Cell(Cell(b"ab")), {"inner": {"inner": "YWI="}}),
        (decimal.Decimal("1.10"), "1.10"),
        ([math.nan, math.inf, -math.inf], ["NaN", "Infinity", "-Infinity"]),
        (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "2026-01-01T00:00:00+00:00"),
        (dt.datetime(2026, 1, 1, tzinfo=VIENNA), "2026-01-01T00:00:00 Europe/Vienna"),
        (dt.time(1, 2), "01:02:00"),
        (dt.timedelta(minutes=1), 60.0),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        ("a\ud800", "a\\ud800"),
        ({1: "a", (2, 3): "b"}, {"1": "a", "[2, 3]": "b"}),
        ({1: "a", "1": "b"}, [[1, "a"], ["1", "b"]]),
        ({"$": 1}, {"$": 1}),
        (2**70, str(2**70)),
    ],
)
def test_a_value_is_shown_as_readable_json(value: object, shown: object) -> None:
    assert codec.plain(codec.encode(value, REGISTRY)) == shown


@pytest.mark.parametrize(
    "data",
    [
        b'{"$":"timedelta","v":"x"}',
        b'{"$":"datetime","v":[]}',
        b'{"$":"dict","v":[1]}',
        b'{"$":"float","v":[]}',
        b'{"$":"text","v":"*"}',
        b'{"$":7,"v":{"$":"path","v":null}}',
        b'{"$":"unheard of","t":"x"}',
    ],
)
def test_damaged_parts_are_shown_and_not_hidden(data: bytes) -> None:
    assert json.dumps(codec.plain(data), allow_nan=False) not in {"null", "{}", "[]"}


def test_input_goes_to_the_type_it_fits_best() -> None:
    assert type(codec.from_json("20", [float, Cell, int])) is int
    assert type(codec.from_json("20", [float, Cell])) is float
    assert codec.from_json('{"inner": 2}', [Bare, Cell]) == Cell(2)
    assert codec.from_json('{"more": 2}', [Cell]) == Cell()
    assert codec.from_json({"inner": 2}, [int, Cell | None]) == Cell(2)
    assert codec.from_json('[{"when": "2026-01-01"}]', [list[Model]]) == [
        Model(when=dt.date(2026, 1, 1))
    ]
    assert codec.from_json('"a/b"', [pathlib.Path]) == pathlib.Path("a/b")
    assert codec.from_json("null", [int, None]) is None


@pytest.mark.parametrize("text", ["NaN", "[" * 100_000, "1e5x", '{"when": "x"}', "\ud800", b"\xff"])
def test_input_that_fits_nothing_is_refused_with_a_reason(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        codec.from_json(text, [int, Model])


def test_an_enormous_number_as_input_is_read_whole() -> None:
    assert codec.from_json(str(2**70), [int]) == 2**70
