// Sends requests to a server at random times, whether or not earlier ones are answered, and prints
// how long answers took: counted from when a request was due, so that one that had to wait behind
// others counts with its waiting.
//
// client PORT RATE SECONDS CONNECTIONS redis|http
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { most_connections = 64, most_waiting = 4096 };

struct connection {
    int fd;
    double due[most_waiting];  // a ring of requests that are not answered
    unsigned first, last;
    char held[65536];
    size_t length;
};

static struct connection connections[most_connections];
static double* took;
static size_t answers;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char* what) {
    perror(what);
    exit(1);
}

static int connect_to(int port) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    if (fd < 0 || connect(fd, (struct sockaddr*)&to, sizeof to) != 0) fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

// The length of the answer at the beginning of what was received; 0: it is not complete.
static size_t answer_in(const char* text, size_t length, int is_http) {
    if (is_http) {
        const char* end = memmem(text, length, "\r\n\r\n", 4);
        if (!end) return 0;
        const char* size = memmem(text, (size_t)(end - text), "Content-Length: ", 16);
        const size_t all =
            (size_t)(end - text) + 4 + (size > text ? strtoul(size + 16, NULL, 10) : 0);
        return all <= length ? all : 0;
    }
    // "$3\r\nxxx\r\n", or one line.
    const char* end = memmem(text, length, "\r\n", 2);
    if (!end) return 0;
    size_t all = (size_t)(end - text) + 2;
    if (text[0] == '$' && text[1] != '-') all += strtoul(text + 1, NULL, 10) + 2;
    return all <= length ? all : 0;
}

static void receive(struct connection* c, int is_http) {
    const ssize_t got = recv(c->fd, c->held + c->length, sizeof c->held - c->length, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) fail("recv");
    c->length += (size_t)got;
    size_t used = 0, one;
    while ((one = answer_in(c->held + used, c->length - used, is_http)) > 0) {
        used += one;
        took[answers++] = now() - c->due[c->first++ % most_waiting];
    }
    memmove(c->held, c->held + used, c->length - used);
    c->length -= used;
}

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

int main(int argc, char** argv) {
    if (argc != 6) return 2;
    const double rate = atof(argv[2]), seconds = atof(argv[3]);
    const int count = atoi(argv[4]), is_http = strcmp(argv[5], "http") == 0;
    const char* request = is_http ? "GET / HTTP/1.1\r\nHost: x\r\n\r\n" : "GET key:7\r\n";
    struct pollfd fds[most_connections];
    for (int n = 0; n < count; ++n) {
        connections[n].fd = connect_to(atoi(argv[1]));
        fds[n] = (struct pollfd){.fd = connections[n].fd, .events = POLLIN};
    }
    took = malloc(sizeof *took * (size_t)(rate * seconds * 2 + 1000));
    srand48(getpid());
    const double begin = now(), end = begin + seconds;
    double next = begin;
    unsigned turn = 0;
    while (next < end) {
        for (; next <= now() && next < end; next -= log(1 - drand48()) / rate) {
            struct connection* c = &connections[turn++ % (unsigned)count];
            if (c->last - c->first == most_waiting) fail("the server does not keep up");
            c->due[c->last++ % most_waiting] = next;
            if (send(c->fd, request, strlen(request), 0) < 0) fail("send");
        }
        const double wait = next - now();
        const struct timespec time = {0, wait > 0 ? (long)(wait * 1e9) : 0};
        if (ppoll(fds, (nfds_t)count, &time, NULL) > 0)
            for (int n = 0; n < count; ++n)
                if (fds[n].revents) receive(&connections[n], is_http);
    }
    const double patience = now() + 2;
    int is_waiting = 1;
    while (is_waiting && now() < patience) {
        is_waiting = 0;
        poll(fds, (nfds_t)count, 10);
        for (int n = 0; n < count; ++n) {
            if (fds[n].revents) receive(&connections[n], is_http);
            if (connections[n].first != connections[n].last) is_waiting = 1;
        }
    }
    if (is_waiting || answers < 1000) {
        fprintf(stderr, "%zu answers, and some never came\n", answers);
        return 1;
    }
    qsort(took, answers, sizeof *took, compare);
    printf("%zu %.1f %.1f %.1f\n", answers, took[answers / 2] * 1e6, took[answers * 99 / 100] * 1e6,
           took[answers * 999 / 1000] * 1e6);
    return 0;
}
