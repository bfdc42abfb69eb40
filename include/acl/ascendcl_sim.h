/*
 * What the simulated libascendcl.so exports besides the vendor's functions.
 * The vendor's library has none of these: a program that must run on either
 * looks them up with dlsym.
 */
#ifndef ASCENDCL_SIM_H
#define ASCENDCL_SIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How often one of the 21 copy and set functions was entered in this process. */
uint64_t ascendclSimCalls(const char *function);

/* Makes `symbol` the name of a device variable of `size` bytes, for the symbol
 * copies; 0 when it worked. */
int ascendclSimRegisterSymbol(const void *symbol, size_t size);

/* Where the injected fault "longjmp" jumps: the address of a jmp_buf. */
void ascendclSimSetJump(void *jmp_buf);

#ifdef __cplusplus
}
#endif

#endif
