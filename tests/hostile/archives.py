"""Hostile tar and zip archives. Most hold the good log between members that are bombs, lies or damage."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator

from tests.hostile.model import MIB, HostileCase, Job, repeat
from tests.sources.factories import make_zip

QUIET = b"2026-11-21 02:30:00 INFO trainer: step 1 loss 2.5\n"
Member = tuple[str | tarfile.TarInfo, bytes]


def tar(*members: Member, tar_format: int = tarfile.PAX_FORMAT) -> bytes:
    """Return a tar archive of files and special members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tar_format) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name) if isinstance(name, str) else name
            info.size = info.size or len(data)
            archive.addfile(info, io.BytesIO(data.ljust(info.size, b"\0")) if info.isreg() else None)
    return out.getvalue()


def special(name: str, kind: bytes, link: str = "") -> Member:
    """Return a member that is not a file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info, b""


def deflated(size: int, text: bytes = b"\0") -> bytes:
    """Return a gzip file that expands to `size` bytes."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([*(packer.compress(piece) for piece in repeat(text, size)), packer.flush()])


def patched(data: bytes, offset: int, patch: bytes) -> bytes:
    """Return the bytes with some of them overwritten; a negative offset counts from the end."""
    offset %= len(data)
    return data[:offset] + patch + data[offset + len(patch) :]


def good_tar(job: Job, *others: Member) -> bytes:
    """Return a tar archive of the good log and other members behind it."""
    return tar(("console.log", job.good), *others)


def write_traversal_tar(job: Job) -> None:
    """Names that lead out of any directory."""
    names = ("../../../../tmp/triage-escaped.log", "/tmp/triage-escaped.log", "a/../../triage-escaped.log")
    job.write("logs.tar", good_tar(job, *((name, QUIET) for name in names)))


def write_traversal_zip(job: Job) -> None:
    """The same in a zip archive, also with the separators and drives of Windows."""
    names = ("../../../tmp/triage-escaped.log", "..\\..\\triage-escaped.log", "C:\\triage-escaped.log", "~/.bashrc")
    job.write("logs.zip", make_zip({"console.log": job.good, **dict.fromkeys(names, QUIET)}))


def write_links(job: Job) -> None:
    """Links to files of the machine, links in a ring, and a file written through a link to a directory."""
    links = [special("a", tarfile.SYMTYPE, "/etc/passwd"), special("b", tarfile.LNKTYPE, "/etc/shadow")]
    ring = [special("c", tarfile.SYMTYPE, "d"), special("d", tarfile.SYMTYPE, "c")]
    through = [special("out", tarfile.SYMTYPE, "/tmp"), ("out/triage-escaped.log", QUIET)]
    job.write("logs.tar", good_tar(job, *links, *ring, *through))


def write_devices(job: Job) -> None:
    """Devices, a FIFO and a type of member that does not exist."""
    kinds = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"Z")
    info = [special(f"dev{number}", kind) for number, kind in enumerate(kinds)]
    job.write("logs.tar", good_tar(job, *info))


def write_zip_link(job: Job) -> None:
    """A link in a zip archive, by the mode of Unix."""
    link = zipfile.ZipInfo("passwd.log")
    link.external_attr = 0o120777 << 16
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("console.log", job.good)
        archive.writestr(link, "/etc/passwd")
    job.write("logs.zip", out.getvalue())


def write_large_size(job: Job) -> None:
    """A member that claims more bytes than there are."""
    data = good_tar(job, ("rank1.log", QUIET))
    at = data.index(b"rank1.log")
    job.write("logs.tar", _with_checksum(patched(data, at + 124, b"77777777777\0"), at))


def write_negative_size(job: Job) -> None:
    """A member of a negative size, which would lead the reader back."""
    data = good_tar(job, ("rank1.log", QUIET), ("rank2.log", QUIET))
    at = data.index(b"rank1.log")
    job.write("logs.tar", _with_checksum(patched(data, at + 124, b"\xff" * 12), at))


def _with_checksum(data: bytes, at: int) -> bytes:
    """Return the archive with a right checksum in the header at `at`."""
    block = patched(data[at : at + 512], 148, b" " * 8)
    return patched(data, at + 148, b"%06o\0 " % sum(block))


