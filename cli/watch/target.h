/*
 * Targets of `heapcore watch`: a process, the largest process of a name, a control group, or a
 * unit of systemd, which is the group of that name; and the limits of its memory.
 *
 * A unit or name that does not run is waited for.
 */
#pragma once

#include "analyzer/base/error.h"
#include "analyzer/base/group.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum target_kind { TARGET_PROCESS, TARGET_NAME, TARGET_GROUP, TARGET_UNIT };

struct target {
	const char *word; /* as it was given; borrowed */
	enum target_kind kind;
	pid_t process;		      /* TARGET_PROCESS; or the one of the name, or 0 */
	int end;		      /* a file that can be read once that has ended; else -1 */
	char folder[GROUP_PATH_SIZE]; /* of the group; "": a unit that was not found yet */
};

/* Take apart "4711", "name:shop", "/system.slice/shop.service", a folder, or "shop.service". */
struct error *target_open(const char *word, struct target *ret);
void target_close(struct target *target);
DEFINE_DEINIT(target_close, struct target)

/* True if nothing will come any more. A unit is looked for anew. */
bool target_has_ended(struct target *target);

/* Its processes, in no order: how many there are; at most that many are in ret. */
enum { MOST_PROCESSES = 4096 };
size_t target_processes(struct target *target, pid_t ret[static MOST_PROCESSES]);

/* The name of the process, as ps shows it; "": it has ended. */
enum { TARGET_NAME_SIZE = 16 };
void target_name(pid_t process, char ret[static TARGET_NAME_SIZE]);

/* Private memory of the process, in bytes; 0: it has ended. */
uint64_t anonymous_memory(pid_t process);

/* Limits of its memory. */
enum meter_kind { METER_GROUP, METER_ADDRESSES, METER_DATA, METER_MACHINE };

struct meter {
	enum meter_kind kind;
	pid_t process; /* one of the target's */
	uint64_t most; /* of a resource limit */
	struct group_limit limit;
	unsigned int readings;
};

enum { MOST_METERS = 4 };

/* Find them; there are none as long as the target has no process. */
size_t target_meters(struct target *target, struct meter ret[static MOST_METERS]);

/* Bytes used, and at most. Above percent of the limit they are exact. False: it is gone. */
bool meter_read(struct meter *meter, unsigned int percent, uint64_t *ret_used, uint64_t *ret_most);

/* "the limit of its control group", for people. */
const char *meter_name(const struct meter *meter);
