/* A vendor's library in which a copy of FORKING bytes forks. The child does what the program wants done in there, and
 * returns; then the parent does what is wanted of it, and returns. With -DPINNED it
 * has the function that a vendor's library is known by: its calls take the short way then. */
#include "record_forking.h"
#include <sys/wait.h>
#include <unistd.h>

void (*in_the_child)(void), (*in_the_parent)(void);

aclError aclrtMemcpyAsync(void *dst, size_t max, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream stream)
{
    (void)dst, (void)max, (void)src, (void)kind, (void)stream;
    if (count != FORKING)
        return 0;
    pid_t child = fork();
    if (child == 0) {
        in_the_child();
        return OF_THE_CHILD;
    }
    int status = -1;
    int is_well = waitpid(child, &status, 0) == child && status == 0;
    if (in_the_parent)
        in_the_parent();
    return is_well ? OF_THE_PARENT : 99;
}

#ifdef PINNED
aclError aclrtMemcpy(void *dst, size_t max, const void *src, size_t count, aclrtMemcpyKind kind)
{
    (void)dst, (void)max, (void)src, (void)count, (void)kind;
    return 0;
}
#endif
