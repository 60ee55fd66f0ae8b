/*
 * How long something takes.
 */
#ifndef ANALYZER_BASE_CLOCK_H
#define ANALYZER_BASE_CLOCK_H

#include <time.h>

/* Seconds since some moment, always the same one while the machine runs. */
static inline double clock_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

#endif
