#include "analyzer/heap/cycle.h"

#include <string.h>

static uint64_t member_at(const void *members, size_t bytes, size_t number)
{
	uint64_t address;

	memcpy(&address, (const uint8_t *)members + bytes * number, sizeof(address));
	return address;
}

size_t cycle_cut(const void *members, size_t bytes, size_t count, uint64_t next, uint64_t *ret)
{
	size_t period = 1, i = 0;

	while (period < count && member_at(members, bytes, count - period) != next)
		period++;
	while (i + period < count &&
	       member_at(members, bytes, i) != member_at(members, bytes, i + period))
		i++;
	*ret = member_at(members, bytes, i);
	return i + period;
}
