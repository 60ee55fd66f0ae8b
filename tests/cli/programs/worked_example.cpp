/*
 * The example that the help of `extend` works out: 57 sessions, each of which
 * owns a map of long strings. All numbers are known:
 *
 *	 57 sessions
 *	171 map nodes, three for each: so the session itself leads to all
 *	129 long strings in the nodes: two in each session, three in 15
 *	 57 buffers, and 23 long names of sessions
 *
 * No memory is freed before all is made, so none holds what was there before.
 */
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>

namespace app {

enum { SESSIONS = 57, NODES = 3, WITH_THREE = 15, NAMED = 23, LONG = 40 };

struct Session {
	std::map<int, std::string> headers;
	std::string name;
	char *buffer = new char[100]();

	virtual ~Session() = default;
};

} // namespace app

static std::vector<app::Session *> sessions;

int main()
{
	sessions.reserve(app::SESSIONS);
	for (int i = 0; i < app::SESSIONS; i++) {
		app::Session *session = new app::Session;

		for (int j = 0; j < app::NODES; j++)
			session->headers[j].assign(
				j < 2 || i < app::WITH_THREE ? app::LONG : 5,
				'x');
		session->name.assign(i < app::NAMED ? app::LONG : 5, 'n');
		sessions.push_back(session);
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
