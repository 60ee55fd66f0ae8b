/*
 * Layouts are those of <sys/procfs.h> and of the Linux kernel's fs/binfmt_elf.c.
 */
#include "analyzer/capture/notes.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <time.h>

enum {
	VECTORS_SIZE = 1 << 16, /* more than any processor's state so far */
	SIGINFO_SIZE = 128,
};

/* Room for size more bytes, zeroed, and NULL if memory is short. */
static void *extend(struct notes *notes, size_t size)
{
	void *place;

	if (!notes->bytes || notes->room - notes->size < size) {
		size_t room = 2 * notes->room + size;
		uint8_t *bytes = realloc(notes->bytes, room);

		if (!bytes)
			return NULL;
		notes->bytes = bytes;
		notes->room = room;
	}
	place = notes->bytes + notes->size;
	memset(place, 0, size);
	notes->size += size;
	return place;
}

static size_t pad(size_t size)
{
	return (size + 3) & ~(size_t)3;
}

/* Add a note; returns the place of its size bytes, zeroed, or NULL. */
static void *add_note(struct notes *notes, const char *owner, uint32_t type, size_t size)
{
	size_t name_size = strlen(owner) + 1;
	Elf64_Nhdr *header = extend(notes, sizeof(*header) + pad(name_size) + pad(size));

	if (!header)
		return NULL;
	*header = (Elf64_Nhdr){
		.n_namesz = (uint32_t)name_size,
		.n_descsz = (uint32_t)size,
		.n_type = type,
	};
	memcpy(header + 1, owner, name_size);
	return (uint8_t *)(header + 1) + pad(name_size);
}

static struct error *add_copy(struct notes *notes, const char *owner, uint32_t type,
			      const void *bytes, size_t size)
{
	void *place;

	if (size > UINT32_MAX - 3)
		return error_create(ERROR_NOT_SUPPORTED, "%zu bytes are too many for a note", size);
	place = add_note(notes, owner, type, size);
	TRY_MEMORY(place);
	memcpy(place, bytes, size);
	return NULL;
}

/* Fields of a stat file of /proc, behind the name. */
struct standing {
	char letter;
	int parent, group, session;
	uint64_t flags, user_ticks, system_ticks;
	int nice;
	uint64_t start_ticks; /* since the machine booted */
};

static void parse_standing(const char *text, struct standing *ret)
{
	const char *rest = text ? strrchr(text, ')') : NULL;

	*ret = (struct standing){ .letter = 'R' };
	if (rest)
		sscanf(rest + 1,
		       " %c %d %d %d %*d %*d %" SCNu64 " %*u %*u %*u %*u %" SCNu64 " %" SCNu64
		       " %*d %*d %*d %d %*d %*d %" SCNu64,
		       &ret->letter, &ret->parent, &ret->group, &ret->session, &ret->flags,
		       &ret->user_ticks, &ret->system_ticks, &ret->nice, &ret->start_ticks);
}

static struct timeval ticks_to_time(uint64_t ticks)
{
	uint64_t second = (uint64_t)sysconf(_SC_CLK_TCK);

	return (struct timeval){
		.tv_sec = (time_t)(ticks / second),
		.tv_usec = (suseconds_t)(ticks % second * 1000000 / second),
	};
}

/*
 * Read where a thread that cannot be stopped is in a system call; the kernel shows two of its
 * registers.
 */
static void read_place(pid_t thread, uint64_t ret[static MOST_REGISTERS])
{
	_cleanup_(free) char *text = process_thread_text(thread, "syscall");
	long long number, stack, place;

	if (!text ||
	    sscanf(text, "%lld %*x %*x %*x %*x %*x %*x %llx %llx", &number, &stack, &place) != 3)
		return;
	ret[machine.arch->system_call] = (uint64_t)number;
	ret[machine.arch->stack_pointer] = (uint64_t)stack;
	ret[machine.arch->instruction] = (uint64_t)place;
}

static struct error *read_registers(const struct held_thread *thread,
				    uint64_t ret[static MOST_REGISTERS])
{
	size_t size = machine.arch->register_count * sizeof(*ret);
	struct iovec place = { ret, size };

	memset(ret, 0, size);
	if (!thread->stopped) {
		read_place(thread->id, ret);
		return NULL;
	}
	if (ptrace(PTRACE_GETREGSET, thread->id, NT_PRSTATUS, &place) < 0)
		return error_system("the registers of thread %d", thread->id);
	if (place.iov_len != size)
		return error_create(ERROR_NOT_SUPPORTED,
				    "runs as a 32-bit program; only %s is supported",
				    machine.arch->name);
	return NULL;
}

