// A conversation with `heapcore mcp` by the official client, of version 1 (sdk) or 2 (client):
// assistants_client.cjs NODE-MODULES sdk|client HEAPCORE FOLDER CORE
const [modules, which, heapcore, folder, core] = process.argv.slice(2);
const path = `${modules}/@modelcontextprotocol/${which}/dist/`;
const isFirst = which === "sdk";
const { Client } = require(path + (isFirst ? "cjs/client/index.js" : "index.cjs"));
const { StdioClientTransport } = require(path + (isFirst ? "cjs/client/stdio.js" : "stdio.cjs"));

const ENDLESS = `WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number)
	SELECT count(*) FROM number`;

async function failure(promise) {
	try {
		await promise;
	} catch (error) {
		return error.code;
	}
}

(async () => {
	const client = new Client({ name: "test", version: "1" },
		{ versionNegotiation: { mode: "auto" } });
	const seen = { errors: [], progress: [] };
	const call = (name, args, options) =>
		client.callTool({ name, arguments: args }, ...(isFirst ? [undefined, options] : [options]));
	const text = async (name, args) => (await call(name, args)).content[1].text;
	const stop = new AbortController();
	const transport = new StdioClientTransport({
		command: heapcore, args: ["mcp", folder], stderr: "pipe" });

	client.onerror = (error) => seen.errors.push(String(error));
	transport.setProtocolVersion = (version) => seen.version = version;
	await client.connect(transport);
	seen.version ??= client.getNegotiatedProtocolVersion();
	seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
	seen.cores = (await call("open", {})).structuredContent.tables[0].rows.length;
	seen.opened = await text("open", { core });
	seen.leaked = (await call("summarize", { set: "leaked" })).structuredContent.tables.length;
	seen.mistake = await call("list", { set: "usd" });
	await call("sql", { query: ENDLESS }, {
		signal: stop.signal,
		onprogress: ({ progress }) => {
			seen.progress.push(progress);
			if (seen.progress.length == 2)
				stop.abort("enough");
		},
	}).catch((error) => seen.stopped = String(error));
	seen.one = (await call("sql", { query: "SELECT 1 AS one" })).structuredContent.tables[0].rows;
	seen.resources = (await client.listResources()).resources.map((resource) => resource.uri);
	seen.report = (await client.readResource({ uri: seen.resources[0] })).contents[0].text;
	seen.none = await failure(client.readResource({ uri: "heapcore://none" }));
	seen.steal = await failure(call("steal", {}));
	await client.close();
	console.log(JSON.stringify(seen));
})();
