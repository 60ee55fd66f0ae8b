#pragma once

#include <stdint.h>

/* The address of the variable in variables_other.c that has the name of one in variables.c. */
uintptr_t other_ticks(void);
