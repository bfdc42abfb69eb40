/* Copies, and ends with status 99 as soon as the drain thread calls the program's malloc, calloc or realloc, or registers a
 * destructor of a thread-local object. Not counted: what libc allocates for itself, to read a directory. The drain is the
 * thread with the shim's name that does not have the program's descriptors. */
#include "guest_host.h"
#include <dlfcn.h>
#include <link.h>
#include <sys/prctl.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);

enum { MARK = 200 };
static volatile int is_marked;
static int of_shim;
static uintptr_t libc_from, libc_to;

/* Where the code of libc lies. */
static int find_libc(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (!strstr(object->dlpi_name, "/libc.so"))
        return 0;
    libc_from = object->dlpi_addr;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD)
            libc_to = libc_from + object->dlpi_phdr[i].p_vaddr + object->dlpi_phdr[i].p_memsz;
    return 1;
}

static void look(const char *called, void *caller)
{
    char name[16] = "";
    int before = errno;
    if (is_marked && prctl(PR_GET_NAME, name) == 0 && !strcmp(name, "aclshim")) {
        __atomic_add_fetch(&of_shim, 1, __ATOMIC_RELAXED);
        int is_libc = (uintptr_t)caller >= libc_from && (uintptr_t)caller < libc_to;
        if (!is_libc && fcntl(MARK, F_GETFD) < 0) {
            char line[64];
            int n = snprintf(line, sizeof line, "the drain calls %s\n", called);
            int fd = open("called", O_WRONLY | O_CREAT | O_APPEND, 0600);
            if (write(fd, line, (size_t)n) != n)
                _exit(98);
            _exit(99);
        }
    }
    errno = before;
}

void *malloc(size_t size)
{
    look("malloc", __builtin_return_address(0));
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    look("calloc", __builtin_return_address(0));
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    look("realloc", __builtin_return_address(0));
    return __libc_realloc(block, size);
}

int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *library)
{
    look("__cxa_thread_atexit_impl", __builtin_return_address(0));
    int (*real)(void (*)(void *), void *, void *) = dlsym(RTLD_NEXT, "__cxa_thread_atexit_impl");
    return real(destructor, object, library);
}

int main(void)
{
    limit();
    if (dup2(0, MARK) != MARK || !dl_iterate_phdr(find_libc, NULL))
        return 2;
    is_marked = 1;
    static char here[64], there[64];
    for (int round = 0; round < 20; round++) {
        copies(2000);
        /* One that breaks a rule: the drain has something to say of it in its log. */
        aclrtMemcpy(here, 8, there, 16, ACL_MEMCPY_HOST_TO_HOST);
        usleep(20000);
    }
    /* The thread that starts the drain is ours too, and pthread_create allocates there: the look sees our threads. */
    printf("threads of the shim were seen: %s\n", of_shim ? "yes" : "no");
    own(20 * 2001);
    return 0;
}
