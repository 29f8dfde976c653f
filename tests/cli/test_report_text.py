"""The report for people and the one for programs say the same."""

from __future__ import annotations

import textwrap

from support.shell import Shell

FLOW = textwrap.dedent("""
    from ninelives import Executor, WorkflowBuilder, WorkflowContext, handler

    def act(*, key): return object()

    class Worker(Executor):
        @handler
        async def work(self, number: int, ctx: WorkflowContext[int, str]) -> None:
            try:
                await ctx.effect(act, key="k")
            except Exception as error:
                await ctx.yield_output(type(error).__name__)

    flow = WorkflowBuilder(name="flow", start_executor=Worker(id="worker")).build()
""")


def test_an_effect_with_an_unusable_result_counts_as_applied_in_both(shell: Shell) -> None:
    (shell.folder / "flow.py").write_text(FLOW)
    assert shell("run", "flow.py:flow", "r", "--input", "1").lines == ["EffectFailed"]
    assert shell.report("r")["effects"]["applied"] == 1
    text = "\n".join(shell("report", "r").lines)
    assert "1 keys known, 1 applied (1 with an unusable result), 0 skipped" in text
