#include "acl/acl.h"

enum { FORKING = 77, OF_THE_PARENT = 5, OF_THE_CHILD = 9 };

extern void (*in_the_child)(void);
extern void (*in_the_parent)(void);
