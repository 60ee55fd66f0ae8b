#include "analyzer/capture/process.h"

#include "analyzer/base/list.h"
#include "analyzer/capture/machine.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

enum { FIRST_READ = 1 << 16 };

/* All of fd, in reads as large as can be: the kernel makes text per read. */
static struct error *read_all(int fd, char **ret, size_t *ret_size)
{
	_cleanup_(free) char *text = NULL;
	size_t room = FIRST_READ, size = 0;
	ssize_t taken = 1;

	while (taken != 0) {
		char *larger = text;

		if (!text || room - size < room / 2) {
			room *= 2;
			larger = realloc(text, room + 1);
		}
		TRY_MEMORY(larger);
		text = larger;
		taken = read(fd, text + size, room - size);
		if (taken < 0 && errno == EINTR)
			continue;
		if (taken < 0)
			return error_system("cannot be read");
		size += (size_t)taken;
	}
	text[size] = '\0';
	*ret = take(text);
	*ret_size = size;
	return NULL;
}

/* The whole of a file of /proc, with a NUL behind, to be freed. */
static struct error *process_read_file(const char *path, char **ret, size_t *ret_size)
{
	_cleanup_(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct error *error;

	if (fd < 0)
		return error_system("%s", path);
	error = read_all(fd, ret, ret_size);
	if (error)
		return error_wrap(error, "%s", path);
	return NULL;
}

ssize_t process_peek(pid_t process, uint64_t address, void *ret, size_t size)
{
	struct iovec here = { ret, size }, there = { (void *)(uintptr_t)address, size };

	return process_vm_readv(process, &here, 1, &there, 1, 0);
}

uint64_t available_memory(void)
{
	_cleanup_(free) char *text = NULL;
	size_t size;
	struct error *error = process_read_file("/proc/meminfo", &text, &size);
	const char *line = text ? strstr(text, "MemAvailable:") : NULL;

	if (error)
		error_destroy(error);
	return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) * 1024 : 0;
}

struct error *process_read(pid_t process, const char *name, char **ret, size_t *ret_size)
{
	struct error *error;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", process, name);
	error = process_read_file(path, ret, ret_size);
	snprintf(path, sizeof(path), "/proc/%d", process);
	if (!error || access(path, F_OK) == 0)
		return error;
	error_destroy(error);
	return error_create(ERROR_USAGE, "there is no process %d", process);
}

char *process_text(pid_t process, const char *name)
{
	char *text = NULL;
	size_t size;
	struct error *error = process_read(process, name, &text, &size);

	if (error)
		error_destroy(error);
	return text;
}

char *process_thread_text(pid_t thread, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "task/%d/%s", thread, name);
	return process_text(thread, path);
}

uint64_t process_status_field(const char *text, const char *field, int base, uint64_t fallback)
{
	size_t length = strlen(field);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, field, length) == 0 && line[length] == ':')
			return strtoull(line + length + 1, NULL, base);
	}
	return fallback;
}

uint64_t process_status(pid_t process, const char *field, int base, uint64_t fallback)
{
	_cleanup_(free) char *text = process_text(process, "status");

	return process_status_field(text, field, base, fallback);
}

void process_name(pid_t process, char ret[static PROCESS_NAME_SIZE])
{
	_cleanup_(free) char *text = process_text(process, "comm");

	snprintf(ret, PROCESS_NAME_SIZE, "%.*s", text ? (int)strcspn(text, "\n") : 0,
		 text ? text : "");
}

enum program_kind process_kind(pid_t process)
{
	_cleanup_(close) int fd = -1;
	Elf64_Ehdr header;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", process);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, &header, sizeof(header)) != sizeof(header))
		return PROGRAM_UNKNOWN;
	return header.e_ident[EI_CLASS] == machine.arch->class &&
			       header.e_machine == machine.arch->machine
		       ? PROGRAM_NATIVE
		       : PROGRAM_OTHER;
}

static uint8_t parse_rights(const char *letters)
{
	return (uint8_t)((letters[0] == 'r' ? PF_R : 0) | (letters[1] == 'w' ? PF_W : 0) |
			 (letters[2] == 'x' ? PF_X : 0));
}

/*
 * "7f00-7f01 r-xp 00001000 fe:00 1234   /path". Not by sscanf(), which looks
 * for the end of all the text each time.
 */
static struct memory_area parse_head(const char *line, size_t length)
{
	char *next;
	struct memory_area area = { .start = strtoull(line, &next, 16) };

	area.end = strtoull(next + (*next == '-'), &next, 16);
	next += strspn(next, " ");
	if (strnlen(next, 4) < 4)
		return area;
	area.rights = parse_rights(next);
	area.shared = next[3] == 's';
	area.offset = strtoull(next + 4, &next, 16);
	next += strspn(next, " ");
	next += strcspn(next, " \n"); /* the device */
	area.inode = strtoull(next, &next, 10);
	area.of_file = area.inode != 0;
	next += strspn(next, " ");
	area.path = next;
	area.path_size = (size_t)(line + length - next);
	return area;
}

