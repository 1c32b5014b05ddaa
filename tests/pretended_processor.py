"""A pytest plugin that has tests run as on another processor: `-p tests.pretended_processor`.

VLSCORE_TEST_PROCESSOR is "MAKER FLAG FLAG ...", as Linux names them: the code then chooses its
way as it does there. VLSCORE_TEST_ONEDNN=off does without oneDNN. Which instructions torch and its
libraries use is chosen by their own variables: ATEN_CPU_CAPABILITY, ONEDNN_MAX_CPU_ISA,
MKL_ENABLE_INSTRUCTIONS, OMP_NUM_THREADS.
"""

import os

import torch

from vlscore.encoders import devices as inference
from vlscore.encoders.blocks import bert as linear

if "VLSCORE_TEST_PROCESSOR" in os.environ:
    _maker, *_flags = os.environ["VLSCORE_TEST_PROCESSOR"].split()
    _facts = inference.ProcessorFacts(_maker, frozenset(_flags))
    for _module in (inference, linear):
        vars(_module)["processor_facts"] = lambda: _facts
    linear.uses_onednn.cache_clear()
# A process that has computed before has chosen already.
_wanted = os.environ.get("ATEN_CPU_CAPABILITY", "").upper()
_chosen = torch.backends.cpu.get_cpu_capability()
assert _wanted in ("", _chosen), f"torch computes with {_chosen}"
if os.environ.get("VLSCORE_TEST_ONEDNN") == "off":
    torch.backends.mkldnn.enabled = False
