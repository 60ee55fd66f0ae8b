#include "analyzer/heap/damage.h"

#include <inttypes.h>

void heap_damage_report(const struct heap_damage *damage, struct findings *findings,
			const char *allocator, const char *what, const char *follows)
{
	if (damage->count > 0)
		findings_add(findings, FINDING_INCOMPLETE,
			     "%s: %s: %" PRIu64 ", the first at %#" PRIx64 "; %s", allocator, what,
			     damage->count, damage->first, follows);
}
