#include "cli/serve/guard.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static bool make_token(char ret[static TOKEN_SIZE])
{
	unsigned char bytes[(TOKEN_SIZE - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

bool guard_init(struct guard *guard, const char *address, uint16_t port)
{
	*guard = (struct guard){ .address = address, .port = port };
	snprintf(guard->cookie, sizeof(guard->cookie), "heapcore_%u", port);
	return make_token(guard->token) && make_token(guard->once);
}

/* Takes as long wherever they differ. */
static bool is_same(const char *token, const char *given)
{
	unsigned char differs = 0;

	if (!given || strlen(given) != TOKEN_SIZE - 1)
		return false;
	for (size_t i = 0; i < TOKEN_SIZE - 1; i++)
		differs |= (unsigned char)(token[i] ^ given[i]);
	return !differs;
}

bool guard_takes_token(struct guard *guard, const char *token)
{
	if (is_same(guard->token, token))
		return true;
	if (!is_same(guard->once, token))
		return false;
	return !__atomic_exchange_n(&guard->once_used, true, __ATOMIC_SEQ_CST);
}

bool guard_takes_cookie(const struct guard *guard, const char *value)
{
	return is_same(guard->token, value);
}

/* Split "name:port" and "[::1]:port"; no port is the usual one. */
static bool split_host(const char *host, char *ret_name, size_t size, unsigned long *ret_port)
{
	size_t length = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");
	const char *rest = host + length + (host[0] == '[' && host[length]);
	size_t first = host[0] == '[';
	char *end;

	if (length - first >= size || length < first)
		return false;
	memcpy(ret_name, host + first, length - first);
	ret_name[length - first] = '\0';
	*ret_port = 80;
	if (!*rest)
		return true;
	if (*rest != ':' || rest[1] < '0' || rest[1] > '9')
		return false;
	*ret_port = strtoul(rest + 1, &end, 10);
	return !*end;
}

static bool is_numeric(const char *name)
{
	struct in6_addr buffer;

	return inet_pton(AF_INET, name, &buffer) == 1 || inet_pton(AF_INET6, name, &buffer) == 1;
}

static bool is_loopback(const char *name)
{
	return strcmp(name, "localhost") == 0 || strncmp(name, "127.", 4) == 0 ||
	       strcmp(name, "::1") == 0;
}

static bool is_this_machine(const char *name)
{
	char own[256] = "";

	gethostname(own, sizeof(own) - 1);
	return own[0] && strcasecmp(name, own) == 0;
}

/* The owner of a name can make it lead here, but not an address. */
bool guard_takes_host(const struct guard *guard, const char *host)
{
	char name[256];
	unsigned long port;

	if (!host || !split_host(host, name, sizeof(name), &port))
		return false;
	/* A program that forwards to the path listens at a port of its own. */
	if (!guard->address)
		return is_loopback(name);
	if (port != guard->port)
		return false;
	if (!guard->address[0])
		return strcmp(name, "localhost") == 0 || is_numeric(name) || is_this_machine(name);
	return strcmp(name, guard->address) == 0 ||
	       (is_loopback(guard->address) && strcmp(name, "localhost") == 0);
}

bool guard_takes_origin(const char *host, const char *origin, const char *fetch_site)
{
	static const char SCHEME[] = "http://";
	size_t length = strlen(SCHEME);

	if (fetch_site && strcmp(fetch_site, "same-origin") != 0 && strcmp(fetch_site, "none") != 0)
		return false;
	return !origin ||
	       (strncmp(origin, SCHEME, length) == 0 && strcmp(origin + length, host) == 0);
}
