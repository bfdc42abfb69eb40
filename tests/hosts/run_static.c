/* Links nothing of the vendor's and copies nothing. */
#include <stdio.h>

int main(void)
{
    printf("static\n");
    return 0;
}
