"""No test is answered from the evidence of an earlier run, unless it is about that."""

import os

os.environ["OPCHECK_EVIDENCE"] = "off"
