/* Leaves everything to a library that it was linked to: bind_early.c. */
int bind_run(int argc, char **argv);

int main(int argc, char **argv)
{
    return bind_run(argc, argv);
}
