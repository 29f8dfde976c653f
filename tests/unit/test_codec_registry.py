"""Only types that are known come back, each under one name."""

from __future__ import annotations

import collections
import dataclasses
import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Generic, Literal, NewType, Optional, TypeVar, Union

import msgspec
import pydantic
import pytest

from ninelives import codec, errors

if TYPE_CHECKING:
    from nowhere import Absent  # type: ignore[import-not-found]

T = TypeVar("T")


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Leaf:
    x: int = 1


@dataclasses.dataclass
class Node(Generic[T]):
    value: T | None = None
    children: list[Node[T]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Partly:
    absent: Absent | None = None
    present: Leaf | None = None


class Struct(msgspec.Struct):
    leaves: dict[str, tuple[Leaf, ...]]


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    structs: Annotated[list[Struct] | None, pydantic.Field(max_length=3)] = None


LeafId = NewType("LeafId", Leaf)


@pytest.mark.parametrize(
    ("annotation", "found"),
    [
        (Node[Leaf], {Node, Leaf}),
        (Partly, {Partly, Leaf}),
        (Model, {Model, Struct, Leaf}),
        (Optional[Leaf], {Leaf}),  # noqa: UP045
        (Union[int, dict[str, list[Leaf]]], {Leaf}),  # noqa: UP007
        (Annotated[Leaf | Colour, "a remark"], {Leaf, Colour}),
        (Literal[Colour.RED], {Colour}),
        (Callable[[Leaf], Colour], {Leaf, Colour}),
        (LeafId, {Leaf}),
        (list["Absent"], set()),
        ("Absent", set()),
        (int | str | None, set()),
        (None, set()),
    ],
    ids=lambda each: "" if isinstance(each, set) else str(each),  # a set's order is not stable
)
def test_an_annotation_registers_all_that_it_reaches(annotation: object, found: set[type]) -> None:
    registry = codec.Registry()
    registry.register_annotation(annotation)
    known = {cls for cls in (Colour, Leaf, Node, Partly, Struct, Model) if registry.name_of(cls)}
    assert known == found


def test_a_name_of_the_parent_cannot_be_given_to_another_class() -> None:
    parent = codec.Registry()
    parent.register(Leaf, name="N")
    with pytest.raises(ValueError, match=r"'N' belongs to .*Leaf and cannot also name .*Colour"):
        codec.Registry(parent).register(Colour, name="N")


def test_a_class_whose_name_was_given_away_later_is_refused_and_not_mistaken() -> None:
    parent = codec.Registry()
    child = codec.Registry(parent)
    child.register(Leaf, name="N")
    parent.register(Node, name="N")
    with pytest.raises(errors.Unencodable, match="belongs to"):
        codec.encode(Node(), child)
    assert codec.decode(codec.encode(Leaf(2), child), child) == Leaf(2)


def test_a_refused_registration_leaves_nothing_behind() -> None:
    registry = codec.Registry()
    registry.register(Leaf, name="taken")
    with pytest.raises(ValueError, match="taken"):
        registry.register(Colour, name="free", aliases=["taken"])
    assert registry.find("free") is None
    assert registry.name_of(Colour) is None


@pytest.mark.parametrize("cls", [object, collections.Counter, dict, str, type])
def test_a_class_that_can_never_be_recorded_is_not_registered(cls: type) -> None:
    with pytest.raises(TypeError):
        codec.Registry().register(cls)


def test_a_type_of_the_parent_comes_back_through_the_child() -> None:
    parent = codec.Registry()
    parent.register(Leaf)
    child = codec.Registry(parent)
    assert codec.decode(codec.encode([Leaf(3)], child), child) == [Leaf(3)]


def test_the_decorator_takes_a_name_and_aliases() -> None:
    registry = codec.Registry()

    @registry.register(name="thing", aliases=["old thing"])
    @dataclasses.dataclass
    class Thing:
        x: int

    assert registry.find("thing") is registry.find("old thing") is Thing
    assert registry.name_of(Thing) == "thing"
