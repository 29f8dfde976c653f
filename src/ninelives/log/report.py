"""A report as the stable JSON document that `ninelives report --json` prints (docs/report.md)."""

from __future__ import annotations

from typing import TypeAlias, get_args

from ninelives import clock
from ninelives.log.projection import HoldStatus, Report

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


def document(report: Report, *, state: str, reason: str) -> dict[str, Json]:
    """The document; `state` and `reason` are given, since only a store knows who is alive."""
    return {
        "run": {
            "id": report.run,
            "workflow": report.workflow,
            "status": state,
            "reason": reason,
            "supersteps": report.supersteps,
        },
        "processes": [
            {
                "incarnation": each.incarnation,
                "pid": each.pid,
                "host": each.host,
                "epoch": each.epoch,
                "started_at": clock.iso(each.started_at),
                "ended": ending(report, each.incarnation, state),
            }
            for each in report.processes.values()
        ],
        "reentered": [
            {
                "executor": executor,
                "superstep": superstep,
                "message": message,
                "incarnations": list(incarnations),
            }
            for executor, superstep, message, incarnations in report.reentered()
        ],
        "outputs": report.outputs,
        "model_calls": {
            "made": len(report.holds),
            "replayed": report.replayed_models,
            "unknown": len(report.unanswered),
        },
        "effects": _effects(report),
        "outbox": {
            "queued": len(report.outbox),
            "delivered": report.outbox_in("delivered"),
            "waiting": report.outbox_in("queued"),
            "dead": report.outbox_in("dead"),
        },
        "ledger": _ledger(report),
        "halted": None
        if report.halted is None
        else {"reason": report.halted[0], "since": clock.iso(report.halted[1])},
    }


def ending(report: Report, incarnation: int, state: str) -> str | None:
    """How a process's ownership ended: None while it lives, `killed` if it left no word."""
    process = report.processes[incarnation]
    if process.ended:
        return process.ended
    latest = max(report.processes)
    return None if incarnation == latest and state == "running" else "killed"


def _effects(report: Report) -> dict[str, Json]:
    return {
        "applied": report.effects_in("confirmed") + report.effects_in("failed"),
        "skipped": report.skipped_effects,
        "unknown": report.effects_in("unknown") + report.effects_in("intended"),
        "refused": report.effects_in("refused"),
        "keys": [{"key": key, "state": state} for key, state in report.effects.items()],
    }


def _ledger(report: Report) -> dict[str, Json]:
    ledger: dict[str, Json] = {}
    money: dict[str, Json] = {}
    for status in get_args(HoldStatus):
        calls, tokens = report.count(status)
        ledger[status] = {"calls": calls, "tokens": tokens}
        holds = [each for each in report.holds.values() if each.status == status]
        money[status] = sum(each.microdollars or 0 for each in holds)
    return {
        **ledger,
        "committed_tokens": report.committed_tokens,
        "microdollars": {**money, "committed": report.committed_microdollars},
        "unpriced_calls": report.unpriced,
        "resolved_calls": sum(each.resolved for each in report.holds.values()),
        "reported_tokens": {
            "input": report.reported.input,
            "output": report.reported.output,
            "cache_read": report.reported.cache_read,
            "cache_write": report.reported.cache_write,
            "reasoning": report.reported.reasoning,
            "tool": report.reported.tool,
        },
    }
