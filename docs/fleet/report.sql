-- The tables of 'heapcore fleet report', which runs this file on fleet.db: a row of them is a row of the report. It runs
-- unchanged in SQLite, PostgreSQL and DuckDB, once tables.sql is loaded there; then, such as
--	SELECT * FROM fleet_leak ORDER BY bytes DESC LIMIT 20;
-- Nothing is written: tables and views last as long as the session. A table of the same name before hides the other cores:
--	CREATE TEMP TABLE core AS SELECT * FROM main.core WHERE build = '1.5';
-- where 'main' is 'public' in PostgreSQL. Averages drop the fraction in a way that is the same everywhere: DuckDB's '/' keeps it.

-- Copies of a core have one identity, and count once.
CREATE TEMP TABLE counted AS
SELECT * FROM (SELECT c.*, CASE WHEN identity IS NULL THEN 1
	ELSE row_number() OVER (PARTITION BY identity ORDER BY path) END AS copy FROM core c) AS numbered WHERE copy = 1;

-- Figures are of cores that were analysed as a whole. The first digits of a build-id tell builds apart.
CREATE TEMP TABLE analysed AS
SELECT id, coalesce(origin, path) AS path, host,
	CASE WHEN build = build_id THEN substr(build_id, 1, 12) ELSE coalesce(build, '?') END AS build,
	coalesce(program, '?') AS program, time, uptime / 3600.0 AS hours, used_bytes, leaked_bytes
FROM counted WHERE error IS NULL AND incomplete = 0;
CREATE UNIQUE INDEX analysed_core ON analysed (id);

-- Builds of a program are numbered by the time of their first core.
CREATE TEMP TABLE numbered_build AS
SELECT program, build, min(time) AS first, count(*) AS cores, nullif(count(DISTINCT host), 0) AS hosts,
	CAST((sum(used_bytes) - sum(used_bytes) % count(*)) / count(*) AS BIGINT) AS used,
	CAST((sum(leaked_bytes) - sum(leaked_bytes) % count(*)) / count(*) AS BIGINT) AS leaked,
	CAST(round(avg(hours)) AS BIGINT) AS hours, row_number() OVER (PARTITION BY program ORDER BY min(time), build) AS number,
	row_number() OVER (ORDER BY program, build) AS place
FROM analysed GROUP BY program, build;
-- 'off' is by how many hours the process was older than the average of its build; 'told' is 1 if the core tells its age.
CREATE TEMP TABLE core_build AS
SELECT a.id AS core, b.place, CASE WHEN host IS NOT NULL THEN dense_rank() OVER (ORDER BY host) END AS host, a.hours,
	a.hours - avg(a.hours) OVER (PARTITION BY b.place) AS off,
	CASE WHEN a.hours IS NOT NULL THEN CAST(1 AS DOUBLE PRECISION) END AS told
FROM analysed a JOIN numbered_build b ON b.program = a.program AND b.build = a.build;
CREATE UNIQUE INDEX core_build_core ON core_build (core, place, off, told);
CREATE INDEX core_build_place ON core_build (place);

CREATE TEMP TABLE program AS
SELECT program, CAST(sum(cores) AS BIGINT) AS cores, max(number) AS builds FROM numbered_build GROUP BY program;

-- Leaks of a program; kind and path are those of the first core that leaked the most bytes.
CREATE TEMP TABLE build_leak AS
SELECT l.fingerprint, b.place, CAST(sum(l.bytes) AS BIGINT) AS bytes, max(l.bytes) AS most, count(DISTINCT l.core) AS cores,
	CAST(sum(l.roots) AS BIGINT) AS roots
FROM leak l JOIN core_build b ON b.core = l.core GROUP BY b.place, l.fingerprint;

CREATE TEMP TABLE joined_leak AS
WITH joined AS (
	SELECT b.program, l.fingerprint, CAST(sum(l.bytes) AS BIGINT) AS bytes, max(l.most) AS most,
		CAST(sum(l.cores) AS BIGINT) AS cores, count(*) AS builds, CAST(sum(l.roots) AS BIGINT) AS roots,
		min(b.number) AS first_build, max(b.number) AS last_build
	FROM build_leak l JOIN numbered_build b ON b.place = l.place GROUP BY b.program, l.fingerprint),
example AS (
	SELECT j.program, l.fingerprint, min(l.core) AS core FROM joined j JOIN leak l
		ON l.fingerprint = j.fingerprint AND l.bytes = j.most
	JOIN analysed a ON a.id = l.core AND a.program = j.program GROUP BY j.program, l.fingerprint),
