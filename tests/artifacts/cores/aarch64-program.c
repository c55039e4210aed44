#include <stdlib.h>
#include <pthread.h>
#include <unistd.h>
int *nowhere;
__attribute__((noinline)) int read_header(int *p) { return p[2]; }
__attribute__((noinline)) int work(void) { return read_header(nowhere) + 1; }
static void *idle(void *p) { pause(); return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, idle, 0); usleep(100000); return work(); }
