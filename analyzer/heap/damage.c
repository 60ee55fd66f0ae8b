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

void heap_list_damage_report(const struct heap_list_damage *damage, struct findings *findings,
			     const char *allocator, const char *blocks)
{
	char what[128];

	snprintf(what, sizeof(what), "free %s whose link was overwritten after they were freed",
		 blocks);
	heap_damage_report(&damage->links, findings, allocator, what,
			   "what may follow in their lists counts as used");
	snprintf(what, sizeof(what), "free %s that were freed twice, as lists have them twice",
		 blocks);
	heap_damage_report(&damage->twice, findings, allocator, what,
			   "they may be handed out twice");
}
