/*
 * aclshim for C and C++ test programs: what did this piece of code copy, and was it right?
 *
 *     aclshim_scope scope = aclshim_scope_begin("prefill", ACLSHIM_THIS_THREAD);
 *     aclshim_expect_calls(scope, "aclrtMemcpyAsync kind=H2D size=4096", 2, 2);
 *     aclshim_expect_clean(scope, ACLSHIM_VIOLATION);
 *     prefill();
 *     assert(aclshim_scope_end(scope) == 0);
 *
 * The same program runs with and without the shim: nothing has to be linked. Without the shim, or with
 * ACLSHIM_MODE=off, aclshim_active() says 0, and so does every other function here: nothing is watched, and nothing is
 * objected to. A program that must not pass unwatched asks aclshim_active().
 *
 * (One kind of program has to link it: one that is built without position-independent code,
 * -no-pie -fno-pic. Its linker settles the weak symbol for good, as "not there", unless it finds the
 * shim: then it links -laclshim before -lascendcl.)
 *
 * WHO MAY CALL. Every function may be called from any thread at any time, also from signal handlers,
 * constructors, destructors and exit handlers. A handler that has interrupted the harness itself on its
 * own thread (only one for SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS or SIGABRT can) gets
 * ACLSHIM_BUSY; and if it then leaves by a jump, so does everybody else, the first after five seconds of waiting.
 * A scope of one thread is that thread's: others get ACLSHIM_THREAD. The child of a fork
 * begins without scopes, names, failures and the injections of its parent's scopes. errno is kept.
 *
 * WHAT IS RETURNED. 0 or a number, or an enum aclshim_error, all of which are negative. An expectation or an
 * injection that is refused, because it makes no sense (a name mistyped, more at least than at most), finds no memory or
 * is not allowed, is also an expectation that is not met: the end of the scope counts it. Only what is said of a scope
 * that is not there, or is another thread's, or when nobody can listen (ACLSHIM_NO_SCOPE, ACLSHIM_THREAD, ACLSHIM_BUSY),
 * is known to whoever looks at the answer alone.
 *
 * WHAT IS KEPT. Texts are copied: the caller's need not outlive the call. The names of scopes and marks are cut
 * after 256 bytes. Wherever a selector or the name of a scope is missing (NULL), it is as if it were empty.
 *
 * WHICH CALLS. Where a text says which calls are meant, a selector, it holds words with blanks between,
 * all of which must hold; none means every call:
 *     aclrtMemcpyAsync  aclrtMemcpy*  aclrtMemcpy,aclrtMemcpyAsync    functions
 *     kind=HOST_TO_DEVICE  kind=H2D  kind=1                            what was passed as kind
 *     direction=h2d  d2h  d2d  h2h                                     also of a batch, by its attributes
 *     size=4096  size=64..4K  size=1M..  size=..63                     bytes that the call moves
 *     code=0  code=107000  code=ACL_ERROR_RT_PARAM_INVALID  code=failed
 *     stream=NAME  stream=default  stream=none  stream=0xADDRESS
 *     dst=NAME  src=NAME                                               see aclshim_name_buffer
 *     site=MODULE  site=MODULE+0xOFFSET                                the file that the call came from
 * Only calls of the program count, not those that the vendor's library makes to itself meanwhile.
 *
 * Made by `make header` from src/harness.rs and cbindgen.toml; do not edit.
 */
#ifndef ACLSHIM_H
#define ACLSHIM_H

#include <stddef.h>
#include <stdint.h>

/*
 What a function returns that could not do what it was asked for. All are negative.
 */
enum aclshim_error {
  /*
   An argument is NULL that must not be, or out of range.
   */
  ACLSHIM_INVALID = -1,
  /*
   There is no such scope: it was never begun, it has ended, or it was begun before a fork.
   */
  ACLSHIM_NO_SCOPE = -2,
  /*
   The caller's room is too small. It was filled as far as it goes.
   */
  ACLSHIM_ROOM = -3,
  /*
   A text cannot be read: a selector, an injection, the name of a rule. Standard error says what is wrong with it.
   */
  ACLSHIM_NONSENSE = -4,
  /*
   Called from a signal handler that has interrupted the harness itself, or after five seconds in which another
   thread did not come out of it: such a handler has left it by a jump.
   */
  ACLSHIM_BUSY = -5,
  /*
   Injection under the production preset.
   */
  ACLSHIM_REFUSED = -7,
  /*
   There is no memory left for it, or no room.
   */
  ACLSHIM_MEMORY = -8,
  /*
   Another scope that was begun inside this one is still open.
   */
  ACLSHIM_ORDER = -9,
  /*
   The scope is another thread's.
   */
  ACLSHIM_THREAD = -10,
};

