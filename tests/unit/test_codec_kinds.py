"""Classes are taken apart and rebuilt as they were, whatever their own code does."""

from __future__ import annotations

import abc
import dataclasses
import datetime as dt
import enum
from typing import Annotated, ClassVar, Generic, Literal, NamedTuple, TypeVar

import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from ninelives import codec, errors

T = TypeVar("T")


def back(value: object) -> object:
    registry = codec.Registry()
    registry.register_annotation(type(value))
    return codec.decode(codec.encode(value, registry), registry)


@dataclasses.dataclass
class Doubling:
    x: int
    seen: list[int] = dataclasses.field(default_factory=list, repr=False)
    area: int = dataclasses.field(init=False)
    limit: ClassVar[int] = 3

    def __post_init__(self) -> None:
        self.x *= 2
        self.area = self.x * self.x


@dataclasses.dataclass(init=False)
class OwnInit:
    x: int

    def __init__(self, text: str) -> None:
        self.x = len(text)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slotted:
    x: int
    y: tuple[int, ...] = ()


@pydantic.dataclasses.dataclass
class Checked:
    x: int
    y: list[int] = pydantic.Field(default_factory=list)


class Struct(msgspec.Struct, tag=True, rename="camel"):
    some_name: int
    given: int | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        self.some_name += 1


class Pair(NamedTuple):
    left: object
    right: object = None


class Nested:
    class Colour(enum.StrEnum):
        RED = "red"


@pytest.mark.parametrize(
    "value",
    [
        Doubling(3),
        OwnInit("abc"),
        Slotted(x=1, y=(2,)),
        Checked(1, [2]),
        Struct(3),
        Struct(3, given=4),
        Pair((1, 2)),
        Nested.Colour.RED,
    ],
    ids=lambda value: type(value).__qualname__,
)
def test_an_instance_comes_back_equal_and_of_its_type(value: object) -> None:
    assert back(value) == value
    assert type(back(value)) is type(value)


class Cat(pydantic.BaseModel):
    kind: Literal["cat"] = "cat"
    lives: float = 9


class Dog(pydantic.BaseModel):
    kind: Literal["dog"] = "dog"
    name: str = pydantic.Field(default="", validation_alias=pydantic.AliasChoices("n", "m"))


class Root(pydantic.RootModel[list[int]]):
    pass


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)
    pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]
    at: dt.datetime | None = pydantic.Field(default=None, alias="When")
    _private: int = pydantic.PrivateAttr(default=5)


class Growing(pydantic.BaseModel):
    text: str

    @pydantic.field_validator("text")
    @classmethod
    def grow(cls, text: str) -> str:
        return text + "!"


class Box(pydantic.BaseModel, Generic[T]):
    content: T


