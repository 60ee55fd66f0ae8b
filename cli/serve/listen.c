#include "cli/serve/listen.h"

#include "analyzer/base/text.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST_WAITING = 64 };

static struct error *open_path(const char *path, struct listener *ret)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(path);
	mode_t mask;
	int failed;

	if (!length || length >= sizeof(address.sun_path))
		return error_create(ERROR_USAGE, "the path is empty, or too long for a socket");
	memcpy(address.sun_path, path, length + 1);
	ret->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ret->socket < 0)
		return error_system("a socket");
	mask = umask(S_IXUSR | S_IRWXG | S_IRWXO);
	failed = bind(ret->socket, (struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (failed || listen(ret->socket, MOST_WAITING) < 0)
		return error_system("%s", path);
	ret->path = path;
	return NULL;
}

/* "ADDRESS:PORT"; an address of IPv6 stands in brackets. */
static struct error *split(const char *where, char ret_address[static ADDRESS_SIZE],
			   uint16_t *ret_port)
{
	const char *colon = strrchr(where, ':');
	size_t length = colon ? (size_t)(colon - where) : 0, brackets;
	uint64_t port = 0;

	if (!colon || length >= ADDRESS_SIZE)
		return error_not(where, "unix:PATH or ADDRESS:PORT, as 0.0.0.0:8000");
	TRY(parse_count(colon + 1, &port));
	if (port > UINT16_MAX)
		return error_not(colon + 1, "a port");
	brackets = length > 1 && where[0] == '[' && colon[-1] == ']';
	length -= 2 * brackets;
	memcpy(ret_address, where + brackets, length);
	ret_address[length] = '\0';
	*ret_port = (uint16_t)port;
	return NULL;
}

/* An address of either family. */
union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Names could lead elsewhere: only numbers are taken. */
static bool read_address(const char *text, uint16_t port, union address *ret)
{
	*ret = (union address){ 0 };
	if (inet_pton(AF_INET, text, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons(port);
		return true;
	}
	ret->v6.sin6_family = AF_INET6;
	ret->v6.sin6_port = htons(port);
	return inet_pton(AF_INET6, text, &ret->v6.sin6_addr) == 1;
}

static bool is_any(const union address *address)
{
	return address->any.sa_family == AF_INET ? address->v4.sin_addr.s_addr == INADDR_ANY
						 : IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr);
}

static bool is_own(const union address *address)
{
	return address->any.sa_family == AF_INET
		       ? ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
		       : IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

static struct error *open_address(const char *text, uint16_t port, struct listener *ret)
{
	union address address;
	socklen_t size = sizeof(address);
	int yes = 1;

	if (!read_address(text, port, &address))
		return error_not(text, "the number of an address, as 127.0.0.1");
	ret->socket = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ret->socket < 0)
		return error_system("a socket");
	setsockopt(ret->socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(ret->socket, &address.any,
		 address.any.sa_family == AF_INET ? sizeof(address.v4) : sizeof(address.v6)) < 0 ||
	    listen(ret->socket, MOST_WAITING) < 0 ||
	    getsockname(ret->socket, &address.any, &size) < 0)
		return error_system("%s port %u", text, port);
	ret->port = ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port
							   : address.v6.sin6_port);
	ret->is_public = !is_own(&address);
	if (!is_any(&address))
		snprintf(ret->address, sizeof(ret->address), "%s", text);
	return NULL;
}

static struct error *open_listener(const char *where, uint16_t port, struct listener *ret)
{
	static const char UNIX[] = "unix:";
	char address[ADDRESS_SIZE];

	if (where && strncmp(where, UNIX, strlen(UNIX)) == 0)
		return open_path(where + strlen(UNIX), ret);
	if (!where)
		return open_address("127.0.0.1", port, ret);
	TRY(split(where, address, &port));
	return open_address(address, port, ret);
}

struct error *listener_open(const char *where, uint16_t port, struct listener *ret)
{
	struct error *error;

	*ret = (struct listener){ .socket = -1 };
	error = open_listener(where, port, ret);
	if (error && ret->socket >= 0)
		close(ret->socket);
	return error ? error_wrap(error, "cannot listen") : NULL;
}

void listener_remove(const struct listener *listener)
{
	if (listener->path)
		unlink(listener->path);
}
