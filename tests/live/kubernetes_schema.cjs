// Mistakes in an object of Kubernetes: kubernetes_schema.cjs NODE-MODULES IoK8sApiBatchV1Job < JOB.json
// The schema's validator lets unknown keys pass, and never reads them: so a key that is not read is unknown.
const { validate } = require(`${process.argv[2]}/kubernetes-models/_schemas/${process.argv[3]}.js`);
const read = new Set(), all = [];

function watched(value, path) {
	if (value === null || typeof value !== "object")
		return value;
	return new Proxy(value, {
		get(target, key) {
			const to = `${path}/${String(key)}`;
			if (!read.has(to) && Object.hasOwn(target, key)) {
				read.add(to);
			}
			return watched(target[key], to);
		},
	});
}

function collect(value, path) {
	for (const key of value !== null && typeof value === "object" ? Object.keys(value) : []) {
		all.push(`${path}/${key}`);
		collect(value[key], `${path}/${key}`);
	}
}

const job = JSON.parse(require("fs").readFileSync(0));
collect(job, "");
validate(watched(job, ""));
for (const error of validate.errors ?? [])
	console.log(error.instancePath, error.keyword, error.params);
for (const path of all.filter((path) => !read.has(path)))
	console.log(path, "is unknown");
