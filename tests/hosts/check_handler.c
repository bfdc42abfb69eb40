/* check_handler COPIES [stack]: a handler makes copies that move something, and then the program does; so many copies
 * that move nothing come before. Says how often the vendor was asked what it is. */
#include "guest_host.h"
#include <dlfcn.h>

/* Not to be linked: the library to link to is the simulated one, which does not count. */
static int (*asked)(int what);
static char here[64], there[64], stack[65536];

static void copy_something(void)
{
    for (int i = 0; i < 5000; i++)
        if (aclrtMemcpy(here, 64, there, 64, ACL_MEMCPY_HOST_TO_HOST) != 0)
            _exit(90);
}

static void handler(int number)
{
    (void)number;
    copy_something();
}

static void say(const char *when)
{
    printf("%s: %d %d %d\n", when, asked(0), asked(1), asked(2));
}

int main(int argc, char **argv)
{
    limit();
    asked = (int (*)(int))dlsym(RTLD_DEFAULT, "checkVendorAsked");
    if (!asked || argc < 2)
        return 2;
    struct sigaction action = {.sa_handler = handler};
    if (argc > 2) {
        stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
        sigaltstack(&other, NULL);
        action.sa_flags = SA_ONSTACK;
    }
    sigaction(SIGUSR1, &action, NULL);
    copies(atoi(argv[1]));
    raise(SIGUSR1);
    say("copies of a handler");
    copy_something();
    say("copies of the program");
    return 0;
}
