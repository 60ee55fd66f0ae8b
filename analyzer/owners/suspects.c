#include "analyzer/owners/suspects.h"

enum { LEAST_PART = 20, NEARLY_ALL = 80 /* percent */ };

struct finder {
	const struct frames *frames;
	enum owner_measure measure;
};

static uint64_t held_by(const struct finder *finder, const struct owner_frame *frame)
{
	return frame->total[finder->measure].bytes;
}

/* Whether it stands for roots that are none together, and its children are looked at instead. */
static bool is_shared(const struct finder *finder, const struct owner_frame *frame)
{
	const struct owners *owners = finder->frames->owners;

	return frame->depth == 1 && !frame->others &&
	       owners->nodes.items[frame->node].name == owners->shared;
}

/* The kind below which there is no other that holds nearly all. The first child holds most. */
static const struct owner_frame *follow(const struct finder *finder,
					const struct owner_frame *frame)
{
	const struct owner_frame *all = finder->frames->list.items;

	for (;;) {
		const struct owner_frame *child = frame + 1;

		if (all + frame->end == child || child->others ||
		    held_by(finder, child) / NEARLY_ALL < held_by(finder, frame) / 100)
			return frame;
		frame = child;
	}
}

/* Keep it among the largest. */
static size_t keep(const struct finder *finder, struct suspect *suspects, size_t count,
		   struct suspect suspect)
{
	const uint64_t held = held_by(finder, suspect.owner);
	size_t place = count < MOST_SUSPECTS ? count : MOST_SUSPECTS - 1;

	if (count == MOST_SUSPECTS && held_by(finder, suspects[place].owner) >= held)
		return count;
	for (; place > 0 && held_by(finder, suspects[place - 1].owner) < held; place--)
		suspects[place] = suspects[place - 1];
	suspects[place] = suspect;
	return count < MOST_SUSPECTS ? count + 1 : count;
}

size_t suspects_find(const struct frames *frames, enum owner_measure measure,
		     struct suspect ret[static MOST_SUSPECTS])
{
	const struct finder finder = { frames, measure };
	const struct owner_frame *all = frames->list.items;
	size_t count = 0;

	for (size_t i = 1; i < frames->list.count;) {
		const struct owner_frame *frame = &all[i];

		if (is_shared(&finder, frame)) {
			i++;
			continue;
		}
		i = frame->end;
		if (!frame->others && held_by(&finder, frame) >= held_by(&finder, all) / LEAST_PART)
			count = keep(&finder, ret, count,
				     (struct suspect){ frame, follow(&finder, frame) });
	}
	return count;
}