/*
 Whose calls a scope sees.
 */
enum aclshim_reach {
  /*
   Those of the thread that begins it.
   */
  ACLSHIM_THIS_THREAD = 0,
  /*
   Those of all threads.
   */
  ACLSHIM_WHOLE_PROCESS = 1,
};

/*
 How bad a finding is, rising.
 */
enum aclshim_severity {
  /*
   Would be refused on another product or release.
   */
  ACLSHIM_PORTABILITY = 0,
  /*
   Correct, but slow.
   */
  ACLSHIM_PERF = 1,
  /*
   Documented, but not enforced by this runtime.
   */
  ACLSHIM_VIOLATION = 2,
  /*
   The vendor refuses the call.
   */
  ACLSHIM_ERROR = 3,
};

/*
 Which way a call moves bytes, as the caller says it: by its kind, or by the attributes of a batch.
 */
enum aclshim_direction {
  /*
   It does not say (`ACL_MEMCPY_DEFAULT`), has no kind, or the items of a batch go different ways.
   */
  ACLSHIM_UNKNOWN = 0,
  /*
   Host to host.
   */
  ACLSHIM_HOST_TO_HOST = 1,
  /*
   Host to device.
   */
  ACLSHIM_HOST_TO_DEVICE = 2,
  /*
   Device to host.
   */
  ACLSHIM_DEVICE_TO_HOST = 3,
  /*
   Device to device.
   */
  ACLSHIM_DEVICE_TO_DEVICE = 4,
};

/*
 What became of a call.
 */
enum aclshim_state {
  /*
   It has returned `code`.
   */
  ACLSHIM_DONE = 0,
  /*
   It has not returned yet.
   */
  ACLSHIM_UNDER_WAY = 1,
  /*
   It never will: an exception, a longjmp or the end of its thread has left it.
   */
  ACLSHIM_LEFT = 2,
};

/*
 What else is to be said of a call; bits.
 */
enum aclshim_flag {
  /*
   An injection has changed its code or its time.
   */
  ACLSHIM_INJECTED = 1,
  /*
   It was not forwarded: a rule is set to refuse it.
   */
  ACLSHIM_WAS_REFUSED = 2,
};

/*
 A call. What a function has no argument for is 0 or NULL.
 */
struct aclshim_call {
  /*
   The vendor's name of the function; valid for ever.
   */
  const char *function;
  /*
   The destination as it was passed, or NULL for a batch: see `aclshim_items`.
   */
  const void *dst;
  /*
   The source.
   */
  const void *src;
  /*
   The room at the destination.
   */
  uint64_t dst_max;
  /*
   How much is to be copied or set: bytes, or words for the functions that set words.
   */
  uint64_t count;
  /*
   How many bytes the call moves or sets; of a batch, once the vendor has accepted it.
   */
  uint64_t bytes;
  /*
   The items of a batch, else 0.
   */
  uint64_t items;
  /*
   Bytes in a row of a two-dimensional copy.
   */
  uint64_t width;
  /*
   Rows of a two-dimensional copy.
   */
  uint64_t height;
  /*
   From row to row at the destination.
   */
  uint64_t dst_pitch;
  /*
   From row to row at the source.
   */
  uint64_t src_pitch;
  /*
   The kind as it was passed, or -1 where the function has none.
   */
  int32_t kind;
  /*
   An `aclshim_direction`.
   */
  int32_t direction;
  /*
   The stream; NULL is the default one.
   */
  const void *stream;
  /*
   1 if the function has a stream, else 0.
   */
  int32_t has_stream;
  /*
   What it returned to the program; 0 while it is under way.
   */
  int32_t code;
  /*
   An `aclshim_state`.
   */
  int32_t state;
  /*
   Bits of `aclshim_flag`.
   */
  int32_t flags;
  /*
   How long it took, in nanoseconds; 0 while it is under way.
   */
  uint64_t duration_ns;
  /*
   The thread that called, by the number that the system gives it (`gettid`).
   */
  uint64_t thread;
  /*
   Its place in the scope: 0, 1, ... as the calls began.
   */
  uint64_t order;
  /*
   Where in the program the call returns to.
   */
  const void *site;
  /*
   How many findings there are about it.
   */
  uint64_t findings;
};