def write_bad_checksums(job: Job) -> None:
    """Headers with wrong checksums around the good log."""
    data = tar(("a.log", QUIET), ("console.log", job.good), ("z.log", QUIET))
    job.write("logs.tar", patched(patched(data, 148, b"000000"), data.index(b"z.log") + 148, b"000000"))


def write_cut_tar(job: Job) -> None:
    """An archive that was cut within its second member."""
    data = good_tar(job, ("rank1.log", QUIET * 1000))
    job.write("logs.tar", data[: data.index(b"rank1.log") + 5000])


def write_long_headers(job: Job) -> None:
    """A member whose PAX header and long name take megabytes."""
    info = tarfile.TarInfo("rank1.log")
    info.pax_headers = {"comment": "x" * (8 * MIB)}
    job.write("logs.tar", good_tar(job, (info, QUIET)))


def write_long_names(job: Job) -> None:
    """Very many members, each with a name of megabytes, in a small file."""
    packer, name = zlib.compressobj(9, wbits=31), "n" * MIB
    pieces = [good_tar(job)[: _padded(job)]]
    pieces += [tarfile.TarInfo(f"{name}{number}.log").tobuf() for number in range(job.size(50, 1000))]
    job.write("logs.tar.gz", b"".join([*map(packer.compress, pieces), packer.flush()]))


def write_name_chain(job: Job) -> None:
    """Long names that announce only another long name, thousands of times."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 8
    link = info.tobuf(tarfile.GNU_FORMAT) + b"n.log\0".ljust(512, b"\0")
    job.write("logs.tar", good_tar(job)[:-1024].rstrip(b"\0").ljust(_padded(job), b"\0") + link * 20_000)


def _padded(job: Job) -> int:
    """Return the bytes of the good log as a member, with its header (and that of PAX, which it does not need)."""
    return 512 + -(-len(job.good) // 512) * 512


def write_sparse_tar(job: Job) -> None:
    """A member of one byte and a hole of an exabyte."""
    info = tarfile.TarInfo("rank1.log")
    holes = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "rank1.log"}
    info.pax_headers = {**holes, "GNU.sparse.map": "0,1", "GNU.sparse.size": str(1 << 60)}
    info.pax_headers["GNU.sparse.numblocks"] = "1"
    job.write("logs.tar", good_tar(job, (info, b"x")))


def write_overlapping_holes(job: Job) -> None:
    """A member whose parts overlap and go back."""
    info = tarfile.TarInfo("rank1.log")
    info.pax_headers = {
        "GNU.sparse.map": "0,100,50,100,10,4,0,9",
        "GNU.sparse.size": "100000",
        "GNU.sparse.numblocks": "4",
    }
    job.write("logs.tar", good_tar(job, (info, QUIET * 9)))


def write_many_members(job: Job) -> None:
    """Millions of empty members in a small file, behind the good log."""
    header = tarfile.TarInfo("rank.log").tobuf()
    members = job.size(20_000, 2_000_000)
    packer = zlib.compressobj(6, wbits=31)
    start = good_tar(job)[: _padded(job)]
    pieces = (start, *repeat(header, members * 512))
    job.write("logs.tar.gz", b"".join([*(packer.compress(piece) for piece in pieces), packer.flush()]))


def write_many_entries(job: Job) -> None:
    """A zip archive with a directory of very many empty members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("console.log", job.good)
        for number in range(job.size(3_000, 300_000)):
            archive.writestr(f"{number}.log", b"")
    job.write("logs.zip", out.getvalue())


def write_tar_bomb(job: Job) -> None:
    """A small tar.gz that holds gigabytes of NULs behind the good log."""
    info = tarfile.TarInfo("zeros.log")
    info.size = job.size(64 * MIB, 4096 * MIB)
    packer = zlib.compressobj(9, wbits=31)
    pieces: Iterable[bytes] = (good_tar(job)[: _padded(job)], info.tobuf(), *repeat(b"\0", info.size))
    job.write("logs.tar.gz", b"".join([*map(packer.compress, pieces), packer.flush()]))


