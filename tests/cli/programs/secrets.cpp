/*
 * What a core should not show: a secret, from the environment, in every kind of
 * memory; and names that the test makes hostile.
 *
 * Writes the addresses of the secret in the heap and of its holder.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>

struct HOSTILE_NAME_MARKER {
	virtual ~HOSTILE_NAME_MARKER() = default;
	std::string short_string, long_string;
	HOSTILE_NAME_MARKER *next = nullptr;
};

static char in_data[64];
static char *in_heap;
static HOSTILE_NAME_MARKER *holder;

__attribute__((noinline)) static void HOSTILE_CALL_MARKER(const char *secret)
{
	char on_stack[64];

	snprintf(on_stack, sizeof(on_stack), "%s", secret);
	printf("%p %p\n", static_cast<void *>(in_heap),
	       static_cast<void *>(holder));
	fflush(stdout);
	for (;;) {
		pause();
		in_data[0] = on_stack[0];
	}
}

static void lose(const char *secret)
{
	for (int i = 0; i < 100; i++) {
		auto *lost = new HOSTILE_NAME_MARKER;

		lost->short_string = secret;
		lost->next = holder;
	}
}

int main()
{
	const char *secret = getenv("SECRET");

	snprintf(in_data, sizeof(in_data), "%s", secret);
	in_heap = strdup(secret);
	holder = new HOSTILE_NAME_MARKER;
	holder->short_string = secret;
	holder->long_string = std::string("a longer text with ") + secret;
	lose(secret);
	HOSTILE_CALL_MARKER(secret);
}
