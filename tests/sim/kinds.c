/*
 * How the asynchronous copies correct the kind from where the two buffers lie:
 * every cell of the table, for the linear and the pitched form. "forced" cells
 * take any kind; with pageable memory a kind that cannot be meant is refused.
 */
#define _GNU_SOURCE
#include "conform.h"

static const char *const place[] = {"device", "pinned", "pageable"};
static const char *const kind_name[] = {"H2H", "H2D", "D2H", "D2D", "DEFAULT"};
static uint8_t *from[3], *to[3];

/* [source][destination][kind]: the code of aclrtMemcpyAsync. */
static const int linear_code[3][3][5] = {
    {{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, {PARAM, PARAM, 0, 0, 0}},
    {{0, 0, 0, 0, 0},
     {UNSUPPORTED, UNSUPPORTED, UNSUPPORTED, UNSUPPORTED, UNSUPPORTED},
     {UNSUPPORTED, 0, PARAM, PARAM, UNSUPPORTED}},
    {{PARAM, 0, PARAM, 0, 0}, {UNSUPPORTED, PARAM, 0, PARAM, UNSUPPORTED}, {UNSUPPORTED, 0, 0, 0, UNSUPPORTED}},
};

/* The pitched forms refuse H2H by its number; -1 marks cells in which the
 * runtime says yes and the driver's answer is not known. */
static const int pitched_async_code[3][3][5] = {
    {{BAD, 0, 0, 0, 0}, {BAD, 0, 0, 0, 0}, {BAD, PARAM, 0, -1, 0}},
    {{BAD, 0, 0, 0, 0}, {BAD, PARAM, PARAM, PARAM, PARAM}, {BAD, -1, PARAM, PARAM, PARAM}},
    {{BAD, 0, PARAM, -1, 0}, {BAD, PARAM, -1, PARAM, PARAM}, {BAD, -1, -1, -1, PARAM}},
};
static const int pitched_code[3][3][5] = {
    {{BAD, PARAM, PARAM, UNSUPPORTED, PARAM}, {BAD, 0, 0, UNSUPPORTED, 0}, {BAD, PARAM, 0, UNSUPPORTED, 0}},
    {{BAD, 0, 0, UNSUPPORTED, 0}, {BAD, PARAM, PARAM, UNSUPPORTED, PARAM}, {BAD, -1, PARAM, UNSUPPORTED, PARAM}},
    {{BAD, 0, PARAM, UNSUPPORTED, 0}, {BAD, PARAM, -1, UNSUPPORTED, PARAM}, {BAD, -1, -1, UNSUPPORTED, PARAM}},
};

enum form { LINEAR, CONDITION, PITCHED_ASYNC, PITCHED };
static const char *const form_name[] = {"async", "condition", "2d async", "2d"};

static int run(enum form form, int s, int d, int kind)
{
    aclrtMemcpyKind as = (aclrtMemcpyKind)kind;
    switch (form) {
    case LINEAR:
        return aclrtMemcpyAsync(to[d], SIZE, from[s], SIZE, as, stream);
    case CONDITION:
        return aclrtMemcpyAsyncWithCondition(to[d], SIZE, from[s], SIZE, as, stream);
    case PITCHED_ASYNC:
        return aclrtMemcpy2dAsync(to[d], SIZE / 4, from[s], SIZE / 4, SIZE / 4, 4, as, stream);
    default:
        return aclrtMemcpy2d(to[d], SIZE / 4, from[s], SIZE / 4, SIZE / 4, 4, as);
    }
}

static void table(enum form form, const int code[3][3][5], const char *pinned_by)
{
    for (int s = 0; s < 3; s++)
        for (int d = 0; d < 3; d++)
            for (int kind = 0; kind < 5; kind++) {
                int expected = code[s][d][kind];
                char name[128];
                if (expected == -1)
                    continue;
                unsigned seed = (unsigned)(s * 50 + d * 10 + kind + 1);
                put(from[s], SIZE, seed);
                put(to[d], SIZE, 200);
                snprintf(name, sizeof name, "%s: %s to %s, %s%s", form_name[form], place[s], place[d],
                         kind_name[kind], pinned_by);
                int got = run(form, s, d, kind);
                want(name, got, expected);
                if (got != 0 || expected != 0) {
                    strcat(name, ": nothing copied");
                    holds(name, has(to[d], SIZE, 200));
                    continue;
                }
                /* A device-to-device job on pageable memory is accepted, and
                 * what it does then is not promised. */
                int pageable = s == 2 || d == 2;
                if (pageable && kind == 3) {
                    (void)aclrtSynchronizeStream(stream);
                    continue;
                }
                strcat(name, pageable ? ": bytes on return" : ": bytes");
                if (!pageable)
                    MUST(aclrtSynchronizeStream(stream));
                holds(name, has(to[d], SIZE, seed));
                MUST(aclrtSynchronizeStream(stream));
            }
}

static void all_tables(const char *pinned_by)
{
    table(LINEAR, linear_code, pinned_by);
    table(CONDITION, linear_code, pinned_by);
    table(PITCHED_ASYNC, pitched_async_code, pinned_by);
    table(PITCHED, pitched_code, pinned_by);
}

int main(void)
{
    open_world();
    from[0] = dev, from[1] = pin, from[2] = page;
    to[0] = dev2, to[1] = pin2, to[2] = page2;
    all_tables("");

    /* Registered memory counts as pinned. */
    void *mapped = NULL;
    MUST(posix_memalign((void **)&from[1], 4096, SIZE));
    MUST(posix_memalign((void **)&to[1], 4096, SIZE));
    MUST(aclrtHostRegister(from[1], SIZE, ACL_HOST_REGISTER_MAPPED, &mapped));
    MUST(aclrtHostRegisterV2(to[1], SIZE, ACL_HOST_REG_PINNED));
    all_tables(" (registered)");

    MUST(aclrtHostUnregister(from[1]));
    want("unregistered again: pageable to pinned, H2H",
         aclrtMemcpyAsync(pin, SIZE, from[1], SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream), PARAM);
    return finish();
}
