/*
 * A small heap of the Boehm collector: objects of each kind, of a few sizes, some of them garbage,
 * with finalizers and disappearing links.
 */
#include <gc.h>
#include <string.h>
#include <unistd.h>

struct node {
	struct node *next, *other;
	char text[16];
};

static struct node *volatile kept;
static void *volatile hidden;

static void finalize(void *object, void *data)
{
	(void)object;
	(void)data;
}

static struct node *chain(size_t count)
{
	struct node *first = NULL;

	for (size_t i = 0; i < count; i++) {
		struct node *node = GC_MALLOC(sizeof(*node) + 16 * (i % 5));

		node->next = first;
		node->other = GC_MALLOC_ATOMIC(24 + 40 * (i % 3));
		memset(node->other, 'a' + (int)(i % 26), 20);
		if (i % 8 == 0)
			GC_REGISTER_FINALIZER(node, finalize, NULL, NULL, NULL);
		first = node;
	}
	return first;
}

static void work(void)
{
	struct node *uncollectable = GC_MALLOC_UNCOLLECTABLE(64);

	kept = chain(60);
	uncollectable->next = GC_MALLOC(10000);
	uncollectable->other = GC_malloc_atomic_uncollectable(48);
	hidden = (void *)GC_HIDE_POINTER(kept->next);
	GC_general_register_disappearing_link((void **)&hidden, kept->next);
	chain(40);
	GC_gcollect();
	chain(20);
}

int main(void)
{
	GC_INIT();
	work();
	for (;;)
		pause();
}
