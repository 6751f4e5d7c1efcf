"""The parts of which scripts are made, as source."""

from __future__ import annotations

import re

_START = '''
{imports}

UNJUDGED = {unjudged}


def cannot_tell(kind, error, trace):
    """Leave with the status that says neither good nor bad."""
    traceback.print_exception(kind, error, trace)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(UNJUDGED)


sys.excepthook = cannot_tell
sys.dont_write_bytecode = True  # two revisions within a second would share their bytecode
os.environ["TRITON_INTERPRET"] = "{interpret}"  # Triton reads it when it is imported
sys.path.insert(0, str({root}))
'''

CONTAINED = """
if sys.argv[1:] != ["here"]:  # the run itself has a process of its own, which may crash or hang
    try:
        status = subprocess.run([sys.executable, __file__, "here"], timeout={timeout:g}).returncode
    except subprocess.TimeoutExpired:
        status = -1
    if status not in (0, 1, UNJUDGED):
        print("the run gave no answer in time, or ended its process")
    sys.exit(status if status in (0, 1, UNJUDGED) else {lost})
"""

_LOAD = """
import torch  # noqa: E402
{repair}
torch.set_num_threads(1)
DEVICE = "{device}"
{present}try:
    import {module}  # noqa: E402
except SystemExit as error:
    raise ImportError("{module} ends the process") from error
op = torch.ops.{op}
"""

_PRESENT = """if not torch.cuda.is_available():
    raise RuntimeError("torch sees no CUDA device")
"""

_REPAIR = """
from opcheck.backends import interpreter  # noqa: E402

repair = interpreter.install()  # before the module is imported
if not repair.active:
    raise RuntimeError(repair.reason)
"""


TENSOR = '''
def tensor(values, dtype, size, stride, offset):
    """Make a view of the memory that holds the values."""
    wide = torch.float64 if dtype.is_floating_point else dtype
    memory = torch.tensor(values, dtype=wide).to(dtype)
    return memory.to(DEVICE).as_strided(size, stride, offset)
'''

READ_FILE = '''
def tensor(name, dtype, size, stride, offset):
    """Make a view of the memory that lies in the safetensors file beside this one."""
    data = (Path(__file__).resolve().parent / "{data}").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    begin, end = json.loads(data[8:start])[name]["data_offsets"]
    held = bytearray(data[start + begin : start + end])
    memory = torch.frombuffer(held, dtype=torch.uint8).view(dtype) if held else torch.empty(0, dtype=dtype)
    return memory.to(DEVICE).as_strided(size, stride, offset)
'''

NAMED = '''
def named(answer):
    """Name the outputs as reports do."""
    several = isinstance(answer, (tuple, list))
    return {f"out {at}": item for at, item in enumerate(answer)} if several else {"out": answer}
'''

FAILED = """
    print(f"the op raised {{type(error).__name__}}: {{error}}")
    sys.exit({failed})
"""

RETURNED = """
print("the op came back: the bug is gone")
"""

REFUSES = """
try:
    answer = op({arguments})
except Exception as error:
    print(f"the op raised {{type(error).__name__}}, as it should: {{error}}")
    sys.exit(0)
except SystemExit:
    print("the op ends the process instead of raising")
    sys.exit(1)
print(f"the op should raise, and answered {{answer}}")
sys.exit(1)
"""

_FORM = """
got = {got}
if not isinstance(got, torch.Tensor) or got.dtype != {dtype} or tuple(got.shape) != {shape}:
    form = f"{{got.dtype}} {{tuple(got.shape)}}" if isinstance(got, torch.Tensor) else type(got).__name__
    print(f"{check}: {tensor} is {{form}}, it should be {dtype} {shape}")
    sys.exit({unfit})
"""

EXACT = """
got = got.detach().to(torch.int64)
wrong = got != expected
"""

