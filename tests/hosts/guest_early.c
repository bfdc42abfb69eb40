/* Calls at every early and late point of a process and of a thread. */
#include "guest_host.h"
#include <pthread.h>

extern int early_code;
static pthread_key_t key;
static int rounds;

__attribute__((constructor)) static void constructor(void) { copies(1); }
__attribute__((destructor)) static void destructor(void) { copies(1); }
static void at_exit(void) { copies(1); }

static void key_destructor(void *value)
{
    copies(1);
    if (++rounds < 3)
        pthread_setspecific(key, value);
}

static void *thread(void *unused)
{
    copies(1);
    pthread_setspecific(key, &rounds);
    return unused;
}

/* The first call of this thread is made when it is already ending. */
static void *late_thread(void *unused)
{
    rounds = 2;
    pthread_setspecific(key, &rounds);
    return unused;
}

int main(void)
{
    limit();
    pthread_t id;
    atexit(at_exit);
    pthread_key_create(&key, key_destructor);
    pthread_create(&id, NULL, thread, NULL);
    pthread_join(id, NULL);
    pthread_create(&id, NULL, late_thread, NULL);
    pthread_join(id, NULL);
    printf("early code %d, %d rounds\n", early_code, rounds);
    own(2 + 2 + 1 + 4 + 1);
    return 0;
}
