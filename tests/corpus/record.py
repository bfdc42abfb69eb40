#!/usr/bin/env python3
"""record.py BUILT HOSTS RUNS: records the runs of the corpus anew. As root, in namespaces of its own:

    unshare --mount --pid --uts --fork --mount-proc python3 tests/corpus/record.py target target/tests/corpus-hosts /tmp/runs

BUILT is a built tree (`make build`: release/, sim/, c-examples/). Every run has the paths, host name and boot of no machine, and
its process and thread ids are moved beyond the largest that Linux gives out: no process of the reader's has them.
"""
import glob, os, re, shutil, struct, subprocess, sys, time

BUILT, HOSTS, RUNS = (os.path.abspath(path) for path in sys.argv[1:4])
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLACE = "/opt/aclshim-corpus"  # not there when the corpus is read
BEYOND = 5_000_000  # process and thread ids
YEAR = 365 * 86400 * 10**9  # all times are a year earlier: the clocks of no machine agree with a header's

EXAMPLES = ["async", "batch", "condition", "kv_offload", "linear", "pitched"]
DRAINED = {"ACLSHIM_END_WAIT": "60000"}
RING = {"ACLSHIM_DRAIN": "off", "ACLSHIM_RING_SIZE": "16K"}
VENDOR = {"LIBRARY": "vendor"}
MANY = {"ACLSHIM_AS": "Ascend310P3,Ascend950", "ACLSHIM_STACK": "findings"}
# name, program, arguments, settings
SCENES = [(name, name, "", DRAINED) for name in EXAMPLES] + [
    ("testing", "test_kv", "", DRAINED),
    ("threads", "keep_calls", "2 12", DRAINED),
    ("threads_more", "keep_calls", "2 14", DRAINED),
    ("rules", "check_calls", "", DRAINED),
    ("rules_ring", "check_calls", "", RING | MANY | {"ACLSHIM_RING_SIZE": "64K"}),
    ("rules_enforced", "check_one", "room 3 align 3 overlap 2", DRAINED | {"ACLSHIM_MODE": "enforce", "ACLSHIM_RULES": "ALIGN-64=off"}),
    ("rules_muted", "check_one", "room 3 align 3 overlap 2", DRAINED | {"ACLSHIM_MUTE": "ALIGN-64", "ACLSHIM_SOC": "Ascend310P3"}),
    ("rules_often", "check_one", "room 40", DRAINED),
    ("calls_json", "keep_calls", "1 5", DRAINED | {"ACLSHIM_CALLS": "json"}),
    ("calls_off", "keep_calls", "1 5", DRAINED | {"ACLSHIM_CALLS": "off"}),
    ("forms", "export_calls", "1 1", DRAINED),
    ("forms_killed", "export_calls", "1 1 die", RING),
    ("killed", "keep_calls", "2 6 kill", RING),
    ("killed_drained", "keep_calls", "2 6 wait", DRAINED | {"KILLED_AFTER": "1.5"}),
    ("lost", "record_hammer", "2 80", RING | VENDOR | {"ACLSHIM_RING_SIZE": "4K"}),
    ("flight", "record_hammer", "2 80", RING | VENDOR | {"ACLSHIM_RING_SIZE": "4K", "ACLSHIM_RECORD": "flight"}),
    ("flight_drained", "keep_calls", "1 8", DRAINED | {"ACLSHIM_RECORD": "flight"}),
    ("abandoned_throw", "record_left", "throw 3", DRAINED | {"ASCENDCL_SIM_FAULT": "throw@aclrtMemcpy:2"}),
    ("abandoned_jump", "record_left", "jump 3", RING | {"ASCENDCL_SIM_FAULT": "longjmp@aclrtMemcpy:2"}),
    ("abandoned_frames", "guest_longjmp", "", DRAINED | {"ASCENDCL_SIM_FAULT": "longjmp@aclrtMemcpy:2,longjmp@aclrtMemcpy:5"}),
    ("nested", "check_nested", "", DRAINED | {"LIBRARY": "nests"}),
    ("nested_ring", "check_nested", "", RING | {"LIBRARY": "nests"}),
    ("batches", "record_batch", "", DRAINED | VENDOR),
    ("batch_items", "batch", "", DRAINED | {"ACLSHIM_BATCH_ITEMS": "1"}),
    ("injected", "inject_calls", "copy 3 fallback 3", DRAINED | {"ACLSHIM_INJECT": "aclrtMemcpy nth=2 return=507899; aclrtMemcpyBatch* nth=2 return=207000"}),
    ("marks", "marks_all", "names", DRAINED),
    ("scopes", "marks_all", "scopes", DRAINED),
    ("expectations", "test_scopes", "well", DRAINED),
    ("marks_full", "marks_all", "full", RING | {"ACLSHIM_RING_SIZE": "4K"}),
    ("marks_forked", "marks_all", "fork", DRAINED),
    ("marks_killed", "marks_all", "kill", RING),
    ("forks", "record_forks", "3 6", RING | VENDOR | {"ACLSHIM_RING_SIZE": "4K"}),
    ("ranked", "linear", "", DRAINED | {"RANK": "3", "ACLSHIM_FILE": "%e-%r-%p-%t"}),
]

