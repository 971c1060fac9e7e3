/* The part of a counting worker that cannot be Python: what a watched process asks of Callgrind, how it rearranges its
 * heap, and how it waits for work without touching that heap.
 *
 * A client request is a sequence of instructions that does nothing on the bare machine and that Valgrind recognises.
 * The sequences and the numbers of the requests are Valgrind's published interface; its headers are not needed. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long word;

enum {
    RUNNING_ON_VALGRIND = 0x1001,
    /* Callgrind's own requests start at the letters C and T. */
    DUMP_STATS_AT = 0x43540003,
    START_INSTRUMENTATION = 0x43540004
};

static word request(word code, word argument) {
    volatile word block[6] = {code, argument, 0, 0, 0, 0};
    word answer = 0;
#if defined(__x86_64__) && defined(__LP64__)
    __asm__ volatile(
        "rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
        "xchgq %%rbx, %%rbx"
        : "=d"(answer)
        : "a"(&block[0]), "0"(answer)
        : "cc", "memory");
#elif defined(__aarch64__)
    __asm__ volatile(
        "mov x3, %1\n\tmov x4, %2\n\t"
        "ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\t"
        "orr x10, x10, x10\n\t"
        "mov %0, x3"
        : "=r"(answer)
        : "r"((word)0), "r"(&block[0])
        : "cc", "memory", "x3", "x4");
#else
#error "no client requests for this processor"
#endif
    return answer;
}

word torchmark_running(void) { return request(RUNNING_ON_VALGRIND, 0); }
void torchmark_start(void) { request(START_INSTRUMENTATION, 0); }
void torchmark_dump(const char *name) { request(DUMP_STATS_AT, (word)name); }

/* Stands where the clock of a timed loop would, and hence gives a double. Once it is armed, the reading before the loop has
 * what was collected so far written and thus forgotten, and the one behind the loop writes the loop's own profile. In a
 * warm-up it does nothing, at about the same cost.
 *
 * Not with Callgrind's means to stop collecting or to zero: while it does not collect it still numbers calls, and of what
 * it was told to zero it keeps a part. */
static char armed_with[64];
static enum { IDLE, BEFORE, BEHIND } stage = IDLE;

void torchmark_arm(const char *name) {
    snprintf(armed_with, sizeof armed_with, "%s", name);
    stage = BEFORE;
}

double torchmark_clock(void) {
    if (stage == BEFORE) {
        stage = BEHIND;
        torchmark_dump("discarded");
    } else if (stage == BEHIND) {
        stage = IDLE;
        torchmark_dump(armed_with);
    }
    return 0.0;
}

/* Allocates blocks as bytes and as tensors are allocated, and frees about half of them again, in an order that the
 * seed decides. What is kept is kept for good: the process that asks for this has not long to live. */
void torchmark_scatter(word seed) {
    enum { BLOCKS = 400, ALIGNMENT = 64 };
    void *blocks[BLOCKS];
    word state = seed;
    for (int i = 0; i < BLOCKS; i++) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        word size = 16 + (state >> 33) % 2000;
        if ((state >> 20) % 16 == 0) size *= 32;
        blocks[i] = NULL;
        if ((state >> 25) % 3 == 0) {
            if (posix_memalign(&blocks[i], ALIGNMENT, size) != 0) blocks[i] = NULL;
        } else {
            blocks[i] = malloc(size);
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        word other = (state >> 33) % BLOCKS;
        void *swap = blocks[i];
        blocks[i] = blocks[other];
        blocks[other] = swap;
    }
    for (int i = 0; i < BLOCKS / 2; i++) free(blocks[i]);
}

/* The work of a zygote, from C so that nothing it does leaves a trace in the heap: every child starts from the very same
 * state, whatever jobs came before it and however they ended. Nothing below allocates.
 *
 * The messages are those of torchmark/wire: four bytes of length, then JSON. */

enum { DESCRIPTORS = 5, LOOKING_INTERVAL_MS = 20, REAPING_MS = 5000, LONGEST_MESSAGE = 4096 };

static int read_all(int from, char *into, size_t size) {
    while (size > 0) {
        ssize_t got = read(from, into, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        into += got;
        size -= (size_t)got;
    }
    return 1;
}

static int send_text(int to, const char *text) {
    char frame[LONGEST_MESSAGE];
    size_t length = strlen(text), sent = 0;
    frame[0] = (char)(length >> 24);
    frame[1] = (char)(length >> 16);
    frame[2] = (char)(length >> 8);
    frame[3] = (char)length;
    memcpy(frame + 4, text, length);
    while (sent < length + 4) {
        ssize_t put = send(to, frame + sent, length + 4 - sent, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return 0;
        sent += (size_t)put;
    }
    return 1;
}

/* One message; gives the number of descriptors that came with it, -1 when the other side is gone. What it says is not
 * looked at: a message with descriptors is an order to go, one without is an order to stop. */
static int receive(int from, int *descriptors) {
    unsigned char header[4];
    char text[LONGEST_MESSAGE];
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * DESCRIPTORS)];
    } control;
    struct iovec piece = {header, sizeof header};
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.space;
    message.msg_controllen = sizeof control.space;
    ssize_t got;
    do got = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got <= 0) return -1;
    int count = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(descriptors, CMSG_DATA(c), sizeof(int) * (size_t)count);
    }
    if (!read_all(from, (char *)header + got, sizeof header - (size_t)got)) return -1;
    size_t length = ((size_t)header[0] << 24) | ((size_t)header[1] << 16) | ((size_t)header[2] << 8) | header[3];
    if (length > sizeof text || !read_all(from, text, length)) return -1;
    return count;
}

