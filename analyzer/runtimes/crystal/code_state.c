#include "analyzer/runtimes/crystal/code_state.h"

#include <string.h>

void code_state_forget(struct code_state *state)
{
	memset(state->registers, 0, sizeof(state->registers));
	state->slot_count = 0;
}

struct slot *code_state_find(struct code_state *state, const struct slot *place)
{
	for (size_t i = 0; i < state->slot_count; i++)
		if (state->slots[i].place == place->place &&
		    state->slots[i].by_frame == place->by_frame)
			return &state->slots[i];
	return NULL;
}

void code_state_set(struct code_state *state, const struct slot *place, struct value value)
{
	struct slot *slot = code_state_find(state, place);

	if (!slot && value.kind == UNKNOWN)
		return;
	if (!slot) {
		if (state->slot_count == SLOTS)
			state->slot_count = 0;
		slot = &state->slots[state->slot_count++];
		*slot = *place;
	}
	slot->value = value;
}

static bool is_same(struct value value, struct value other)
{
	return value.kind == other.kind && value.number == other.number;
}

void code_state_intersect(struct code_state *state, const struct code_state *other)
{
	struct code_state copy = *other;

	for (size_t i = 0; i < REGISTERS; i++)
		if (!is_same(state->registers[i], other->registers[i]))
			state->registers[i].kind = UNKNOWN;
	if (state->depth != other->depth)
		state->slot_count = 0;
	for (size_t i = 0; i < state->slot_count; i++) {
		const struct slot *slot = code_state_find(&copy, &state->slots[i]);

		if (!slot || !is_same(slot->value, state->slots[i].value))
			state->slots[i].value.kind = UNKNOWN;
	}
	for (size_t i = 0; i < MOST_FOLLOWED / 64; i++)
		state->typed[i] |= other->typed[i];
}

static void rename_value(struct value *value, size_t made, size_t other)
{
	if (value->kind == MADE && value->number == made)
		value->number = other;
}

void code_state_rename(struct code_state *state, size_t made, size_t other)
{
	for (size_t i = 0; i < REGISTERS; i++)
		rename_value(&state->registers[i], made, other);
	for (size_t i = 0; i < state->slot_count; i++)
		rename_value(&state->slots[i].value, made, other);
}

bool code_state_take_type(struct code_state *state, size_t made)
{
	uint64_t bit = UINT64_C(1) << (made % 64);
	bool had = state->typed[made / 64] & bit;

	state->typed[made / 64] |= bit;
	return !had;
}
