/*
 * A server in miniature whose cache only grows, for docs/tutorial.md. Nothing
 * is lost: each session stays in the cache, along with the pages it has seen.
 * With "older" it waits for a line, so that a core can be taken in between.
 */
#include <cstdio>
#include <memory>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace web
{
class Session {
    public:
	explicit Session(int number)
		: user("user-" + std::to_string(number) + "@mail.example.com")
	{
	}
	virtual ~Session() = default;
	void see(const std::string &page)
	{
		pages.push_back(page);
	}

    private:
	std::string user;
	std::vector<std::string> pages;
};

/* It evicts nothing: and so it is a leak, though none that is lost. */
class SessionCache {
    public:
	virtual ~SessionCache() = default;
	Session &find(int number)
	{
		std::unique_ptr<Session> &session =
			sessions["session-identifier-" +
				 std::to_string(number)];

		if (!session)
			session = std::make_unique<Session>(number);
		return *session;
	}

    private:
	std::unordered_map<std::string, std::unique_ptr<Session>> sessions;
};
} // namespace web

static web::SessionCache *cache;

static void serve(int request)
{
	web::Session &session = cache->find(request % 1000);

	session.see("/catalogue/articles/" + std::to_string(request) + ".html");
}

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

int main()
{
	char line;

	cache = new web::SessionCache;
	for (int request = 0; request < 2000; request++)
		serve(request);
	say("older");
	if (read(STDIN_FILENO, &line, 1) < 0)
		return 1;
	for (int request = 2000; request < 8000; request++)
		serve(request);
	say("ready");
	pause();
}
