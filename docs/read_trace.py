#!/usr/bin/env python3
"""Prints the copies, fills and marks in aclshim's traces (*.acltrace) and rings (*.ring) as JSON lines.

A reader to begin with; docs/trace-format.md describes the format. Usage: read_trace.py FILE..."""
import functools, json, mmap, struct, sys

WORD = (1 << 64) - 1

def checksum(data):
    def step(total, word):
        total ^= word
        return ((total << 29 | total >> 35) * 0x9E3779B97F4A7C15) & WORD

    totals = [len(data) + lane for lane in range(4)]
    for words in struct.iter_unpack("<4Q", data + bytes(-len(data) % 32)):
        totals = list(map(step, totals, words))
    return functools.reduce(step, totals)

def head(word, version):
    """The head of a slot as version 2 has it."""
    if version == 2:
        return word
    return word & 31 | (word >> 5 & 1) << 6 | (word >> 6 & 15) << 8 | (word >> 10 & 63) << 12 | (word >> 16) << 24 & WORD

def names(header):
    version, count = struct.unpack_from("<I", header, 8)[0], struct.unpack_from("<I", header, 140)[0]
    if version == 1:
        return [header[192 + 40 * n:232 + 40 * n].split(b"\0")[0].decode() for n in range(min(count, 64))]
    return [name.decode() for name in bytes(header[256:256 + 8192]).split(b"\0")[:count]]

def process(header):
    version, _, pid = struct.unpack_from("<III", header, 8)
    boot_id = 2824 if version == 1 else 8520
    return bytes(header[boot_id:boot_id + 40]), pid, struct.unpack_from("<Q", header, 40)[0]

def trace(data, found):
    """Blocks of slots; what is between good blocks is passed over."""
    version, size = struct.unpack_from("<II", data, 8)
    header, at = data[64:64 + size], 64 + size
    if len(header) < size:
        return
    of = found.setdefault(process(header), (names(header), {}))[1]
    while (at := data.find(b"BLK1", at)) >= 0 and at + 64 <= len(data):
        kind, ring, _, first, _, _, _, _, total, length = struct.unpack_from("<IIIQIIQQQI", data, at + 4)
        block = data[at:at + 48] + bytes(8) + data[at + 56:at + 64 + length]
        if len(block) < 64 + length or checksum(block) != total:
            at += 1
            continue
        for n, words in enumerate(struct.iter_unpack("<8Q", block[64:]) if kind == 1 else ()):
            of.setdefault((ring, first + n), (head(words[0], version),) + words[1:])
        at += 64 + length

def rings(data, found):
    """Slots that have not been drained; a slot counts if its head is the same before and after."""
    version, = struct.unpack_from("<I", data, 8)
    first, stride, slots = struct.unpack_from("<QQI", data, 48)
    of = found.setdefault(process(data), (names(data), {}))[1]
    for ring in range(struct.unpack_from("<I", data, 136)[0]):
        at = first + ring * stride
        drained, = struct.unpack_from("<Q", data, at + (64 if version == 1 else 128))
        for slot in range(at + 4096, at + 4096 + 64 * slots, 64):
            words = struct.unpack_from("<8Q", data, slot)
            number = head(words[0], version) >> 24
            ahead = (number - drained + (1 << 39)) % (1 << 40) - (1 << 39)
            if words[0] & 3 and ahead >= 0 and struct.unpack_from("<Q", data, slot) == words[:1]:
                of.setdefault((ring, drained + ahead), (head(words[0], version),) + words[1:])

def note(words):
    return words[0] >> 12 & 1023 if words[0] >> 2 & 15 == 7 else None

def text(slots, ring, number):
    """The text of a note, which goes on in the slots behind it."""
    first = slots[ring, number]
    words, length = list(first[5:]), min(first[4] & 0xFFFF, 256)
    while len(words) * 8 < length and note(more := slots.get((ring, number := number + 1), (0,) * 8)) == 9:
        words += more[1:]
    return struct.pack(f"<{len(words)}Q", *words)[:length].decode(errors="replace")

def calls(functions, slots):
    ends = {(ring, w[2]): (w[3], w[4]) for (ring, _), w in slots.items() if note(w) == 2}
    scopes = {w[2]: text(slots, *at) for at, w in slots.items() if note(w) == 5}  # by id, on whatever ring
    for (ring, number), w in sorted(slots.items()):
        layout, end = w[0] >> 2 & 15, (w[2] & 0xFFFFFFFF, w[2] >> 32) if w[0] & 3 == 2 else (None, None)
        if note(w) == 7:
            yield {"mark": text(slots, ring, number), "ring": ring, "number": number, "begin": w[1]}
        if layout > 2:
            continue
        scope = None
        duration, code = ends.get((ring, number), end)
        words = [w[4], w[6], w[5], w[6]] + ([w[0] >> 8 & 15] if layout == 0 else []) + [w[7]]
        if layout == 2:
            more, batch = (slots.get((ring, number + n), (0,) * 8) for n in (1, 2))
            words = list(w[4:] + more[4:]) + list(batch[6:] if more[3] & 0xFFFF > 2 else ())
            scope = scopes.get(more[3] >> 32, f"#{more[3] >> 32}") if more[3] >> 32 else None
        yield {"function": functions[w[0] >> 12 & 1023], "ring": ring, "number": number, "begin": w[1], "duration": duration,
               "code": None if code is None else (code + (1 << 31)) % (1 << 32) - (1 << 31), "site": w[3],
               "nested": bool(w[0] >> 6 & 1), "scope": scope, "arguments": words}

found = {}
for path in sorted(sys.argv[1:], key=lambda path: not path.endswith(".acltrace")):  # traces first: they are older
    with open(path, "rb") as file:
        start = file.read(64)
        if len(start) < 64 and b"ACLTRACE".startswith(start[:8]):
            continue  # whoever made it was killed
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        magic, version = struct.unpack_from("<8sI", data)
        if version not in (1, 2) or magic not in (b"ACLTRACE", b"ACLSHIM\0"):
            sys.exit(f"{path}: not an aclshim file of version 1 or 2")
        (trace if magic == b"ACLTRACE" else rings)(data, found)
for functions, slots in found.values():
    for call in calls(functions, slots):
        print(json.dumps(call))
