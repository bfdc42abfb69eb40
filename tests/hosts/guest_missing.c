/* Linked to no vendor's library at all, and to one that needs it. */
void guest_missing(void);

int main(void)
{
    guest_missing();
    return 0;
}
