"""Arguments in, exit status out."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from opcheck.commands import NAMES, command
from opcheck.commands.streams import mute, open_streams, say
from opcheck.core.gate import ExitStatus
from opcheck.core.version import VERSION
from opcheck.errors import OpcheckError


def entry() -> None:
    """Run the command line and exit: the `opcheck` script, and `python -m opcheck`.

    SIGTERM, by which CI cancels a job and `timeout` a command, does what Ctrl-C does: what was finished is reported.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    raise SystemExit(main())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status.

    0 may ship; 1 may not; 2 interrupted; 3 opcheck itself broke; 4 usage or configuration; 5 nothing was audited.
    """
    open_streams()
    words = sys.argv[1:] if arguments is None else arguments
    options = _parser(words).parse_args(words)
    try:
        status = int(options.run(options))
        sys.stdout.flush()
        return status
    except OpcheckError as error:
        say(f"opcheck: {error}")
        return error.exit_status
    except KeyboardInterrupt:
        say("opcheck: interrupted")
        return ExitStatus.INTERRUPTED
    except BrokenPipeError:
        # The reader of a list went away (`| head`), as it may; an audit's own status never passes here.
        mute(sys.stdout)
        return ExitStatus.OK
    except OSError as error:
        mute(sys.stdout)
        place = f"{error.filename}: " if error.filename else ""
        say(f"opcheck: {place}{error.strerror or error}")
        return ExitStatus.USAGE
    except Exception as error:
        return _broke(error)


def _broke(error: Exception) -> int:
    """Say that the fault is ours, and keep the traceback where it can be sent from."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="opcheck-", suffix=".log", delete=False) as log:
        traceback.print_exception(error, file=log)
    say(
        f"opcheck: internal error, {type(error).__name__}: {error}; this is a bug of opcheck, its traceback is in "
        f"{log.name}"
    )
    return ExitStatus.INTERNAL


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        """Exit with pytest's status for usage."""
        say(f"{self.format_usage()}{self.prog}: {message}")
        raise SystemExit(int(ExitStatus.USAGE))


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the subcommand that is named, or of all where none is: most need none of the others."""
    parser = _Parser(prog="opcheck", description="Audit Triton and CUDA kernels, forward and backward.")
    parser.add_argument("--version", action="version", version=f"opcheck {VERSION}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    for name in words[:1] if set(words[:1]) & set(NAMES) else NAMES:
        module = command(name)
        parsed = commands.add_parser(
            name, help=(module.__doc__ or "").splitlines()[0], description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        parsed.add_argument("--registry", type=Path, metavar="PATH", help="default: the nearest registry.toml upward")
        parsed.add_argument("--no-plugins", action="store_true", help="leave out registries that packages bring along")
        module.add_arguments(parsed)
        parsed.set_defaults(run=module.run)
    return parser
