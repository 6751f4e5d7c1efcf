"""The pictures of a report as files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from opcheck.core.finding import Finding
from opcheck.core.pictures import Picture
from opcheck.core.report import AuditReport, CaseReport
from opcheck.render import figures

LONGEST = 150  # characters of a name: file systems take 255 bytes


def files(report: AuditReport) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each picture, as SVG."""
    for op in report.ops:
        for case in op.cases:
            for item in case.findings:
                for picture in item.pictures:
                    title = f"{case.id}  {item.tensor}\n{item.check}: {item.verdict}"
                    yield name_of(case, item, picture), figures.file(picture, title)


def name_of(case: CaseReport, item: Finding, picture: Picture) -> str:
    """Return a name that says what the picture shows: its kind, check, tensor and case.

    What a file's name should not hold becomes a hyphen, and a digest of it all keeps two names apart.
    """
    parts = (case.id, item.check, item.tensor, str(item.verdict), picture.kind)
    spoken = "_".join((case.id.partition("[")[0], item.tensor, picture.kind, item.check, case.id.partition("[")[2]))
    digest = hashlib.blake2b("\0".join(parts).encode(errors="backslashreplace"), digest_size=4).hexdigest()
    return f"{re.sub(r'[^a-zA-Z0-9_.,=+]+', '-', spoken)[:LONGEST].strip('-.')}_{digest}.svg"
