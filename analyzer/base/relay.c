#include "analyzer/base/relay.h"

/* With no attributes, none of this fails. */
void relay_init(struct relay *relay)
{
	*relay = (struct relay){ .next = 0 };
	pthread_mutex_init(&relay->mutex, NULL);
	for (size_t i = 0; i < MOST_LOOP_THREADS; i++)
		pthread_cond_init(&relay->passed[i], NULL);
}

void relay_deinit(struct relay *relay)
{
	for (size_t i = 0; i < MOST_LOOP_THREADS; i++)
		pthread_cond_destroy(&relay->passed[i]);
	pthread_mutex_destroy(&relay->mutex);
}

static pthread_cond_t *passed_to(struct relay *relay, size_t number)
{
	return &relay->passed[number % MOST_LOOP_THREADS];
}

bool relay_take(struct relay *relay, size_t number)
{
	bool ended;

	pthread_mutex_lock(&relay->mutex);
	while (relay->next != number && !relay->ended)
		pthread_cond_wait(passed_to(relay, number), &relay->mutex);
	ended = relay->ended;
	pthread_mutex_unlock(&relay->mutex);
	return !ended;
}

void relay_pass(struct relay *relay)
{
	pthread_mutex_lock(&relay->mutex);
	relay->next++;
	pthread_cond_broadcast(passed_to(relay, relay->next));
	pthread_mutex_unlock(&relay->mutex);
}

void relay_end(struct relay *relay)
{
	pthread_mutex_lock(&relay->mutex);
	relay->ended = true;
	for (size_t i = 0; i < MOST_LOOP_THREADS; i++)
		pthread_cond_broadcast(&relay->passed[i]);
	pthread_mutex_unlock(&relay->mutex);
}
