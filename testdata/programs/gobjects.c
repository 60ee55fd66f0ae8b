/*
 * Objects of GLib's GObject, kept and lost: "HeapAccount", and "HeapOrder", which is derived from
 * it and has private parts. libgobject is loaded, so that no headers are needed.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline))

enum {
	G_TYPE_OBJECT = 80,
	CLASS_SIZE = 136, /* of GObjectClass */
	ACCOUNT_SIZE = 48,
	ORDER_SIZE = 64,
	PRIVATE_SIZE = 40,
	ACCOUNTS = 300,
	ORDERS = 500,
	LOST = 7,
};

static uintptr_t (*register_type)(uintptr_t parent, const char *name, unsigned int class_size,
				  void *class_init, unsigned int instance_size, void *instance_init,
				  int flags);
static int (*add_private)(uintptr_t type, size_t size);
static void *(*new_object)(uintptr_t type, const char *first, ...);

static void *volatile kept[ACCOUNTS + ORDERS];

static OUT_OF_LINE void load(void)
{
	void *library = dlopen("libgobject-2.0.so.0", RTLD_NOW);

	*(void **)&register_type = dlsym(library, "g_type_register_static_simple");
	*(void **)&add_private = dlsym(library, "g_type_add_instance_private");
	*(void **)&new_object = dlsym(library, "g_object_new");
}

static OUT_OF_LINE void make(void)
{
	uintptr_t account = register_type(G_TYPE_OBJECT, "HeapAccount", CLASS_SIZE, NULL,
					  ACCOUNT_SIZE, NULL, 0);
	uintptr_t order =
		register_type(account, "HeapOrder", CLASS_SIZE, NULL, ORDER_SIZE, NULL, 0);

	add_private(order, PRIVATE_SIZE);
	for (int i = 0; i < ACCOUNTS; i++)
		kept[i] = new_object(account, NULL);
	for (int i = 0; i < ORDERS + LOST; i++)
		kept[ACCOUNTS + i % ORDERS] = new_object(order, NULL);
}

int main(void)
{
	load();
	make();
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
