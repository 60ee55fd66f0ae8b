#include "analyzer/gate/leak_stacks.h"

#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/table.h"
#include "analyzer/base/text.h"
#include "analyzer/capture/recorder.h"
#include "analyzer/kinds/allocated_by.h"
#include "analyzer/runtimes/runtimes.h"

#include <string.h>
#include <xxhash.h>

enum { MOST_NAMED = 1 << 12 };

/* A stack, and what tells it from others of the leak: where it is, or what its calls are named. */
struct keyed_stack {
	struct leak_stack stack;
	uint64_t key;
};

struct stack_table {
	HASH_TABLE(struct keyed_stack);
};

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
	if (!left->stack != !right->stack)
		return left->stack ? -1 : 1;
	if (left->roots != right->roots)
		return left->roots > right->roots ? -1 : 1;
	return left->stack < right->stack ? -1 : left->stack > right->stack;
}

static struct error *find_stacks(struct analysis *analysis, struct recorded *recorded,
				 struct stack_table *found)
{
	_cleanup_(leak_kinds_deinit) struct leak_kinds kinds = { 0 };
	const struct leak_side *side = &kinds.certain;

	TRY(leak_kinds_find(analysis, LEAKS_CERTAIN, &kinds));
	for (size_t i = 0; side->leaks && i < side->leaks->count; i++) {
		uint64_t address =
			allocation_start(analysis_index(analysis), side->leaks->roots[i].id);
		uint64_t stack = recorded_stack(recorded, address);

		TRY(count_roots(found,
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

	TRY(recorded_calls(&stacks->recorded, stack->stack, &calls));
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
	_cleanup_(table_release) struct stack_table found = {
		.memory.account = account,
		.slots.memory.account = account,
	};

	ret->list.memory.account = account;
	TRY(find_stacks(analysis, &ret->recorded, &found));
	return join_alike(&found, ret);
}

struct error *leak_stacks_find(struct analysis *analysis, const char *path, struct leak_stacks *ret)
{
	TRY(analysis_open_beside(analysis, path, &ret->analysis));
	TRY(recorded_open(ret->analysis, &ret->recorded));
	return read_core(ret->analysis, ret);
}

struct error *leak_stacks_find_noted(struct analysis *analysis, struct leak_stacks *ret)
{
	TRY(recorded_open_notes(analysis, &ret->recorded));
	return ret->recorded.noting ? read_core(analysis, ret) : NULL;
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

/* True for the recorder and a language's library, which do not have the program's own code. */
static bool is_library(const struct module *module)
{
	return !module || module_is_of_language(module) ||
	       strncmp(module_file_name(module), RECORDER_FILE, strlen(RECORDER_FILE)) == 0;
}

/* True for headers, and what is compiled into each program of a language. */
static bool is_installed(const char *source)
{
	static const char *const folders[] = { "/usr/include/", "/usr/lib/", "/usr/share/" };

	for (size_t i = 0; source && i < COUNT_OF(folders); i++)
		if (strncmp(source, folders[i], strlen(folders[i])) == 0)
			return true;
	return false;
}

bool leak_call_is_own(const struct frame *frame)
{
	if (is_installed(frame->source))
		return false;
	if (frame->is_script)
		return !runtimes_know_path(runtime_kinds, frame->source);
	if (!frame->function)
		return false;
	return !is_library(frame->module) && !name_is_of_library(frame->function);
}

/* Beside a script, calls of its interpreter's modules or without a source lead there only. */
static bool is_own_beside_script(const struct frame *frame)
{
	return frame->source && leak_call_is_own(frame) &&
	       (frame->is_script || !runtimes_know_path(runtime_kinds, frame->module->path));
}

static bool is_script(const struct frame *frame)
{
	return frame->is_script;
}

static const struct frame *find_frame(const struct backtrace *calls,
				      bool (*takes)(const struct frame *frame))
{
	list_for_each(frame, calls->frames, calls->count)
		if (takes(frame))
			return frame;
	return NULL;
}

const struct frame *leak_stack_caller(const struct backtrace *calls)
{
	const struct frame *script = find_frame(calls, is_script);
	const struct frame *own =
		find_frame(calls, script ? is_own_beside_script : leak_call_is_own);

	return own ? own : script;
}

char *leak_calls_text(const struct backtrace *calls, size_t most)
{
	const struct frame *end = calls->frames + calls->count, *frame = leak_stack_caller(calls);
	char *text = strdup("");

	for (frame = frame ? frame : calls->frames; text && most && frame < end; frame++) {
		_cleanup_(free) char *before = text, *call = NULL;

		if (!frame->function && !frame->is_script) {
			before = NULL;
			continue;
		}
		call = call_text(frame);
		text = call ? format_text("%s%s%s", before, *before ? " < " : "", call) : NULL;
		most--;
	}
	return text;
}
