"""Facts between processes: what one packs, another unpacks whole."""

from __future__ import annotations

import dataclasses
import json

from triage.evidence import extract_text
from triage.evidence.extraction import ExtractedSource, pack, unpack
from triage.evidence.inference import make_inferences
from triage.model.details import ExceptionDetail, ExitDetail, InferenceDetail, KernelDetail

LOG = """\
Traceback (most recent call last):
  File "/w/train.py", line 9, in <module>
ValueError: no tokens
node3 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.
srun: error: node1: task 2: Killed
"""


def test_details_survive_the_way_between_processes() -> None:
    """The typed parts of facts, which equality does not compare, are those that were packed."""
    facts = extract_text(LOG)
    facts += make_inferences("never-joined", [3], "rank 3 never joined", facts[0], waiting=(0, 1))
    facts.append(dataclasses.replace(facts[0], inherits_time=True, rank_basis="exit status"))
    source = ExtractedSource((), (), (), tuple(facts), 0, False)
    again = unpack(json.loads(json.dumps(pack(source)))).facts
    for name in ("detail", "inherits_time", "rank_basis"):
        assert [getattr(fact, name) for fact in again] == [getattr(fact, name) for fact in facts]
    assert [type(fact.detail) for fact in again[:4]] == [ExceptionDetail, KernelDetail, ExitDetail, InferenceDetail]
