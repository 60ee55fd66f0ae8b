#pragma once

#include <stdint.h>

/* Where the variable of variables_other.c is that has the name of one of variables.c. */
uintptr_t other_ticks(void);
