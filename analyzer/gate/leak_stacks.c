#include "analyzer/gate/leak_stacks.h"

#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/table.h"
#include "analyzer/base/text.h"
#include "analyzer/capture/recorder.h"
#include "analyzer/classify/type_names.h"
#include "analyzer/program/debug/names.h"
#include "analyzer/runtimes/module_data.h"

#include <string.h>
#include <xxhash.h>

/* A table of blocks is searched no further, whatever a damaged core says. */
enum { MOST_STEPS = 1 << 16, MOST_NAMED = 1 << 12 };

/* A stack, and what tells it from others of the leak: where it is, or what its calls are named. */
struct keyed_stack {
	struct leak_stack stack;
	uint64_t key;
};

struct stack_table {
	HASH_TABLE(struct keyed_stack);
};

struct finder {
	struct stack_table found;
	struct view view;
	uint64_t header;
};

static bool is_magic(struct view *view, uint64_t place, uint64_t word, void *data)
{
	char magic[sizeof(((struct recorder_header *)0)->magic)];

	return view_read(view, place, magic, sizeof(magic)) &&
	       memcmp(magic, RECORDER_MAGIC, sizeof(magic)) == 0;
}

/* The address of the recorder's header, or 0. */
static uint64_t find_header(const struct analysis *analysis)
{
	const struct program *program = analysis_program(analysis);

	list_for_each(module, program->modules, program->module_count)
		if (strstr(module_name(module), RECORDER_FILE))
			return module_data_search_in(analysis_image(analysis), module, is_magic,
						     NULL);
	return 0;
}

/* The stack that the recorder has of the block; 0: it has none. */
static uint64_t find_stack(struct finder *finder, uint64_t address)
{
	uint64_t hash = recorder_hash(address);
	uint64_t shard = finder->header + offsetof(struct recorder_header, shards) +
			 recorder_shard_of(hash) * sizeof(struct recorder_shard);
	struct recorder_shard head;
	struct recorded_block block;

	if (!view_read(&finder->view, shard, &head, sizeof(head)) || head.room == 0)
		return 0;
	for (uint64_t i = 0; i < head.room && i < MOST_STEPS; i++) {
		uint64_t place = ~head.blocks + (hash + i) % head.room * sizeof(block);

		if (!view_read(&finder->view, place, &block, sizeof(block)) || !block.address)
			return 0;
		if (~block.address == address)
			return block.stack;
	}
	return 0;
}

/* Add roots whose stack has that key, unless it is known. */
static struct error *count_roots(struct stack_table *found, struct leak_stack stack, uint64_t key)
{
	struct keyed_stack *known =
		table_find(found, key ^ stack.fingerprint, item,
			   item->key == key && item->stack.fingerprint == stack.fingerprint);

	if (!known)
		return table_append(found, key ^ stack.fingerprint,
				    (struct keyed_stack){ stack, key });
	known->stack.roots += stack.roots;
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct leak_stack *left = a, *right = b;

	if (left->fingerprint != right->fingerprint)
		return left->fingerprint < right->fingerprint ? -1 : 1;
	if (left->roots != right->roots)
		return left->roots > right->roots ? -1 : 1;
	return left->stack < right->stack ? -1 : left->stack > right->stack;
}

static struct error *find_stacks(struct analysis *analysis, struct finder *finder)
{
	_cleanup_(leak_kinds_deinit) struct leak_kinds kinds = { 0 };
	const struct leak_side *side = &kinds.certain;

	TRY(leak_kinds_find(analysis, LEAKS_CERTAIN, &kinds));
	for (size_t i = 0; side->leaks && i < side->leaks->count; i++) {
		uint64_t address =
			allocation_start(analysis_index(analysis), side->leaks->roots[i].id);
		uint64_t stack = find_stack(finder, address);

		if (stack)
			TRY(count_roots(
				&finder->found,
				(struct leak_stack){ kinds.list[side->kinds.items[i]].fingerprint,
						     1, stack },
				stack));
	}
	return NULL;
}

/* The hash of what is shown of the calls. */
static struct error *hash_calls(const struct leak_stacks *stacks, const struct leak_stack *stack,
				uint64_t *ret)
{
	struct backtrace calls = { 0 };

	TRY(leak_stack_calls(stacks, stack, &calls));
	*ret = calls.count;
	list_for_each(frame, calls.frames, calls.count) {
		const char *texts[] = { frame->function, frame->source };

		for (size_t i = 0; i < 2; i++)
			*ret = texts[i] ? XXH3_64bits_withSeed(texts[i], strlen(texts[i]), *ret)
					: *ret * 31 + frame->address;
	}
	free(calls.frames);
	return NULL;
}

