#include "analyzer/types/inference.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/macros.h"

/*
 * A target of "void *" whose own pointers are all null says nothing of its type: it is what others
 * are to which the same member leads, in the same structures or at least in those that the
 * same variable leads to. So the deleted entries of a table are known, of which nothing else is
 * left. At least ten of just that size must be known, nearly all of one type, and hardly any other
 * may look unlike it.
 */

/* The targets of one size of the same member. */
struct alike {
	uint64_t key;
	type_number type; /* of the first that is known */
	uint64_t count;	  /* of that type */
	uint64_t silent;  /* which say nothing that speaks against it */
	uint64_t others;
};

struct silence {
	struct typing *typing;
	HASH_TABLE(struct alike) peers;
	HASH_TABLE(type_number) holders; /* types that have such members */
};

enum { ANYWHERE, IN_CONTEXT, KEYS };

static bool is_open(const struct typing *typing, const struct slot *slot)
{
	return !slot->is_choice && slot->guard_count == 0 &&
	       typing_type(typing, slot->target)->kind == TYPE_NONE;
}

static void set_keys(const struct typing *typing, allocation_id holder, const struct slot *slot,
		     allocation_id id, uint64_t keys[KEYS])
{
	uint64_t size = allocation_size(typing->input.index, id);

	keys[ANYWHERE] =
		hash_add(hash_add(hash_add(1, known_type(typing, holder)), slot->way), size);
	keys[IN_CONTEXT] = hash_add(keys[ANYWHERE], typing->contexts.items[holder]);
}

/* Set the keys of what has no type, if a "void *" of a value that fills an allocation led to it. */
static bool find_keys(const struct silence *silence, allocation_id id, uint64_t keys[KEYS])
{
	struct typing *typing = silence->typing;
	struct type_step step;
	const struct slot *slot;
	uint64_t address;
	type_number type;

	if (known_fit(typing, id) != FIT_NONE || !typing_step_to(typing, id, &step) ||
	    step.from == NO_ALLOCATION || known_fit(typing, step.from) < FIT_ARRAY)
		return false;
	slot = inference_slot_to(typing, id, &address, &type);
	if (!slot || type != known_type(typing, step.from) || !is_open(typing, slot))
		return false;
	set_keys(typing, step.from, slot, id, keys);
	return true;
}

static struct alike *find_alike(struct silence *silence, uint64_t key)
{
	return table_find(&silence->peers, key, item, item->key == key);
}

static struct error *gather(struct silence *silence, allocation_id id)
{
	struct type_step step;
	uint64_t keys[KEYS];
	type_number type;

	if (!find_keys(silence, id, keys))
		return NULL;
	for (size_t i = 0; i < KEYS; i++)
		if (!find_alike(silence, keys[i]))
			TRY(table_append(&silence->peers, keys[i],
					 (struct alike){ .key = keys[i] }));
	typing_step_to(silence->typing, id, &step);
	type = known_type(silence->typing, step.from);
	return table_find(&silence->holders, type, item, *item == type)
		       ? NULL
		       : table_append(&silence->holders, type, type);
}

static void count_known(struct silence *silence, allocation_id holder, const struct slot *slot,
			uint64_t pointer)
{
	const struct typing *typing = silence->typing;
	allocation_id id = find_used(typing, pointer);
	uint64_t keys[KEYS];
	struct alike *alike;

	if (id == NO_ALLOCATION || known_fit(typing, id) == FIT_NONE ||
	    allocation_start(typing->input.index, id) != pointer)
		return;
	set_keys(typing, holder, slot, id, keys);
	for (size_t i = 0; i < KEYS; i++) {
		alike = find_alike(silence, keys[i]);
		if (!alike)
			continue;
		if (alike->type == NO_TYPE && known_fit(typing, id) == FIT_ONE)
			alike->type = known_type(typing, id);
		if (known_fit(typing, id) == FIT_ONE && known_type(typing, id) == alike->type)
			alike->count++;
		else
			alike->others++;
	}
}

/* Count what members of the allocation lead to whose targets are looked for. */
static struct error *count_targets(struct silence *silence, allocation_id holder)
{
	struct typing *typing = silence->typing;
	const type_number type = known_type(typing, holder);
	const uint64_t size = typing_type(typing, type)->size;
	const struct memory_range range = range_of(typing, holder);
	const uint64_t last = known_fit(typing, holder) == FIT_ARRAY ? range.end : range.start + 1;
	const struct slot *slots;
	uint64_t word;
	size_t count;

	if (known_fit(typing, holder) < FIT_ARRAY || size == 0 ||
	    !table_find(&silence->holders, type, item, *item == type))
		return NULL;
	TRY(slots_of(&typing->slots, type, &slots, &count));
	for (uint64_t at = range.start; at < last && size <= range.end - at; at += size)
		for (size_t i = 0; i < count; i++)
			if (is_open(typing, &slots[i]) &&
			    read_word(typing, at + slots[i].offset, &word))
				count_known(silence, holder, &slots[i], word);
	return NULL;
}

/* Set *ret if its words say nothing that speaks for the type or against it. */
static struct error *is_silent(struct typing *typing, allocation_id id, type_number type, bool *ret)
{
	struct memory_range range = range_of(typing, id);
	struct conformity conformity;

	TRY(typing_conforms(typing, range.start, type, &conformity));
	*ret = !conformity.is_violated && conformity.confirmed == 0 && conformity.doubtful == 0 &&
	       !is_text(typing, range.start) &&
	       is_just_as_large(typing, range, typing_type(typing, type)->size);
	return NULL;
}

static bool are_alike(const struct alike *alike)
{
	return alike->count >= ENOUGH && alike->others * 50 <= alike->count + alike->silent;
}

static struct error *count_silent(struct silence *silence, allocation_id id)
{
	uint64_t keys[KEYS];
	bool is;

	if (!find_keys(silence, id, keys))
		return NULL;
	for (size_t i = 0; i < KEYS; i++) {
		struct alike *alike = find_alike(silence, keys[i]);

		if (alike->count < ENOUGH)
			continue;
		TRY(is_silent(silence->typing, id, alike->type, &is));
		alike->silent += is;
		alike->others += !is;
	}
	return NULL;
}

static struct error *assign(struct silence *silence, allocation_id id)
{
	struct typing *typing = silence->typing;
	uint64_t keys[KEYS];
	bool is = false;

	if (!find_keys(silence, id, keys))
		return NULL;
	for (size_t i = 0; i < KEYS && !is; i++) {
		const struct alike *alike = find_alike(silence, keys[i]);

		if (!are_alike(alike) || typing_is_denied(typing, id, alike->type))
			continue;
		TRY(is_silent(typing, id, alike->type, &is));
		if (is)
			TRY(typing_set(typing, id, alike->type, FIT_ONE, true));
	}
	return NULL;
}

static struct error *find_silent(struct silence *silence)
{
	static struct error *(*const passes[])(struct silence * silence,
					       allocation_id id) = { gather, count_targets,
								     count_silent, assign };

	for (size_t i = 0; i < COUNT_OF(passes); i++) {
		bitmap_for_each(id, &silence->typing->reached)
			TRY(passes[i](silence, (allocation_id)id));
		if (silence->peers.count == 0)
			break;
	}
	return NULL;
}

struct error *infer_silent(struct typing *typing)
{
	struct silence silence = { .typing = typing,
				   .peers.memory.account = typing->input.account,
				   .holders.memory.account = typing->input.account };
	struct error *error = find_silent(&silence);

	tables_release(&silence.peers, &silence.holders);
	return error;
}
