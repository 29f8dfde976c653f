"""The table of usage reports: what settles a hold, and what leaves it unknown."""

from __future__ import annotations

import pytest

from ninelives.durable import ledger
from ninelives.durable.usage import Usage


def usage(taken: int | None, given: int | None, total: int | None = None) -> Usage:
    return Usage(input_tokens=taken, output_tokens=given, total_tokens=total)


@pytest.mark.parametrize(
    ("report", "text", "tokens"),
    [
        (usage(20, 10), "a line", 30),
        (usage(20, 10, 30), "a line", 30),
        (usage(20, 10, 35), "a line", 35),  # tokens that belong to neither part are billed too
        (usage(0, 0), "", 0),
        (usage(5, 0), "", 5),
    ],
)
def test_a_whole_report_settles_at_the_sum_of_its_parts(
    report: Usage, text: str, tokens: int
) -> None:
    found = ledger.settle(report, text=text)
    assert (found.status, found.tokens, found.missing) == ("settled", tokens, "")


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (None, "a line"),
        (None, ""),
        (usage(None, None), "a line"),
        (usage(None, 10), "a line"),
        (usage(20, None), "a line"),
        (usage(None, None, 30), "a line"),  # a total without parts
        (usage(0, 50), "a line"),  # a cached prompt that was left out
        (usage(0, 50), ""),
        (usage(0, 0), "a line"),
        (usage(20, 0), "a line"),
        (usage(20, 10, 25), "a line"),
        (usage(-1, 10), "a line"),
        (usage(20, -1), "a line"),
    ],
)
def test_a_report_with_something_missing_leaves_the_hold_unknown(
    report: Usage | None, text: str
) -> None:
    settlement = ledger.settle(report, text=text)
    assert settlement.status == "unknown"
    assert settlement.missing
