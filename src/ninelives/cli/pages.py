"""What a person reads: reports, lists, events, as text. Pure: facts in, lines out."""

from __future__ import annotations

import json

import msgspec

from ninelives import clock, codec, money
from ninelives.cli import ledger_pages
from ninelives.cli.terminal import ago, next_step
from ninelives.engine.runner import Status
from ninelives.log.events import Event
from ninelives.log.projection import Report
from ninelives.log.report import ending
from ninelives.store.base import OpenEffect, RunRow
from ninelives.store.budgets import Budget


def report(folded: Report, status: Status) -> str:
    """The whole report of a run."""
    parts = [
        [f"run {folded.run} ({folded.workflow}): {status.state}, {folded.supersteps} supersteps"],
        [f"  {status.code}: {status.reason}"] if status.reason else [],
        _processes(folded, status),
        _reentered(folded),
        _effects(folded),
        _outbox(folded),
        _models(folded),
        _ledger(folded),
        _timeline(folded),
    ]
    return "\n".join(line for part in parts for line in part)


def _processes(folded: Report, status: Status) -> list[str]:
    lines = ["processes:"]
    for each in folded.processes.values():
        ended = ending(folded, each.incarnation, status.state) or "alive"
        lines.append(
            f"  {each.incarnation}: pid {each.pid} on {each.host}, epoch {each.epoch}, "
            f"from {clock.iso(each.started_at)}, {ended}"
        )
    return lines


def _reentered(folded: Report) -> list[str]:
    found = folded.reentered()
    if not found:
        return ["entered by more than one process: nothing"]
    lines = ["entered by more than one process:"]
    for executor, superstep, message, incarnations in found:
        processes = ", ".join(
            f"{number} (pid {folded.processes[number].pid})" for number in incarnations
        )
        lines.append(
            f"  {executor}, superstep {superstep}, message {message}: processes {processes}"
        )
    return lines


def _effects(folded: Report) -> list[str]:
    unusable = folded.effects_in("failed")
    applied = f"{folded.effects_in('confirmed') + unusable} applied"
    if unusable:
        applied += f" ({unusable} with an unusable result)"
    line = (
        f"effects: {len(folded.effects)} keys known, {applied}, "
        f"{folded.skipped_effects} skipped as already applied"
    )
    for state in ("refused", "unknown", "intended"):
        count = folded.effects_in(state)
        if count:
            line += f", {count} {'of unknown outcome' if state == 'intended' else state}"
    open_keys = [
        f"  unknown: {key}"
        for key, state in folded.effects.items()
        if state in {"unknown", "intended"}
    ]
    return [line, *open_keys]


def _outbox(folded: Report) -> list[str]:
    if not folded.outbox:
        return []
    line = (
        f"outbox: {len(folded.outbox)} queued: {folded.outbox_in('delivered')} delivered, "
        f"{folded.outbox_in('queued')} waiting, {folded.outbox_in('dead')} dead"
    )
    return [line, *(f"  dead: {key}" for key, state in folded.outbox.items() if state == "dead")]


def _models(folded: Report) -> list[str]:
    line = f"model calls: {len(folded.holds)} made, {folded.replayed_models} replayed"
    if folded.unanswered:
        line += f", {len(folded.unanswered)} of unknown outcome"
    if folded.drifts:
        line += f" ({folded.drifts} with drifted arguments)"
    lines = [line]
    if folded.leftovers:
        lines.append(f"  {folded.leftovers} recorded steps or replies were not asked for again")
    return lines


def _ledger(folded: Report) -> list[str]:
    parts = []
    for status in ("settled", "held", "unknown", "released"):
        calls, tokens = folded.count(status)
        parts.append(f"{calls} {status} ({tokens} tokens)")
    lines = [f"ledger: {', '.join(parts)}; {folded.committed_tokens} tokens committed"]
    lines += [f"  {line}" for line in (_cost(folded), _reported(folded)) if line]
    latest = max(folded.processes, default=0)
    for hold in folded.holds.values():
        if hold.status == "held" and hold.incarnation < latest:
            lines.append(
                f"  orphaned hold: {hold.tokens} tokens of {hold.executor}, superstep "
                f"{hold.superstep}, process {hold.incarnation}"
            )
    if folded.halted is not None:
        lines.append(f"halted since {clock.iso(folded.halted[1])}: {folded.halted[0]}")
    return lines


def _cost(folded: Report) -> str:
    if not folded.holds or folded.unpriced == len(folded.holds):
        return ""  # no price is known: tokens say all there is
    unpriced = f", and {folded.unpriced} calls of unknown price" if folded.unpriced else ""
    return f"cost: {money.dollars(folded.committed_microdollars)}{unpriced}"


