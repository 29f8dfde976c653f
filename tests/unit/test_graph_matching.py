"""Which values fit which annotations, which of several is the most specific."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, Never, NewType, Protocol, TypeVar, Union

import pytest

from ninelives.graph import matching

T = TypeVar("T")
Meters = NewType("Meters", int)


@dataclass
class Base:
    number: int = 0


@dataclass
class Derived(Base):
    pass


class Box(Generic[T]):
    pass


class Row(typing.TypedDict):
    name: str


class Unchecked(Protocol):
    def go(self) -> None: ...


@typing.runtime_checkable
class Checked(Protocol):
    def go(self) -> None: ...


class Goer:
    def go(self) -> None: ...


FITTING = [
    (1, int),
    (1, int | str),
    (1, Union[int, str]),  # noqa: UP007 - the older spelling is what is tested
    (1, Any),
    (1, object),
    (1, float),
    (1, Meters),
    (1, Annotated[int, "unit"]),
    (1, Literal[1, 2]),
    (True, bool),
    (True, object),
    (None, None),
    (None, int | None),
    (Derived(), Base),
    ([], list[int]),
    ([1, 2], list[int]),
    ([1, "a"], list[int | str]),
    ([1], Sequence[int]),
    ({"a": 1}, dict[str, int]),
    ({"a": [1]}, Mapping[str, list[int]]),
    ((1, "a"), tuple[int, str]),
    ((1, 2, 3), tuple[int, ...]),
    ({1}, set[int]),
    (frozenset({1}), frozenset[int]),
    (Box(), Box[int]),
    ({"name": "a"}, Row),
    (Goer(), Checked),
    (int, type[int]),
]
UNFIT = [
    ("1", int),
    (True, int),
    (True, float),
    (True, int | str),
    (1, bool),
    (1.5, int),
    (None, int),
    (True, Literal[1]),
    (3, Literal[1, 2]),
    (Base(), Derived),
    ([True], list[int]),
    (["a"], list[int]),
    ((1,), list[int]),
    ([1, "a"], list[int] | list[str]),
    ({"a": "b"}, dict[str, int]),
    ({1: 1}, dict[str, int]),
    ((1, 2), tuple[int, str]),
    ((1,), tuple[int, str]),
    ((1, "a"), tuple[int, ...]),
    ({"name": 1}, Row),
    ({"name": "a", "more": 1}, Row),
    ({}, Row),
    (1, Never),
    (Goer(), Unchecked),
]


@pytest.mark.parametrize(("value", "annotation"), FITTING)
def test_a_value_fits_its_type(value: object, annotation: object) -> None:
    assert matching.fits(value, annotation)


@pytest.mark.parametrize(("value", "annotation"), UNFIT)
def test_a_value_does_not_fit_another_type(value: object, annotation: object) -> None:
    assert not matching.fits(value, annotation)


ASSIGNABLE = [
    (int, int),
    (int, float),
    (int, int | str),
    (int | str, str | int | None),
    (int, Any),
    (Any, int),
    (Derived, Base),
    (list[Derived], list[Base]),
    (list[int], list),
    (list, list[int]),
    (list[int], Sequence[int]),
    (dict[str, int], Mapping[str, int]),
    (tuple[int, int], tuple[int, ...]),
    (tuple[int, str], tuple[int, str]),
    (Literal["a"], str),
    (Literal["a"], Literal["a", "b"]),
    (Box[int], Box[int]),
    (Meters, int),
]
NOT_ASSIGNABLE = [
    (int, str),
    (bool, int),
    (Base, Derived),
    (int | str, int),
    (list[int], list[str]),
    (list[int], dict[str, int]),
    (tuple[int, ...], tuple[int, int]),
    (tuple[int], tuple[int, int]),
    (str, Literal["a"]),
    (Literal["c"], Literal["a", "b"]),
    (Box[int], Box[str]),
    (object, int),
]


@pytest.mark.parametrize(("source", "target"), ASSIGNABLE)
def test_a_type_goes_where_all_its_values_fit(source: object, target: object) -> None:
    assert matching.assignable(source, target)


@pytest.mark.parametrize(("source", "target"), NOT_ASSIGNABLE)
def test_a_type_does_not_go_where_some_values_do_not_fit(source: object, target: object) -> None:
    assert not matching.assignable(source, target)


@pytest.mark.parametrize(
    ("annotations", "index"),
    [
        ([Any, int], 1),
        ([object, Base, Derived], 2),
        ([list, list[int]], 1),
        ([int | str, int], 1),
        ([float, int], 1),
        ([int, int | str, Any], 0),
        ([list[Any], list[int | str], list[int]], 2),
        ([list[int], list[str]], 0),
        ([Any, object], 0),
    ],
)
def test_the_most_specific_comes_first_then_the_first_written(
    annotations: list[object], index: int
) -> None:
    assert matching.most_specific(annotations) == index


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (T, "type variable"),
        (list[T], "type variable"),  # type: ignore[valid-type]
        (Unchecked, "runtime_checkable"),
        (5, "is no type"),
    ],
)
def test_what_cannot_be_checked_at_run_time_is_said(annotation: object, words: str) -> None:
    assert words in (matching.flaw(annotation) or "")


@pytest.mark.parametrize("annotation", [int, list[int], int | None, Any, Never, Row, Checked])
def test_what_can_be_checked_has_no_flaw(annotation: object) -> None:
    assert matching.flaw(annotation) is None


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (str | int, "int | str"),
        (int | None, "None | int"),
        (dict[str, list[Base]], "dict[str, list[Base]]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (Literal["a", 1], "Literal['a', 1]"),
        (Any, "Any"),
    ],
)
def test_a_type_is_spelled_the_same_everywhere(annotation: object, words: str) -> None:
    assert matching.spell(annotation) == words


def test_the_members_of_a_union_are_flat_and_without_never() -> None:
    nested = Union[int, Annotated[str | int, "x"]]  # noqa: UP007
    assert matching.members(nested) == (int, str)
    assert matching.members(Never) == ()