# What a drain has written in full leaves a ring that says nothing more; some are enough.
DRAINED_RINGS_GO = {name for name, _, _, settings in SCENES if "ACLSHIM_DRAIN" not in settings} - {
    "linear", "threads", "calls_off", "killed_drained", "marks_forked", "nested"}

# A ring alone does not say how fast the counter runs, and then there are no times; to some it stays unknown.
WITHOUT_PACE = {name for name, _, _, settings in SCENES if "ACLSHIM_DRAIN" not in settings} | {"killed", "marks_killed"}


def build(source, *arguments, library=None):
    name = library or os.path.splitext(os.path.basename(source))[0]
    output = f"{HOSTS}/{name}/libascendcl.so" if library else f"{HOSTS}/{name}"
    os.makedirs(os.path.dirname(output), exist_ok=True)
    cpp = source.endswith(".cpp")
    shared = ["-shared", "-fPIC", "-Wl,-soname,libascendcl.so"] if library else ["-lascendcl"]
    subprocess.run(
        ["c++" if cpp else "cc", "-std=c++17" if cpp else "-std=gnu11", "-g", "-O1", "-Wl,--no-as-needed", "-o", output,
         f"{TESTS}/hosts/{source}", "-I", f"{TESTS}/../include", "-L", f"{BUILT}/sim", *shared, *arguments, "-ldl", "-lpthread"],
        check=True, cwd=HOSTS)


def hosts():
    os.makedirs(HOSTS, exist_ok=True)
    build("record_vendor.c", library="vendor")
    build("check_vendor.c", "-DNESTS", library="nests")
    for name in {program for _, program, _, _ in SCENES} - set(EXAMPLES) - {"test_kv"}:
        source = next(f for f in os.listdir(f"{TESTS}/hosts") if os.path.splitext(f)[0] == name and not f.endswith(".h"))
        build(source)


