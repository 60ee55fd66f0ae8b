/*
 * Threads that wait in system calls which the kernel ends with EINTR when somebody stops the
 * thread.
 *
 * When all wait, the program says "ready". At the end of its input it lets happen what each waits
 * for, and each tells what its call gave: "epoll_wait done", "epoll_wait EINTR" or "epoll_wait
 * unavailable".
 *
 * Before, the main thread computes for a third of a second, which no other does.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Longer than any test takes. */
enum { LONG = 3600 };

struct waiter {
	const char *name;
	long number;
	bool (*prepare)(struct waiter *waiter);
	long (*call)(struct waiter *waiter);
	void (*fulfil)(struct waiter *waiter);
	int fd, other;
	aio_context_t context;
	pthread_t thread;
	_Atomic pid_t id;
	bool unavailable;
	int failure; /* errno of the call, or 0 */
};

static const struct timespec limit = { .tv_sec = LONG };

static bool prepare_epoll(struct waiter *waiter)
{
	struct epoll_event event = { .events = EPOLLIN };
	int ends[2];

	if (pipe(ends) < 0)
		return false;
	waiter->fd = epoll_create1(0);
	waiter->other = ends[1];
	return epoll_ctl(waiter->fd, EPOLL_CTL_ADD, ends[0], &event) == 0;
}

static long call_epoll_wait(struct waiter *waiter)
{
	struct epoll_event event;

	return syscall(SYS_epoll_wait, waiter->fd, &event, 1, -1);
}

static long call_epoll_pwait(struct waiter *waiter)
{
	struct epoll_event event;
	sigset_t signals;

	sigfillset(&signals);
	return epoll_pwait(waiter->fd, &event, 1, LONG * 1000, &signals);
}

static void write_byte(struct waiter *waiter)
{
	if (write(waiter->other, "x", 1) != 1)
		exit(1);
}

static bool prepare_semaphore(struct waiter *waiter)
{
	waiter->fd = semget(IPC_PRIVATE, 1, 0600);
	return waiter->fd >= 0;
}

static long call_semtimedop(struct waiter *waiter)
{
	struct sembuf take_one = { .sem_op = -1 };

	return semtimedop(waiter->fd, &take_one, 1, &limit);
}

static void raise_semaphore(struct waiter *waiter)
{
	struct sembuf give_one = { .sem_op = 1 };

	semop(waiter->fd, &give_one, 1);
}

static bool prepare_signals(struct waiter *waiter)
{
	return true; /* SIGUSR1 is blocked */
}

static long call_sigwaitinfo(struct waiter *waiter)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	return sigwaitinfo(&signals, NULL);
}

static long call_sigtimedwait(struct waiter *waiter)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	return sigtimedwait(&signals, NULL, &limit);
}

static void send_signal(struct waiter *waiter)
{
	pthread_kill(waiter->thread, SIGUSR1);
}

static bool prepare_io(struct waiter *waiter)
{
	return syscall(SYS_io_setup, 1, &waiter->context) == 0;
}

static long call_io_getevents(struct waiter *waiter)
{
	struct io_event event;

	return syscall(SYS_io_getevents, waiter->context, 1, 1, &event, NULL);
}

static void submit_read(struct waiter *waiter)
{
	static char byte;
	struct iocb block = {
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_fildes = (uint32_t)open("/proc/self/exe", O_RDONLY),
		.aio_buf = (uintptr_t)&byte,
		.aio_nbytes = 1,
	};
	struct iocb *blocks = &block;

	if (syscall(SYS_io_submit, waiter->context, 1, &blocks) != 1)
		exit(1);
}

static struct io_uring_params ring;

static bool prepare_ring(struct waiter *waiter)
{
	waiter->fd = (int)syscall(SYS_io_uring_setup, 1, &ring);
	return waiter->fd >= 0;
}

static long call_io_uring_enter(struct waiter *waiter)
{
	return syscall(SYS_io_uring_enter, waiter->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
}

/* A request to do nothing: number 0, and zeros throughout. */
static void submit_nothing(struct waiter *waiter)
{
	char *queue = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, waiter->fd,
			   IORING_OFF_SQ_RING);

	if (queue == MAP_FAILED)
		exit(1);
	*(_Atomic uint32_t *)(void *)(queue + ring.sq_off.tail) = 1;
	syscall(SYS_io_uring_enter, waiter->fd, 1, 0, 0, NULL, 0);
}