/*
 An item of a batch.
 */
struct aclshim_item {
  /*
   The destination.
   */
  const void *dst;
  /*
   The source.
   */
  const void *src;
  /*
   The room at the destination.
   */
  uint64_t dst_max;
  /*
   How many bytes.
   */
  uint64_t size;
};

/*
 Something that is wrong with a call.
 */
struct aclshim_finding {
  /*
   The id of the rule, `BATCH-INDEX-ORDER`; valid for ever.
   */
  const char *rule;
  /*
   The function; valid for ever.
   */
  const char *function;
  /*
   The vendor's name of the argument that it is about; valid for ever.
   */
  const char *argument;
  /*
   What is wrong, in one sentence with the values; valid until the scope ends.
   */
  const char *message;
  /*
   What to do about it; valid for ever.
   */
  const char *fix;
  /*
   An `aclshim_severity`.
   */
  int32_t severity;
  /*
   What the vendor returns for it, or 0.
   */
  int32_t code;
  /*
   Which item of a batch or entry of an array, or -1.
   */
  int64_t index;
  /*
   What stands in the arrays there: the entry, and what it is measured against.
   */
  uint64_t values[2];
  /*
   The call, by its place in the scope.
   */
  uint64_t call;
};

/*
 A scope: more than 0. 0 where no shim is loaded; an `aclshim_error` if less.
 */
typedef int64_t aclshim_scope;

/*
 What the shim offers to the program that it is loaded into, found through the weak symbol
 `aclshim_harness`. Members are only ever added at the end; `size` tells how many there are.
 Programs call the inline functions below, which know what to do where a member is missing.
 */
struct aclshim_harness {
  /*
   Size of this structure in bytes, as the loaded shim knows it.
   */
  uint32_t size;
  /*
   Version of the interface: 1.
   */
  uint32_t version;
  /*
   See `aclshim_active`.
   */
  int (*active)(void);
  /*
   See `aclshim_scope_begin`.
   */
  aclshim_scope (*scope_begin)(const char *name, int reach);
  /*
   See `aclshim_scope_end`.
   */
  int64_t (*scope_end)(aclshim_scope scope);
  /*
   See `aclshim_count`.
   */
  int64_t (*count)(aclshim_scope scope, const char *selector);
  /*
   See `aclshim_bytes`.
   */
  int64_t (*bytes)(aclshim_scope scope, const char *selector);
  /*
   See `aclshim_calls`; `size` is that of the caller's structure.
   */
  int64_t (*calls)(aclshim_scope scope,
                   const char *selector,
                   struct aclshim_call *calls,
                   size_t size,
                   size_t room);
  /*
   See `aclshim_items`; `size` is that of the caller's structure.
   */
  int64_t (*items)(aclshim_scope scope,
                   uint64_t order,
                   struct aclshim_item *items,
                   size_t size,
                   size_t room);
  /*
   See `aclshim_findings`; `size` is that of the caller's structure.
   */
  int64_t (*findings)(aclshim_scope scope,
                      const char *rule,
                      struct aclshim_finding *findings,
                      size_t size,
                      size_t room);
  /*
   See `aclshim_expect_calls`.
   */
  int64_t (*expect_calls)(aclshim_scope scope,
                          const char *selector,
                          uint64_t at_least,
                          uint64_t at_most);
  /*
   See `aclshim_expect_bytes`.
   */
  int64_t (*expect_bytes)(aclshim_scope scope,
                          const char *selector,
                          uint64_t at_least,
                          uint64_t at_most);
  /*
   See `aclshim_expect_order`.
   */
  int64_t (*expect_order)(aclshim_scope scope, const void *stream, const char *selectors);
  /*
   See `aclshim_expect_finding`.
   */
  int64_t (*expect_finding)(aclshim_scope scope, const char *rule, uint64_t count);
  /*
   See `aclshim_expect_clean`.
   */
  int64_t (*expect_clean)(aclshim_scope scope, int severity);
  /*
   See `aclshim_expect_golden`.
   */
  int64_t (*expect_golden)(aclshim_scope scope, const char *path);
  /*
   See `aclshim_inject`.
   */
  int64_t (*inject)(aclshim_scope scope, const char *injections);
  /*
   See `aclshim_injected`.
   */
  int64_t (*injected)(aclshim_scope scope);
  /*
   See `aclshim_mark`.
   */
  int64_t (*mark)(const char *text);
  /*
   See `aclshim_name_stream`.
   */
  int64_t (*name_stream)(const void *stream, const char *name);
  /*
   See `aclshim_name_buffer`.
   */
  int64_t (*name_buffer)(const void *begin, size_t size, const char *name);
  /*
   See `aclshim_failures`.
   */
  int64_t (*failures)(void);
  /*
   See `aclshim_fail_exit`.
   */
  int64_t (*fail_exit)(int status);
};