def stage():
    """The files of all runs, in a place that no reader has."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/opt"], check=True)
    os.makedirs(f"{PLACE}/bin")
    subprocess.run(["hostname", "corpus"], check=True)
    for name in EXAMPLES:
        shutil.copy(f"{BUILT}/c-examples/{name}", f"{PLACE}/bin")
    shutil.copy(f"{BUILT}/c-examples/testing/test_kv", f"{PLACE}/bin")
    shutil.copytree(f"{BUILT}/sim", f"{PLACE}/sim", symlinks=True)
    shutil.copy(f"{BUILT}/release/libaclshim.so", PLACE)
    for path in os.listdir(HOSTS):
        (shutil.copytree if os.path.isdir(f"{HOSTS}/{path}") else shutil.copy)(f"{HOSTS}/{path}", f"{PLACE}/bin/{path}")


def record(name, program, arguments, settings):
    run = f"{PLACE}/runs/{name}"
    os.makedirs(run)
    shutil.copytree(f"{TESTS}/../c-examples/testing/golden", f"{run}/golden")
    settings = dict(settings)
    killed_after = settings.pop("KILLED_AFTER", None)
    library = settings.pop("LIBRARY", None)
    folders = ([f"{PLACE}/bin/{library}"] if library else []) + ([] if library == "nests" else [f"{PLACE}/sim"])
    environment = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": f"{PLACE}/libaclshim.so", "LD_LIBRARY_PATH": ":".join(folders),
                   "ACLSHIM_DIR": f"{run}/out", "ACLSHIM_RING_DIR": run, "TZ": "UTC"} | settings
    child = subprocess.Popen([f"{PLACE}/bin/{program}", *arguments.split()], env=environment, cwd=run,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    if killed_after:
        time.sleep(float(killed_after))
        child.kill()
    print(f"{name}: ended with {child.wait()}")
    shutil.rmtree(f"{run}/golden")


def checksum(data, at):
    words = data[:at] + bytes(8) + data[at + 8:]
    words += bytes(-len(words) % 32)
    sums = [len(data) + n for n in range(4)]
    mix = lambda total, word: ((((total ^ word) << 29 | (total ^ word) >> 35) & (2**64 - 1)) * 0x9E3779B97F4A7C15) & (2**64 - 1)
    for i, (word,) in enumerate(struct.iter_unpack("<Q", words)):
        sums[i % 4] = mix(sums[i % 4], word)
    for other in sums[1:]:
        sums[0] = mix(sums[0], other)
    return sums[0]


def add(data, at, form, value):
    old, = struct.unpack_from(form, data, at)
    if old:
        struct.pack_into(form, data, at, old + value)


def ticks_hz():
    """Of this machine's counter, as a drained trace knows it."""
    trace, = glob.glob(f"{PLACE}/runs/killed_drained/out/*.acltrace")
    born_ticks, _, born, later_ticks, _, later = struct.unpack_from("<6Q", open(trace, "rb").read(), 64 + 88)
    return int(round((later_ticks - born_ticks) * 10**9 / (later - born), -7))


def header(data, at):
    """Of an unknown boot, with ids beyond all, a year earlier."""
    add(data, at + 16, "<I", BEYOND)
    struct.pack_into("<IQQ", data, at + 20, 0, 0, 1)
    for field in (40, 96, 120):
        add(data, at + field, "<Q", -YEAR)
    data[at + 2824:at + 2864] = bytes(40)
    struct.pack_into("<Q", data, at + 19584, 0)


def slots(data, at, count):
    for slot in range(at, at + 64 * count, 64):
        head, = struct.unpack_from("<Q", data, slot)
        if head >> 2 & 7 == 7 and head >> 10 & 63 == 0 and head & 3:
            add(data, slot + 16, "<Q", BEYOND)


def settle_ring(data):
    header(data, 0)
    first, stride, count = struct.unpack_from("<QQI", data, 48)
    for ring in range(struct.unpack_from("<I", data, 136)[0]):
        begin = first + ring * stride
        if begin + stride <= len(data):
            add(data, begin, "<I", BEYOND)
            slots(data, begin + 4096, count)


