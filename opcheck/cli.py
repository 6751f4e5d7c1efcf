"""Arguments in, exit status out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from opcheck.commands import COMMANDS
from opcheck.core.gate import ExitStatus
from opcheck.core.version import VERSION
from opcheck.errors import OpcheckError


def entry() -> None:
    """Run the command line and exit: the `opcheck` script."""
    raise SystemExit(main())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status.

    0 may ship; 1 may not; 2 interrupted; 3 opcheck itself broke; 4 usage or configuration; 5 nothing was audited.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except OpcheckError as error:
        print(f"opcheck: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("opcheck: interrupted", file=sys.stderr)
        return ExitStatus.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`| head`); that is its right.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.OK
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"opcheck: {place}{error.strerror or error}", file=sys.stderr)
        return ExitStatus.USAGE
    except Exception as error:
        return _broke(error)


def _broke(error: Exception) -> int:
    """Say that the fault is ours, and keep the traceback where it can be sent from."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="opcheck-", suffix=".log", delete=False) as log:
        traceback.print_exception(error, file=log)
    print(
        f"opcheck: internal error, {type(error).__name__}: {error}; this is a bug of opcheck, its traceback is in "
        f"{log.name}",
        file=sys.stderr,
    )
    return ExitStatus.INTERNAL


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        """Exit with pytest's status for usage."""
        self.print_usage(sys.stderr)
        print(f"{self.prog}: {message}", file=sys.stderr)
        raise SystemExit(int(ExitStatus.USAGE))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="opcheck", description="Audit Triton and CUDA kernels, forward and backward.")
    parser.add_argument("--version", action="version", version=f"opcheck {VERSION}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    for module in COMMANDS:
        name = module.__name__.rpartition(".")[2]
        command = commands.add_parser(
            name, help=(module.__doc__ or "").splitlines()[0], description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        command.add_argument("--registry", type=Path, metavar="PATH", help="default: the nearest registry.toml upward")
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser
