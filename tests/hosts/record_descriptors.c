/* record_descriptors [refused]: closes every descriptor over and over between calls, and has files of its own under all
 * their numbers. `refused`: a sandbox that lets no thread have descriptors apart from the others. */
#include "record_filter.h"
#include "record_host.h"

enum { COUNT = 38, ROUNDS = 100 };

int main(int argc, char **argv)
{
    begin();
    (void)argv;
    if (argc > 1)
        refuse(SYS_close_range, SYS_unshare);
    take(0);
    for (int round = 0; round < ROUNDS; round++) {
        char name[32], back[32];
        int mine[COUNT];
        calls(0, 100);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        for (int i = 0; i < COUNT; i++) {
            int length = snprintf(name, sizeof name, "mine-%d", i);
            mine[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
            if (mine[i] < 0 || (argc == 1 && mine[i] != 3 + i) || write(mine[i], name, (size_t)length) != length)
                return 3;
        }
        calls(0, 100);
        for (int i = 0; i < COUNT; i++) {
            int length = snprintf(name, sizeof name, "mine-%d", i);
            if (lseek(mine[i], 0, SEEK_END) != length || pread(mine[i], back, sizeof back, 0) != length ||
                memcmp(name, back, (size_t)length) != 0)
                return 4;
        }
    }
    printf("all mine\n");
    return 0;
}
