"""A small workflow to be put into the crash lab, with a line of its handler to choose."""

from __future__ import annotations

from support.shell import Shell

HEAD = """
import os, socket, uuid
from typing_extensions import Never
from ninelives import Absent, Applied, Executor, WorkflowBuilder, WorkflowContext, handler

def mail(text, *, key):
    with open("mails.txt", "a") as file:
        file.write(key + "\\n")
    return key

def mailed(key):
    sent = os.path.exists("mails.txt") and key + "\\n" in open("mails.txt").read()
    return Applied(key) if sent else Absent(final=True)

class Works(Executor):
    @handler
    async def go(self, number: int, ctx: WorkflowContext[int, str]) -> None:
        line = await ctx.model("scripted", f"line {number}")
        {body}
        await ctx.yield_output(f"{number}: {line}")
        if number > 1:
            await ctx.send_message(number - 1)

node = Works(id="works")
flow = WorkflowBuilder(name="works", start_executor=node).add_edge(node, node).build()
"""
GOOD = "await ctx.effect(mail, line, key=f'n:{number}', reconcile=mailed)"


def write(shell: Shell, body: str) -> None:
    (shell.folder / "flow.py").write_text(HEAD.replace("{body}", body))