@pytest.mark.parametrize(
    "value",
    [
        Cat(),
        Dog(n="Rex"),
        Root([1, 2]),
        Open(**{"$": 1, "any": (1, 2)}),
        Strict(pet=Dog(m="Rex"), When=dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
        Growing(text="a"),
        Box[Cat](content=Cat()),
    ],
    ids=lambda value: type(value).__qualname__,
)
def test_a_pydantic_model_comes_back_as_it_was(value: pydantic.BaseModel) -> None:
    found = back(value)
    assert isinstance(found, pydantic.BaseModel)
    assert found == value
    assert repr(found) == repr(value)
    assert found.model_fields_set == value.model_fields_set
    assert found.model_dump(exclude_unset=True) == value.model_dump(exclude_unset=True)


def test_private_attributes_of_a_model_start_anew() -> None:
    value = Strict(pet=Cat())
    found = back(value)
    assert isinstance(found, Strict)
    assert found._private == 5


def test_what_was_set_of_a_model_does_not_change_its_fingerprint() -> None:
    registry = codec.Registry()
    registry.register(Dog)
    assert codec.fingerprint(Dog(), registry) == codec.fingerprint(Dog(n=""), registry)


def test_a_field_whose_type_has_changed_is_validated_anew() -> None:
    class Old(pydantic.BaseModel):
        count: str

    class New(pydantic.BaseModel):
        count: int

    old, new = codec.Registry(), codec.Registry()
    old.register(Old, name="M")
    new.register(New, name="M")
    assert codec.decode(codec.encode(Old(count="5"), old), new) == New(count=5)
    with pytest.raises(errors.Undecodable, match=r"^cannot decode \$: M cannot be rebuilt"):
        codec.decode(codec.encode(Old(count="many"), old), new)


@dataclasses.dataclass
class NeverSet:
    x: int = dataclasses.field(init=False)


@dataclasses.dataclass
class OnlyAtFirst:
    x: int
    at_first: dataclasses.InitVar[int]


@dataclasses.dataclass
class Mapping(dict[str, int]):
    x: int = 1


class Loose(Pair):
    """Has a `__dict__` beside its fields."""


def loose() -> Loose:
    value = Loose(1)
    value.more = 2  # type: ignore[attr-defined]
    return value


class Odd(enum.Enum):
    NAN = float("nan")


class Holder(pydantic.BaseModel):
    key: pydantic.SecretStr


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (NeverSet(), "no attribute 'x'"),
        (OnlyAtFirst(1, 2), "InitVar"),
        (Mapping(), "plain dict"),
        (loose(), "beside its fields"),
        (Odd.NAN, "by its value"),
        (Cat.model_construct(lives=complex(1)), "complex"),
        (Growing.model_construct(), "no attribute 'text'"),
        (Holder(key=pydantic.SecretStr("s3cret")), "secret"),
        (Cat, "record its name"),
    ],
    ids=lambda value: getattr(type(value), "__qualname__", ""),
)
def test_an_instance_that_could_not_be_rebuilt_is_refused(value: object, word: str) -> None:
    registry = codec.Registry()
    registry.register_annotation(type(value))
    with pytest.raises(errors.Unencodable) as caught:
        codec.encode({"a": [value]}, registry)
    assert caught.value.path.startswith("$.a[0]")
    assert word in caught.value.why
    assert "s3cret" not in str(caught.value)


class Code(enum.Enum):
    A = "a"
    UNKNOWN = "unknown"

    @classmethod
    def _missing_(cls, value: object) -> Code:
        return cls.UNKNOWN


@pytest.mark.parametrize(
    ("data", "path", "word"),
    [
        (b'{"a":[{"$":"enum","t":"Code","v":"z"}]}', "$.a[0]", "'z' is no Code"),
        (b'[{"$":"object","t":"Slotted","v":{"y":1}}]', "$[0]", "without x"),
        (b'{"a b":{"$":"object","t":"Gone","v":{}}}', "$['a b']", "'Gone' is not registered"),
        (b'{"$":"object","t":"Code","v":{}}', "$", "enumeration now"),
        (b'{"$":"enum","t":"Cat","v":1}', "$", "no enumeration"),
        (b'{"$":"object","t":"Doubling","v":{"x":{"$":"no"}}}', "$.x", "unknown tag 'no'"),
        (b'{"$":"dict","v":[[1,{"$":"int","v":"x"}]]}', "$[1]", "damaged 'int'"),
        (b'{"$":"float","v":"1e5"}', "$", "damaged 'float'"),
        (b'{"$":"bytes","v":"*"}', "$", "damaged 'bytes'"),
        (b'{"$":"set","v":[[]]}', "$", "damaged 'set'"),
        (b'{"\\u0024":"no","v":1}', "$", "unknown tag 'no'"),
    ],
)
def test_a_value_that_cannot_come_back_says_where_and_why(
    data: bytes, path: str, word: str
) -> None:
    registry = codec.Registry()
    for cls in (Code, Slotted, Cat, Doubling):
        registry.register(cls)
    with pytest.raises(errors.Undecodable) as caught:
        codec.decode(data, registry)
    assert caught.value.path == path
    assert word in caught.value.why


def test_fields_that_a_class_has_no_more_are_dropped_and_new_ones_take_their_default() -> None:
    registry = codec.Registry()
    for cls in (Slotted, Struct, Pair, Cat):
        registry.register(cls)
    for name, fields in (("Slotted", '"x":1'), ("Pair", '"left":1'), ("Cat", '"lives":1')):
        data = f'{{"$":"object","t":"{name}","v":{{{fields},"gone":2}}}}'
        found = codec.decode(data.encode(), registry)
        assert type(found).__name__ == name
        assert not hasattr(found, "gone")


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self) -> float: ...


@dataclasses.dataclass
class Square(Shape):
    side: float

    def area(self) -> float:
        return self.side**2


def test_a_dataclass_may_have_an_abstract_base() -> None:
    assert back(Square(2.0)) == Square(2.0)