static void parse_flags(const char *flags, size_t length, struct memory_area *area)
{
	for (size_t i = 0; i + 3 <= length; i += 3) {
		const char *flag = flags + i + 1;

		area->excluded |= memcmp(flag, "dd", 2) == 0;
		area->device |= memcmp(flag, "io", 2) == 0 || memcmp(flag, "pf", 2) == 0;
		area->huge |= memcmp(flag, "ht", 2) == 0;
		area->unforked |= memcmp(flag, "dc", 2) == 0 || memcmp(flag, "wf", 2) == 0;
		area->watched |= memcmp(flag, "um", 2) == 0 || memcmp(flag, "uw", 2) == 0 ||
				 memcmp(flag, "ui", 2) == 0;
	}
}

/* A line below the head: "Rss:   12 kB" or "VmFlags: rd wr dd". */
static void parse_detail(const char *line, size_t length, struct memory_area *area)
{
	size_t name = strcspn(line, ":\n");
	const char *value = line + name + (line[name] == ':');

	if (strncmp(line, "VmFlags:", 8) == 0) {
		parse_flags(value, length - 8, area);
	} else if (strncmp(line, "Rss:", 4) == 0) {
		area->resident += strtoull(value, NULL, 10) * 1024;
	} else if (strncmp(line, "Swap:", 5) == 0) {
		area->resident += strtoull(value, NULL, 10) * 1024;
		area->written += strtoull(value, NULL, 10) * 1024;
	} else if (strncmp(line, "Anonymous:", 10) == 0) {
		area->written += strtoull(value, NULL, 10) * 1024;
	}
}

static struct error *parse_areas(const char *text, struct memory_map *map)
{
	for (const char *line = text; line && *line;) {
		size_t length = strcspn(line, "\n");

		/* Details begin with a capital, addresses never do. */
		if (*line >= 'A' && *line <= 'Z') {
			if (map->count > 0)
				parse_detail(line, length, &map->areas[map->count - 1]);
		} else {
			TRY(LIST_APPEND(map->areas, map->count, parse_head(line, length)));
		}
		line += length + (line[length] == '\n');
	}
	return NULL;
}

struct error *memory_map_read(pid_t process, struct memory_map *ret)
{
	_cleanup_(memory_map_deinit) struct memory_map map = { 0 };

	TRY(process_read(process, "smaps", &map.text, &map.text_size));
	TRY(parse_areas(map.text, &map));
	if (map.count == 0)
		return error_create(
			ERROR_NOT_SUPPORTED,
			"process %d has no memory: it is about to end, or is a part of the kernel",
			process);
	*ret = map;
	map = (struct memory_map){ 0 };
	return NULL;
}

/* Take over what the old areas, by address, tell of the one. */
static bool know_area(const struct memory_map *old, size_t *next, struct memory_area *area)
{
	const struct memory_area *known;

	while (*next < old->count && old->areas[*next].end <= area->start)
		++*next;
	known = *next < old->count ? &old->areas[*next] : NULL;
	if (!known || known->start >= area->end || known->of_file != area->of_file ||
	    known->shared != area->shared)
		return false;
	area->device = known->device;
	area->excluded = known->excluded;
	area->huge = known->huge;
	area->unforked = known->unforked;
	area->watched = known->watched;
	area->resident = known->resident;
	area->written = known->written;
	return true;
}

struct error *memory_map_renew(pid_t process, struct memory_map *map, bool *ret_known)
{
	_cleanup_(memory_map_deinit) struct memory_map renewed = { 0 };
	size_t size, next = 0;

	TRY(process_read(process, "maps", &renewed.renewed, &size));
	TRY(parse_areas(renewed.renewed, &renewed));
	*ret_known = renewed.count > 0;
	for (size_t i = 0; i < renewed.count && *ret_known; i++)
		*ret_known = know_area(map, &next, &renewed.areas[i]);
	if (!*ret_known)
		return NULL;
	renewed.text = take(map->text);
	renewed.text_size = map->text_size;
	memory_map_deinit(map);
	*map = renewed;
	renewed = (struct memory_map){ 0 };
	return NULL;
}

void memory_map_deinit(struct memory_map *map)
{
	free(map->text);
	free(map->renewed);
	free(map->areas);
}

bool memory_area_has_path(const struct memory_area *area, const char *path)
{
	return area->path_size == strlen(path) && memcmp(area->path, path, area->path_size) == 0;
}

bool memory_area_is_nameless(const struct memory_area *area)
{
	static const char mark[] = " (deleted)";
	size_t length = strlen(mark);

	return area->path_size > length &&
	       memcmp(area->path + area->path_size - length, mark, length) == 0;
}
