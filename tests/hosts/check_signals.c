/* check_signals SIGNALS FORKS THREADS: bad batches of threads, of children, and of a handler that interrupts the main
 * thread 1,000 times a second while it makes them too. Says in the file `own` how many each process has made. */
#include "guest_host.h"
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

static volatile uint64_t handled, made;

static void bad_batch(void)
{
    char here[64], there[64];
    void *dsts[] = {here, here}, *srcs[] = {there, there};
    size_t sizes[] = {16, 17}, rooms[] = {16, 16}, first[] = {0}, fail = 777;
    aclrtMemcpyBatchAttr attrs[1] = {0};
    int before = errno = 5;
    if (aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 2, attrs, first, 1, &fail) != 100000 || fail != 777)
        _exit(70);
    if (errno != before)
        _exit(71);
    __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
}

static void handler(int number)
{
    (void)number;
    bad_batch();
    handled++;
}

static void *of_a_thread(void *unused)
{
    for (int i = 0; i < 2000; i++)
        bad_batch();
    return unused;
}

int main(int argc, char **argv)
{
    limit();
    if (argc < 4)
        return 2;
    uint64_t signals = (uint64_t)atoll(argv[1]);
    int forks = atoi(argv[2]), threads = atoi(argv[3]);
    pthread_t thread[8];
    for (int i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, of_a_thread, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    struct itimerspec every = {.it_value = {.tv_nsec = 1000000}, .it_interval = {.tv_nsec = 1000000}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &every, NULL) != 0)
        return 3;
    while (handled < signals)
        bad_batch();
    timer_delete(timer);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0) {
            made = 0;
            for (int n = 0; n < 20; n++)
                bad_batch();
            own(made);
            exit(0);
        }
        reap(child);
    }
    own(made);
    printf("handled\n");
    return 0;
}
