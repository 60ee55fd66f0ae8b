/*
 * Releasing locals at the end of their scope.
 *
 *	_cleanup_(image_close) struct image *image = NULL;
 *
 * calls image_close(image) on every way out, unless the pointer was handed over with take(). A type
 * opts in with DEFINE_CLEANUP() behind its destroy function, which then is never called with NULL.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(function) __attribute__((cleanup(cleanup_##function)))

#define DEFINE_CLEANUP(function, type)                       \
	static inline void cleanup_##function(type *pointer) \
	{                                                    \
		if (*pointer)                                \
			function(*pointer);                  \
	}

/* For values that live in their owner: the function always runs. */
#define DEFINE_DEINIT(function, type)                      \
	static inline void cleanup_##function(type *value) \
	{                                                  \
		function(value);                           \
	}

/* The variable's value; the variable itself becomes NULL, or all zero. */
#define take(variable)                                    \
	({                                                \
		__typeof__(variable) taken_ = (variable); \
		(variable) = (__typeof__(variable)){ 0 }; \
		taken_;                                   \
	})

/* Take a structure, and leave zeros behind. */
#define take_struct(value)                          \
	({                                          \
		__typeof__(value) taken_ = (value); \
		(value) = (__typeof__(value)){ 0 }; \
		taken_;                             \
	})

DEFINE_CLEANUP(fclose, FILE *)

static inline void cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
