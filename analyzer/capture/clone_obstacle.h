/*
 * Why a process should not be cloned, as far as that can be known before it is held.
 */
#ifndef ANALYZER_CAPTURE_CLONE_OBSTACLE_H
#define ANALYZER_CAPTURE_CLONE_OBSTACLE_H

#include "analyzer/capture/process.h"

/*
 * ERROR_NOT_SUPPORTED with the reason, or NULL. The clone shares size bytes of memory with the
 * process, until that writes to them.
 */
struct error *clone_obstacle(pid_t process, const struct memory_map *map, uint64_t size);

/* What the machine could give without pushing others out, in bytes. */
uint64_t available_memory(void);

#endif
