/*
 * aclshim for C programs.
 *
 * The same program runs with and without the shim: nothing has to be linked, and without
 * the shim every function here answers "not there".
 *
 * Made by `make header` from src/harness.rs and cbindgen.toml; do not edit.
 */
#ifndef ACLSHIM_H
#define ACLSHIM_H

#include <stdint.h>

/*
 What the shim offers to the program that it is loaded into, found through the weak symbol
 `aclshim_harness`. Members are only ever added at the end; `size` tells how many there are.
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
   Returns 1 if this process's copy calls are seen and counted, 0 if the shim was told to
   stay out of the way (`ACLSHIM_MODE=off`). May be called from any thread at any time.
   */
  int (*active)(void);
};

#ifdef __cplusplus
extern "C" {
#endif

/* The shim's table where one is loaded, else its address is NULL. */
extern const struct aclshim_harness aclshim_harness __attribute__((weak));

/*
 * Returns 1 if the shim is loaded and sees this process's copy calls, else 0.
 * May be called from any thread at any time.
 */
static inline int aclshim_active(void)
{
    return &aclshim_harness && aclshim_harness.active ? aclshim_harness.active() : 0;
}

#ifdef __cplusplus
}
#endif

#endif /* ACLSHIM_H */
