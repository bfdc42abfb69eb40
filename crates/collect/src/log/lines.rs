//! Every kind of line in the log. This is the schema: `docs/log-schema.md` is made from it.
//!
//! A key is always there; where there is nothing to say it is null. Keys may be added at a new
//! version, never renamed or removed.

use crate::log::line::{Address, lines};

lines! {
    /// The first line of a process.
    info "started" Started<'a> {
        /// The version of aclshim.
        version: &'a str,
        /// The executable.
        executable: &'a [u8],
        /// The host's name.
        host: &'a [u8],
        /// The rank in a distributed job; 0 where no launcher gave one.
        rank: &'a [u8],
        /// When the process was first seen, in nanoseconds since 1970.
        born_ns: u64,
        /// Where the records are drained: `inside` the process or `outside`.
        drain: &'a str,
        /// The settings in force.
        settings: &'a str,
    }

    /// The last line of a process that ended in order.
    info "stopped" Stopped<'a> {
        /// Why it is the last.
        reason: &'a str,
        /// Outermost calls recorded.
        calls: u64,
        /// Of these, calls that did not return 0.
        errors: u64,
        /// Bytes of calls that returned 0.
        bytes: u64,
        /// Calls that were forwarded and not recorded.
        not_recorded: u64,
        /// Slots that were overwritten before they could be written.
        overwritten: u64,
        /// Marks, scopes and names of the program's that were not recorded.
        notes_lost: u64,
    }

    /// A call that did not return 0. `time_ns` is when it began.
    warn "failed_call" FailedCall<'a> {
        /// The function.
        function: &'a str,
        /// What it returned.
        code: i64,
        /// The name of that code.
        code_name: Option<&'a str>,
        /// The thread's id.
        thread: u64,
        /// The call's number on its thread.
        number: u64,
        /// How long it took.
        duration_ns: Option<u64>,
        /// The direction of the copy, in the vendor's words.
        direction: Option<&'a str>,
        /// How many bytes were asked for.
        bytes: Option<u64>,
        /// The room at the destination (`destMax`).
        dst_max: Option<u64>,
        /// The destination.
        dst: Option<Address>,
        /// The source.
        src: Option<Address>,
        /// The stream.
        stream: Option<Address>,
        /// Where the call came from.
        site: Option<Address>,
        /// Whether another recorded call made it.
        nested: bool,
        /// Whether the failure was asked for by a setting or a test.
        injected: bool,
        /// The scope of the program's that was open, by its name.
        scope: Option<&'a str>,
        /// What the program calls the stream.
        stream_name: Option<&'a str>,
        /// What it means.
        message: &'a str,
    }

    /// Any call, where every call is asked for. `time_ns` is when it began.
    info "call" Call<'a> {
        /// The function.
        function: &'a str,
        /// `returned`; `left` by an exception, a jump or the end of its thread; or still `open`.
        state: &'a str,
        /// What it returned.
        code: Option<i64>,
        /// The thread's id.
        thread: u64,
        /// The call's number on its thread.
        number: u64,
        /// How long it took.
        duration_ns: Option<u64>,
        /// The direction of the copy, in the vendor's words.
        direction: Option<&'a str>,
        /// How many bytes were asked for.
        bytes: Option<u64>,
        /// The room at the destination (`destMax`).
        dst_max: Option<u64>,
        /// The destination.
        dst: Option<Address>,
        /// The source.
        src: Option<Address>,
        /// The stream.
        stream: Option<Address>,
        /// Where the call came from.
        site: Option<Address>,
        /// Whether another recorded call made it.
        nested: bool,
        /// Whether its result was asked for by a setting or a test.
        injected: bool,
        /// The scope of the program's that was open, by its name.
        scope: Option<&'a str>,
        /// What the program calls the stream.
        stream_name: Option<&'a str>,
    }

    /// A mark that the program left (`aclshim_mark`), at `time_ns`.
    info "mark" Mark<'a> {
        /// The thread's id.
        thread: u64,
        /// What it says.
        message: &'a str,
    }

    /// A scope of the program's begins (`aclshim_scope_begin`).
    info "scope" Scope<'a> {
        /// Its number in this process.
        id: u64,
        /// The number of the scope that it lies in; null if there is none.
        parent: Option<u64>,
        /// What it is called.
        name: &'a str,
        /// The thread's id.
        thread: u64,
    }

    /// A scope ends (`aclshim_scope_end`).
    info "scope_end" ScopeEnd<'a> {
        /// Its number in this process.
        id: u64,
        /// What it is called; `#` and its number if its beginning is not known.
        name: &'a str,
        /// How long it was open, if its beginning is known.
        duration_ns: Option<u64>,
        /// How many expectations have failed in it.
        failures: u64,
        /// The thread's id.
        thread: u64,
    }

    /// The program calls a stream or a buffer so from now on (`aclshim_name_stream`, `aclshim_name_buffer`).
    info "name" Name<'a> {
        /// `stream` or `buffer`.
        kind: &'a str,
        /// The stream's handle, or the first address.
        address: Address,
        /// How many bytes; null for a stream.
        bytes: Option<u64>,
        /// What it is called; null if the name was taken back.
        name: Option<&'a str>,
        /// The thread's id.
        thread: u64,
    }

    /// A call that breaks a rule. `time_ns` is when the call began.
    warn "finding" Finding<'a> {
        /// The rule's id.
        rule: &'a str,
        /// `error`, `violation`, `perf` or `portability`.
        severity: &'a str,
        /// What is done about it: `log`, `warn`, `refuse` or `abort`.
        action: &'a str,
        /// The function.
        function: &'a str,
        /// The argument.
        argument: Option<&'a str>,
        /// The item of a batch, or the entry of an array.
        index: Option<u64>,
        /// The code that the vendor returns for it; null if it accepts the call.
        code: Option<i64>,
        /// What the call returned; null while it has not.
        returned: Option<i64>,
        /// Whether the call was refused by the rule and not forwarded.
        refused: bool,
        /// Another product that it is about (`ACLSHIM_AS`).
        on: Option<&'a str>,
        /// The thread's id.
        thread: u64,
        /// The call's number on its thread.
        number: u64,
        /// Where the call came from.
        site: Option<Address>,
        /// The file that this lies in.
        module: Option<&'a str>,
        /// From where that file begins in memory.
        offset: Option<u64>,
        /// Where that came from, from the inside out (`ACLSHIM_STACK`).
        stack: Option<&'a str>,
        /// Where the vendor states the rule.
        source: &'a str,
        /// The products that the rule holds for, and the forms where these matter.
        products: &'a str,
        /// The releases of CANN that the rule holds for.
        versions: &'a str,
        /// What to do.
        fix: &'a str,
        /// What is wrong, with all values.
        message: &'a str,
    }

    /// How often a rule was broken; at the end of a process, for each that was.
    info "findings" Findings<'a> {
        /// The rule's id.
        rule: &'a str,
        /// How often it was broken.
        found: u64,
        /// How many of these were told one by one.
        told: u64,
        /// How many call sites' were not told because they are known or muted.
        known: u64,
    }

    /// The vendor did something else with a call than the rulebook says: one of them is wrong.
    warn "drift" Drift<'a> {
        /// The function.
        function: &'a str,
        /// The rule that the vendor was expected to refuse the call for; null if it was expected to accept it.
        rule: Option<&'a str>,
        /// The code that was expected.
        expected: i64,
        /// The code that came.
        returned: i64,
        /// The thread's id.
        thread: u64,
        /// The call's number on its thread.
        number: u64,
        /// The arguments as words, in order.
        arguments: &'a str,
        /// The product, as the rulebook knows it.
        product: Option<&'a str>,
        /// The release of CANN.
        cann: &'a str,
        /// What it means.
        message: &'a str,
    }

    /// Calls that were forwarded and not recorded.
    warn "lost" Lost<'a> {
        /// How many.
        calls: u64,
        /// The ring; null where there was none.
        ring: Option<u64>,
        /// The thread's id, where it is known.
        thread: Option<u64>,
        /// Not before this time.
        from_ns: Option<u64>,
        /// Not after this time.
        to_ns: Option<u64>,
        /// Why.
        reason: &'a str,
        /// How many marks, scopes and names of the program's are missing as well.
        notes: u64,
    }

    /// Records that were overwritten by newer ones before they could be written.
    warn "overwritten" Overwritten {
        /// How many slots.
        slots: u64,
        /// The ring.
        ring: u64,
        /// The thread's id, where it is known.
        thread: Option<u64>,
        /// The number of the first slot.
        first: u64,
        /// Not before this time.
        from_ns: Option<u64>,
        /// Not after this time.
        to_ns: Option<u64>,
    }

    /// Writing failed and works again, or a file could not be made. Records wait in memory meanwhile;
    /// `lost` and `overwritten` say what it cost.
    error "write_failed" WriteFailed<'a> {
        /// What was written, or where.
        file: &'a [u8],
        /// What was being done.
        step: &'a str,
        /// The system's number for the first failure.
        errno: i64,
        /// How often it failed.
        count: u64,
        /// The first failure in words.
        message: &'a str,
    }

    /// A file that was removed so that the directory stays within `ACLSHIM_BUDGET`.
    warn "removed" Removed<'a> {
        /// The file; null for the rest of a long list.
        file: Option<&'a [u8]>,
        /// How many files.
        files: u64,
        /// How many bytes.
        bytes: u64,
    }

    /// A file that was given up for a new one before it was full.
    warn "replaced" Replaced<'a> {
        /// The file.
        file: &'a [u8],
        /// Why.
        reason: &'a str,
    }

    /// Counts of one function, or of all, since the process began.
    info "statistics" Statistics<'a> {
        /// The function; null for all together.
        function: Option<&'a str>,
        /// Outermost calls recorded.
        calls: u64,
        /// Calls inside another.
        nested: u64,
        /// Outermost calls that did not return 0.
        errors: u64,
        /// Bytes of calls that returned 0.
        bytes: u64,
        /// Outermost calls under way.
        in_flight: u64,
        /// Calls that were forwarded and not recorded.
        not_recorded: u64,
        /// Slots that were overwritten before they could be written.
        overwritten: u64,
        /// Half of the calls took no longer.
        p50_ns: Option<u64>,
        /// 99 of 100 calls took no longer.
        p99_ns: Option<u64>,
    }

    /// What the shim has to say of itself.
    info "note" Note<'a> {
        /// What it is about, in a word or two that stay the same.
        topic: &'a str,
        /// What it has to say.
        message: &'a str,
    }

    /// What the shim has to say of itself and somebody should look at.
    warn "warning" Warning<'a> {
        /// What it is about, in a word or two that stay the same.
        topic: &'a str,
        /// What it has to say.
        message: &'a str,
    }

    /// Records that a process left behind were drained by another.
    info "adopted" Adopted<'a> {
        /// The shared-memory file that they were in.
        ring_file: &'a [u8],
        /// How many slots there were.
        slots: u64,
        /// Calls under way when the process ended.
        in_flight: u64,
        /// Whether the process that left them is known to be gone.
        gone: bool,
    }
}
