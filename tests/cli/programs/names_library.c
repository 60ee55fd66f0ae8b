/* The library that names.c loads: its thread-local memory is allocated late. */

struct store {
	void *volatile slots[4];
};

static struct store store;
__thread struct store thread_store;

void library_hold(void *in_static, void *in_thread);

void library_hold(void *in_static, void *in_thread)
{
	store.slots[1] = in_static;
	thread_store.slots[2] = in_thread;
}
