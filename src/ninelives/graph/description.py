"""A graph in JSON's terms, to be recorded with a run and compared when the run is resumed."""

from __future__ import annotations

import hashlib
import inspect
import json
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import assert_never, cast

from ninelives.graph import edges, matching
from ninelives.graph.edges import Direct, FanIn, FanOut, Group, MultiSelection, Switch
from ninelives.graph.executor import Executor
from ninelives.graph.functions import FunctionExecutor

Described = Mapping[str, object]
Part = Mapping[str, dict[str, object]]

# What besides its ends decides where a group sends a message.
_RULES = {"condition": "condition", "cases": "cases", "select": "selection function"}


def describe(
    start_id: str,
    executors: Mapping[str, Executor],
    groups: Iterable[Group],
    outputs: frozenset[str] | None,
    intermediates: frozenset[str],
) -> dict[str, object]:
    """Describe a graph. The order in which it was built does not matter, that of cases does."""
    return {
        "start": start_id,
        "executors": {
            name: {
                "class": _class(executors[name]),
                "inputs": sorted(map(matching.spell, executors[name].input_types)),
            }
            for name in sorted(executors)
        },
        "edges": sorted(map(_described, groups), key=_canonical),
        "outputs": None if outputs is None else sorted(outputs),
        "intermediates": sorted(intermediates),
    }


def differences(recorded: Described, present: Described) -> tuple[str, ...]:
    """What has changed since a graph was recorded, in plain words; empty if nothing matters.

    A type of message that an executor handles in addition is no difference.
    """
    return (
        *_executor_differences(_part(recorded, "executors"), _part(present, "executors")),
        *_edge_differences(_edges(recorded), _edges(present)),
        *_other_differences(recorded, present),
    )


def code_version(executors: Iterable[Executor]) -> str:
    """Fingerprint the source files in which the executors' classes and functions are written.

    Where a file lies does not count, only what is written in it. What has no file (typed at a
    prompt) counts by its name.
    """
    sources = {_source(part) for executor in executors for part in _parts_of(executor)}
    whole = hashlib.blake2b(digest_size=16)
    for source in sorted(sources):
        whole.update(hashlib.blake2b(source).digest())
    return whole.hexdigest()


def _class(executor: Executor) -> str:
    """A function may be renamed as long as its id stays."""
    return "function" if type(executor) is FunctionExecutor else type(executor).__name__


def _described(group: Group) -> dict[str, object]:
    ends: dict[str, object] = {
        "sources": list(edges.sources_of(group)),
        "targets": list(edges.targets_of(group)),
    }
    match group:
        case Direct(condition=None):
            return {"kind": "direct", **ends}
        case Direct(condition=condition):
            return {"kind": "direct", **ends, "condition": _name(condition)}
        case FanOut():
            return {"kind": "fan-out", **ends}
        case FanIn():
            return {"kind": "fan-in", **ends}
        case Switch(branches=branches):
            cases = [[each.target, _name(each.condition)] for each in branches]
            return {"kind": "switch-case", **ends, "cases": cases}
        case MultiSelection(select=select):
            return {"kind": "multi-selection", **ends, "select": _name(select)}
        case _:
            assert_never(group)


def _name(function: Callable[..., object] | None) -> str | None:
    if function is None:
        return None
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _part(described: Described, name: str) -> Part:
    return cast("Part", described.get(name) or {})


def _edges(described: Described) -> Part:
    """Edge groups by what they connect, in words."""
    groups = cast("list[dict[str, object]]", described.get("edges") or [])
    return {_spell_edge(group): group for group in groups}


def _spell_edge(group: Mapping[str, object]) -> str:
    kind = group.get("kind")
    sources, targets = (
        ", ".join(map(repr, cast("list[str]", group.get(end) or [])))
        for end in ("sources", "targets")
    )
    return f"{'edge' if kind == 'direct' else kind} {sources} -> {targets}"


def _executor_differences(recorded: Part, present: Part) -> list[str]:
    found = [
        f"executor {name!r} ({recorded[name].get('class')}) is missing now"
        for name in recorded
        if name not in present
    ]
    found += [
        f"executor {name!r} ({present[name].get('class')}) is new"
        for name in present
        if name not in recorded
    ]
    for name in (name for name in recorded if name in present):
        old, new = recorded[name], present[name]
        if old.get("class") != new.get("class"):
            found.append(f"executor {name!r} was class {old.get('class')}, is {new.get('class')}")
        before, now = (cast("list[str]", each.get("inputs") or []) for each in (old, new))
        lost = [each for each in before if each not in now]
        if lost:
            handled = ", ".join(now) or "nothing"
            found.append(f"executor {name!r} handled {', '.join(lost)}, handles {handled} now")
    return found


def _edge_differences(recorded: Part, present: Part) -> list[str]:
    found = [f"{edge} is gone" for edge in recorded if edge not in present]
    found += [f"{edge} is new" for edge in present if edge not in recorded]
    for edge in (edge for edge in recorded if edge in present):
        for rule, word in _RULES.items():
            old, new = recorded[edge].get(rule), present[edge].get(rule)
            if old != new:
                was, now = _spell_rule(old), _spell_rule(new)
                found.append(f"the {word} of {edge} was {was}, is {now}")
    return found


def _spell_rule(rule: object) -> str:
    if not isinstance(rule, list):
        return str(rule or "none")
    cases = cast("list[list[str | None]]", rule)
    return "; ".join(f"{name or 'default'} -> {target!r}" for target, name in cases)


def _other_differences(recorded: Described, present: Described) -> list[str]:
    found: list[str] = []
    old, new = recorded.get("start"), present.get("start")
    if old != new:
        found.append(f"the start executor was {old!r}, is {new!r}")
    old, new = recorded.get("outputs"), present.get("outputs")
    if old != new:
        was, now = _spell_selection(old), _spell_selection(new)
        found.append(f"outputs came from {was}, come from {now} now")
    old, new = recorded.get("intermediates", []), present.get("intermediates", [])
    if old != new:
        was, now = _spell_selection(old), _spell_selection(new)
        found.append(f"intermediate outputs came from {was}, come from {now} now")
    return found


def _spell_selection(chosen: object) -> str:
    if chosen is None:
        return "all executors"
    return ", ".join(map(repr, cast("list[str]", chosen))) or "no executor"


def _parts_of(executor: Executor) -> list[object]:
    """The user's code in an executor: classes below Executor, or the function."""
    if isinstance(executor, FunctionExecutor):
        return [inspect.unwrap(executor.function)]
    return [cls for cls in type(executor).__mro__ if cls not in Executor.__mro__]


def _source(part: object) -> bytes:
    try:
        path = inspect.getsourcefile(cast("type", part))
        if path is not None:
            return pathlib.Path(path).read_bytes()
    except (OSError, TypeError):
        pass
    return str(getattr(part, "__qualname__", type(part).__qualname__)).encode()