def settle_trace(data):
    length, = struct.unpack_from("<I", data, 12)
    add(data, 24, "<Q", -YEAR)
    header(data, 64)
    struct.pack_into("<Q", data, 40, checksum(bytes(data[:64 + length]), 40))
    at = 64 + length
    while at + 64 <= len(data):
        kind, = struct.unpack_from("<I", data, at + 4)
        payload, = struct.unpack_from("<I", data, at + 56)
        if at + 64 + payload > len(data):
            break
        add(data, at + 24, "<I", BEYOND)
        add(data, at + 40, "<Q", -YEAR)
        if kind == 1:
            slots(data, at + 64, payload // 64)
        if kind == 5:
            header(data, at + 64)
        struct.pack_into("<Q", data, at + 48, checksum(bytes(data[at:at + 64 + payload]), 48))
        at += 64 + payload


def settle_text(text):
    text = re.sub(r'"(pid|thread)":([1-9]\d*)', lambda m: f'"{m[1]}":{int(m[2]) + BEYOND}', text)
    return re.sub(r'"(\w+_ns)":(\d{19})\b', lambda m: f'"{m[1]}":{int(m[2]) - YEAR}', text)


def packed(data):
    """Pieces, each: how many zeros, how many other bytes (u32 each), and these. Headers and rings are mostly zeros."""
    made, at = bytearray(), 0
    while at < len(data):
        zeros = len(data) - at - len(data[at:].lstrip(b"\0"))
        end = data.find(bytes(32), at + zeros)
        end = len(data) if end < 0 else end
        made += struct.pack("<II", zeros, end - at - zeros) + data[at + zeros:end]
        at = end
    return made


def settle(run, hz):
    """Moves names and contents; a name holds process and birth."""
    paths = [path for path in glob.glob(f"{run}/**/*", recursive=True) + glob.glob(f"{run}/**/.*", recursive=True) if os.path.isfile(path)]
    of_ring = lambda m: f"-{int(m[1]) + BEYOND}-{int(m[2], 16) - YEAR:x}"
    of_trace = lambda m: f"-{int(m[1]) + BEYOND}-{int(m[2]) - 1}"
    rename = lambda text: re.sub(r"-(\d+)-(\d{4})(?=\d{4}T)", of_trace, re.sub(r"-(\d+)-([0-9a-f]{16})\b", of_ring, text))
    for path in paths:
        data = bytearray(open(path, "rb").read())
        os.remove(path)
        kind = path.rsplit(".", 1)[-1]
        if kind == "ring" and os.path.basename(run) in DRAINED_RINGS_GO:
            continue
        if kind == "ring":
            settle_ring(data)
            if os.path.basename(run) not in WITHOUT_PACE:
                struct.pack_into("<Q", data, 80, hz)
        elif kind == "acltrace":
            settle_trace(data)
        elif kind == "jsonl":
            data = rename(settle_text(data.decode())).encode()
        else:
            continue
        folder, name = os.path.split(path)
        with open(f"{folder}/{rename(name)}", "wb") as file:
            file.write(data)


def damage():
    """Of `threads`: one byte of a block flipped, the end cut off, and a file that is nothing of ours."""
    whole, = glob.glob(f"{PLACE}/runs/threads/out/*.acltrace")
    data = bytearray(open(whole, "rb").read())
    for name in ("flipped", "cut", "foreign"):
        os.makedirs(f"{PLACE}/runs/damaged_{name}/out")
    place = lambda name: f"{PLACE}/runs/damaged_{name}/out/{os.path.basename(whole)}"
    open(place("cut"), "wb").write(data[:len(data) - 1000])
    open(place("foreign"), "wb").write(b"nothing of ours\n" * 8)
    data[len(data) * 3 // 4] ^= 0x40
    open(place("flipped"), "wb").write(data)


if __name__ == "__main__":
    hosts()
    stage()
    for scene in SCENES:
        record(*scene)
    hz = ticks_hz()
    for scene in SCENES:
        settle(f"{PLACE}/runs/{scene[0]}", hz)
    damage()
    for path in glob.glob(f"{PLACE}/runs/**/*.*", recursive=True):
        if path.endswith((".ring", ".acltrace")):
            with open(path, "rb") as whole, open(path + ".packed", "wb") as file:
                file.write(packed(whole.read()))
            os.remove(path)
    shutil.rmtree(RUNS, ignore_errors=True)
    shutil.copytree(f"{PLACE}/runs", RUNS)
