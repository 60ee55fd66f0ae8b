/*
 * When the other threads of a program wait, as of the kernel: so a test need not hope that some
 * time is enough. Nothing is allocated.
 */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct settle_entry {
	uint64_t number;
	int64_t offset;
	uint16_t size;
	uint8_t type;
	char name[5]; /* at least */
};

/* True if a thread is in a system call, other than for a lock. */
static inline bool settle_waits(int folder, const char *thread)
{
	char path[64], text[128] = "";
	int file;

	snprintf(path, sizeof(path), "%s/syscall", thread);
	file = openat(folder, path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	if (read(file, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(file);
	return text[0] >= '0' && text[0] <= '9' && atol(text) != SYS_futex;
}

static inline bool settle_all_wait(int folder)
{
	char entries[4096] __attribute__((aligned(8)));
	long size = syscall(SYS_getdents64, folder, entries, sizeof(entries));
	long own = syscall(SYS_gettid);

	for (long at = 0; at < size;) {
		const struct settle_entry *entry = (const struct settle_entry *)(entries + at);

		if (entry->name[0] != '.' && atol(entry->name) != own &&
		    !settle_waits(folder, entry->name))
			return false;
		at += entry->size;
	}
	return size > 0;
}

/* Wait until all other threads do, of which there are a hundred at most. */
static inline void settle(void)
{
	int folder = open("/proc/self/task", O_RDONLY | O_CLOEXEC);

	while (folder >= 0 && !settle_all_wait(folder)) {
		usleep(1000);
		lseek(folder, 0, SEEK_SET);
	}
	close(folder);
}