static struct error *add_status(struct notes *notes, const struct held_thread *thread, int signal)
{
	_cleanup_(free) char *stat = process_thread_text(thread->id, "stat");
	_cleanup_(free) char *text = process_thread_text(thread->id, "status");
	struct elf_prstatus status = { 0 };
	uint64_t registers[MOST_REGISTERS];
	struct standing standing;

	TRY(read_registers(thread, registers));
	parse_standing(stat, &standing);
	status.pr_info.si_signo = signal;
	status.pr_cursig = (short)signal;
	status.pr_sigpend = process_status_field(text, "SigPnd", 16, 0);
	status.pr_sighold = process_status_field(text, "SigBlk", 16, 0);
	status.pr_pid = thread->id;
	status.pr_ppid = standing.parent;
	status.pr_pgrp = standing.group;
	status.pr_sid = standing.session;
	status.pr_utime = ticks_to_time(standing.user_ticks);
	status.pr_stime = ticks_to_time(standing.system_ticks);
	memcpy(&status.pr_reg, registers, sizeof(status.pr_reg));
	status.pr_fpvalid = 1;
	return add_copy(notes, "CORE", NT_PRSTATUS, &status, sizeof(status));
}

/* The command line as one, blanks between its words. */
static void read_command(pid_t process, char *ret, size_t room)
{
	_cleanup_(free) char *text = NULL;
	size_t size;
	struct error *error = process_read(process, "cmdline", &text, &size);

	if (error) {
		error_destroy(error);
		return;
	}
	size = MIN(size, room - 1);
	for (size_t i = 0; i < size; i++)
		ret[i] = text[i] ? text[i] : ' ';
}

static struct error *add_process(struct notes *notes, pid_t process, pid_t thread)
{
	struct elf_prpsinfo info = { 0 };
	static const char letters[] = "RSDTZW";
	_cleanup_(free) char *text = process_text(process, "stat");
	struct standing standing;
	const char *state;

	parse_standing(text, &standing);
	state = strchr(letters, standing.letter);
	info.pr_state = (char)(state ? state - letters : 0);
	info.pr_sname = standing.letter;
	info.pr_zomb = standing.letter == 'Z';
	info.pr_nice = (char)standing.nice;
	info.pr_flag = standing.flags;
	info.pr_uid = (unsigned int)process_status(process, "Uid", 10, 0);
	info.pr_gid = (unsigned int)process_status(process, "Gid", 10, 0);
	info.pr_pid = process;
	info.pr_ppid = standing.parent;
	info.pr_pgrp = standing.group;
	info.pr_sid = standing.session;
	process_name(thread, info.pr_fname);
	read_command(thread, info.pr_psargs, sizeof(info.pr_psargs));
	return add_copy(notes, "CORE", NT_PRPSINFO, &info, sizeof(info));
}

static struct error *add_signal(struct notes *notes, pid_t thread, int signal)
{
	union {
		siginfo_t info;
		uint8_t bytes[SIGINFO_SIZE];
	} what = { 0 };

	if (!signal || ptrace(PTRACE_GETSIGINFO, thread, NULL, &what.info) < 0 ||
	    what.info.si_signo != signal) {
		memset(&what, 0, sizeof(what));
		what.info.si_signo = signal;
		what.info.si_code = SI_KERNEL; /* no process, as far as known */
	}
	return add_copy(notes, "CORE", NT_SIGINFO, &what, sizeof(what));
}

static struct error *add_auxiliary(struct notes *notes, pid_t process)
{
	_cleanup_(free) char *bytes = NULL;
	size_t size;

	TRY(process_read(process, "auxv", &bytes, &size));
	return add_copy(notes, "CORE", NT_AUXV, bytes, size);
}

/* A path as /proc writes it, with \012 for a line feed, into ret. */
static size_t unescape(const char *path, size_t size, char *ret)
{
	size_t length = 0;

	for (size_t i = 0; i < size; i++) {
		if (size - i >= 4 && memcmp(path + i, "\\012", 4) == 0) {
			ret[length++] = '\n';
			i += 3;
		} else {
			ret[length++] = path[i];
		}
	}
	ret[length++] = '\0';
	return length;
}

/*
 * A count, a page size, then { start, end, offset in pages } for each mapping of a file, then their
 * paths, each with its NUL.
 */
static struct error *add_files(struct notes *notes, const struct memory_map *map)
{
	_cleanup_(free) uint64_t *entries = NULL;
	size_t count = 0, text = 0, length = 0, next = 2;
	char *paths;