#ifdef __cplusplus
extern "C" {
#endif

/* The shim's table where one is loaded, else its address is NULL. */
extern const struct aclshim_harness aclshim_harness __attribute__((weak));

/* Whether the loaded shim has this member: an older one has fewer. */
#define ACLSHIM_HAS(member)                                                                              \
    (&aclshim_harness && offsetof(struct aclshim_harness, member) < aclshim_harness.size &&             \
     aclshim_harness.member)

/*
 * Returns 1 if the shim is loaded and sees this process's copy calls, else 0.
 */
static inline int aclshim_active(void)
{
    return ACLSHIM_HAS(active) ? aclshim_harness.active() : 0;
}

/*
 * Begins a scope: from here to its end the calls of this thread, or of all threads, are kept in memory, to be counted,
 * looked at and compared with what is expected. Each is also judged by all rules: the arrays of a batch before it is
 * forwarded, everything else whenever somebody asks, with all that is known of product and release by then. Scopes may
 * be nested; a call is seen by all that it lies in. A call is in a scope if it begins in it.
 *
 *   name   for messages and reports
 *   reach  an enum aclshim_reach
 *
 * Returns the scope, 0 without a shim, or ACLSHIM_INVALID (reach), ACLSHIM_MEMORY or ACLSHIM_BUSY.
 */
static inline aclshim_scope aclshim_scope_begin(const char *name, int reach)
{
    return ACLSHIM_HAS(scope_begin) ? aclshim_harness.scope_begin(name, reach) : 0;
}

/*
 * Ends a scope and judges what was expected of it. What was not met is printed on standard error, with what happened
 * call by call. A scope of one thread is ended by that thread, one of the whole process by any. Scopes that one thread has
 * begun are ended in the reverse order. What is expected of a scope that nobody has ended was not met: of one thread's when
 * that thread is gone and a scope is begun, ended or asked, of all others when the process exits.
 *
 * Returns how many expectations were not met, or ACLSHIM_NO_SCOPE, ACLSHIM_THREAD, ACLSHIM_ORDER or ACLSHIM_BUSY:
 * then nothing has ended.
 */
static inline int64_t aclshim_scope_end(aclshim_scope scope)
{
    return ACLSHIM_HAS(scope_end) ? aclshim_harness.scope_end(scope) : 0;
}

/*
 * How many calls the scope has seen so far, those under way included.
 *
 *   selector  which calls; NULL for all
 *
 * Returns the number, or ACLSHIM_NO_SCOPE, ACLSHIM_THREAD, ACLSHIM_NONSENSE or ACLSHIM_BUSY.
 */
static inline int64_t aclshim_count(aclshim_scope scope, const char *selector)
{
    return ACLSHIM_HAS(count) ? aclshim_harness.count(scope, selector) : 0;
}

/*
 * How many bytes these calls have moved or set: those that returned 0. Stops at INT64_MAX. Otherwise as aclshim_count.
 */
static inline int64_t aclshim_bytes(aclshim_scope scope, const char *selector)
{
    return ACLSHIM_HAS(bytes) ? aclshim_harness.bytes(scope, selector) : 0;
}

/*
 * The calls themselves, in the order of their beginning.
 *
 *   selector  which calls; NULL for all
 *   calls     filled from the first on; may be NULL if room is 0
 *   room      for so many
 *
 * Returns how many were filled; ACLSHIM_ROOM if there are more (room of them were filled); ACLSHIM_MEMORY; or an error as
 * aclshim_count.
 */
static inline int64_t aclshim_calls(aclshim_scope scope, const char *selector, struct aclshim_call *calls, size_t room)
{
    return ACLSHIM_HAS(calls) ? aclshim_harness.calls(scope, selector, calls, sizeof(struct aclshim_call), room) : 0;
}

/*
 * The items of a batch, as they were when the vendor had accepted it. There are none of one that it refused, or while
 * it is under way.
 *
 *   order  the call, by its place in the scope (aclshim_call.order)
 *   items  filled from the first on; may be NULL if room is 0
 *   room   for so many
 *
 * Returns how many were filled; ACLSHIM_ROOM if there are more; ACLSHIM_INVALID if there is no such call;
 * ACLSHIM_MEMORY; or an error as aclshim_count.
 */
static inline int64_t aclshim_items(aclshim_scope scope, uint64_t order, struct aclshim_item *items, size_t room)
{
    return ACLSHIM_HAS(items) ? aclshim_harness.items(scope, order, items, sizeof(struct aclshim_item), room) : 0;
}

/*
 * What is wrong with the calls of a scope, call by call.
 *
 *   rule      the id of a rule (docs/rules.md); NULL for all
 *   findings  filled from the first on; may be NULL if room is 0
 *   room      for so many
 *
 * Returns how many were filled; ACLSHIM_ROOM if there are more; ACLSHIM_NONSENSE if there is no such rule;
 * ACLSHIM_MEMORY; or an error as aclshim_count. The messages in them are valid until the scope ends.
 */
static inline int64_t aclshim_findings(aclshim_scope scope, const char *rule, struct aclshim_finding *findings,
                                       size_t room)
{
    return ACLSHIM_HAS(findings)
               ? aclshim_harness.findings(scope, rule, findings, sizeof(struct aclshim_finding), room)
               : 0;
}

/*
 * Expects a number of calls. This and all that follow may be said at any time before the scope ends, and are judged
 * then. An expectation also fails if the scope could not see every call ("unseen").
 *
 *   selector  which calls; NULL for all
 *   at_least  and
 *   at_most   both included; UINT64_MAX is no limit
 *
 * Returns 0, or ACLSHIM_INVALID (at_least is more than at_most), ACLSHIM_NO_SCOPE, ACLSHIM_THREAD, ACLSHIM_NONSENSE,
 * ACLSHIM_MEMORY or ACLSHIM_BUSY. What was refused with INVALID, NONSENSE or MEMORY is not met when the scope ends.
 */
static inline int64_t aclshim_expect_calls(aclshim_scope scope, const char *selector, uint64_t at_least,
                                           uint64_t at_most)
{
    return ACLSHIM_HAS(expect_calls) ? aclshim_harness.expect_calls(scope, selector, at_least, at_most) : 0;
}

/*
 * Expects a number of bytes, as aclshim_bytes counts them. Otherwise as aclshim_expect_calls.
 */
static inline int64_t aclshim_expect_bytes(aclshim_scope scope, const char *selector, uint64_t at_least,
                                           uint64_t at_most)
{
    return ACLSHIM_HAS(expect_bytes) ? aclshim_harness.expect_bytes(scope, selector, at_least, at_most) : 0;
}

/*
 * Expects the calls on a stream to be exactly these, one after the other.
 *
 *   stream     the stream; NULL is the default one
 *   selectors  one for each call, with ';' between; empty or NULL: no call at all
 *
 * Otherwise as aclshim_expect_calls.
 */
static inline int64_t aclshim_expect_order(aclshim_scope scope, const void *stream, const char *selectors)
{
    return ACLSHIM_HAS(expect_order) ? aclshim_harness.expect_order(scope, stream, selectors) : 0;
}

/*
 * Expects a rule to be broken exactly so often. These findings then do not count against aclshim_expect_clean.
 *
 *   rule   its id (docs/rules.md)
 *   count  how often
 *
 * Otherwise as aclshim_expect_calls; ACLSHIM_INVALID if rule is NULL, ACLSHIM_NONSENSE if there is no such rule.
 */
static inline int64_t aclshim_expect_finding(aclshim_scope scope, const char *rule, uint64_t count)
{
    return ACLSHIM_HAS(expect_finding) ? aclshim_harness.expect_finding(scope, rule, count) : 0;
}

/*
 * Expects no finding of at least this severity, but those that aclshim_expect_finding speaks of, before or after.
 *
 *   severity  an enum aclshim_severity
 *
 * Otherwise as aclshim_expect_calls; ACLSHIM_INVALID if there is no such severity.
 */
static inline int64_t aclshim_expect_clean(aclshim_scope scope, int severity)
{
    return ACLSHIM_HAS(expect_clean) ? aclshim_harness.expect_clean(scope, severity) : 0;
}

/*
 * Expects the calls to be those that a file holds, one after the other, where addresses are buffers with offsets and
 * streams are known by the order of their appearance. With ACLSHIM_GOLDEN=update the file is written instead, unless it
 * holds them already: lines that begin with # are its author's. A file that cannot be read or written is one that is not
 * met.
 *
 *   path  of the file; a relative one is taken from the working directory at this moment
 *
 * Otherwise as aclshim_expect_calls; ACLSHIM_INVALID if path is NULL or empty.
 */
static inline int64_t aclshim_expect_golden(aclshim_scope scope, const char *path)
{
    return ACLSHIM_HAS(expect_golden) ? aclshim_harness.expect_golden(scope, path) : 0;
}

/*
 * Makes calls fail or dawdle while the scope is open, for calls that it sees. Each one that strikes is in the record.
 *
 *   injections  SELECTOR WHEN WHAT, several with ';' between.
 *               WHEN: nth=3 (of the calls that are meant), every=10, probability=0.01 seed=42, or nothing: always;
 *               times=N: at most so often.
 *               WHAT: return=CODE (and do not forward), then_return=CODE (forward, and then return this),
 *               delay=5ms, delay_after=5ms, fail_index=2.
 *
 * Returns how many were set, or ACLSHIM_INVALID (NULL), ACLSHIM_NO_SCOPE, ACLSHIM_THREAD, ACLSHIM_NONSENSE,
 * ACLSHIM_REFUSED, ACLSHIM_MEMORY or ACLSHIM_BUSY: then none was, and (but for NO_SCOPE, THREAD and BUSY) that is an
 * expectation that is not met.
 */
static inline int64_t aclshim_inject(aclshim_scope scope, const char *injections)
{
    return ACLSHIM_HAS(inject) ? aclshim_harness.inject(scope, injections) : 0;
}

/*
 * How often an injection of this scope has struck. Returns the number, or an error as aclshim_count.
 */
static inline int64_t aclshim_injected(aclshim_scope scope)
{
    return ACLSHIM_HAS(injected) ? aclshim_harness.injected(scope) : 0;
}

/*
 * Leaves a mark in records and reports, at this moment of this thread.
 *
 *   text  what it says
 *
 * Returns 0, or ACLSHIM_INVALID (NULL). Where the record has no room for it, it is counted there, as lost.
 */
static inline int64_t aclshim_mark(const char *text)
{
    return ACLSHIM_HAS(mark) ? aclshim_harness.mark(text) : 0;
}

/*
 * Gives a stream a name, for messages, reports and selectors.
 *
 *   stream  not NULL: the default stream is called "default"
 *   name    1 to 127 bytes without blanks and ; , * (and not "default", "none" or 0x...); NULL takes the name back, as
 *           one should before the stream is destroyed
 *
 * Returns 0, or ACLSHIM_INVALID, ACLSHIM_MEMORY or ACLSHIM_BUSY. It holds in this process then, also if the record has no
 * room for it.
 */
static inline int64_t aclshim_name_stream(const void *stream, const char *name)
{
    return ACLSHIM_HAS(name_stream) ? aclshim_harness.name_stream(stream, name) : 0;
}

/*
 * Gives a piece of memory a name, for messages, reports and selectors. It replaces the names of what it overlaps.
 *
 *   begin  where it begins, on the host or on the device
 *   size   its bytes, more than 0
 *   name   as that of a stream; NULL takes the names in it back, as one should before the memory is freed
 *
 * Returns as aclshim_name_stream.
 */
static inline int64_t aclshim_name_buffer(const void *begin, size_t size, const char *name)
{
    return ACLSHIM_HAS(name_buffer) ? aclshim_harness.name_buffer(begin, size, name) : 0;
}

/*
 * How many expectations were not met in this process so far. Returns the number.
 */
static inline int64_t aclshim_failures(void)
{
    return ACLSHIM_HAS(failures) ? aclshim_harness.failures() : 0;
}

/*
 * From now on: if the process exits with 0 although an expectation was not met, it exits with `status` instead. (It
 * ends by exit() or by returning from main(); _exit() and a signal pass this by.)
 *
 *   status  1 to 255, or 0 to take it back
 *
 * Returns 0, or ACLSHIM_INVALID, ACLSHIM_MEMORY or ACLSHIM_BUSY.
 */
static inline int64_t aclshim_fail_exit(int status)
{
    return ACLSHIM_HAS(fail_exit) ? aclshim_harness.fail_exit(status) : 0;
}

#ifdef __cplusplus
}
#endif

#endif /* ACLSHIM_H */
