#include "cli/views/leak_root_row.h"

#include "analyzer/account/dangling.h"

void leak_root_row(struct report *report, const struct analysis *analysis,
		   const struct leak_root *root)
{
	static const struct table table = TABLE(
		"leak root",
		"The allocation at 0x{address} is[ in a ring of {ring} leaked allocations with no references from outside][ {why}]\n"
		"[It is a leak root: losing it leaked {owned} {owned|allocation|allocations}, 0x{bytes} ({bytes,}) bytes][It is a leak root{alone}]",
		{ "address", VALUE_ADDRESS }, { "why", VALUE_TEXT }, { "ring", VALUE_COUNT },
		{ "owned", VALUE_COUNT }, { "bytes", VALUE_BYTES }, { "alone", VALUE_TEXT });
	bool owner = root->owned_count > 1;

	report_single(report, &table, allocation_start(analysis_index(analysis), root->id),
		      root->members > 1 ? NULL : "unreferenced: nothing in use refers to it",
		      VALUE_IF(root->members > 1, root->members),
		      VALUE_IF(owner, root->owned_count), root->owned_bytes,
		      owner ? NULL : "; nothing else leaked with it");
}

struct error *freed_holder_row(struct report *report, struct analysis *analysis, allocation_id id)
{
	static const struct table table = TABLE(
		"freed holder",
		"What held it was freed first: the free block at 0x{address} of size 0x{size} still has its address, at 0x{place}",
		{ "address", VALUE_ADDRESS }, { "size", VALUE_BYTES }, { "place", VALUE_ADDRESS });
	const struct allocation_index *index = analysis_index(analysis);
	struct freed_holder holder;
	bool found = false;

	TRY(dangling_find_freed_holder(analysis, id, &holder, &found));
	if (found)
		report_single(report, &table, allocation_start(index, holder.block),
			      allocation_size(index, holder.block), holder.place);
	return NULL;
}
