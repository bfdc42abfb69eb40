//! The settings table: one row a setting. The macro `settings!` (`define.rs`) says how a row is written.

use super::value::{Choice, Given, PATH, SettingValue, WorkingDirectory};
use super::{Setting, Value};
use crate::text::Text;
use core::fmt;

/// Room for the actions of rules, with a NUL.
pub const RULES_ROOM: usize = 2048;

settings! {
    /// The settings file.
    config: CONFIG = path("none", ""),
    "a settings file (aclshim.toml); a variable that is set comes before what the file says";

    /// What the shim does with a call.
    mode: MODE = choice(Mode {
        /// Every call is forwarded and recorded.
        Observe = "observe",
        /// A call that the vendor would refuse by its arguments returns the code of the vendor and is not forwarded.
        Enforce = "enforce",
        /// Calls are only forwarded.
        Off = "off",
    }),
    "observe forwards every call and records it; enforce returns the vendor's code for a call that the vendor \
     would refuse by its arguments, without forwarding it; off forwards only";

    /// Action for each rule, as a list of `RULE=ACTION`.
    rules: RULES = text(RULES_ROOM, ""),
    "what is done about a rule, as RULE=ACTION with commas between: off, log, warn (the log, and standard error \
     where ACLSHIM_STDERR asks for it), refuse (return the vendor's code and do not forward the call) or abort (end \
     the program)";

    /// The product, where the real library is not asked for it.
    soc: SOC = text(64, ""),
    "the product, as aclrtGetSocName names it (Ascend910B1); not set, the real library is asked after the first copy";

    /// Where the program runs.
    form: FORM = choice(FormSetting {
        /// The real library is asked after the first copy.
        Auto = "auto",
        /// On a host beside the device (end point).
        Ep = "ep",
        /// On the processor of the device (root complex).
        Rc = "rc",
    }),
    "where the program runs: ep on a host beside the device, rc on the device's own processor; auto asks the real \
     library after the first copy";

    /// The CANN release, where the real library is not asked for it.
    cann: CANN = text(64, ""),
    "the CANN release (9.1.0); not set, the real library is asked after the first copy";

    /// Other products that the run is checked for.
    as_products: AS = text(256, ""),
    "other products to judge the run for, with commas between (Ascend310P3,Ascend950): what would be refused there";

    /// Findings that are counted but not reported.
    mute: MUTE = text(1024, ""),
    "findings that are counted but not told, with commas between: RULE, RULE@MODULE or RULE@MODULE+0xOFFSET; * is \
     every rule";

    /// File of findings that are known already.
    baseline: BASELINE = path("none", ""),
    "a file of known findings, as `aclshim findings --baseline` prints them: those of the same rule, function and \
     call site are counted but not told";

    /// Faults that are put into calls on purpose.
    inject: INJECT = text(2048, ""),
    "faults that are put into calls on purpose, with semicolons between: which calls, when, and what \
     (`aclrtMemcpyBatchAsync nth=2 return=207000`); docs/injecting.md has them all";

    /// Restrictions for a kind of use.
    preset: PRESET = choice(Preset {
        /// No restriction.
        None = "none",
        /// Injections are refused.
        Production = "production",
    }),
    "production refuses injections, wherever they come from";

    /// Which calls are recorded with more of their stack.
    stack: STACK = choice(Stack {
        /// No call.
        Off = "off",
        /// A call that breaks a rule.
        Findings = "findings",
    }),
    "findings records some return addresses more with a call that breaks a rule: under a framework every copy comes \
     from the same place";

    /// What is also written to the standard error of the program.
    stderr: STDERR = choice(Stderr {
        /// That calls are not recorded, where neither a ring nor the log can say so.
        Losses = "losses",
        /// Nothing.
        Off = "off",
        /// Findings.
        Findings = "findings",
        /// Findings and failed calls.
        All = "all",
    }),
    "what is also written to the program's standard error as text: losses that calls are not recorded, where \
     neither a ring nor the log can say so, off nothing, findings what breaks a rule, all failed calls too; with \
     the last two the descriptor is kept open";

    /// Directory of logs and traces, and the name under which the counts of a process are found.
    dir: DIR = path("aclshim-out in the working directory at load", "aclshim-out"),
    "where logs and traces go, and the path that `aclshim stat` is given";

    /// The real library.
    real: REAL = library("found by itself"),
    "path of the real library, where it cannot be found by itself";

    /// Directory of the ring files.
    ring_dir: RING_DIR = path("/dev/shm", "/dev/shm"),
    "a directory in memory (tmpfs) for the file that each process keeps its records in until they are drained";

    /// Bytes of the ring of a thread.
    ring_size: RING_SIZE = bytes(64 << 10, 4 << 10, 64 << 20),
    "shared memory for each thread that copies, at first, 64 bytes a slot; taken down to a power of two";

    /// Bytes up to which the ring of a thread grows.
    ring_limit: RING_LIMIT = bytes(4 << 20, 4 << 10, 64 << 20),
    "shared memory up to which the ring of a thread grows while its records cannot be written as quickly as they come; \
     taken down to a power of two. A ring does not grow if this is not more than ACLSHIM_RING_SIZE, if \
     ACLSHIM_RECORD is flight, or if the process has a limit on file size or address space (ulimit -f, -v)";

    /// Bytes up to which all rings of a process grow.
    ring_total: RING_TOTAL = bytes(64 << 20, 4 << 10, 1 << 40),
    "shared memory up to which the rings of a process grow together; they also leave a quarter of the file system \
     of ACLSHIM_RING_DIR free, 64M at most";

    /// What happens to a call when the ring of its thread is full.
    record: RECORD = choice(Record {
        /// It is not recorded, and counted.
        Audit = "audit",
        /// It overwrites the oldest record, which is counted.
        Flight = "flight",
        /// The caller waits a bounded time, then as `Audit`.
        Lossless = "lossless",
        /// No call is recorded.
        Off = "off",
    }),
    "what becomes of a call when its thread's ring is full: audit does not record it and counts it; flight \
     overwrites the oldest record and counts that; lossless makes the caller wait, 100 ms at most, and then does as \
     audit; off records nothing";

    /// Which process drains the rings.
    drain: DRAIN = choice(Drain {
        /// As `Inside`.
        Auto = "auto",
        /// A thread in the program, started at its first copy.
        Inside = "inside",
        /// Another process.
        Outside = "outside",
        /// None: records stay in the ring.
        Off = "off",
    }),
    "who writes the records to files: auto and inside start one thread in the program at its first copy; with \
     outside another process does it (`aclshim collect`); off leaves them in the ring";

    /// Milliseconds that the end of the program waits for the drain thread, at most.
    end_wait: END_WAIT = count(200, 0, 600_000),
    "how many milliseconds a program whose records are drained inside waits at its end, at most, for the last of \
     them to be written; what is not written by then stays in the ring";

    /// Which files every call is written to.
    calls: CALLS = choice(Calls {
        /// The binary trace.
        Trace = "trace",
        /// The binary trace and the JSON log.
        Json = "json",
        /// None; the log has failed calls only.
        Off = "off",
    }),
    "where every call goes: trace is the binary trace; json is the JSON log as well; off writes neither, and the \
     log tells of failed calls only";

    /// Items of a batch that are recorded one by one, at most.
    batch_items: BATCH_ITEMS = count(64, 0, 4096),
    "how many items of a batch are recorded one by one, as far as a quarter of the ring goes; the summary of all \
     of them always is";

    /// Pattern of the names of traces and logs.
    file: FILE = pattern(128, "aclshim-%p-%t"),
    "the names of traces and logs without their ending: %p process, %h host, %e executable, %t time of birth, \
     %r rank (RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID or RANK_ID)";

    /// Bytes at which the next segment of a trace or log begins.
    segment: SEGMENT = bytes(64 << 20, 1 << 20, 1 << 40),
    "the size at which a trace or log is closed and the next one begun";

    /// Bytes that all traces and logs in the directory may take.
    budget: BUDGET = bytes(1 << 30, 4 << 20, 1 << 50),
    "the bytes that all traces and logs in the directory may take together; beyond that the oldest are removed, \
     and the log says so";

    /// Whether objects that were opened with RTLD_DEEPBIND are redirected to the shim.
    deepbind: DEEPBIND = choice(Deepbind {
        /// They are redirected.
        Fix = "fix",
        /// They bind past the shim.
        Off = "off",
    }),
    "fix redirects objects that were opened with RTLD_DEEPBIND, and so bind past every preload, to the \
     shim; off leaves them alone";

    /// File that each scope of a test program appends its result to.
    results: RESULTS = path("none", ""),
    "a file that each scope of a test program (`aclshim.h`) appends one line of JSON to when it ends: what it saw, \
     and which expectations were not met; `aclshim test` reads it";

    /// What `aclshim_expect_golden` does.
    golden: GOLDEN = choice(Golden {
        /// Compares the calls of a scope with those in its file.
        Check = "check",
        /// Writes the file.
        Update = "update",
    }),
    "what aclshim_expect_golden does: check compares the calls of a scope with those that its file holds; update \
     writes the file";
}
