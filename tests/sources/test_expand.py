"""triage.sources.expand"""

from __future__ import annotations

import io
import tarfile
import zipfile

import pytest

from .factories import read


def make_tar(*members: tuple[str, bytes]) -> bytes:
    """Return a tar archive, in which names may come twice."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def make_zip(*members: tuple[str, bytes]) -> bytes:
    """Return a zip archive, in which names may come twice."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


@pytest.mark.parametrize("make", [make_tar, make_zip])
@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_members_of_one_name_are_all_read(make: type[bytes]) -> None:
    """The second member of a name does not replace the first, nor a member that has the name of a copy."""
    data = make(("a.log", b"1\n"), ("2/a.log", b"2\n"), ("a.log", b"3\n"), ("./a.log", b"4\n"))  # type: ignore[call-arg]
    sources, warnings = read(data, name="x")
    assert sorted(sources.values()) == [b"1\n", b"2\n", b"3\n", b"4\n"]
    assert sources["x!/a.log"] == b"1\n"
    assert sources["x!/2/a.log"] == b"2\n"
    assert not warnings


@pytest.mark.parametrize(("length", "shown"), [(1024, 1024), (1025, 1024), (1 << 20, 1024)])
def test_the_end_of_a_very_long_name_is_shown(length: int, shown: int) -> None:
    """Names of megabytes are cut, so that an archive of them does not fill the memory."""
    sources, _ = read(make_tar(("n" * (length - 4) + ".log", b"1\n")), name="x")
    (name,) = sources
    assert len(name.removeprefix("x!/")) == shown
    assert name.endswith("n.log")
