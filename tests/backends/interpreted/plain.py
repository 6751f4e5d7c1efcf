"""Print which probes Triton's own interpreter passes: it must fail those that the repair is for."""

import json

from opcheck.backends.interpreter import repair
from opcheck.backends.interpreter.probe_specs import SPECS
from opcheck.backends.interpreter.selftest import _run, _tables, probes

assert repair.state() is None
assert probes() == ()
tables = _tables()["probes"]
print(json.dumps({name: _run(spec, tables[name]).passed for name, spec in SPECS.items()}))
