"""Terms of failing in any style and language, and what takes them back."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.evidence.endings.failure_terms import find_failure_term


@pytest.mark.parametrize(
    "line",
    [
        "!! trainer stopped: shard 17 unreadable",
        "Abbruch: Gewichtsdatei beschädigt (Block 4711)",
        "训练中止：第17号分片校验和不匹配",
        "Arrêt anormal : le disque /scratch est plein",
        "学習を中断しました: チェックポイントの書き込みに失敗",
        "обучение прервано: ошибка чтения",
        "trainer(2): only 15 of 16 came back from the barrier, bye",
        "refusing to start: world size 12 is no multiple of 8",
        "💥 feeder crashed",
        "Węzeł 6 nie odpowiada od 120 s",
        "TRAINER: Gegenstelle 6 hat sich nicht gemeldet. Ende.",
        "ノード6が応答しません (120秒)",
        "磁盘空间不足：/scratch",
        "[treino] chave 'proj.bias' ausente no ponto de verificação",
        "store> index page 12 is scrambled",
        "04:11:52|n0113|kr6|S|9|shuffle service unreachable|",
        "04:11:52\tn0113\tkr6\tS\t9\tmixer is unreachable\t-",
        "Back-off restarting failed container pytorch",
        "sitter[81]: rank 3: project p9 has exceeded its scratch quota: 85 MiB of 42 MiB",
        "generation 4 was superseded by generation 5",
        "no free slot for rank 3",
        "the trainer ends with KeyError: 'step'",
        "训练这一步报KeyError: 'step'",
        "[Multi-node training] my_pkg.core.ShapeException: 3 rows",
    ],
)
def test_terms_count(line: str) -> None:
    """A term of failing is read in several languages."""
    assert find_failure_term(line)


@pytest.mark.parametrize(
    "line",
    [
        "0 errors",
        "errors: 0",
        "handled KeyError: 'step'",
        "ignored: KeyError: 'step'",
        "no KeyError: all keys are there",
        "KeyError in 3 files",
        "path/KeyError: 3",
        "errors 0",
        "no errors",
        "error_rate=0.1",
        "--fail-fast is set",
        "GET x failed: 503 (attempt 1 of 5), retrying in 2 s",
        "why was worker 3 killed?",
        "|errors |      1|none  |     0|acc   |",
        "failed\t3\ttimeouts\t0\tlost\t2",
        "failures none",
        "no limit exceeded",
        "unreachable: no",
        "异常样本 0",
        "错误率 0.03",
        "没有错误",
        "エラーなし",
        "restarting failed container pytorch",
        "see `FATAL: map is old` in the notes",
        "will raise an error in 3.0 (DeprecationWarning)",
        "Running this sequence through the model will result in indexing errors",
        "two writers of one file may lead to a corrupted index",
    ],
)
def test_terms_are_taken_back(line: str) -> None:
    """Zeros, negations, names, retries, questions, quotes and warnings are no failures."""
    assert find_failure_term(line) == ""


@given(st.text(max_size=700))
def test_any_line(line: str) -> None:
    """No text raises, and what is returned stands in the line."""
    term = find_failure_term(line)
    assert term in line
