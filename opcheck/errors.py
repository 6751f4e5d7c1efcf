"""One class per misuse: the message says what it is, what it should be, and where."""

from __future__ import annotations


class OpcheckError(Exception):
    """Base of everything that opcheck raises for a user's mistake; printed as one sentence, without a traceback."""

    #: pytest's meaning: 4 is usage or configuration.
    exit_status = 4


class RegistrationError(OpcheckError):
    """A kernel cannot be registered as it stands."""


class UnknownOp(OpcheckError):
    """A name that no registered op has."""


class BadCase(OpcheckError):
    """A case id that cannot be read, or that does not fit the op."""


class SampleError(OpcheckError):
    """`samples(case)` did not give what the op takes."""


class OracleError(OpcheckError):
    """`golden` or `reference` did not give an answer that can be judged against."""


class PolicyError(OpcheckError):
    """`registry.toml` is wrong; every error of the file is listed at once.

    Attributes:
        problems: One sentence for each error, each starting with the file and the key path.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class AuditFailed(OpcheckError):
    """`verify` or `assert_ok` saw a verdict that may not ship; the message is the report."""

    exit_status = 1


class WorkerError(OpcheckError):
    """The processes that run kernels cannot be started or kept alive; no statement about any kernel follows."""

    exit_status = 3