def write_zip_bomb(job: Job) -> None:
    """A member of gigabytes of NULs: as far as deflate goes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("console.log", job.good)
        with archive.open("zeros.log", "w", force_zip64=True) as member:
            for piece in repeat(b"\0", job.size(64 * MIB, 4096 * MIB)):
                member.write(piece)
    job.write("logs.zip", out.getvalue())


def write_overlapping_zip(job: Job) -> None:
    """Thousands of entries of the directory that name the same compressed bytes (David Fifield's bomb, simplified)."""
    kernel = make_zip({"console.log": job.good, "k.log": b"\0" * (2 * MIB)})
    at = kernel.index(b"PK\x01\x02")
    entries = list(_entries(kernel[at:]))
    copies = entries[:1] + entries[1:] * job.size(600, 3000)
    directory = b"".join(copies)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(copies), len(copies), len(directory), at, 0)
    job.write("logs.zip", kernel[:at] + directory + end)


def _entries(directory: bytes) -> Iterator[bytes]:
    """Yield each entry of a zip's directory."""
    while directory.startswith(b"PK\x01\x02"):
        size = 46 + sum(struct.unpack_from("<3H", directory, 28))
        yield directory[:size]
        directory = directory[size:]


def write_nested_zip(job: Job) -> None:
    """Archives in archives in archives, sixteen in each, at the end of which are NULs (as 42.zip)."""
    inner = make_zip({"zeros.log": b"\0" * MIB})
    for _ in range(4):
        inner = make_zip({f"{number}.zip": inner for number in range(16)})
    job.write("logs.zip", make_zip({"console.log": job.good, "deep.zip": inner}))


def write_nested_mixed(job: Job) -> None:
    """A gzip in a zip in a tar in a gzip: more archives than are opened."""
    inner = gzip.compress(tar(("c.zip", make_zip({"b.tar": tar(("a.log", QUIET))}))))
    job.write("logs.zip", make_zip({"console.log": job.good, "d.tar.gz": inner}))


def write_encrypted(job: Job) -> None:
    """A member with the mark of encryption."""
    data = make_zip({"console.log": job.good, "secret.log": QUIET})
    for mark, distance in ((b"secret.log", -24), (b"PK\x01\x02", 8)):
        data = patched(data, data.rindex(mark) + distance if distance > 0 else data.index(mark) + distance, b"\1\0")
    job.write("logs.zip", data)


def write_duplicates(job: Job) -> None:
    """Members with one name and different texts: none may hide another."""
    job.write("logs.tar", tar(("console.log", QUIET), ("console.log", job.good), ("console.log", QUIET * 2)))


def write_strange_names(job: Job) -> None:
    """Names of control characters, escapes, text that is turned around, 60 KB, and of nothing."""
    names = ("\x1b[2J\x1b]0;title\x07.log", "\u202egol.txt", "a\nb: ERROR.log", "n" * 60_000, "<script>.log", "\udcff")
    members = [(name, QUIET) for name in names]
    job.write("logs.tar", good_tar(job, *members, special("", tarfile.SYMTYPE, "\x1b[31m")))


def write_wrong_crc(job: Job) -> None:
    """A member with a wrong checksum: its text is read all the same."""
    data = make_zip({"console.log": job.good}, zipfile.ZIP_STORED)
    job.write("logs.zip", patched(patched(data, 14, b"\0" * 4), data.index(b"PK\x01\x02") + 16, b"\0" * 4))


def write_cut_zip(job: Job) -> None:
    """An archive without its directory."""
    data = make_zip({"console.log": job.good, "rank1.log": QUIET * 99})
    job.write("logs.zip", data[: data.index(b"PK\x01\x02")])


def write_large_directory(job: Job) -> None:
    """A directory that claims four gigabytes."""
    data = make_zip({"console.log": job.good})
    job.write("logs.zip", patched(data, -10, b"\xfe\xff\xff\xff"))


def write_unknown_methods(job: Job) -> None:
    """Methods of compression that nothing here reads."""
    data = make_zip({"console.log": job.good, "one.log": QUIET, "two.log": QUIET}, zipfile.ZIP_STORED)
    for name, method in ((b"one.log", 9), (b"two.log", 77)):
        data = patched(data, data.index(name) - 22, struct.pack("<H", method))
        data = patched(data, data.rindex(name) - 36, struct.pack("<H", method))
    job.write("logs.zip", data)


def write_wrong_positions(job: Job) -> None:
    """A directory that gives positions beyond the file, and within the text of another member."""
    data = make_zip({"console.log": job.good, "one.log": QUIET, "two.log": QUIET}, zipfile.ZIP_STORED)
    data = patched(data, data.rindex(b"one.log") - 4, struct.pack("<L", 0x7FFFFFFF))
    job.write("logs.zip", patched(data, data.rindex(b"two.log") - 4, struct.pack("<L", 60)))