def _reported(folded: Report) -> str:
    """The parts of the reports, where any is more than input and output."""
    sums = folded.reported
    parts = [
        f"{count} {name}"
        for name, count in (
            ("read from cache", sums.cache_read),
            ("written to cache", sums.cache_write),
            ("reasoning", sums.reasoning),
            ("tools", sums.tool),
        )
        if count
    ]
    if not parts:
        return ""
    return f"reported tokens: {sums.input} in, {sums.output} out; of them {', '.join(parts)}"


def _timeline(folded: Report) -> list[str]:
    lines = ["timeline of supersteps by process:"]
    span: list[int] = []
    before: tuple[int, ...] = ()
    for number in sorted(folded.timeline):
        step = folded.timeline[number]
        if span and (step.incarnations != before or len(step.incarnations) > 1):
            lines.append(_span(span, before))
            span = []
        span.append(number)
        before = step.incarnations
    if span:
        lines.append(_span(span, before))
    return lines


def _span(span: list[int], incarnations: tuple[int, ...]) -> str:
    where = f"{span[0]}" if len(span) == 1 else f"{span[0]} to {span[-1]}"
    who = " then ".join(f"process {number}" for number in incarnations)
    return f"  {where:>12}  {who}"


def show(row: RunRow, status: Status, budgets: list[Budget], unknown: list[OpenEffect]) -> str:
    """One run in a few lines, ending with what to do."""
    lines = [
        f"run {row.id} ({row.workflow}): {status.state}",
        f"  superstep {row.superstep}, event {row.seq}, process {row.incarnation}",
        f"  admitted {clock.iso(row.admitted_at)}, last event {ago(row.updated_at)} ago",
        *_budgets(budgets),
    ]
    if status.reason:
        lines.append(f"  {status.code}: {status.reason}")
    lines += _open_effects(row, status, unknown)
    if status.state in {"parked", "failed"}:
        lines.append(f"  next: {next_step(row.id, status)}")
    return "\n".join(lines)


def _budgets(budgets: list[Budget]) -> list[str]:
    """The run's own budget, and those of the others that limit it or are halted."""
    lines: list[str] = []
    for index, budget in enumerate(budgets):
        if index and not budget.limits and not budget.halted:
            continue
        spent = ledger_pages.limits(budget)
        lines += [f"  budget {budget.name}, {line.strip()}" for line in spent]
        if budget.halted:
            lines.append(f"    halted since {clock.iso(budget.halted_at)}: {budget.halted}")
    return lines


def _open_effects(row: RunRow, status: Status, unknown: list[OpenEffect]) -> list[str]:
    if not unknown or status.state == "running":
        return []  # while its process lives, an open effect is one that is under way
    lines = ["  effects of unknown outcome (find out before anything is sent again):"]
    for effect in unknown:
        key = effect.key.removeprefix(f"{row.id}:")
        lines += [
            f"    {effect.key}, begun by {effect.executor} {ago(effect.at)} ago",
            f"      it happened:         ninelives resolve {row.id} {key} --applied",
            f"      it did not happen:   ninelives resolve {row.id} {key} --absent",
        ]
    return lines


def runs(rows: list[tuple[RunRow, Status]]) -> str:
    """A table of runs."""
    if not rows:
        return "no runs"
    lines = [f"{'RUN':<28} {'WORKFLOW':<18} {'STATUS':<12} {'STEP':>6} {'AGE':>5}  WHY"]
    lines += [
        f"{row.id:<28} {row.workflow:<18} {status.state:<12} {row.superstep:>6} "
        f"{ago(row.admitted_at):>5}  {status.code}"
        for row, status in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def event(shown: Event) -> str:
    """An event as one line."""
    document = json.dumps(fact_document(shown), ensure_ascii=False)
    where = f"{shown.superstep}/{shown.executor}" if shown.executor else f"{shown.superstep}"
    return f"{shown.seq:>6} {clock.iso(shown.at)} {where:<16} {shown.kind:<19} {document}"


def event_document(shown: Event) -> dict[str, object]:
    """An event as the object that `watch --json` prints."""
    return {
        "seq": shown.seq,
        "kind": shown.kind,
        "at": clock.iso(shown.at),
        "superstep": shown.superstep,
        "executor": shown.executor,
        "incarnation": shown.incarnation,
        "pid": shown.pid,
        "data": fact_document(shown),
    }


def fact_document(shown: Event) -> dict[str, object]:
    """A fact's fields, users' values in plain JSON."""
    fields = msgspec.structs.asdict(shown.fact)
    return {
        name: codec.plain(value) if isinstance(value, msgspec.Raw) else msgspec.to_builtins(value)
        for name, value in fields.items()
    }
