/* guest_attach N: N threads alive at once, two calls each; says how often a thread was asked after meanwhile, which is by
 * the `syscall` of this program, as for every library that it loads. */
#include "guest_host.h"
#include <pthread.h>
#include <stdarg.h>
#include <sys/syscall.h>

static unsigned long asked;

long syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    long of[6];
    for (int i = 0; i < 6; i++)
        of[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_tgkill)
        __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
    long answer;
#if defined(__x86_64__)
    register long r10 __asm__("r10") = of[3], r8 __asm__("r8") = of[4], r9 __asm__("r9") = of[5];
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(number), "D"(of[0]), "S"(of[1]), "d"(of[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = of[0], x1 __asm__("x1") = of[1], x2 __asm__("x2") = of[2],
                  x3 __asm__("x3") = of[3], x4 __asm__("x4") = of[4], x5 __asm__("x5") = of[5];
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    answer = x0;
#endif
    if (answer < 0 && answer > -4096) {
        errno = (int)-answer;
        return -1;
    }
    return answer;
}

static pthread_barrier_t all;

static void *together(void *unused)
{
    copies(2);
    pthread_barrier_wait(&all);
    return unused;
}

int main(int argc, char **argv)
{
    limit();
    if (argc < 2)
        return 2;
    int n = atoi(argv[1]);
    pthread_t *threads = calloc((size_t)n, sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    pthread_barrier_init(&all, NULL, (unsigned)n);
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], &small, together, NULL) != 0)
            return 3;
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    own((uint64_t)n * 2);
    printf("%lu\n", __atomic_load_n(&asked, __ATOMIC_RELAXED));
    return 0;
}