static int read_file(const char *path, char *into, int size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    int got = (int)read(file, into, (size_t)size - 1);
    close(file);
    into[got > 0 ? got : 0] = 0;
    return got > 0;
}

/* The twentieth field of a process's line. The second is its name in brackets, which may contain anything. */
static int count_threads(void) {
    char line[1024];
    if (!read_file("/proc/self/stat", line, sizeof line)) return 1;
    char *field = strrchr(line, ')');
    for (int i = 2; field != NULL && i < 20; i++) field = strchr(field + 1, ' ');
    return field == NULL ? 1 : atoi(field);
}

static void rest(int milliseconds) {
    struct timespec time = {0, milliseconds * 1000000L};
    nanosleep(&time, NULL);
}

/* Ends every child of this process, also those that were adopted because their own parents ended. */
static void reap_others(void) {
    char path[64], children[4096];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    for (int i = 0; i < REAPING_MS; i++) {
        if (read_file(path, children, sizeof children)) {
            for (char *next = children; *next;) {
                long pid = strtol(next, &next, 10);
                if (pid <= 0) break;
                kill((pid_t)pid, SIGKILL);
                while (*next == ' ') next++;
            }
        }
        pid_t gone = waitpid(-1, NULL, WNOHANG);
        if (gone < 0 && errno == ECHILD) return;
        if (gone == 0) rest(1);
    }
}

/* Until the child has rung, or ended, or is to be stopped. Gives 0 when the parent is gone. */
static int await_end(pid_t pid, int control, int bell) {
    int ignored[DESCRIPTORS];
    for (;;) {
        siginfo_t state;
        state.si_pid = 0;
        if (waitid(P_PID, (id_t)pid, &state, WEXITED | WNOHANG | WNOWAIT) != 0 || state.si_pid != 0) return 1;
        struct pollfd sources[2] = {{control, POLLIN, 0}, {bell, POLLIN, 0}};
        poll(sources, 2, LOOKING_INTERVAL_MS);
        /* The other end of the bell is the child's: its closing says as much as its ringing. */
        if (sources[1].revents & POLLIN) return 1;
        if (sources[0].revents) {
            int count = receive(control, ignored);
            for (int i = 0; i < count; i++) close(ignored[i]);
            return count >= 0;
        }
        if (sources[1].revents) rest(1);
    }
}

/* Waits for jobs and forks a child for each. Returns 1 in every child, 0 when the parent is gone. */
static int serve(int control, int *descriptors) {
    char text[256];
    for (;;) {
        int count = receive(control, descriptors);
        if (count < 0) return 0;
        /* A Stop that came too late, after its job had ended, is none to act upon. */
        if (count == 0) continue;
        if (count != DESCRIPTORS) {
            for (int i = 0; i < count; i++) close(descriptors[i]);
            if (!send_text(control, "{\"kind\":\"refused\",\"reason\":\"descriptors\",\"message\":"
                                    "\"has too many open files\"}")) return 0;
            continue;
        }
        int threads = count_threads(), bell[2];
        pid_t pid = -1;
        if (threads == 1 && pipe2(bell, O_CLOEXEC) == 0) {
            pid = fork();
            if (pid == 0) {
                close(bell[0]);
                close(control);
                descriptors[DESCRIPTORS] = bell[1];
                return 1;
            }
            close(bell[1]);
            if (pid > 0) setpgid(pid, pid);
            else close(bell[0]);
        }
        for (int i = 0; i < DESCRIPTORS; i++) close(descriptors[i]);
        if (pid < 0) {
            snprintf(text, sizeof text,
                     "{\"kind\":\"refused\",\"reason\":\"threads\",\"message\":"
                     "\"has %d threads, or the system refused another process\"}",
                     threads);
            if (!send_text(control, text)) return 0;
            continue;
        }
        snprintf(text, sizeof text, "{\"kind\":\"started\",\"pid\":%d}", (int)pid);
        int alive = send_text(control, text) && await_end(pid, control, bell[0]);
        /* Before its status is taken, or its number would no longer stand for its group. */
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL);
        int status = 0;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
        reap_others();
        close(bell[0]);
        snprintf(text, sizeof text, "{\"kind\":\"ended\",\"status\":%d}", status);
        if (!alive || !send_text(control, text)) return 0;
    }
}

/* What Python wants done around a fork, as os.fork does it. */
typedef void hook(void);

/* Serves the parent. Returns 1 in every child that it forks, with the descriptors of the job and last the one to ring
 * with; returns 0 when the parent is gone.
 *
 * `before` takes locks of Python's that `in_child` and `in_parent` release: from 3.13 on, releasing a lock that was not
 * taken ends the process. It runs once and not before each fork, because it runs Python code, which changes the heap. Until
 * `in_child` or `in_parent` has run, nothing here calls into Python. */
int torchmark_serve(int control, int *descriptors, hook *before, hook *in_child, hook *in_parent) {
    before();
    if (serve(control, descriptors)) {
        in_child();
        return 1;
    }
    in_parent();
    return 0;
}