static bool set_limit(int socket)
{
	struct timeval time = { .tv_sec = LONG };

	return setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) == 0;
}

static bool prepare_sockets(struct waiter *waiter)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		return false;
	waiter->fd = ends[0];
	waiter->other = ends[1];
	return set_limit(waiter->fd);
}

static long call_recv(struct waiter *waiter)
{
	char byte;

	return recv(waiter->fd, &byte, 1, 0);
}

static long call_read(struct waiter *waiter)
{
	char byte;

	return read(waiter->fd, &byte, 1);
}

/* The kernel chooses a name. */
static bool prepare_listener(struct waiter *waiter)
{
	struct sockaddr address = { .sa_family = AF_UNIX };

	waiter->fd = socket(AF_UNIX, SOCK_STREAM, 0);
	return bind(waiter->fd, &address, sizeof(address.sa_family)) == 0 &&
	       listen(waiter->fd, 1) == 0 && set_limit(waiter->fd);
}

static long call_accept(struct waiter *waiter)
{
	return accept(waiter->fd, NULL, NULL);
}

static void connect_to(struct waiter *waiter)
{
	struct sockaddr_un address;
	socklen_t size = sizeof(address);
	int from = socket(AF_UNIX, SOCK_STREAM, 0);

	if (getsockname(waiter->fd, (struct sockaddr *)&address, &size) < 0 ||
	    connect(from, (struct sockaddr *)&address, size) < 0)
		exit(1);
}

static struct waiter waiters[] = {
	{ "epoll_wait", SYS_epoll_wait, prepare_epoll, call_epoll_wait, write_byte },
	{ "epoll_pwait", SYS_epoll_pwait, prepare_epoll, call_epoll_pwait, write_byte },
	{ "semtimedop", SYS_semtimedop, prepare_semaphore, call_semtimedop, raise_semaphore },
	{ "sigwaitinfo", SYS_rt_sigtimedwait, prepare_signals, call_sigwaitinfo, send_signal },
	{ "sigtimedwait", SYS_rt_sigtimedwait, prepare_signals, call_sigtimedwait, send_signal },
	{ "io_getevents", SYS_io_getevents, prepare_io, call_io_getevents, submit_read },
	{ "io_uring_enter", SYS_io_uring_enter, prepare_ring, call_io_uring_enter, submit_nothing },
	{ "recv", SYS_recvfrom, prepare_sockets, call_recv, write_byte },
	{ "read", SYS_read, prepare_sockets, call_read, write_byte },
	{ "accept", SYS_accept, prepare_listener, call_accept, connect_to },
};
enum { WAITERS = sizeof(waiters) / sizeof(*waiters) };

static void *wait_in_call(void *data)
{
	struct waiter *waiter = data;

	waiter->id = (pid_t)syscall(SYS_gettid);
	waiter->failure = waiter->call(waiter) < 0 ? errno : 0;
	return NULL;
}

static bool is_in_call(const struct waiter *waiter)
{
	char path[64];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", waiter->id);
	file = fopen(path, "r");
	if (file && fscanf(file, "%ld", &number) != 1)
		number = -1; /* it runs */
	if (file)
		fclose(file);
	return number == waiter->number;
}

static void compute(void)
{
	struct timespec time = { 0 };

	while (time.tv_sec == 0 && time.tv_nsec < 333000000)
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
}

int main(void)
{
	sigset_t signals;
	char byte;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	compute();
	for (size_t i = 0; i < WAITERS; i++) {
		waiters[i].unavailable = !waiters[i].prepare(&waiters[i]);
		if (!waiters[i].unavailable)
			pthread_create(&waiters[i].thread, NULL, wait_in_call, &waiters[i]);
	}
	for (size_t i = 0; i < WAITERS; i++)
		while (!waiters[i].unavailable && !is_in_call(&waiters[i]))
			usleep(1000);
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) == 1)
		continue;
	for (size_t i = 0; i < WAITERS; i++) {
		struct waiter *waiter = &waiters[i];

		if (!waiter->unavailable) {
			waiter->fulfil(waiter);
			pthread_join(waiter->thread, NULL);
		}
		printf("%s %s\n", waiter->name,
		       waiter->unavailable ? "unavailable"
		       : waiter->failure   ? strerrorname_np(waiter->failure)
					   : "done");
		if (waiter->number == SYS_semtimedop)
			semctl(waiter->fd, 0, IPC_RMID);
	}
	return 0;
}