spread AS (
	SELECT program, fingerprint, nullif(count(host), 0) AS hosts
	FROM (SELECT DISTINCT b.program, l.fingerprint, a.host FROM leak l JOIN core_build a ON a.core = l.core
		JOIN numbered_build b ON b.place = a.place) AS seen GROUP BY program, fingerprint)
SELECT j.*, s.hosts, max(l.size) AS size, max(l.kind) AS kind, max(l.allocated_by) AS allocated_by, max(a.path) AS most_in
FROM joined j JOIN spread s ON s.program = j.program AND s.fingerprint = j.fingerprint
JOIN example e ON e.program = j.program AND e.fingerprint = j.fingerprint
JOIN analysed a ON a.id = e.core JOIN leak l ON l.core = e.core AND l.fingerprint = e.fingerprint
GROUP BY j.program, j.fingerprint, j.bytes, j.most, j.cores, j.builds, j.roots, j.first_build, j.last_build, s.hosts;

-- One pass over all kinds, and over what one holder alone keeps ('fleet --holders'); what follows asks the sums. The last
-- three are of cores that tell the age of the process.
CREATE TEMP TABLE build_kind AS
SELECT b.program, b.number, k.kind, k.is_holder, b.cores, k.holders, k.count, k.bytes, k.most, k.by_age, k.told, k.squares
FROM (SELECT a.place, k.kind, 0 AS is_holder, count(*) AS holders, CAST(sum(k.count) AS BIGINT) AS count,
		CAST(sum(k.bytes) AS BIGINT) AS bytes, max(k.bytes) AS most, sum(k.bytes * a.off) AS by_age,
		sum(k.bytes * a.told) AS told, sum(k.bytes * a.told * k.bytes) AS squares
	FROM kind k JOIN core_build a ON a.core = k.core GROUP BY a.place, k.kind
	UNION ALL SELECT a.place, 'held by ' || h.holder, 1, count(*), CAST(sum(h.count) AS BIGINT),
		CAST(sum(h.bytes) AS BIGINT), max(h.bytes), sum(h.bytes * a.off), sum(h.bytes * a.told),
		sum(h.bytes * a.told * h.bytes)
	FROM holder h JOIN core_build a ON a.core = h.core GROUP BY a.place, h.holder) AS k
JOIN numbered_build b ON b.place = k.place;
CREATE UNIQUE INDEX build_kind_name ON build_kind (program, kind, number);

CREATE TEMP TABLE joined_kind AS
SELECT program, kind, CAST(sum(holders) AS BIGINT) AS holders, CAST(sum(count) AS BIGINT) AS count,
	CAST(sum(bytes) AS BIGINT) AS bytes, max(most) AS most
FROM build_kind WHERE is_holder = 0 GROUP BY program, kind;

-- Kinds of which a build has more than the one before, on average, in three quarters of its cores or more. All of them are
-- a kind, too.
CREATE TEMP TABLE grown_kind AS
SELECT k.program, k.number, k.kind FROM build_kind k LEFT JOIN build_kind f
	ON f.program = k.program AND f.kind = k.kind AND f.number = k.number - 1
WHERE k.number > 1 AND 4 * k.holders > 3 * (k.cores - 1) AND k.cores > 2
	AND 1.0 * k.bytes / k.cores > coalesce(1.0 * f.bytes / f.cores, 0) + 1024
UNION ALL SELECT program, number, 'all kinds' FROM numbered_build WHERE number > 1;

-- Quartiles of the bytes in the cores of a build and of the one before, where a core without the kind has none.
CREATE TEMP TABLE kind_spread AS
WITH wanted AS (SELECT * FROM grown_kind UNION SELECT program, number - 1, kind FROM grown_kind),
used AS (
	SELECT w.program, w.number, w.kind, b.cores, k.bytes
	FROM wanted w JOIN numbered_build b ON b.program = w.program AND b.number = w.number
	JOIN core_build a ON a.place = b.place JOIN kind k ON k.core = a.core AND k.kind = w.kind
	UNION ALL SELECT w.program, w.number, w.kind, b.cores, h.bytes
	FROM wanted w JOIN numbered_build b ON b.program = w.program AND b.number = w.number
	JOIN core_build a ON a.place = b.place JOIN holder h ON h.core = a.core AND h.holder = substr(w.kind, 9)
	WHERE substr(w.kind, 1, 8) = 'held by '
	UNION ALL SELECT b.program, b.number, 'all kinds', b.cores, a.used_bytes
	FROM analysed a JOIN numbered_build b ON b.program = a.program AND b.build = a.build),
