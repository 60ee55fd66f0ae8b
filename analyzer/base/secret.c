#include "analyzer/base/secret.h"

#include <string.h>
#include <sys/auxv.h>

uint64_t secret_factor(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);

	/* The first half guards stacks: it is better not given away. */
	if (random)
		memcpy(&factor, (const char *)random + sizeof(factor), sizeof(factor));
	return factor | 1;
}
