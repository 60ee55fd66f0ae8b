/*
 * The control blocks of std::shared_ptr, known by the names of their classes.
 */
#ifndef ANALYZER_CLASSIFY_CONTROL_BLOCK_H
#define ANALYZER_CLASSIFY_CONTROL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum {
	NO_CONTROL_BLOCK = UINT32_MAX,
	LONGEST_CONTROL_BLOCK = 34, /* as much of a name as is looked at */
};

/*
 * Where the object begins that std::make_shared() put into the control block of that class; 0: it
 * holds none, or one of no class. The name is as in a type_info, with or without the * in front.
 */
uint32_t control_block_object(const char *mangled);

/* What is shared, by the class's readable name, to be freed; NULL: no idea. */
char *control_block_shared(const char *full);

#endif
