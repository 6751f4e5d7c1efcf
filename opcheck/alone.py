"""Run one case's target once, in a process that a sanitizer watches: `python -m opcheck.alone`, called by opcheck."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opcheck.core.case import Case


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the case and write what happened as JSON: launches, configurations, digests, and what was raised."""
    parser = argparse.ArgumentParser(prog="opcheck.alone", description=__doc__)
    parser.add_argument("--module", required=True, help="the module that registers the op")
    parser.add_argument("--case", required=True, help="the case's id")
    parser.add_argument("--answer", required=True, type=Path, help="file for the answer")
    parser.add_argument("--config", type=int, default=0, help="the configuration of autotuned kernels")
    parser.add_argument("--mode", default="", help="Triton's instrumentation mode")
    options = parser.parse_args(arguments)
    importlib.import_module(options.module)
    answer = run(Case.parse(options.case), config=options.config, mode=options.mode)
    options.answer.write_text(json.dumps(answer))


def run(case: Case, *, config: int = 0, mode: str = "") -> dict[str, Any]:
    """Run the target of a case, forward and backward, and read every result, so that what is unwritten is noticed.

    Args:
        config: The configuration that autotuned kernels launch, unless the case's variant asks for one: tuning them
            under a sanitizer takes minutes.
        mode: Triton's instrumentation mode, whose kernels need memory of their own.
    """
    import torch

    from opcheck.backends.configs import configured, only_config
    from opcheck.backends.launches import recorded
    from opcheck.core.measure import digest_of
    from opcheck.core.variants import config_of
    from opcheck.registry import spec
    from opcheck.run.roles import RoleFailed, run_role

    chosen = configured(case.variant) if config_of(case.variant) is not None else only_config(config)
    digests: dict[str, str] = {}
    raised = ""
    with instrumented(mode), chosen, recorded() as recording:
        try:
            found = run_role(spec(case.op), case, "target", torch.device(case.backend))
            raised = str(found.backward or "")
            digests = {name: digest_of(value.cpu()) for name, value in found.tensors.items()}
        except (RoleFailed, RuntimeError) as error:
            raised = str(error)
    launches = Counter(item.kernel.rpartition(".")[2] for item in recording.launches)
    return {"launches": dict(launches), "configs": recording.configs, "digests": digests, "raised": raised}


@contextlib.contextmanager
def instrumented(mode: str) -> Any:
    """Give instrumented kernels the memory that they ask for: gsan all of torch's, the others scratch memory."""
    if not mode:
        yield
        return
    import torch
    import triton

    if mode == "gsan":
        allocator = importlib.import_module("triton.experimental.gsan")
        with torch.cuda.use_mem_pool(allocator.create_mem_pool()):
            yield
        return

    def scratch(size: int, alignment: int, stream: int | None) -> torch.Tensor:
        return torch.empty(size, dtype=torch.int8, device="cuda")

    triton.set_allocator(scratch)
    yield


if __name__ == "__main__":
    main()
