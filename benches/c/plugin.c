/* Makes the host a plugin of opener.c. */
extern int (*host_begin)(int argc, char **argv);
int host_main(int argc, char **argv);

__attribute__((constructor)) static void begin(void)
{
    host_begin = host_main;
}
