"""What goes into the codec comes out equal in value and in type, or is refused."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import json
import math
import pathlib
import threading
import uuid
import zoneinfo
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninelives import codec, errors


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Rights(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


@dataclass
class Point:
    x: int
    y: object = None


@dataclass(frozen=True, slots=True)
class Frozen:
    name: str
    parts: tuple[int, ...] = ()
    size: int = field(init=False, default=0)


class Pair(NamedTuple):
    left: object
    right: object


class Struct(msgspec.Struct, frozen=True):
    a: object
    b: int = 1


class Model(pydantic.BaseModel):
    name: str = pydantic.Field(alias="Name")
    when: dt.date | None = None


REGISTRY = codec.Registry()
for known in (Colour, Level, Rights, Point, Frozen, Pair, Struct, Model):
    REGISTRY.register(known)

zones = st.sampled_from(
    [
        None,
        dt.UTC,
        dt.timezone(dt.timedelta(hours=-3)),
        dt.timezone(dt.timedelta(hours=1), "CET"),
        zoneinfo.ZoneInfo("Europe/Vienna"),
    ]
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.integers(min_value=2**60).map(lambda n: -n),
    st.text(st.characters(exclude_categories=[])),
    st.binary(),
    st.binary().map(bytearray),
    st.datetimes(timezones=zones),
    st.dates(),
    st.times(timezones=zones),
    st.timedeltas(),
    st.decimals(),
    st.uuids(),
    st.sampled_from([*Colour, *Level, Rights.READ | Rights.WRITE, pathlib.Path("a/b")]),
    st.sampled_from([pathlib.PureWindowsPath("c:\\x"), pathlib.PurePosixPath("/x/\udcff")]),
)
hashable = st.one_of(st.integers(), st.text(), st.binary(), st.dates(), st.sampled_from(Colour))


def grown(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.one_of(st.text(), st.just("$")), inner, max_size=4),
        st.dictionaries(hashable, inner, max_size=4),
        st.sets(hashable, max_size=4),
        st.frozensets(hashable, max_size=4),
        st.builds(Point, st.integers(), inner),
        st.builds(Frozen, st.text()),
        st.builds(Pair, inner, inner),
        st.builds(Struct, inner),
        st.builds(lambda name, when: Model(Name=name, when=when), st.text("ab"), st.dates()),
    )


TAGS = sorted(
    {"tuple", "set", "frozenset", "dict", "enum", "object", "text", "int", "float", "bytes"}
    | {"bytearray", "datetime", "date", "time", "timedelta", "decimal", "uuid", "unset", "path"}
)
values = st.recursive(scalars, grown, max_leaves=12)


def same(one: object, two: object) -> bool:
    if type(one) is not type(two):
        return False
    if isinstance(one, dict) and isinstance(two, dict):
        return len(one) == len(two) and all(
            same(a, b) and same(one[a], two[b]) for a, b in zip(one, two, strict=True)
        )
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, float | decimal.Decimal | dt.datetime | dt.time):
        return repr(one) == repr(two)  # tells NaN, -0.0, zone and fold
    if dataclasses.is_dataclass(one) or isinstance(one, msgspec.Struct):
        names = getattr(one, "__dataclass_fields__", None) or one.__struct_fields__
        return all(same(getattr(one, name), getattr(two, name)) for name in names)
    return one == two


@given(values)
def test_a_value_comes_back_as_it_was(value: object) -> None:
    assert same(codec.decode(codec.encode(value, REGISTRY), REGISTRY), value)


@given(values)
def test_a_value_is_encoded_the_same_way_every_time(value: object) -> None:
    assert codec.encode(value, REGISTRY) == codec.encode(value, REGISTRY)


@given(values)
def test_every_recorded_value_can_be_shown_as_plain_json(value: object) -> None:
    json.dumps(codec.plain(codec.encode(value, REGISTRY)), allow_nan=False)


@given(st.dictionaries(st.text(), st.integers(), min_size=2))
def test_a_fingerprint_does_not_depend_on_the_order_of_keys(value: dict[str, int]) -> None:
    turned = dict(reversed(value.items()))
    assert codec.fingerprint(value, REGISTRY) == codec.fingerprint(turned, REGISTRY)


@given(st.dictionaries(hashable, st.sets(hashable, max_size=4), min_size=2, max_size=5))
def test_a_fingerprint_depends_on_no_order_of_keys_of_any_type_nor_of_sets(
    value: dict[object, set[object]],
) -> None:
    turned = {key: {*sorted(each, key=repr)} for key, each in reversed(value.items())}
    assert codec.fingerprint([value], REGISTRY) == codec.fingerprint([turned], REGISTRY)


@given(values)
def test_a_value_that_came_back_has_the_fingerprint_it_had(value: object) -> None:
    found = codec.decode(codec.encode(value, REGISTRY), REGISTRY)
    assert codec.fingerprint(found, REGISTRY) == codec.fingerprint(value, REGISTRY)


@given(st.lists(values, max_size=3), st.dictionaries(st.text(), values, max_size=3))
def test_arguments_come_back_as_they_were(args: list[object], kwargs: dict[str, object]) -> None:
    data = codec.encode_arguments(args, kwargs, REGISTRY)
    assert same(codec.decode_arguments(data, REGISTRY), (tuple(args), kwargs))


@given(
    st.binary()
    | st.text().map(str.encode)
    | st.recursive(
        st.none() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.fixed_dictionaries({"$": st.sampled_from(TAGS) | inner, "v": inner})
        ),
    ).map(msgspec.json.encode)
)
def test_no_data_does_anything_but_come_back_or_be_refused(data: bytes) -> None:
    for read in (lambda: codec.decode(data, REGISTRY), lambda: codec.plain(data)):
        with contextlib.suppress(errors.Undecodable):
            read()


def test_values_that_only_look_alike_have_different_fingerprints() -> None:
    alike = [1, 1.0, True, "1", [1], (1,), {1}, frozenset({1}), b"1", {"1": 1}, Point(1), None]
    prints = {codec.fingerprint(value, REGISTRY) for value in alike}
    assert len(prints) == len(alike)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0])
def test_floats_that_json_does_not_have_come_back(value: float) -> None:
    back = codec.decode(codec.encode([value], REGISTRY), REGISTRY)
    assert repr(back) == repr([value])


class Strange(dict[str, int]):
    pass


class Unregistered:
    pass


@dataclass
class NotRegistered:
    x: int = 1


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (collections.Counter("aab"), "plain dict"),
        (collections.OrderedDict(a=1), "plain dict"),
        (collections.defaultdict(list), "plain dict"),
        (Strange(), "plain dict"),
        (collections.deque([1], maxlen=3), "deque"),
        (fractions.Fraction(1, 3), "Fraction"),
        (1j, "complex"),
        (range(3), "range"),
        ((n for n in range(3)), "generator"),
        (threading.Lock(), "lock"),
        (object(), "object"),
        (Unregistered(), "Unregistered"),
        (NotRegistered(), "not registered"),
        (NotRegistered, "type"),
        (print, "builtin"),
        (pydantic.SecretStr("s3cret"), "secret"),
    ],
)
def test_what_would_not_come_back_is_refused_with_its_path(value: object, word: str) -> None:
    with pytest.raises(errors.Unencodable) as caught:
        codec.encode({"deep": [1, value]}, REGISTRY)
    assert caught.value.path == "$.deep[1]"
    assert word in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_circles_are_refused_and_not_followed() -> None:
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(errors.Unencodable, match="circle"):
        codec.encode(circle, REGISTRY)


@pytest.mark.parametrize(
    "data",
    [
        b'{"$":"object","t":"os.system","v":{"command":"touch MARK"}}',
        b'{"$":"object","t":"builtins.eval","v":{}}',
        b'{"$":"enum","t":"Point","v":1}',
        b'{"$":"pickle","v":"gASVAAA="}',
        b'{"$":"object","t":["os","system"],"v":{}}',
        b'{"$":"object","t":"Point","v":{}}',
        b'{"$":"object","t":"Point","v":null}',
        b'{"$":"enum","t":"Colour","v":"green"}',
        b'{"$":"datetime","v":["nonsense","",0]}',
        b'{"$":{"a":1},"v":1}',
        b'{"$":"tuple"}',
        b"\x80\x04\x95pickled",
        b"",
    ],
)
def test_hostile_and_damaged_data_is_refused(data: bytes, tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.Undecodable):
        codec.decode(data.replace(b"MARK", str(tmp_path / "mark").encode()), REGISTRY)
    assert not list(tmp_path.iterdir())


def test_a_renamed_type_comes_back_under_its_alias() -> None:
    old, new = codec.Registry(), codec.Registry()
    old.register(Point, name="OldPoint")
    new.register(Point, aliases=["OldPoint"])
    assert codec.decode(codec.encode(Point(1), old), new) == Point(1)


def test_unknown_fields_are_dropped_and_missing_ones_take_their_default() -> None:
    data = b'{"$":"object","t":"Point","v":{"x":1,"gone":2}}'
    assert codec.decode(data, REGISTRY) == Point(1)


def test_a_name_belongs_to_one_type() -> None:
    registry = codec.Registry()
    registry.register(Point)
    with pytest.raises(ValueError, match="Point"):
        registry.register(Frozen, name="Point")


def test_an_annotation_registers_what_it_and_its_fields_mention() -> None:
    registry = codec.Registry()
    registry.register_annotation(list[Point] | dict[str, Frozen] | Colour | None)
    value = [Point(1), {"a": Frozen("b")}, Colour.RED]
    assert codec.decode(codec.encode(value, registry), registry) == value


@pytest.mark.parametrize(
    ("text", "types", "value"),
    [
        ("20", [int], 20),
        ("20", [str, int], 20),
        ("20", [float], 20.0),
        ('{"x": 2}', [int, Point], Point(2)),
        ('"red"', [Colour], Colour.RED),
        ("[1, 2]", [list[int]], [1, 2]),
        ('"2026-12-01"', [dt.date], dt.date(2026, 12, 1)),
        ('{"Name": "n"}', [Model], Model(Name="n")),
        ("null", [int | None], None),
    ],
)
def test_plain_json_is_read_for_the_annotation_it_fits(
    text: str, types: list[object], value: object
) -> None:
    found = codec.from_json(text, types)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["", "nonsense", '"x"', "{}", "[1"])
def test_plain_json_that_fits_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        codec.from_json(text, [int, Point])


def test_decimal_and_uuid_keep_every_digit() -> None:
    value = [decimal.Decimal("1.10"), uuid.UUID(int=5)]
    assert repr(codec.decode(codec.encode(value, REGISTRY), REGISTRY)) == repr(value)