placed AS (
	SELECT u.*, cores - count(*) OVER (PARTITION BY program, number, kind)
		+ row_number() OVER (PARTITION BY program, number, kind ORDER BY bytes) AS place FROM used u)
SELECT program, number, kind, cores, count(*) AS holders,
	max(CASE WHEN 4 * place >= cores AND 4 * place < cores + 4 THEN bytes ELSE 0 END) AS low,
	max(CASE WHEN 2 * place >= cores AND 2 * place < cores + 2 THEN bytes ELSE 0 END) AS median,
	max(CASE WHEN 4 * place >= 3 * cores AND 4 * place < 3 * cores + 4 THEN bytes ELSE 0 END) AS high
FROM placed GROUP BY program, number, kind, cores;
CREATE UNIQUE INDEX kind_spread_build ON kind_spread (program, kind, number);

CREATE TEMP VIEW fleet AS
SELECT (SELECT count(*) FROM counted) AS cores, (SELECT count(*) FROM program) AS programs, (SELECT count(*) FROM numbered_build) AS builds,
	nullif(count(DISTINCT host), 0) AS hosts, CAST(coalesce(sum(used_bytes), 0) AS BIGINT) AS used,
	CAST(coalesce(sum(leaked_bytes), 0) AS BIGINT) AS leaked, (SELECT count(error) FROM counted) AS failed,
	(SELECT count(*) FROM counted WHERE error IS NULL AND incomplete = 1) AS incomplete,
	nullif((SELECT count(*) FROM counted WHERE error IS NOT NULL OR incomplete = 1), 0) AS left_out,
	nullif((SELECT count(*) FROM core) - (SELECT count(*) FROM counted), 0) AS copies
FROM analysed;

CREATE TEMP VIEW fleet_leak AS
SELECT l.fingerprint, l.bytes, l.most, l.cores, 1.0 * l.cores / p.cores AS share, l.hosts, l.builds, l.roots, l.program,
	l.size, l.kind, l.allocated_by, l.most_in, first.build AS first_build, last.build AS last_build
FROM joined_leak l JOIN program p ON p.program = l.program
JOIN numbered_build first ON first.program = l.program AND first.number = l.first_build
JOIN numbered_build last ON last.program = l.program AND last.number = l.last_build;

-- 'first' is in seconds since 1970; 'hours' for which the processes ran, on average.
CREATE TEMP VIEW fleet_build AS
SELECT program, build, first, cores, hosts, hours, used, leaked, (SELECT count(*) FROM joined_leak l
	WHERE l.program = b.program AND l.first_build = b.number) AS new_leaks
FROM numbered_build b;

-- Of programs that have several builds: what the first one leaks may be older.
CREATE TEMP VIEW brought_leak AS
SELECT l.program, b.build, l.fingerprint, l.bytes, l.cores, later.build AS until, l.kind
FROM joined_leak l JOIN numbered_build b ON b.program = l.program AND b.number = l.first_build
JOIN program p ON p.program = l.program AND p.builds > 1
LEFT JOIN numbered_build later ON later.program = l.program AND later.number = l.last_build AND later.number < p.builds;

-- Kinds of which three quarters of a build's cores have more than three quarters of the former build's: more than the
-- cores of one build differ. Three cores of a build are the least to say so, and 4 KiB the least to matter.
CREATE TEMP VIEW growth AS
SELECT b.program, b.build, former.build AS former_build, k.kind, coalesce(f.median, 0) AS former, k.median,
	coalesce(f.high, 0) AS former_high, k.low, 1.0 * k.median / nullif(f.median, 0) AS times, k.cores, k.holders,
	b.hours, former.hours AS former_hours,
	(SELECT max(m.allocated_by) FROM kind m JOIN core_build c ON c.core = m.core
		WHERE c.place = b.place AND m.kind = k.kind) AS allocated_by
FROM grown_kind g JOIN kind_spread k ON k.program = g.program AND k.number = g.number AND k.kind = g.kind
JOIN numbered_build b ON b.program = k.program AND b.number = k.number
JOIN numbered_build former ON former.program = b.program AND former.number = b.number - 1
LEFT JOIN kind_spread f ON f.program = k.program AND f.number = former.number AND f.kind = k.kind
WHERE k.low > coalesce(f.high, 0) AND k.median >= coalesce(f.median, 0) + 4096 AND b.cores > 2 AND former.cores > 2;

