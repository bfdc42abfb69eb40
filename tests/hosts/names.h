/* The names of the function table. */
#include "functions.h"
#define NAME(name, parameters, arguments) #name,
static const char *const names[] = {EACH_FUNCTION(NAME)};
#undef NAME
enum { NAMES = sizeof names / sizeof *names };