def write_large_dictionary(job: Job) -> None:
    """A member whose LZMA properties ask for a dictionary of four gigabytes."""
    data = make_zip({"console.log": job.good, "rank1.log": QUIET * 99}, zipfile.ZIP_LZMA)
    at = data.index(b"rank1.log") + len("rank1.log") + 4  # behind version and length of the properties
    job.write("logs.zip", patched(data, at + 1, b"\xff\xff\xff\xff"))


def write_unsupported(job: Job) -> None:
    """Archives that are not unpacked here."""
    job.write("a.7z", b"7z\xbc\xaf\x27\x1c" + bytes(99))
    job.write("b.rar", b"Rar!\x1a\x07\x01\x00" + bytes(99))


DAMAGED = r"(truncated-archive|corrupt): "
ALL_READ = "every member is read, and names open nothing"
CASES = (
    HostileCase("tar: names that lead out", write_traversal_tar, "", ALL_READ, holds_good=True),
    HostileCase("zip: names that lead out", write_traversal_zip, "", ALL_READ, holds_good=True),
    HostileCase("tar: links", write_links, r"special-member: .*a link to /etc/passwd", holds_good=True),
    HostileCase("tar: devices", write_devices, r"special-member: .*a device", holds_good=True),
    HostileCase("zip: link", write_zip_link, r"special-member: .*it is a link", holds_good=True),
    HostileCase("tar: size beyond the end", write_large_size, DAMAGED, holds_good=True),
    HostileCase("tar: negative size", write_negative_size, DAMAGED, holds_good=True),
    HostileCase("tar: wrong checksums", write_bad_checksums, DAMAGED, holds_good=True),
    HostileCase("tar: cut", write_cut_tar, DAMAGED, holds_good=True),
    HostileCase("tar: headers of megabytes", write_long_headers, DAMAGED, holds_good=True),
    HostileCase("tar: names of megabytes", write_long_names, "bomb|truncated-archive", holds_good=True, seconds=300),
    HostileCase("tar: chain of long names", write_name_chain, DAMAGED, holds_good=True),
    HostileCase("tar: hole of an exabyte", write_sparse_tar, r"(bomb|too-large|artifact-not-read): ", holds_good=True),
    HostileCase("tar: overlapping holes", write_overlapping_holes, DAMAGED, holds_good=True),
    HostileCase("tar: millions of members", write_many_members, r"too-many-members: ", holds_good=True, seconds=300),
    HostileCase("tar.gz: bomb", write_tar_bomb, r"(bomb|artifact-not-read): ", holds_good=True, seconds=300),
    HostileCase("tar: duplicate names", write_duplicates, "", "all texts of one name are read", holds_good=True),
    HostileCase("tar: strange names", write_strange_names, r"special-member: .*\\x1b", holds_good=True),
    HostileCase("zip: bomb", write_zip_bomb, r"(bomb|artifact-not-read): ", holds_good=True, seconds=300),
    HostileCase("zip: overlapping members", write_overlapping_zip, r"bomb: ", holds_good=True, seconds=300),
    HostileCase("zip: nested", write_nested_zip, r"nested-too-deep: ", holds_good=True),
    HostileCase("zip: nested with other kinds", write_nested_mixed, r"nested-too-deep: ", holds_good=True),
    HostileCase("zip: encrypted", write_encrypted, r"encrypted: .*password", holds_good=True),
    HostileCase("zip: wrong checksum", write_wrong_crc, r"corrupt: ", holds_good=True),
    HostileCase("zip: cut", write_cut_zip, DAMAGED, holds_good=True),
    HostileCase("zip: directory of gigabytes", write_large_directory, DAMAGED, holds_good=True),
    HostileCase("zip: very many members", write_many_entries, r"too-many-members: ", holds_good=True, seconds=300),
    HostileCase("zip: unknown methods", write_unknown_methods, r"skipped: .*method 77", holds_good=True),
    HostileCase("zip: wrong positions", write_wrong_positions, r"corrupt: .*wrong position", holds_good=True),
    HostileCase("zip: dictionary of gigabytes", write_large_dictionary, r"corrupt: ", holds_good=True),
    HostileCase("7z and rar", write_unsupported, r"skipped: .*unpack it first"),
)
