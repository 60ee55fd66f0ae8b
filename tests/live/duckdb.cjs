// Run SQL from standard input in DuckDB, and write the rows of the last statement: duckdb.cjs NODE-MODULES FILE
const { DuckDBInstance } = require(process.argv[2] + "/@duckdb/node-api");

(async () => {
	const connection = await (await DuckDBInstance.create(process.argv[3])).connect();
	const reader = await connection.runAndReadAll(require("fs").readFileSync(0, "utf8"));
	console.log(JSON.stringify(reader.getRowObjectsJson()));
})();
