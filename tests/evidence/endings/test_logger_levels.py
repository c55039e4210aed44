"""Levels of log lines in every common layout of text and of JSON."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.evidence.endings.logger_levels import read_level


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("2026-03-02 04:11:52,118 - acme.trainer - CRITICAL - loss went to inf", "fatal"),
        ("2026-03-02 04:11:52,118 FATAL [main] c.a.f.ShardServer - map is old", "fatal"),
        ("[2026-03-02 04:11:52.118] [trainer] [critical] arena exhausted", "fatal"),
        ("ERROR:eval.harness:2 of 500 prompts were cut", "error"),
        ("2026-03-02 04:11:52.118 | ERROR    | trainer.loop:run:240 - x", "error"),
        ('time="2026-03-02T04:11:52Z" level=fatal msg="bus closed"', "fatal"),
        ("F0302 04:11:52.118231       1 main.go:141] unable to read", "fatal"),
        ("E0302 04:11:52.118231 31124 session.cc:131] lease revoked", "error"),
        ("2026-03-02 04:11:52.118231: E tensorflow/core/grpc_server_lib.cc:609] no server", "error"),
        ("[NeMo E 2026-03-02 04:11:52 exp_manager:512] owned by another run", "error"),
        ("%TRN-F-NOMEM, no memory for the stash", "fatal"),
        ("error: mixer lost all of its sources", "error"),
        ("[22:40:07.551] [21044] [E] shard 3 overlaps shard 4", "error"),
        ("[22:40:07.551] [C] arena is too small", "fatal"),
        ("[22:40:07.551] [W] arena is nearly full", "low"),
        ("plan [E]", ""),
        ("03-02 04:11:52.118 31124 31340 E feeder  : shard 3 overlaps", "error"),
        ("03-02 04:11:52.118 31124 31340 I feeder  : shard 3 done", "low"),
        ("2026-03-02 04:11:52.118|F|mixer|lease of slot 3 is taken", "fatal"),
        ("2026-03-02 04:11:52.118|I|mixer|lease of slot 3 is taken", "low"),
        ("\x1b[31mPANI\x1b[0m[4471] replica set shrank", "fatal"),
        ("ERRO[0003] replica set shrank", "error"),
        ("DEBU[0003] replica set shrank", "low"),
        ("CRIT[03-02|04:11:52] ring has 7 of 8 members", "fatal"),
        ("[W0305 17:55:41.344838897 socket.cpp:752] cannot be retrieved", "low"),
        ("[W311 09:14:08.347712782 socket.cpp:697] cannot be initialized", "low"),
        ("[rank3]:[E516 11:25:07.167894398 ProcessGroupNCCL.cpp:632] timed out", "error"),
        ("[W31 09:14:08] cannot be initialized", ""),
        ("2026-03-02 04:11:52 INFO train: 0 errors", "low"),
        ("2026-03-02T04:11:52.118231445Z stderr F 2026-03-02 04:11:52,118 INFO train: step 3", "low"),
        ("2026-03-02T04:11:52.118231445Z stdout F 2026-03-02 04:11:52,118 step 3", ""),
        ("2026-03-02T04:11:52.118231445Z stderr F E0302 04:11:52.118231 31124 session.cc:131] lease", "error"),
        ("step 3 loss 2.1 error_rate=0.1", ""),
        ("classes: ['ok', 'error', 'fatal']", ""),
        ('{"level": "error", "msg": "it ended"}', "error"),
        ('{"levelname": "CRITICAL", "message": "it ended"}', "fatal"),
        ('{"record": {"level": {"icon": "x", "name": "ERROR", "no": 40}}}', "error"),
        ('{"SeverityText":"FATAL","SeverityNumber":21,"Body":"x"}', "fatal"),
        ('{"SeverityNumber":16,"Body":"x"}', ""),
        ('{"SeverityNumber":17,"Body":"x"}', "error"),
        ('{"level":49,"msg":"x"}', ""),
        ('{"level":50,"msg":"x"}', "error"),
        ('{"level":60,"msg":"x"}', "fatal"),
        ('{"short_message":"x","level":4}', ""),
        ('{"short_message":"x","level":3}', "error"),
        ('{"short_message":"x","level":2}', "fatal"),
        ('{"levelno":39,"m":1}', ""),
        ('{"levelno":40,"m":1}', "error"),
        ('{"level_value":40000,"level":"ERR"}', "error"),
        ('{"@l":"Fatal","@mt":"x"}', "fatal"),
        ('{"level":"info","errors":0}', "low"),
        ('{"sev":"FATAL","msg":"x"}', "fatal"),
        ('    "message": "F0624 22:16:08.921081   16655 doctor.go:128] no pages are free"', "fatal"),
        ('{"log":"[default0]:ts=2026-09-28 sev=fatal msg=\\"stopped\\"\\n","stream":"stderr"}', "fatal"),
        ('{"severity":"INFO","message":"FATAL is a word here"}', "low"),
        ('{"message":"no pages are free"}', ""),
        ('{"sev":"info","msg":"x"}', "low"),
    ],
)
def test_levels(line: str, level: str) -> None:
    """The level is read where a layout states it, and nowhere else."""
    assert read_level(line) == level


@given(st.text(max_size=400))
def test_any_line_has_a_level_or_none(line: str) -> None:
    """No text raises."""
    assert read_level(line) in ("", "low", "error", "fatal")