NEAR = """
got = got.detach().to(torch.float64)
allowed = torch.as_tensor({allowed}, dtype=torch.float64, device=DEVICE)  # inf where an element is not judged
near = (got - expected).abs() <= allowed
wrong = ~(near | (got == expected) | (got.isnan() & expected.isnan())) & allowed.isfinite()
"""

VALUES = (
    _FORM
    + """{near}
if wrong.any():
    at = tuple(int(place) for place in wrong.nonzero()[0])
    print(f"{check}: {{int(wrong.sum())}} of {{wrong.numel()}} elements of {tensor} are wrong")
    print(f"the first at {{list(at)}}: expected {{expected[at].item():.9g}}, got {{got[at].item():.9g}}")
    sys.exit(1)
print("{tensor} is right: the bug is gone")
"""
)

MEAN = (
    _FORM
    + """got = got.detach().to(torch.float64)
kept = (step > 0) & got.isfinite()
error = ((got - expected)[kept] / step[kept]).clamp(-{clip:g}, {clip:g})  # in units in the last place
ways = {{"away from zero": error * expected[kept].sign(), "upwards": error}}
for (way, signed), allowed in zip(ways.items(), {allowed}):
    mean, noise = float(signed.mean()), float(signed.std()) / signed.numel() ** 0.5
    if abs(mean) > max(6 * noise, allowed):
        print(f"{check}: the mean error of {tensor} {{way}} is {{mean:+.3f}} ulp, allowed are {{allowed:.3f}}")
        sys.exit(1)
print("{tensor} has no bias: it is right")
"""
)

AUDIT = """
import json
import subprocess
import sys
from pathlib import Path

UNJUDGED = {unjudged}
ROOT = {root}
CHECK, TENSOR = "{check}", "{tensor}"
CASE = {case!r}

command = [sys.executable, "-B", "-m", "opcheck", "audit", "--registry", str(ROOT / "{registry}")]
command += ["--backend", "{backend}", "--level", "{level}", "--timeout", "{timeout:g}", "-q", "--format", "json"]
command += [*{checks}, "--case", CASE]
try:
    done = subprocess.run(command, capture_output=True, text=True)
    cases = [case for op in json.loads(done.stdout)["ops"] for case in op["cases"]]
except (OSError, ValueError, KeyError) as error:
    print(f"opcheck gave no report ({{error}}): {{done.stderr[-2000:]}}")
    sys.exit(UNJUDGED)
found = [finding for case in cases for finding in case["findings"]]
for finding in found:
    print(f"{{finding['verdict']}} {{finding['check']}} {{finding['tensor']}}: {{finding['detail']}}")
failures = [(finding["check"], finding["tensor"]) for finding in found if finding["verdict"] == "FAIL"]
verdicts = [finding["verdict"] for finding in found if finding["check"] == CHECK]
if (CHECK, TENSOR) in failures:
    sys.exit(1)
sys.exit(UNJUDGED if failures or not verdicts or "INCONCLUSIVE" in verdicts else 0)
"""


def start(body: str, *, unjudged: int, interpret: str, root: str) -> str:
    """Return the imports that the rest of the script, its `body`, uses, and what must be set before torch is there."""
    modules = {"os", "sys", "traceback", *(name for name in ("json", "subprocess") if f"{name}." in body)}
    lines = [f"import {name}" for name in sorted(modules)]
    numbers = [name for name in ("inf", "nan") if re.search(rf"\b{name}\b", body)]
    lines += [f"from math import {', '.join(numbers)}"] if numbers else []
    lines.append("from pathlib import Path")
    return _START.format(imports="\n".join(lines), unjudged=unjudged, interpret=interpret, root=root)


def load(module: str, op: str, backend: str, *, repaired: bool) -> str:
    """Return the import of the user's module, and of the repaired interpreter before it where that is needed."""
    return _LOAD.format(
        repair=_REPAIR if repaired else "",
        present=_PRESENT if backend == "cuda" else "",
        device=backend,
        module=module,
        op=op.replace("::", "."),
    )
