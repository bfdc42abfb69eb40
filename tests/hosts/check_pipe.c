/* check_pipe: its standard error is a pipe that is full to the last byte and that is not read. */
#include "check_host.h"
#include <fcntl.h>

int main(void)
{
    static const char bytes[4096];
    int ends[2];
    open_world();
    if (pipe(ends) != 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0)
        return 2;
    while (write(ends[1], bytes, sizeof bytes) > 0 || write(ends[1], bytes, 1) > 0)
        ;
    if (fcntl(ends[1], F_SETFL, 0) != 0 || dup2(ends[1], 2) != 2)
        return 3;
    for (int i = 0; i < 20; i++)
        if (aclrtMemcpy(dev, 63, pin, 64, H2D) != PARAM || aclrtMemcpy(NULL, 64, pin, 64, H2D) != BAD)
            return 4;
    printf("called\n");
    return 0;
}
