#include "variables.h"

static volatile int ticks = 2;

uintptr_t other_ticks(void)
{
	return (uintptr_t)&ticks;
}
