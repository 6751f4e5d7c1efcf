"""Have workers run each op once, so that its cases can name its tensors."""

from __future__ import annotations

from collections.abc import Sequence

from opcheck.core.facts import Facts, facts_from
from opcheck.run.isolate import Died, Message, Pool


def learn(pool: Pool, ops: Sequence[str], skip: Sequence[str]) -> tuple[dict[str, Facts], dict[str, str]]:
    """Return what is known of each op, and for those that could not be run the reason, one sentence each.

    An op that cannot be run here cannot be audited either: the audit of its first case says why, with its evidence.
    """
    facts = dict.fromkeys(ops, Facts())
    problems: dict[str, str] = {}
    for event in pool.run([{"facts": name, "skip": list(skip)} for name in ops]):
        name = ops[event.item_index]
        match event:
            case Message(body={"learnt": data}):
                facts[name] = facts_from(data)
            case Message(body={"unlearnt": why}):
                problems[name] = why
            case Died(death=death) if facts[name] == Facts():
                problems[name] = f"the process {death.reason}"
    return facts, problems