	for (size_t i = 0; i < map->count; i++) {
		count += map->areas[i].of_file;
		text += map->areas[i].of_file ? map->areas[i].path_size + 1 : 0;
	}
	entries = calloc(1, (2 + 3 * count) * sizeof(*entries) + text);
	TRY_MEMORY(entries);
	entries[0] = count;
	entries[1] = PAGE;
	paths = (char *)(entries + 2 + 3 * count);
	list_for_each(area, map->areas, map->count) {
		if (!area->of_file)
			continue;
		entries[next++] = area->start;
		entries[next++] = area->end;
		entries[next++] = area->offset / PAGE;
		length += unescape(area->path, area->path_size, paths + length);
	}
	return add_copy(notes, "CORE", NT_FILE, entries,
			(2 + 3 * count) * sizeof(*entries) + length);
}

/* The state of one kind of registers; one that a thread has not is left out. */
static struct error *add_vectors(struct notes *notes, const struct held_thread *thread,
				 const struct xstate_layout *layout, const char *owner,
				 uint32_t type)
{
	_cleanup_(free) void *bytes = malloc(VECTORS_SIZE);
	struct iovec place = { bytes, VECTORS_SIZE };
	uint8_t note[XSTATE_NOTE_SIZE];

	TRY_MEMORY(bytes);
	if (!thread->stopped || ptrace(PTRACE_GETREGSET, thread->id, type, &place) < 0)
		return NULL;
	if (type == NT_X86_XSTATE) {
		size_t size = xstate_write_note(layout, bytes, place.iov_len, note);

		return add_copy(notes, owner, type, note, size);
	}
	return add_copy(notes, owner, type, bytes, place.iov_len);
}

/* Add the notes about the whole process, which follow the first thread's status. */
static struct error *add_common(struct notes *notes, const struct held_process *held, int signal,
				const struct memory_map *map)
{
	pid_t thread = held->threads[0].id;

	TRY(add_process(notes, held->id, thread));
	TRY(add_signal(notes, thread, signal));
	TRY(add_auxiliary(notes, thread));
	return add_files(notes, map);
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now = { 0 };

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The process stands still by now. */
static struct error *add_time(struct notes *notes, pid_t process)
{
	_cleanup_(free) char *text = process_text(process, "stat");
	struct time_note time = { .time = read_clock(CLOCK_REALTIME) };
	uint64_t second = (uint64_t)sysconf(_SC_CLK_TCK), now = read_clock(CLOCK_BOOTTIME), start;
	struct standing standing;

	parse_standing(text, &standing);
	start = standing.start_ticks / second * 1000000000 +
		standing.start_ticks % second * 1000000000 / second;
	if (standing.start_ticks && start < now)
		time.age = now - start;
	return add_copy(notes, NOTE_OWNER, NOTE_TIME, &time, sizeof(time));
}

/* Add the kinds that were sought, then the values. */
static struct error *add_held(struct notes *notes, const struct held_values *values)
{
	size_t size = values->count * sizeof(*values->values);
	uint8_t *place;

	if (size > UINT32_MAX / 2)
		return error_create(ERROR_NOT_SUPPORTED,
				    "%zu values that the kernel holds are too many", values->count);
	place = add_note(notes, NOTE_OWNER, NOTE_HELD, sizeof(values->sought) + size);
	TRY_MEMORY(place);
	memcpy(place, &values->sought, sizeof(values->sought));
	if (size > 0)
		memcpy(place + sizeof(values->sought), values->values, size);
	return NULL;
}

struct error *notes_write(const struct held_process *held, int signal, const struct memory_map *map,
			  const struct held_values *values, const struct xstate_layout *layout,
			  struct notes *ret)
{
	_cleanup_(notes_deinit) struct notes notes = { 0 };

	for (size_t i = 0; i < held->count; i++) {
		const struct held_thread *thread = &held->threads[i];

		TRY(add_status(&notes, thread, i == 0 ? signal : 0));
		if (i == 0)
			TRY(add_common(&notes, held, signal, map));
		TRY(add_vectors(&notes, thread, layout, "CORE", NT_FPREGSET));
		for (const uint32_t *type = machine.notes; *type; type++)
			TRY(add_vectors(&notes, thread, layout, "LINUX", *type));
	}
	TRY(add_time(&notes, held->id));
	TRY(add_held(&notes, values));
	TRY(add_copy(&notes, NOTE_OWNER, NOTE_SMAPS, map->text, map->text_size));
	*ret = notes;
	notes = (struct notes){ 0 };
	return NULL;
}

struct error *notes_add_ranges(struct notes *notes, uint32_t type, const struct note_range *ranges,
			       size_t count)
{
	if (count == 0)
		return NULL;
	return add_copy(notes, NOTE_OWNER, type, ranges, count * sizeof(*ranges));
}

void notes_deinit(struct notes *notes)
{
	free(notes->bytes);
}
