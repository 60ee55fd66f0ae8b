#include "analyzer/base/ranks.h"

#include "analyzer/base/cleanup.h"

struct error *ranks_init(struct ranks *ranks, struct bitmap *members,
			 struct memory_account *account)
{
	_cleanup_(ranks_deinit) struct ranks made = { .members = *members };

	*members = (struct bitmap){ 0 };
	made.before.memory.account = account;
	TRY(array_resize(&made.before, bitmap_word_count(&made.members)));
	for (size_t i = 0; i < made.before.count; i++) {
		made.before.items[i] = (uint32_t)made.count;
		made.count += bits_count(made.members.words[i]);
	}
	*ranks = take_struct(made);
	return NULL;
}

void ranks_deinit(struct ranks *ranks)
{
	bitmap_deinit(&ranks->members);
	array_release(&ranks->before);
	ranks->count = 0;
}
