/* A program of multicall.c that does not run. */
struct globals {
	double limits[40];
	struct globals *outer;
};

struct globals other = { .limits = { 1 } };

int multicall_other(void);

int multicall_other(void)
{
	return other.outer || other.limits[0] > 1;
}
