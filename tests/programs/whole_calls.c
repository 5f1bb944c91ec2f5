// whole-calls ROUNDS [finish]: moves megabytes by calls that a signal may cut short, but gets no
// signals. So each call must do all that was asked, and the other ends must get what was sent.
// Prints how many calls did less, by kind, and whether the bytes were right. With "finish" the
// program completes short calls itself, as programs should, and only the bytes are checked.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { size = 1 << 21 };
static unsigned char sent[size], got[size];

static void check_all_that_comes(int from) {
    size_t at = 0;
    ssize_t count;
    while ((count = read(from, got, 1 << 16)) > 0)
        for (ssize_t i = 0; i < count; ++i, at = (at + 1) % size)
            if (got[i] != sent[at]) _exit(1);
    _exit(at == 0 ? 0 : 1);
}

static void send_for_ever(int to) {
    while (write(to, sent, size) == size) {
    }
    _exit(0);
}

// Endless messages by two ways, not too fast.
enum { packet_size = 700, batch = 8 };
static pid_t start_packer(int packets, int lines) {
    const pid_t packer = fork();
    if (packer != 0) return packer;
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        send(packets, sent, packet_size, MSG_DONTWAIT);
        send(lines, sent, 8, MSG_DONTWAIT);
        usleep(100);
    }
}

static int finishes;

static int did_less(ssize_t count, int fd, int receives) {
    if (count == size) return 0;
    while (finishes && 0 < count && count < size) {
        const size_t left = size - (size_t)count;
        const ssize_t more =
            receives ? recv(fd, got + count, left, MSG_WAITALL) : write(fd, sent + count, left);
        count = more > 0 ? count + more : 0;
    }
    return count != size;
}

int main(int argc, char** argv) {
    const int rounds = argc >= 2 ? atoi(argv[1]) : 0;
    finishes = argc == 3;
    for (int i = 0; i < size; ++i) sent[i] = (unsigned char)(i * 7 + i / 251);
    int ends[2], there[2], back[2];
    if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, there) ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, back))
        return 2;
    const pid_t reader = fork();
    if (reader == 0) {
        close(ends[1]), close(there[0]), close(there[1]), close(back[0]), close(back[1]);
        check_all_that_comes(ends[0]);
    }
    const pid_t receiver = fork();
    if (receiver == 0) {
        close(ends[0]), close(ends[1]), close(there[0]), close(back[0]), close(back[1]);
        check_all_that_comes(there[1]);
    }
    const pid_t sender = fork();
    if (sender == 0) {
        close(ends[0]), close(ends[1]), close(there[0]), close(there[1]), close(back[0]);
        send_for_ever(back[1]);
    }
    close(ends[0]), close(there[1]), close(back[1]);
    const int zero = open("/dev/zero", O_RDONLY), urandom = open("/dev/urandom", O_RDONLY);
    const int file = memfd_create("sent", 0);
    if (zero < 0 || urandom < 0 || file < 0 || write(file, sent, size) != size) return 2;

    enum {
        writes,
        writevs,
        sendfiles,
        sends,
        receives,
        zeros,
        randoms,
        getrandoms,
        files,
        ranges,
        zeros_at,
        messages,
        kinds
    };
    static const char* const names[kinds] = {"write",   "writev", "sendfile", "send",
                                             "receive", "zeros",  "random",   "getrandom",
                                             "to file", "range",  "zeros at", "messages"};
    const int other = memfd_create("copied", 0);
    int packets[2], lines[2];
    if (other < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packets) ||
        socketpair(AF_UNIX, SOCK_DGRAM, 0, lines))
        return 2;
    const pid_t packer = start_packer(packets[1], lines[1]);
    close(packets[1]), close(lines[1]);
    int fewer[kinds] = {0}, wrong = 0;
    for (int round = 0; round < rounds; ++round) {
        fewer[writes] += did_less(write(ends[1], sent, size), ends[1], 0);
        struct iovec pieces[3] = {
            {sent, size / 2}, {sent + size / 2, 1000}, {sent + size / 2 + 1000, size / 2 - 1000}};
        fewer[writevs] += did_less(writev(ends[1], pieces, 3), ends[1], 0);
        off_t from = 0;
        fewer[sendfiles] += did_less(sendfile(there[0], file, &from, size), there[0], 0);
        fewer[sends] += did_less(send(there[0], sent, size, 0), there[0], 0);
        fewer[receives] += did_less(recv(back[0], got, size, MSG_WAITALL), back[0], 1);
        for (int i = 0; i < size; ++i) wrong |= got[i] != sent[i];
        if (finishes) continue;
        fewer[zeros] += read(zero, got, size) != size;
        for (int i = 0; i < size; ++i) wrong |= got[i] != 0;
        fewer[randoms] += read(urandom, got, size / 4) != size / 4;
        fewer[getrandoms] += getrandom(got, size / 4, 0) != size / 4;
        from = 0;
        fewer[files] += lseek(other, 0, SEEK_SET) || sendfile(other, file, &from, size) != size;
        off_t to = from = 0;
        fewer[ranges] += copy_file_range(file, &from, other, &to, size, 0) != size;
        fewer[zeros_at] += pread(zero, got, size, 4) != size;
        // A call returns at the end of a message, however much was asked for.
        for (int i = 0; i < 20; ++i)
            wrong |= recv(packets[0], got, size, MSG_WAITALL) != packet_size;
        struct mmsghdr all[batch] = {0};
        struct iovec piece = {got, 64};
        for (int i = 0; i < batch; ++i)
            all[i].msg_hdr.msg_iov = &piece, all[i].msg_hdr.msg_iovlen = 1;
        fewer[messages] += recvmmsg(lines[0], all, batch, 0, NULL) != batch;
    }
    close(packets[0]), close(lines[0]);
    kill(packer, SIGTERM);
    waitpid(packer, NULL, 0);
    close(ends[1]), close(there[0]), close(back[0]);
    int status = 0;
    wrong |= waitpid(reader, &status, 0) != reader || status != 0;
    wrong |= waitpid(receiver, &status, 0) != receiver || status != 0;
    waitpid(sender, &status, 0);
    for (int kind = 0; kind < kinds; ++kind) printf("%s: %d did less\n", names[kind], fewer[kind]);
    printf("the bytes are %s\n", wrong ? "wrong" : "right");
    return wrong;
}