-- Kinds of which the cores of a build have more, the longer the process ran: a straight line through their bytes rises by
-- more than five times the error of its slope, and by 4 KiB from the youngest to the oldest. A core without the kind has none.
-- Five cores are the least to say so.
CREATE TEMP VIEW uptime_growth AS
WITH age AS (
	SELECT place, count(*) AS cores, min(hours) AS youngest, max(hours) AS oldest, sum(off * off) AS spread
	FROM core_build WHERE told = 1 GROUP BY place HAVING count(*) > 4 AND max(hours) >= 1.5 * min(hours)),
summed AS (
	SELECT program, number, kind, by_age, told, squares FROM build_kind WHERE by_age > 0
	UNION ALL SELECT b.program, b.number, whole.kind, sum(whole.bytes * c.off), sum(whole.bytes * c.told),
		sum(whole.bytes * c.told * whole.bytes)
	FROM (SELECT id, 'all kinds' AS kind, used_bytes AS bytes FROM analysed
		UNION ALL SELECT id, 'leaked', leaked_bytes FROM analysed) AS whole
	JOIN core_build c ON c.core = whole.id JOIN numbered_build b ON b.place = c.place
	GROUP BY b.program, b.number, whole.kind),
line AS (
	SELECT s.program, b.build, s.number, b.place, s.kind, a.cores, a.youngest, a.oldest, s.by_age / a.spread AS slope,
		s.by_age * s.by_age / a.spread AS explained, s.squares - s.told * s.told / a.cores AS differing
	FROM summed s JOIN numbered_build b ON b.program = s.program AND b.number = s.number JOIN age a ON a.place = b.place
	WHERE s.by_age > 0 AND a.spread > 0)
SELECT program, build, kind, CAST(round(slope) AS BIGINT) AS bytes_per_hour, cores,
	CAST(round(youngest) AS BIGINT) AS youngest, CAST(round(oldest) AS BIGINT) AS oldest,
	(SELECT max(m.allocated_by) FROM kind m JOIN core_build c ON c.core = m.core
		WHERE c.place = line.place AND m.kind = line.kind) AS allocated_by
FROM line WHERE slope * (oldest - youngest) >= 4096 AND explained * (cores - 2) > 25 * (differing - explained);

-- Averages of a day, which is named by its first second since 1970.
CREATE TEMP VIEW trend AS
SELECT program, second - second % 86400 AS day, count(*) AS cores, CAST((sum(used_bytes) - sum(used_bytes) % count(*)) / count(*) AS BIGINT) AS used,
	CAST((sum(leaked_bytes) - sum(leaked_bytes) % count(*)) / count(*) AS BIGINT) AS leaked
FROM (SELECT a.*, CAST(time AS BIGINT) AS second FROM analysed a WHERE time IS NOT NULL) AS dated
GROUP BY program, second - second % 86400;

-- Cores of one build are alike, so only three or more of it tell what is far more.
CREATE TEMP VIEW outlier AS
SELECT a.used_bytes AS used, s.median, a.program, a.build, a.host, (SELECT k.kind FROM kind k
	JOIN build_kind m ON m.program = a.program AND m.number = b.number AND m.kind = k.kind
	WHERE k.core = a.id ORDER BY k.bytes - 1.0 * m.bytes / m.cores DESC, k.kind LIMIT 1) AS kind, a.path AS core
FROM analysed a JOIN numbered_build b ON b.program = a.program AND b.build = a.build
JOIN kind_spread s ON s.program = a.program AND s.number = b.number AND s.kind = 'all kinds'
WHERE b.cores > 2 AND a.used_bytes > 2 * s.median;

CREATE TEMP VIEW common_kind AS
SELECT j.program, 1.0 * j.holders / p.cores AS share_of_cores,
	CAST((j.count - j.count % j.holders) / j.holders AS BIGINT) AS count,
	CAST((j.bytes - j.bytes % j.holders) / j.holders AS BIGINT) AS bytes, j.most, j.kind
FROM joined_kind j JOIN program p ON p.program = j.program;

CREATE TEMP VIEW common_use AS
SELECT a.program, u.memory, u.use, CAST((sum(u.mapped) - sum(u.mapped) % p.cores) / p.cores AS BIGINT) AS mapped,
	CAST((sum(u.resident) - sum(u.resident) % p.cores) / p.cores AS BIGINT) AS resident
FROM bill u JOIN analysed a ON a.id = u.core JOIN program p ON p.program = a.program
GROUP BY a.program, p.cores, u.memory, u.use;

CREATE TEMP VIEW doubtful_core AS
SELECT coalesce(c.origin, c.path) AS core, c.host, coalesce(c.error, (SELECT min(f.message) FROM finding f
	WHERE f.core = c.id AND f.incomplete = 1)) AS why
FROM counted c WHERE c.error IS NOT NULL OR c.incomplete = 1;
