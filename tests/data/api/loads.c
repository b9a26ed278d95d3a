/* A program with the installed library: loads a kernel for this computer and runs it. Usage: loads scale.isam */
#include <isamap.h>
#include <stdio.h>

int main(int argc, char **argv) {
    static float x[512] = {1}, w[64] = {3}, y[512], h[8];
    void *args[] = {x, w, y, h};
    isamap *im = isamap_open();
    isamap_code *c = argc > 1 ? isamap_load(im, argv[1]) : NULL;
    if (!c || isamap_code_prepare(c, args) || isamap_code_run(c, args, 1) || y[0] != 3) {
        fputs(isamap_messages(im), stderr);
        return 1;
    }
    isamap_code_free(c);
    isamap_close(im);
    return 0;
}