/* Calls from the same line, as of a loop that was unrolled, are shown as one. */
static struct error *join_alike(const struct stack_table *found, struct leak_stacks *ret)
{
	_cleanup_(table_release) struct stack_table alike = {
		.memory.account = found->memory.account,
		.slots.memory.account = found->memory.account,
	};

	array_for_each(one, found) {
		uint64_t key = one->key;

		if (alike.count < MOST_NAMED)
			TRY(hash_calls(ret, &one->stack, &key));
		TRY(count_roots(&alike, one->stack, key));
	}
	array_for_each(one, &alike)
		TRY(array_append(&ret->list, one->stack));
	array_sort(&ret->list, compare);
	return NULL;
}

static struct error *read_core(struct analysis *analysis, struct leak_stacks *ret)
{
	struct memory_account *account = analysis_account(analysis);
	_cleanup_(table_release) struct finder finder = {
		.found.memory.account = account,
		.found.slots.memory.account = account,
	};
	struct recorder_header header;

	TRY(analysis_need(analysis, STAGE_DEBUG));
	finder.view.image = analysis_image(analysis);
	finder.header = find_header(analysis);
	if (!finder.header || !view_read(&finder.view, finder.header, &header, sizeof(header)) ||
	    header.version != RECORDER_VERSION)
		return error_create(ERROR_NOT_SUPPORTED, "the recorder did not run in the program");
	TRY(find_stacks(analysis, &finder));
	ret->list.memory.account = account;
	ret->words = ~header.stacks;
	ret->lost = header.lost;
	return join_alike(&finder.found, ret);
}

struct error *leak_stacks_find(struct analysis *analysis, const char *path, struct leak_stacks *ret)
{
	TRY(analysis_open_beside(analysis, path, &ret->analysis));
	return read_core(ret->analysis, ret);
}

void leak_stacks_deinit(struct leak_stacks *stacks)
{
	array_release(&stacks->list);
	if (stacks->analysis)
		analysis_destroy(stacks->analysis);
}

const struct leak_stack *leak_stacks_of(const struct leak_stacks *stacks, uint64_t fingerprint,
					size_t *ret_count)
{
	const struct leak_stack *list = stacks->list.items;
	size_t count = stacks->list.count;
	size_t begin = fingerprint ? LIST_ABOVE(list, count, fingerprint, fingerprint - 1) : 0;

	*ret_count = LIST_ABOVE(list, count, fingerprint, fingerprint) - begin;
	return *ret_count ? &list[begin] : NULL;
}

/* The calls up to main(), or to where a thread begins: what libc called before tells nothing. */
static size_t count_own(const struct backtrace *calls)
{
	static const char *const starts[] = { "__libc_start_call_main", "__libc_start_main",
					      "start_thread" };

	for (size_t i = 0; i < calls->count; i++) {
		const char *function = calls->frames[i].function;

		if (function && strcmp(function, "main") == 0)
			return i + 1;
		for (size_t j = 0; function && j < COUNT_OF(starts); j++)
			if (strcmp(function, starts[j]) == 0)
				return i;
	}
	return calls->count;
}

struct error *leak_stack_calls(const struct leak_stacks *stacks, const struct leak_stack *stack,
			       struct backtrace *ret)
{
	const struct image *image = analysis_image(stacks->analysis);
	uint64_t words[RECORDER_DEPTH + 1], at = stacks->words + stack->stack * sizeof(*words);

	if (stack->stack >= RECORDER_STACK_WORDS || !image_read_u64(image, at, words) ||
	    words[0] > RECORDER_DEPTH ||
	    !image_read(image, at, words, (words[0] + 1) * sizeof(*words)))
		return error_create(ERROR_NOT_SUPPORTED, "the recorder's stacks are damaged");
	TRY(debug_calls_at(analysis_debug(stacks->analysis), words + 1, words[0], ret));
	ret->count = count_own(ret);
	return NULL;
}

/* True for the recorder and a language's library, which do not have the program's own code. */
static bool is_library(const struct module *module)
{
	return !module || module_is_of_language(module) ||
	       strncmp(module_name(module), RECORDER_FILE, strlen(RECORDER_FILE)) == 0;
}

const struct frame *leak_stack_caller(const struct backtrace *calls)
{
	list_for_each(frame, calls->frames, calls->count)
		if (!is_library(frame->module) && frame->function &&
		    !name_is_of_library(frame->function))
			return frame;
	return NULL;
}

char *leak_caller_text(const struct frame *frame)
{
	_cleanup_(free) char *name = short_name(frame->function);
	const char *folder = frame->source ? strrchr(frame->source, '/') : NULL;
	const char *source = folder ? folder + 1 : frame->source;

	return name ? format_text("%s (%s)", name, source ? source : module_name(frame->module))
		    : NULL;
}
